// Views, accesses, vectors and memory of every size.
#include <numeric>

#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

using ::testing::ElementsAre;

TEST(InterpMemory, ExtentsAndStridesComeFromTheLaunchOrTheType) {
  KernelTest t;
  const ValueId dynamic = t.dynamic_tensor("dynamic", Scalar::kF32, {3, 5, 7}, {70, 10, 1});
  const ValueId fixed = t.tensor("fixed", Scalar::kF32, {2, 4});
  const ValueId out = t.tensor("out", Scalar::kI64, {16});
  int next = 0;
  const auto record = [&](Opcode opcode, ValueId view, int dim, Type type) {
    const ValueId value = t.op(opcode, {view}, type, {{AttrKey::kDim, dim}});
    t.store(out, t.i32(next++), t.op(Opcode::kConvert, {value}, kI64Type));
  };
  for (int dim = 0; dim < 3; ++dim) record(Opcode::kExtent, dynamic, dim, kI64Type);
  for (int dim = 0; dim < 3; ++dim) record(Opcode::kStride, dynamic, dim, kI32Type);
  for (int dim = 0; dim < 2; ++dim) record(Opcode::kExtent, fixed, dim, kI32Type);
  for (int dim = 0; dim < 2; ++dim) record(Opcode::kStride, fixed, dim, kI64Type);
  const ValueId part = t.op(Opcode::kSubview, {dynamic, t.i64(5), t.i64(2), t.i32(3), t.i32(4)},
                            t.kernel.type(dynamic));
  for (int dim = 0; dim < 3; ++dim) record(Opcode::kExtent, part, dim, kI64Type);
  for (int dim = 0; dim < 3; ++dim) record(Opcode::kStride, part, dim, kI64Type);
  ASSERT_OK(t.run({.block = {1, 1, 1}}));
  EXPECT_THAT(t.read<int64_t>(2), ElementsAre(3, 5, 7, 70, 10, 1, 2, 4, 4, 1, 2, 3, 4, 12, 4, 1));
}

TEST(InterpMemory, ScalarParametersOfEveryType) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kF64, {9});
  const struct {
    Scalar scalar;
    uint64_t bits;
    double value;
  } cases[] = {{Scalar::kBool, 1, 1},
               {Scalar::kI32, 0xFFFFFFFE, -2},
               {Scalar::kU32, 0xFFFFFFFE, 4294967294.0},
               {Scalar::kI64, ~uint64_t{4}, -5},
               {Scalar::kU64, uint64_t{1} << 63, 0x1p63},
               {Scalar::kF16, 0xC100, -2.5},
               {Scalar::kBF16, 0x40A0, 5},
               {Scalar::kF32, bits_of_f32(1.25f), 1.25},
               {Scalar::kF64, bits_of_f64(-0.75), -0.75}};
  std::vector<ValueId> params;
  for (const auto& c : cases) params.push_back(t.scalar_param("p", c.scalar, c.bits));
  for (int k = 0; k < 9; ++k) {
    t.store(out, t.i32(k), t.op(Opcode::kConvert, {params[k]}, Type::of(Scalar::kF64)));
  }
  ASSERT_OK(t.run({.block = {1, 1, 1}}));
  const std::vector<double> got = t.read<double>(0);
  for (int k = 0; k < 9; ++k) EXPECT_EQ(got[k], cases[k].value) << info(cases[k].scalar).name;
}

// Every vector type, in and out, with an offset of either width, over contiguous and scattered
// lanes.
TEST(InterpMemory, VectorsMoveAsOneAccess) {
  for (const Scalar s : {Scalar::kBool, Scalar::kF16, Scalar::kF32, Scalar::kI64}) {
    for (int count = 1; count * info(s).bits <= 128; count *= 2) {
      for (const bool wide : {false, true}) {
        for (const int step : {1, 3}) {
          for (const bool checks : {false, true}) {
            const int lanes = 40;
            const int64_t size = int64_t{lanes} * step * count;
            KernelTest t;
            const ValueId in = t.tensor("in", s, {size});
            const ValueId out = t.tensor("out", s, {size});
            ValueId offset = t.op(Opcode::kMul, {t.thread(), t.i32(step * count)});
            if (wide) offset = t.op(Opcode::kConvert, {offset}, kI64Type);
            const Type type = count == 1 ? Type::of(s) : Type::vector(s, count);
            t.store(out, offset, t.load(in, offset, type));
            const size_t bytes = static_cast<size_t>(size) * info(s).bits / 8;
            std::vector<uint8_t> data(bytes);
            for (size_t k = 0; k < bytes; ++k) {
              data[k] = s == Scalar::kBool ? k % 3 == 0 : static_cast<uint8_t>(k * 7 + 1);
            }
            t.fill(0, data);
            t.fill(1, std::vector<uint8_t>(bytes, 0));
            ASSERT_OK(t.run({.block = {lanes, 1, 1}, .checks = checks}));
            const std::vector<uint8_t> got = t.read<uint8_t>(1);
            const size_t access = static_cast<size_t>(count) * info(s).bits / 8;
            for (size_t k = 0; k < bytes; ++k) {
              const bool copied = k / access % static_cast<size_t>(step) == 0;
              ASSERT_EQ(got[k], copied ? data[k] : 0) << k;
            }
          }
        }
      }
    }
  }
}

TEST(InterpMemory, SharedMemoryIsOnePerBlock) {
  // Each block reverses its part of x through shared memory.
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kI32, {3 * 64});
  const ValueId out = t.tensor("out", Scalar::kI32, {3 * 64});
  const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{64});
  const ValueId tile = t.op(Opcode::kShared, {}, Type::view(Scalar::kI32, Space::kShared, 1),
                            {{AttrKey::kExtents, list}});
  const ValueId i = t.thread();
  const ValueId global = t.op(Opcode::kFma, {t.axis(Opcode::kBlockIdx, 0), t.i32(64), i});
  t.store(tile, i, t.load(x, global));
  t.op(Opcode::kBarrier, {});
  t.store(out, global, t.load(tile, t.op(Opcode::kSub, {t.i32(63), i})));
  std::vector<int32_t> values(3 * 64);
  std::iota(values.begin(), values.end(), 0);
  t.fill(0, values);
  ASSERT_OK(t.run({.grid = {3, 1, 1}, .block = {64, 1, 1}}));
  const std::vector<int32_t> got = t.read<int32_t>(1);
  for (int k = 0; k < 3 * 64; ++k) EXPECT_EQ(got[k], k / 64 * 64 + 63 - k % 64);
}

TEST(InterpMemory, StaticAndDynamicSharedMemoryLieApart) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32, 3});
  const auto shared = [&](Scalar s, int64_t extent) {
    const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{extent});
    return t.op(Opcode::kShared, {}, Type::view(s, Space::kShared, 1), {{AttrKey::kExtents, list}});
  };
  const ValueId bytes = shared(Scalar::kBool, 33);
  const ValueId words = shared(Scalar::kI32, 32);
  const ValueId dynamic =
      t.op(Opcode::kDynamicShared, {t.i32(32)}, Type::view(Scalar::kI32, Space::kShared, 1));
  const ValueId i = t.thread();
  const ValueId odd = t.op(Opcode::kEq, {t.op(Opcode::kAnd, {i, t.i32(1)}), t.i32(1)});
  t.store(bytes, i, odd);
  t.store(words, i, t.op(Opcode::kMul, {i, t.i32(10)}));
  t.store(dynamic, i, t.op(Opcode::kMul, {i, t.i32(100)}));
  const ValueId row = t.op(Opcode::kMul, {i, t.i32(3)});
  const ValueId values[] = {t.op(Opcode::kConvert, {t.load(bytes, i)}, kI32Type), t.load(words, i),
                            t.load(dynamic, i)};
  for (int k = 0; k < 3; ++k) t.store(out, t.op(Opcode::kAdd, {row, t.i32(k)}), values[k]);
  ASSERT_OK(t.run({.dynamic_shared_bytes = 128}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int k = 0; k < 32; ++k) {
    EXPECT_THAT(std::vector<int32_t>(&got[k * 3], &got[k * 3] + 3),
                ElementsAre(k % 2, k * 10, k * 100));
  }
}

// More than 2^31 elements: few accesses through huge strides over memory that is mapped sparsely.
TEST(InterpMemory, TensorsOfMoreThan2To31Elements) {
  KernelTest t;
  const int64_t stride = int64_t{1} << 30;
  const int64_t rows = 8;
  const ValueId x = t.dynamic_tensor("x", Scalar::kF32, {rows, stride}, {stride, 1});
  const ValueId i = t.thread();
  const ValueId row = t.op(Opcode::kConvert, {i}, kI64Type);
  const ValueId last =
      t.op(Opcode::kSub, {t.op(Opcode::kStride, {x}, kI64Type, {{AttrKey::kDim, 0}}), t.i64(1)});
  const ValueId offset =
      t.op(Opcode::kFma, {row, t.op(Opcode::kStride, {x}, kI64Type, {{AttrKey::kDim, 0}}), last});
  const ValueId ok = t.op(Opcode::kBounds, {x, row, last});
  t.op(Opcode::kStore, {x, t.op(Opcode::kConvert, {i}, kF32Type), offset, ok});
  ASSERT_OK(t.run({.block = {static_cast<int>(rows), 1, 1}}));
  for (int64_t k = 0; k < rows; ++k) {
    float value = -1;
    ASSERT_OK(t.memory.copy_to_host(
        &value, t.address(0) + static_cast<uint64_t>(k * stride + stride - 1) * 4, 4));
    EXPECT_EQ(value, static_cast<float>(k));
  }
}

TEST(InterpMemory, CountersSayWhatEachThreadDid) {
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kF32, {40, 4});
  const Type quad = Type::vector(Scalar::kF32, 4);
  const ValueId i = t.thread();
  const ValueId offset = t.op(Opcode::kMul, {i, t.i32(4)});
  t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(36)}));
  const ValueId value = t.load(x, offset, quad);
  t.store(x, offset, t.op(Opcode::kAdd, {value, value}));
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
  t.fill(0, std::vector<float>(160, 1));
  Counters counters;
  ASSERT_OK(t.run({.grid = {2, 1, 1}, .block = {40, 1, 1}, .counters = &counters}));
  EXPECT_EQ(counters.loads, 2 * 36);
  EXPECT_EQ(counters.stores, 2 * 36);
  EXPECT_EQ(counters.bytes_loaded, 2 * 36 * 16);
  EXPECT_EQ(counters.bytes_stored, 2 * 36 * 16);
  // mul and lt by all, the vector's add by the 36.
  EXPECT_EQ(counters.lane_ops, 2 * (40 + 40 + 36 * 4));
  EXPECT_EQ(counters.instructions, 2 * 2 * 8);
}

TEST(InterpMemory, WithoutChecksWhatOnlyBoundsNeedIsNotRun) {
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kF32, {32});
  const ValueId i = t.thread();
  const ValueId coordinate = t.op(Opcode::kMul, {i, t.i32(1)});
  t.op(Opcode::kStore, {x, t.f32(1), i, t.op(Opcode::kBounds, {x, coordinate})});
  t.b.yield({});
  EXPECT_EQ(compile(t.kernel, {.checks = false})->instruction_count(), 2);
  EXPECT_EQ(compile(t.kernel, {.checks = true})->instruction_count(), 4);
}

// --- Launches that do not fit ---

std::string launch_error(KernelTest& t, const LaunchArgs& args) {
  t.b.yield({});
  const Status status = interp::run(*compile(t.kernel), args, t.memory);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(InterpLaunch, SaysWhatDoesNotFit) {
  KernelTest fixed("fixed");
  fixed.kernel.block = {64, 1, 1};
  EXPECT_EQ(launch_error(fixed, {.block = {32, 1, 1}}),
            "kernel 'fixed' cannot be launched: it was compiled for blocks of (64, 1, 1) threads, "
            "not (32, 1, 1)");
  KernelTest large("large");
  EXPECT_EQ(
      launch_error(large, {.block = {32, 64, 1}}),
      "kernel 'large' cannot be launched: a block of (32, 64, 1) threads; it has to have 1 to "
      "1024");
  KernelTest none("none");
  EXPECT_EQ(
      launch_error(none, {.grid = {0, 1, 1}}),
      "kernel 'none' cannot be launched: a grid of (0, 1, 1) blocks; each extent has to be at "
      "least 1");
  KernelTest params("params");
  params.tensor("x", Scalar::kF32, {4});
  EXPECT_EQ(launch_error(params, {}),
            "kernel 'params' cannot be launched: its parameters take 8 bytes, but 0 were passed");
  KernelTest narrow("narrow");
  const ValueId x = narrow.dynamic_tensor("x", Scalar::kF32, {1, int64_t{1} << 31}, {1, 1});
  const ValueId extent = narrow.op(Opcode::kExtent, {x}, kI32Type, {{AttrKey::kDim, 1}});
  narrow.store(x, narrow.i32(0), narrow.op(Opcode::kConvert, {extent}, kF32Type));
  const std::vector<std::byte> bytes = narrow.params();
  EXPECT_EQ(launch_error(narrow, {.params = bytes}),
            "kernel 'narrow' cannot be launched: extent 1 of 'x' is 2147483648, but the kernel was "
            "compiled for one that fits in 32 bits");
}

}  // namespace
}  // namespace heddle::ir::interp
