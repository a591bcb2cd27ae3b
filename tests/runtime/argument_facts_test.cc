// What a launch's arguments are like, and which compiled variant may take them.
#include "heddle/runtime/argument_facts.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/argument_plan.h"
#include "heddle/runtime/specialize.h"

namespace heddle::runtime {
namespace {

using ir::FactKind;

// Two tensors of f32, the first of which is only read.
struct Call {
  uint64_t address[2] = {0x10000, 0x20000};
  int64_t extents[2][2] = {{64, 48}, {64, 48}};
  int64_t strides[2][2] = {{48, 1}, {48, 1}};

  std::vector<Argument> arguments() const {
    std::vector<Argument> list;
    for (int i = 0; i < 2; ++i) {
      list.push_back(tensor_argument(address[i], extents[i], strides[i], 2, 4));
    }
    return list;
  }
};

std::vector<ir::ParamInfo> params() {
  const ir::Type view = ir::Type::view(ir::Scalar::kF32, ir::Space::kGlobal, 2);
  ir::Type read_only = view;
  read_only.read_only = true;
  std::vector<ir::ParamInfo> list(2);
  list[0].name = "x";
  list[0].type = read_only;
  list[1].name = "y";
  list[1].type = view;
  return list;
}

// One change of a call for each kind of fact, and the fact that it changes.
struct Change {
  ir::Fact fact;
  void (*apply)(Call&);
};
const Change kChanges[] = {
    {{FactKind::kAlignment, 0, 0}, [](Call& c) { c.address[0] += 4; }},
    {{FactKind::kExtentDivisor, 0, 1}, [](Call& c) { c.extents[0][1] = 47; }},
    {{FactKind::kExtentDivisor, 0, 0}, [](Call& c) { c.extents[0][0] = 63; }},
    {{FactKind::kStrideDivisor, 0, 0}, [](Call& c) { c.strides[0][0] = 49; }},
    {{FactKind::kUnitStride, 0, 1}, [](Call& c) { c.strides[0][1] = 2; }},
    {{FactKind::kFits32, 0, 0}, [](Call& c) { c.strides[0][0] = int64_t{1} << 30; }},
    {{FactKind::kExtentFits32, 0, 0}, [](Call& c) { c.extents[0][0] = int64_t{1} << 32; }},
    {{FactKind::kNoOverlap, 0, 0}, [](Call& c) { c.address[0] = c.address[1] + 64; }},
    {{FactKind::kExtent, 0, 1}, [](Call& c) { c.extents[0][1] = 32; }},
    {{FactKind::kAlignment, 1, 0}, [](Call& c) { c.address[1] += 8; }},
    {{FactKind::kStrideDivisor, 1, 0}, [](Call& c) { c.strides[1][0] = 50; }},
};

bool fits(absl::Span<const ir::Guard> guards, Arguments arguments) {
  const std::vector<ir::ParamInfo> own = params();
  return ArgumentPlan(guards, own, {}).fits(arguments);
}

TEST(ArgumentFacts, EachGuardKeepsOutWhatItIsAbout) {
  for (size_t i = 0; i < std::size(kChanges); ++i) {
    SCOPED_TRACE(i);
    const Change& change = kChanges[i];
    const Call usual;
    Call other;
    change.apply(other);
    const int64_t value = fact_value(change.fact, params(), usual.arguments());
    const int64_t changed = fact_value(change.fact, params(), other.arguments());
    EXPECT_NE(value, changed);
    const ir::Guard guard{change.fact, value};
    EXPECT_TRUE(fits({&guard, 1}, usual.arguments()));
    EXPECT_FALSE(fits({&guard, 1}, other.arguments()));
    // Among others that hold, too.
    const ir::Guard many[] = {{{FactKind::kUnitStride, 1, 1}, 1}, guard};
    EXPECT_TRUE(fits(many, usual.arguments()));
    EXPECT_FALSE(fits(many, other.arguments()));
    EXPECT_TRUE(satisfies(guard, value));
    EXPECT_EQ(satisfies(guard, changed), changed > value && change.fact.kind != FactKind::kExtent);
  }
}

TEST(ArgumentFacts, HaveTheseValues) {
  const Call call;
  const auto value = [&](FactKind kind, int param, int dim) {
    return fact_value({kind, static_cast<uint16_t>(param), static_cast<uint8_t>(dim)}, params(),
                      call.arguments());
  };
  EXPECT_EQ(value(FactKind::kAlignment, 0, 0), 32);
  EXPECT_EQ(value(FactKind::kExtentDivisor, 0, 0), 16);
  EXPECT_EQ(value(FactKind::kStrideDivisor, 0, 0), 16);
  EXPECT_EQ(value(FactKind::kStrideDivisor, 0, 1), 1);
  EXPECT_EQ(value(FactKind::kUnitStride, 0, 0), 0);
  EXPECT_EQ(value(FactKind::kUnitStride, 0, 1), 1);
  EXPECT_EQ(value(FactKind::kFits32, 0, 0), 1);
  EXPECT_EQ(value(FactKind::kNoOverlap, 0, 0), 1);
  EXPECT_EQ(value(FactKind::kExtent, 0, 1), 48);
}

// The plan's tests are fact_value()'s, for every value of every fact.
TEST(ArgumentPlan, TestsFactsAsTheyAreComputed) {
  for (const int64_t number : {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    Call call;
    call.address[0] += static_cast<uint64_t>(4 * number);
    call.address[1] += static_cast<uint64_t>(64 * number);
    call.extents[0][0] = call.extents[1][1] = number;
    call.strides[0][0] = call.strides[1][1] = number;
    const std::vector<ir::ParamInfo> own = params();
    const std::vector<Argument> arguments = call.arguments();
    for (const ir::Guard& fact : all_facts(own, arguments, *ir::find_target("sm_100a"))) {
      EXPECT_TRUE(fits({&fact, 1}, arguments)) << ir::info(fact.fact.kind).name << " " << number;
      // And of other values it fits none.
      const bool power = ir::info(fact.fact.kind).values == ir::FactValue::kPowerOfTwo;
      for (const int64_t other : {0, 1, 2, 4, 8, 16, 32}) {
        // An alignment of 16 is what code of accesses of 16 bytes asks for: more is as good.
        const bool asks_for_less =
            fact.fact.kind == FactKind::kAlignment && other == 16 && fact.value == 32;
        const bool is_none = power ? other == 0 : fact.fact.kind != FactKind::kExtent && other > 1;
        if (other == fact.value || asks_for_less || is_none) continue;
        if (power && fact.fact.kind != FactKind::kAlignment && other > 16) continue;
        const ir::Guard wrong{fact.fact, other};
        EXPECT_FALSE(fits({&wrong, 1}, arguments))
            << ir::info(fact.fact.kind).name << " " << fact.value << " is not " << other;
      }
    }
  }
}

// Code of accesses of 16 bytes was told of no more, and takes what is aligned better.
TEST(ArgumentPlan, AnAlignmentOf16IsThatOrMore) {
  const ir::Guard guard{{FactKind::kAlignment, 0, 0}, 16};
  Call call;
  for (const uint64_t address : {0x10000, 0x10010, 0x10020}) {
    call.address[0] = address;
    EXPECT_TRUE(fits({&guard, 1}, call.arguments())) << address;
  }
  call.address[0] = 0x10008;
  EXPECT_FALSE(fits({&guard, 1}, call.arguments()));
}

TEST(ArgumentPlan, PacksEachWordWhereItBelongs) {
  const std::vector<ir::ParamInfo> own = params();
  ir::ParamLayout layout;
  layout.slots = {{ir::SlotKind::kAddress, 0, 0, 0, 8},
                  {ir::SlotKind::kExtent, 0, 1, 8, 8},
                  {ir::SlotKind::kStride, 1, 0, 16, 8},
                  {ir::SlotKind::kScalar, 1, 0, 24, 4}};
  layout.bytes = 28;
  Call call;
  call.extents[0][1] = 11;
  call.strides[1][0] = 77;
  std::vector<std::byte> block(layout.bytes + kPackSlack);
  ArgumentPlan({}, own, layout).pack(call.arguments(), block.data());
  uint64_t words[4];
  std::memcpy(words, block.data(), sizeof(words));
  EXPECT_THAT(words, testing::ElementsAre(0x10000, 11, 77, 0x20000));
}

// Usual tensors are measured in a short way, which gives what the long one does.
TEST(TensorArgument, IsMeasuredAlikeBothWays) {
  const int64_t numbers[] = {
      -1, 0, 1, 2, 3, 100, (1 << 26) - 1, 1 << 26, int64_t{1} << 31, int64_t{1} << 62, INT64_MAX};
  int compared = 0;
  for (const int64_t e0 : numbers) {
    for (const int64_t e1 : numbers) {
      for (const int64_t s0 : numbers) {
        for (const int64_t s1 :
             {int64_t{-5}, int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1} << 40}) {
          for (const uint64_t address :
               {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1002}, UINT64_MAX - 7}) {
            for (const int64_t capacity : {int64_t{-1}, int64_t{0}, int64_t{400}, int64_t{404}}) {
              const int64_t extents[] = {e0, e1}, strides[] = {s0, s1};
              const Argument one = tensor_argument(address, extents, strides, 2, 4, capacity);
              Argument other{.bits = address,
                             .extents = extents,
                             .strides = strides,
                             .capacity_bytes = capacity,
                             .rank = 2};
              measure_tensor(other, 4);
              ASSERT_EQ(one.begin, other.begin);
              ASSERT_EQ(one.end, other.end);
              ASSERT_EQ(one.fits32, other.fits32);
              ASSERT_EQ(one.sound, other.sound);
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 100'000);
}

// So much of i32 is left above the largest offset that constants may be taken off.
TEST(ArgumentFacts, OffsetsOf32BitsLeaveSomeToSpare) {
  const auto fits = [](int64_t last) {
    Call call;
    call.extents[0][0] = 2;
    call.extents[0][1] = 1;
    call.strides[0][0] = last;
    return fact_value({FactKind::kFits32, 0, 0}, params(), call.arguments());
  };
  EXPECT_EQ(fits(INT32_MAX - 65536), 1);
  EXPECT_EQ(fits(INT32_MAX - 65535), 0);
  // And of a usual tensor, which is measured in a short way: 65533 * 32768 + 32767 is that number.
  Call call;
  call.extents[0][0] = 65534;
  call.strides[0][0] = 32768;
  for (const int64_t columns : {32768, 32769}) {
    call.extents[0][1] = columns;
    EXPECT_EQ(fact_value({FactKind::kFits32, 0, 0}, params(), call.arguments()), columns == 32768);
  }
}

// All of them are asked, of each mode, and each is a value that a fact may have.
TEST(ArgumentFacts, AllFactsAreAllFacts) {
  const Call call;
  const std::vector<ir::Guard> facts = all_facts(params(), call.arguments(), ir::default_target());
  size_t expected = 0;
  for (const ir::FactInfo& row : ir::kFacts) expected += 2 * (row.per_dim ? 2 : 1);
  EXPECT_EQ(facts.size(), expected);
  for (const ir::Guard& guard : facts) {
    if (guard.fact.kind == FactKind::kAlignment) {
      EXPECT_EQ(guard.value, 16);  // the widest access
    } else {
      EXPECT_EQ(guard.value, fact_value(guard.fact, params(), call.arguments()));
    }
  }
}

// What a signature promises and what arguments that keep it are, is rounded alike for each target.
TEST(ArgumentFacts, SignaturesAndArgumentsAreRoundedAlike) {
  const auto kernel = define_kernel("k(x, y)", [](Tensor<const float, 2>, Tensor<float, 2>) {});
  Call call;
  call.extents[0][1] = call.extents[1][1] = 48;
  const ArgumentSpec spec = tensor({kAny, 48})
                                .strides({kAny, kAny})
                                .aligned(1 << 16)
                                .extents_divisible_by(64)
                                .strides_divisible_by(48)
                                .no_overlap();
  for (const char* name : {"sm_90a", "sm_100a"}) {
    const ir::Target& target = *ir::find_target(name);
    const auto promised = specialize(kernel.source(), Signature{spec, spec}, target);
    ASSERT_TRUE(promised.ok()) << promised.status();
    EXPECT_EQ(promised->target, &target);
    const ir::Specialization known = specialize(kernel.source(), call.arguments(), target);
    EXPECT_EQ(known.target, &target);
    int compared = 0;
    for (const ir::Guard& promise : promised->facts) {
      // One divisor for all strides, and the last one here is 1.
      if (promise.fact.kind == FactKind::kStrideDivisor && promise.fact.dim == 1) continue;
      EXPECT_NE(std::find(known.facts.begin(), known.facts.end(), promise), known.facts.end())
          << name << ", fact " << ir::info(promise.fact.kind).name << " = " << promise.value;
      compared += promise.fact.kind == FactKind::kAlignment;
    }
    EXPECT_EQ(compared, 2);
    EXPECT_EQ(promised->facts[0].value, target.max_access_bytes) << "the alignment of x";
  }
}

TEST(ArgumentFacts, AreDescribedAsWhatTheArgumentHas) {
  const auto says = [](FactKind kind, int64_t value, absl::string_view text) {
    EXPECT_EQ(describe_guard({{kind, 0, 2}, value}), text);
  };
  says(FactKind::kAlignment, 1, "starts at a multiple of 1 byte");
  says(FactKind::kAlignment, 16, "starts at a multiple of 16 bytes");
  says(FactKind::kExtentDivisor, 1, "has an odd extent in mode 2");
  says(FactKind::kExtentDivisor, 4, "has an extent in mode 2 that 4 divides");
  says(FactKind::kStrideDivisor, 1, "has an odd stride in mode 2");
  says(FactKind::kStrideDivisor, 8, "has a stride in mode 2 that 8 divides");
  says(FactKind::kUnitStride, 1, "is contiguous along mode 2");
  says(FactKind::kUnitStride, 0, "is not contiguous along mode 2");
  says(FactKind::kFits32, 1, "has offsets that are not negative and fit in 31 bits");
  says(FactKind::kFits32, 0, "has offsets that are negative or do not fit in 31 bits");
  says(FactKind::kExtentFits32, 1, "has an extent in mode 2 that fits in 31 bits");
  says(FactKind::kExtentFits32, 0, "has an extent in mode 2 that does not fit in 31 bits");
  says(FactKind::kNoOverlap, 1, "shares no memory with an argument that the kernel writes");
  says(FactKind::kNoOverlap, 0, "shares memory with an argument that the kernel writes");
  says(FactKind::kExtent, 128, "has extent 128 in mode 2");
}

}  // namespace
}  // namespace heddle::runtime
