// Division by numbers that the launch knows, and what else the host computes for a launch.
#include "heddle/dsl/math/divmod.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "absl/algorithm/container.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/compile.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Numbers of `bits` bits at which divisions go wrong: powers of two and their neighbours, the ends,
// and others.
std::vector<uint32_t> edges(int bits, int others) {
  std::vector<uint32_t> numbers;
  const uint32_t most = ~uint32_t{0} >> (32 - bits);
  for (int i = 0; i < bits; ++i) {
    const uint32_t power = uint32_t{1} << i;
    for (const uint32_t n : {power - 1, power, power + 1, most - power})
      numbers.push_back(n & most);
  }
  for (const uint32_t n : {3u, 5u, 6u, 7u, 10u, 641u, 1000u, 65535u, 1000003u})
    numbers.push_back(n);
  std::mt19937 random(7);
  for (int i = 0; i < others; ++i) numbers.push_back(random() >> (32 - bits) >> random() % bits);
  return numbers;
}

const auto divmods = define_kernel(
    "divmods(n, d, q, r)",
    [](Tensor<const uint32_t, 1> n, Int d, Tensor<uint32_t, 1> q, Tensor<uint32_t, 1> r) {
      const FastDivmod by(d);
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < n.shape(0), [&] {
        const auto [quotient, remainder] = by.divmod(n(i));
        q(i) = quotient;
        r(i) = remainder;
      });
    });

TEST(FastDivmods, AreQuotientAndRemainder) {
  const Stream stream = test_device().create_stream().value();
  std::vector<uint32_t> n = edges(32, 200);
  const auto count = static_cast<int64_t>(n.size());
  const Buffer in = test_device().upload(absl::MakeConstSpan(n)).value();
  const Buffer q = test_device().upload(absl::MakeConstSpan(n)).value();
  const Buffer r = test_device().upload(absl::MakeConstSpan(n)).value();
  for (const uint32_t d : edges(31, 20)) {
    if (d == 0) continue;
    ASSERT_THAT(divmods.launch(stream, {.grid = (count + 127) / 128, .block = 128},
                               as_tensor<const uint32_t>(in, {count}), static_cast<int32_t>(d),
                               as_tensor<uint32_t>(q, {count}), as_tensor<uint32_t>(r, {count})),
                IsOk());
    const std::vector<uint32_t> quotients = q.download<uint32_t>(stream).value();
    const std::vector<uint32_t> remainders = r.download<uint32_t>(stream).value();
    for (size_t i = 0; i < n.size(); ++i) {
      ASSERT_EQ(quotients[i], n[i] / d) << n[i] << " / " << d;
      ASSERT_EQ(remainders[i], n[i] % d) << n[i] << " % " << d;
    }
  }
}

// What a GPU gets: the numbers behind the arguments in the parameter block.
TEST(FastDivmods, AMultiplierForEveryDivisor) {
  const auto compiled = divmods.compile(
      Signature{tensor({kAny}), scalar(), tensor({kAny}), tensor({kAny})},
      CompileOptions{.block = {128, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->ptx(), Not(HasSubstr("div.")));
  EXPECT_THAT(compiled->ptx(), Not(HasSubstr("rem.")));
  const ir::ParamLayout& layout = compiled->compilation().layout;
  ASSERT_EQ(layout.at_launch.size(), 3u);
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes));
  const auto number = [&](size_t slot) {
    uint64_t value = 0;
    std::memcpy(&value, &block[static_cast<size_t>(layout.at_launch[slot].offset)],
                static_cast<size_t>(layout.at_launch[slot].bytes));
    return value;
  };
  // In any order: the addend has 64 bits, and of the others the shift is below 32.
  const auto addend = static_cast<size_t>(
      absl::c_find_if(layout.at_launch, [](const auto& slot) { return slot.bytes == 8; }) -
      layout.at_launch.begin());
  ASSERT_LT(addend, 3u);
  const std::vector<uint32_t> dividends = edges(32, 50);
  for (const uint32_t d : edges(31, 3000)) {
    if (d == 0) continue;
    std::memcpy(&block[static_cast<size_t>(layout.find(ir::SlotKind::kScalar, 1)->offset)], &d, 4);
    ir::LaunchDims dims;
    ASSERT_TRUE(compiled->compilation().at_launch.run(block.data(), dims));
    const auto [shift, multiplier] =
        std::minmax({number((addend + 1) % 3), number((addend + 2) % 3)});
    ASSERT_LT(shift, 32u);
    const auto quotient = [&, by = multiplier, places = shift](uint32_t n) {
      return static_cast<uint32_t>((n * by + number(addend)) >> 32) >> places;
    };
    for (const uint32_t n : dividends) ASSERT_EQ(quotient(n), n / d) << n << " / " << d;
    // Around multiples, where rounding shows first.
    for (uint64_t multiple = d; multiple < uint64_t{1} << 32;
         multiple += d * (multiple / 3 / d + 1)) {
      for (const uint64_t n : {multiple - 1, multiple}) {
        ASSERT_EQ(quotient(static_cast<uint32_t>(n)), n / d) << n << " / " << d;
      }
    }
    const uint64_t last = (uint64_t{1} << 32) / d * d - 1;
    ASSERT_EQ(quotient(static_cast<uint32_t>(last)), last / d) << last << " / " << d;
  }
}

TEST(FastDivmods, ByHostNumbersAndByTheKernelsOwn) {
  const auto got = run("own", {.block = 32}, 32, [](auto x, auto y) {
    const FastDivmod seven(7), own(x(thread_idx.x) + 1);
    const Int n = x(thread_idx.x) * 100;
    y(thread_idx.x) = n / seven + n % seven * 1000 + n / own * 10000 + n % own * 1000000;
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 32; ++i) {
    const int n = i * 100;
    EXPECT_EQ((*got)[static_cast<size_t>(i)],
              n / 7 + n % 7 * 1000 + n / (i + 1) * 10000 + n % (i + 1) * 1000000);
  }
}

TEST(FastDivmods, TakeHostNumbersToo) {
  const auto got = run("host", {.block = 1}, 5, [](auto x, auto y) {
    const FastDivmod by(x.shape(0));
    y(0) = 17 / by;
    y(1) = 17 % by;
    y(2) = by.divmod(24).quotient;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ElementsAre(3, 2, 4, 0, 0));
}

// However often a kernel divides by a number, the launch passes its multiplier once.
TEST(FastDivmods, TakeOnePlaceInTheParameters) {
  const auto kernel = define_kernel("often(x, y)", [](Tensor<const int, 2> x, Tensor<int, 1> y) {
    const Int n = thread_idx.x;
    const Tensor<const int> all = x;
    for (int k = 0; k < 300; ++k) {
      y(k) = n / FastDivmod(x.shape(0));
      If(n > k, [&] { y(k) = all(n * 3 + k); });
    }
  });
  const auto compiled =
      kernel.compile(Signature{tensor({kAny, kAny}), tensor({kAny})},
                     CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_EQ(compiled->compilation().layout.at_launch.size(), 3u);
}

TEST(FastDivmods, AreSharedAcrossLoopsAndBranches) {
  const auto got = run("loops", {.block = 4}, 12, [](auto x, auto y) {
    const FastDivmod by(x.shape(0) - 9);
    for (Int i : range(3)) {
      If(thread_idx.x != 1, [&] {
        const auto [q, r] = by.divmod(i * 4 + thread_idx.x);
        y(i * 4 + thread_idx.x) = q * 10 + r;
      });
    }
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ElementsAre(0, 0, 2, 10, 11, 0, 20, 21, 22, 0, 31, 32));
}

TEST(FastDivmods, RefuseAHostDivisorOfZero) {
  const auto zero =
      run("zero", {.block = 1}, 4, [](auto x, auto y) { y(0) = x(1) / FastDivmod(0); });
  ASSERT_FALSE(zero.ok());
  EXPECT_THAT(std::string(zero.status().message()),
              HasSubstr("a FastDivmod by 0\n  fix: divide by a positive number"));
}

TEST(FastDivmods, TheInterpreterChecksPromises) {
  if (test_device_name() != "interp") GTEST_SKIP() << "the interpreter checks promises";
  const auto negative = run("negative", {.block = 1}, 4,
                            [](auto x, auto y) { y(0) = (x(1) - 2) / FastDivmod(x.shape(0)); });
  ASSERT_FALSE(negative.ok());
  EXPECT_THAT(std::string(negative.status().message()), HasSubstr("a dividend, -1"));
  const auto none = run("none", {.block = 1}, 4,
                        [](auto x, auto y) { y(0) = x(1) / FastDivmod(x.shape(0) - 4); });
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("a divisor, 0"));
}

TEST(AtLaunch, IsComputedByTheHost) {
  const auto got = run("host", {.block = 4}, 4, [](auto x, auto y) {
    const Int n = x.shape(0);
    y(thread_idx.x) = at_launch(select(n > 3, n * n / 3, 7) << 2) + thread_idx.x;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ElementsAre(20, 21, 22, 23));
}

TEST(AtLaunch, NeedsWhatTheHostKnows) {
  const auto got = run("thread", {.block = 4}, 4, [](auto x, auto y) {
    y(thread_idx.x) = at_launch(x.shape(0) + thread_idx.x * 2);
  });
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()),
              AllOf(HasSubstr("'at_launch' of a value that the host cannot compute: it depends on "
                              "'thread_idx' at "),
                    HasSubstr("fix: make it of scalar parameters, extents and strides of "
                              "parameters, and constants, by arithmetic of integers")));
}

// What was compiled for a GPU, places for values of the launch included, runs here too.
TEST(AtLaunch, RunsOnTheInterpreterWhateverItWasCompiledFor) {
  const auto compiled =
      divmods.compile(Signature{tensor({kAny}), scalar(), tensor({kAny}), tensor({kAny})},
                      CompileOptions{.block = {4, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  const Device interp = Device::open("interp").value();
  const Stream stream = interp.create_stream().value();
  const auto on_interp = [&interp](const std::vector<uint32_t>& values) {
    return interp.upload(absl::MakeConstSpan(values)).value();
  };
  const Buffer n = on_interp({9, 10, 11, 12});
  const Buffer q = on_interp({0, 0, 0, 0});
  const Buffer r = on_interp({0, 0, 0, 0});
  ASSERT_THAT(compiled->launch(stream, {.block = 4}, as_tensor<const uint32_t>(n, {4}), 5,
                               as_tensor<uint32_t>(q, {4}), as_tensor<uint32_t>(r, {4})),
              IsOk());
  EXPECT_THAT(q.download<uint32_t>(stream).value(), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(r.download<uint32_t>(stream).value(), ElementsAre(4, 0, 1, 2));
}

// A coordinate from a number costs no division.
TEST(AtLaunch, LayoutsDivideWithMultipliers) {
  const auto kernel =
      define_kernel("linear(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
        const Tensor<const float> all = x;
        const Int i = block_idx.x * 128 + thread_idx.x;
        y(i) = all(i);
      });
  const auto compiled = kernel.compile(
      Signature{tensor({kAny, kAny}), tensor({kAny})},
      CompileOptions{.block = {128, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->ptx(), Not(HasSubstr("div.")));
  EXPECT_THAT(compiled->ptx(), Not(HasSubstr("rem.")));
  EXPECT_EQ(compiled->compilation().layout.at_launch.size(), 3u);
}

}  // namespace
}  // namespace heddle
