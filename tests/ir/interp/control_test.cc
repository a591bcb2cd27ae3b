// Control flow with lanes that part ways.
#include <cstdint>
#include <limits>
#include <numeric>

#include "absl/numeric/int128.h"
#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// if (t < 20) { if (t % 2 == 0) r = 1 else r = 2 } else r = 3, as values.
TEST(InterpControl, NestedIfsGiveEachLaneItsBranch) {
  for (const int threads : {32, 40, 7}) {
    KernelTest t;
    const ValueId out = t.tensor("out", Scalar::kI32, {threads});
    const ValueId i = t.thread();
    const Type result[] = {kI32Type};
    const OpId outer = t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(20)}), result);
    const ValueId odd = t.op(Opcode::kRem, {i, t.i32(2)});
    const OpId inner = t.b.begin_if(t.op(Opcode::kEq, {odd, t.i32(0)}), result);
    t.b.yield({t.i32(1)});
    t.b.next_region();
    t.b.yield({t.i32(2)});
    t.b.end_region();
    t.b.yield({t.kernel.op(inner).result()});
    t.b.next_region();
    t.b.yield({t.i32(3)});
    t.b.end_region();
    t.store(out, i, t.kernel.op(outer).result());
    ASSERT_OK(t.run({.block = {threads, 1, 1}}));
    const std::vector<int32_t> got = t.read<int32_t>(0);
    for (int k = 0; k < threads; ++k) {
      EXPECT_EQ(got[k], k >= 20 ? 3 : k % 2 == 0 ? 1 : 2) << k << " of " << threads;
    }
  }
}

TEST(InterpControl, IfWithoutElseLeavesOtherLanesAlone) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32});
  const ValueId i = t.thread();
  t.store(out, i, t.i32(7));
  t.b.begin_if(t.op(Opcode::kGe, {i, t.i32(30)}));
  t.store(out, i, i);
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
  ASSERT_OK(t.run({}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int k = 0; k < 32; ++k) EXPECT_EQ(got[k], k >= 30 ? k : 7);
}

// Each lane sums start, start + step, … below stop, with its own three numbers.
struct ForCase {
  int64_t start, stop, step;
};

template <class T>
void expect_sums(const std::vector<ForCase>& cases, Scalar scalar, bool constant_step) {
  KernelTest t;
  const int n = static_cast<int>(cases.size());
  const ValueId starts = t.tensor("start", scalar, {n});
  const ValueId stops = t.tensor("stop", scalar, {n});
  const ValueId steps = t.tensor("step", scalar, {n});
  const ValueId sums = t.tensor("sum", Scalar::kI64, {n});
  const ValueId trips = t.tensor("trips", Scalar::kI64, {n});
  const ValueId i = t.thread();
  const ValueId step =
      constant_step ? t.b.constant_int(Type::of(scalar), cases[0].step) : t.load(steps, i);
  const ValueId init[] = {t.i64(0), t.i64(0)};
  const OpId loop = t.b.begin_for(t.load(starts, i), t.load(stops, i), step, init);
  const auto args = t.kernel.region(t.b.region()).args;
  const ValueId wide = t.op(Opcode::kConvert, {args[0]}, kI64Type);
  t.b.yield({t.op(Opcode::kAdd, {args[1], wide}), t.op(Opcode::kAdd, {args[2], t.i64(1)})});
  t.b.end_region();
  t.store(sums, i, t.kernel.op(loop).results[0]);
  t.store(trips, i, t.kernel.op(loop).results[1]);
  std::vector<T> columns[3];
  for (const ForCase& c : cases) {
    columns[0].push_back(static_cast<T>(c.start));
    columns[1].push_back(static_cast<T>(c.stop));
    columns[2].push_back(static_cast<T>(c.step));
  }
  for (int k = 0; k < 3; ++k) t.fill(k, columns[k]);
  ASSERT_OK(t.run({.block = {n, 1, 1}}));
  const std::vector<int64_t> sum = t.read<int64_t>(3);
  const std::vector<int64_t> count = t.read<int64_t>(4);
  for (int k = 0; k < n; ++k) {
    absl::int128 expected = 0;
    int64_t expected_trips = 0;
    const ForCase& c = cases[k];
    for (absl::int128 j = c.start; c.step > 0 ? j < c.stop : j > c.stop; j += c.step) {
      expected += j;
      ++expected_trips;
    }
    EXPECT_EQ(sum[k], static_cast<int64_t>(absl::Int128Low64(expected))) << "lane " << k;
    EXPECT_EQ(count[k], expected_trips) << "lane " << k;
  }
}

constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();

TEST(InterpControl, ForRunsEachLanesOwnTrips) {
  expect_sums<int32_t>(
      {{0, 5, 1}, {0, 0, 1}, {3, 2, 1}, {-4, 9, 3}, {0, 10, 3}, {0, 9, 3}, {7, 8, 100}},
      Scalar::kI32, false);
  expect_sums<int64_t>(
      {{0, 5, 1}, {0, 0, 1}, {3, 2, 1}, {-4, 9, 3}, {0, 10, 3}, {0, 9, 3}, {7, 8, 100}},
      Scalar::kI64, false);
}

TEST(InterpControl, ForNeverWraps) {
  expect_sums<int32_t>({{kMax32 - 2, kMax32, 1},
                        {kMax32 - 1, kMax32, 2},
                        {kMin32, kMax32, kMax32},
                        {kMin32, kMax32, 1 << 30},
                        {kMax32, kMin32, 1},
                        {0, kMax32, kMax32}},
                       Scalar::kI32, false);
  expect_sums<int64_t>({{kMax64 - 2, kMax64, 1},
                        {kMin64, kMax64, kMax64},
                        {kMin64, kMax64, int64_t{1} << 62},
                        {kMax64, kMin64, 1},
                        {0, kMax64, kMax64}},
                       Scalar::kI64, false);
}

TEST(InterpControl, ForCountsDownWithANegativeConstantStep) {
  expect_sums<int32_t>({{5, 0, -2}, {0, 5, -2}, {kMin32 + 1, kMin32, -2}, {3, -4, -2}},
                       Scalar::kI32, true);
  expect_sums<int32_t>({{kMax32, kMin32, kMin32}, {0, kMin32, kMin32}, {-1, kMin32, kMin32}},
                       Scalar::kI32, true);
  expect_sums<int64_t>({{kMax64, kMin64, kMin64}, {1, -1, kMin64}}, Scalar::kI64, true);
}

// Carried values may trade places: (a, b) = (b, a + b), and rotate.
TEST(InterpControl, CarriedValuesArePassedAllAtOnce) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32, 3});
  const ValueId i = t.thread();
  const ValueId init[] = {t.i32(0), t.i32(1), t.i32(2)};
  const OpId loop = t.b.begin_for(t.i32(0), i, t.i32(1), init);
  const auto args = t.kernel.region(t.b.region()).args;
  t.b.yield({args[2], args[3], args[1]});
  t.b.end_region();
  const ValueId row = t.op(Opcode::kMul, {i, t.i32(3)});
  for (int k = 0; k < 3; ++k) {
    t.store(out, t.op(Opcode::kAdd, {row, t.i32(k)}), t.kernel.op(loop).results[k]);
  }
  ASSERT_OK(t.run({}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < 3; ++k) EXPECT_EQ(got[lane * 3 + k], (lane + k) % 3) << lane;
  }
}

// Collatz: each lane leaves the loop when its number reaches 1.
TEST(InterpControl, WhileLetsLanesLeaveOneByOne) {
  for (const int threads : {32, 50}) {
    KernelTest t;
    const ValueId out = t.tensor("out", Scalar::kI32, {threads});
    const ValueId i = t.thread();
    const ValueId init[] = {t.op(Opcode::kAdd, {i, t.i32(1)}), t.i32(0)};
    const OpId loop = t.b.begin_while(init);
    t.b.yield({t.op(Opcode::kNe, {t.kernel.region(t.b.region()).args[0], t.i32(1)})});
    t.b.next_region();
    const auto args = t.kernel.region(t.b.region()).args;
    const ValueId even = t.op(Opcode::kEq, {t.op(Opcode::kAnd, {args[0], t.i32(1)}), t.i32(0)});
    const ValueId half = t.op(Opcode::kDiv, {args[0], t.i32(2)});
    const ValueId triple = t.op(Opcode::kFma, {args[0], t.i32(3), t.i32(1)});
    t.b.yield(
        {t.op(Opcode::kSelect, {even, half, triple}), t.op(Opcode::kAdd, {args[1], t.i32(1)})});
    t.b.end_region();
    t.store(out, i, t.kernel.op(loop).results[1]);
    ASSERT_OK(t.run({.block = {threads, 1, 1}}));
    const std::vector<int32_t> got = t.read<int32_t>(0);
    for (int k = 0; k < threads; ++k) {
      int steps = 0;
      for (int n = k + 1; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
      EXPECT_EQ(got[k], steps) << k;
    }
  }
}

// for (a < t) if (a odd) for (b < a) sum += b: loops within branches within loops.
TEST(InterpControl, LoopsInBranchesInLoops) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32});
  const ValueId i = t.thread();
  const ValueId zero[] = {t.i32(0)};
  const OpId outer = t.b.begin_for(t.i32(0), i, t.i32(1), zero);
  const auto outer_args = t.kernel.region(t.b.region()).args;
  const Type result[] = {kI32Type};
  const ValueId odd = t.op(Opcode::kEq, {t.op(Opcode::kAnd, {outer_args[0], t.i32(1)}), t.i32(1)});
  const OpId branch = t.b.begin_if(odd, result);
  const ValueId so_far[] = {outer_args[1]};
  const OpId inner = t.b.begin_for(t.i32(0), outer_args[0], t.i32(1), so_far);
  const auto inner_args = t.kernel.region(t.b.region()).args;
  t.b.yield({t.op(Opcode::kAdd, {inner_args[1], inner_args[0]})});
  t.b.end_region();
  t.b.yield({t.kernel.op(inner).result()});
  t.b.next_region();
  t.b.yield({outer_args[1]});
  t.b.end_region();
  t.b.yield({t.kernel.op(branch).result()});
  t.b.end_region();
  t.store(out, i, t.kernel.op(outer).result());
  ASSERT_OK(t.run({}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int lane = 0; lane < 32; ++lane) {
    int sum = 0;
    for (int a = 0; a < lane; ++a) {
      for (int c = 0; a % 2 == 1 && c < a; ++c) sum += c;
    }
    EXPECT_EQ(got[lane], sum) << lane;
  }
}

// A variable of the thread, written in a branch and read behind it.
TEST(InterpControl, VariablesKeepWhatEachLaneStored) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kF32, {32, 2});
  const ValueId i = t.thread();
  const Type pair = Type::vector(Scalar::kF32, 2);
  const ValueId slot = t.op(Opcode::kVar, {t.op(Opcode::kSplat, {t.f32(1)}, pair)});
  t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(10)}));
  const ValueId as_float = t.op(Opcode::kConvert, {i}, kF32Type);
  t.op(Opcode::kVarStore, {slot, t.op(Opcode::kPack, {as_float, t.f32(2)}, pair)});
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
  const ValueId value = t.op(Opcode::kVarLoad, {slot});
  // A later store does not change what was loaded.
  t.op(Opcode::kVarStore, {slot, t.op(Opcode::kSplat, {t.f32(9)}, pair)});
  t.store(out, t.op(Opcode::kMul, {i, t.i32(2)}), value);
  ASSERT_OK(t.run({}));
  const std::vector<float> got = t.read<float>(0);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[2 * lane], lane < 10 ? lane : 1);
    EXPECT_EQ(got[2 * lane + 1], lane < 10 ? 2 : 1);
  }
}

// Views may be carried and chosen; extents and strides travel along.
TEST(InterpControl, ViewsPassThroughRegions) {
  KernelTest t;
  const ValueId a = t.tensor("a", Scalar::kI32, {4, 8});
  const ValueId c = t.dynamic_tensor("c", Scalar::kI32, {2, 16}, {100, 1});
  const ValueId out = t.tensor("out", Scalar::kI64, {32, 5});
  const ValueId i = t.thread();
  const Type view[] = {t.kernel.type(a)};
  const OpId branch = t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(16)}), view);
  t.b.yield({a});
  t.b.next_region();
  t.b.yield({t.op(Opcode::kSubview, {c, t.i32(3), t.i32(2), t.i32(4)}, t.kernel.type(c))});
  t.b.end_region();
  const ValueId chosen = t.kernel.op(branch).result();
  const ValueId row = t.op(Opcode::kMul, {i, t.i32(5)});
  for (int dim = 0; dim < 2; ++dim) {
    t.store(out, t.op(Opcode::kAdd, {row, t.i32(dim)}),
            t.op(Opcode::kExtent, {chosen}, kI64Type, {{AttrKey::kDim, dim}}));
    t.store(out, t.op(Opcode::kAdd, {row, t.i32(2 + dim)}),
            t.op(Opcode::kStride, {chosen}, kI64Type, {{AttrKey::kDim, dim}}));
  }
  t.store(out, t.op(Opcode::kAdd, {row, t.i32(4)}),
          t.op(Opcode::kConvert, {t.load(chosen, t.i32(1))}, kI64Type));
  std::vector<int32_t> a_values(32), c_values(116);
  std::iota(a_values.begin(), a_values.end(), 0);
  std::iota(c_values.begin(), c_values.end(), 1000);
  t.fill(0, a_values);
  t.fill(1, c_values);
  ASSERT_OK(t.run({}));
  const std::vector<int64_t> got = t.read<int64_t>(2);
  EXPECT_THAT(std::vector<int64_t>(got.begin(), got.begin() + 5), ElementsAre(4, 8, 8, 1, 1));
  EXPECT_THAT(std::vector<int64_t>(got.end() - 5, got.end()), ElementsAre(2, 4, 4, 1, 1004));
}

TEST(InterpControl, GridsAndBlocksOfThreeAxes) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {2 * 3 * 2, 24, 8});
  const auto mul_add = [&](ValueId a, ValueId m, ValueId c) {
    return t.op(Opcode::kFma, {a, m, c});
  };
  ValueId x[3], bx[3], dim[3], grid[3];
  for (int axis = 0; axis < 3; ++axis) {
    x[axis] = t.axis(Opcode::kThreadIdx, axis);
    bx[axis] = t.axis(Opcode::kBlockIdx, axis);
    dim[axis] = t.axis(Opcode::kBlockDim, axis);
    grid[axis] = t.axis(Opcode::kGridDim, axis);
  }
  const ValueId block = mul_add(mul_add(bx[2], grid[1], bx[1]), grid[0], bx[0]);
  const ValueId thread = mul_add(mul_add(x[2], dim[1], x[1]), dim[0], x[0]);
  const ValueId base = t.op(Opcode::kMul, {mul_add(block, t.i32(24), thread), t.i32(8)});
  const ValueId values[] = {
      x[0], x[1], x[2], bx[0], bx[1], bx[2], t.op(Opcode::kLaneId, {}), t.op(Opcode::kWarpId, {})};
  for (int k = 0; k < 8; ++k) t.store(out, t.op(Opcode::kAdd, {base, t.i32(k)}), values[k]);
  ASSERT_OK(t.run({.grid = {2, 3, 2}, .block = {4, 3, 2}}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int g = 0; g < 12; ++g) {
    for (int k = 0; k < 24; ++k) {
      const int* row = &got[(g * 24 + k) * 8];
      EXPECT_THAT(std::vector<int32_t>(row, row + 8),
                  ElementsAre(k % 4, k / 4 % 3, k / 12, g % 2, g / 2 % 3, g / 6, k % 32, k / 32));
    }
  }
}

TEST(InterpControl, RegistersAreReusedButNotWhileAlive) {
  // A long chain of short-lived values needs little room, and a value from before a loop survives
  // it.
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32});
  const ValueId i = t.thread();
  const ValueId kept = t.op(Opcode::kMul, {i, t.i32(3)});
  ValueId sum = i;
  for (int k = 0; k < 200; ++k) sum = t.op(Opcode::kAdd, {sum, t.i32(1)});
  const ValueId init[] = {sum};
  const OpId loop = t.b.begin_for(t.i32(0), t.i32(4), t.i32(1), init);
  ValueId next = t.kernel.region(t.b.region()).args[1];
  for (int k = 0; k < 50; ++k) next = t.op(Opcode::kAdd, {next, t.i32(2)});
  t.b.yield({t.op(Opcode::kAdd, {next, kept})});
  t.b.end_region();
  t.store(out, i, t.kernel.op(loop).result());
  ASSERT_OK(t.run({}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane + 200 + 4 * (100 + 3 * lane));
  }
  const StatusOr<Program> program = compile(t.kernel);
  ASSERT_TRUE(program.ok());
  EXPECT_LT(program->register_bytes(), 4096);
}

}  // namespace
}  // namespace heddle::ir::interp
