// Sums of neighbouring elements in one atomic: what the verifier lets pass, and what the
// interpreter makes of it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/float16.h"
#include "ir/interp/harness.h"
#include "ir/verify/support.h"

namespace heddle::ir::interp {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

ValueId add(KernelTest& t, ValueId view, ValueId value, ValueId offset) {
  return t.op(Opcode::kAtomic, {view, value, offset}, t.kernel.type(value),
              {{AttrKey::kOp, static_cast<int64_t>(AtomicOp::kAdd)}});
}

TEST(VectorAtomics, AddToEachElement) {
  for (const bool checks : {true, false}) {
    KernelTest t;
    const ValueId x = t.tensor("x", Scalar::kF32, {8});
    const ValueId old = t.tensor("old", Scalar::kF32, {128});
    const ValueId v = t.b.create(Opcode::kPack, {t.f32(1), t.f32(0.5f), t.f32(-2), t.f32(0)},
                                 Type::vector(Scalar::kF32, 4));
    const ValueId before = add(t, x, v, t.i32(4));
    t.store(old, t.op(Opcode::kMul, {t.thread(), t.i32(4)}), before);
    t.fill<float>(0, {9, 9, 9, 9, 1, 2, 3, 4});
    ASSERT_OK(t.run({.checks = checks}));
    EXPECT_THAT(t.read<float>(0), ElementsAre(9, 9, 9, 9, 33, 18, -61, 4));
    // One lane after the other.
    const std::vector<float> seen = t.read<float>(1);
    for (int lane = 0; lane < 32; ++lane) {
      const auto at = static_cast<size_t>(4 * lane);
      const auto n = static_cast<float>(lane);
      EXPECT_THAT(std::vector<float>(seen.begin() + 4 * lane, seen.begin() + 4 * lane + 4),
                  ElementsAre(1 + n, 2 + n / 2, 3 - 2 * n, 4))
          << at;
    }
  }
}

TEST(VectorAtomics, AddPairsOfHalvesInSharedMemory) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kBF16, {2});
  const ValueId tile = t.op(Opcode::kShared, {}, Type::view(Scalar::kBF16, Space::kShared, 1),
                            {{AttrKey::kExtents, t.kernel.intern_ints({2})}});
  const Type pair = Type::vector(Scalar::kBF16, 2);
  t.store(tile, t.i32(0), t.b.constant(pair, 0));
  add(t, tile, t.b.constant(pair, double_to_bf16(0.25)), t.i32(0));
  t.store(out, t.i32(0), t.load(tile, t.i32(0), pair));
  ASSERT_OK(t.run({}));
  EXPECT_THAT(t.read<uint16_t>(0), Each(double_to_bf16(8)));
}

TEST(VectorAtomics, WantTheWholeVectorAligned) {
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kF32, {8});
  t.line(5);
  add(t, x, t.b.constant(Type::vector(Scalar::kF32, 4), 0), t.i32(2));
  t.fill<float>(0, std::vector<float>(8));
  const std::string message = t.failure({.block = {1, 1, 1}});
  EXPECT_THAT(message, HasSubstr("kernel.cc:5"));
  EXPECT_THAT(message, HasSubstr("16"));
}

// A kernel with one atomic of a vector.
std::string mistakes(absl::string_view target, absl::string_view op, absl::string_view scalar,
                     int count, bool shared) {
  const std::string where = shared ? "%s" : "%x";
  return mistakes_of(absl::StrCat(
      "kernel @k(%x: view<", scalar,
      ", global, 1> [?] strides [1], %n: i32) block(32, 1, 1) "
      "target(",
      target, ") {\n%s = shared {extents = [64]} : view<", scalar, ", shared, 1>\n%v = load ",
      where, ", %n : vec<", scalar, ", ", count, ">\n%a = atomic ", where, ", %v, %n {op = ", op,
      "} : vec<", scalar, ", ", count, ">\nstore ", where, ", %a, %n\nstore %x, %v, %n\n}\n"));
}

TEST(VectorAtomics, AreThereForSomeTypesOnSomeTargets) {
  for (const char* target : {"sm_90", "sm_90a", "sm_100", "sm_120a"}) {
    for (const int count : {2, 4, 8}) {
      for (const char* scalar : {"f16", "bf16"}) {
        EXPECT_EQ(mistakes(target, "add", scalar, count, false), "");
      }
    }
    for (const int count : {2, 4}) EXPECT_EQ(mistakes(target, "add", "f32", count, false), "");
    for (const char* scalar : {"f16", "bf16"}) {
      EXPECT_EQ(mistakes(target, "add", scalar, 2, true), "");
    }
  }
  EXPECT_EQ(mistakes("sm_80", "add", "f16", 2, true), "");
}

TEST(VectorAtomics, AreRefusedElsewhere) {
  constexpr char kOneByOne[] = "update the elements one by one";
  EXPECT_EQ(mistakes("sm_80", "add", "f32", 4, false),
            "4: sm_80 has no atomic add of vec<f32, 4>; sm_90 is the first that has; compile the "
            "kernel for sm_90, or update the elements one by one");
  EXPECT_EQ(mistakes("sm_89", "add", "bf16", 2, true),
            "4: sm_89 has no atomic add of vec<bf16, 2>; sm_90 is the first that has; compile the "
            "kernel for sm_90, or update the elements one by one");
  EXPECT_EQ(mistakes("sm_90a", "add", "f16", 4, true),
            absl::StrCat("4: atomic add of vec<f16, 4> is there in global memory alone, not in "
                         "shared; ",
                         kOneByOne));
  for (const auto& [op, scalar, count] :
       {std::tuple{"max", "f16", 2}, {"add", "f64", 2}, {"add", "i32", 4}, {"exch", "f32", 2}}) {
    EXPECT_EQ(
        mistakes("sm_90a", op, scalar, count, false),
        absl::StrCat("4: no GPU has atomic ", op, " of vec<", scalar, ", ", count,
                     ">; of vectors there is add alone, of 2 or 4 f32 and of 2, 4 or 8 f16 or "
                     "bf16; ",
                     kOneByOne));
  }
}

}  // namespace
}  // namespace heddle::ir::interp
