// How fast the interpreter runs, in lane-ops per second, and how fast it starts.
//
//   interp_bench --benchmark_filter=Arithmetic
//
// A lane-op is one arithmetic result of one thread. Each benchmark comes with checks on and off; a product of
// matrices by gemm's kernel for Hopper has all checks.
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/kernels/gemm/gemm.h"

namespace heddle::ir::interp {
namespace {

constexpr int kTrips = 4096;

// for (i < trips) { x = x * a + b in two ops, y likewise: four arithmetic results a trip }
Kernel arithmetic_kernel(Scalar scalar) {
  Kernel kernel("arithmetic");
  const Type type = Type::of(scalar);
  const int64_t extents[] = {kDynamic};
  const ValueId out =
      kernel.add_param("out", Type::view(scalar, Space::kGlobal, 1), extents, extents);
  const ValueId a = kernel.add_param("a", type);
  const ValueId c = kernel.add_param("c", type);
  Builder b(kernel);
  const ValueId i = b.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  const ValueId init[] = {a, c};
  const OpId loop = b.begin_for(b.constant_int(kI32Type, 0), b.constant_int(kI32Type, kTrips),
                                b.constant_int(kI32Type, 1), init);
  const auto args = kernel.region(b.region()).args;
  const auto step = [&](ValueId x) {
    return b.create(Opcode::kAdd, {b.create(Opcode::kMul, {x, a}), c});
  };
  const ValueId next[] = {step(args[1]), step(args[2])};
  b.yield(next);
  b.end_region();
  const ValueId sum =
      b.create(Opcode::kAdd, {kernel.op(loop).results[0], kernel.op(loop).results[1]});
  b.create(Opcode::kStore, {out, sum, i});
  b.yield({});
  return kernel;
}

// sum over i < trips of x[i * 32 + t] * x[i * 32 + t], with bounds
Kernel sum_kernel(Scalar scalar) {
  Kernel kernel("sum");
  const int64_t extents[] = {kDynamic};
  const ValueId x = kernel.add_param("x", Type::view(scalar, Space::kGlobal, 1), extents, extents);
  const ValueId out =
      kernel.add_param("out", Type::view(scalar, Space::kGlobal, 1), extents, extents);
  Builder b(kernel);
  const ValueId t = b.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  const ValueId init[] = {b.constant(Type::of(scalar), 0)};
  const ValueId stop = b.create(Opcode::kExtent, {x}, kI32Type, {{AttrKey::kDim, 0}});
  const OpId loop = b.begin_for(t, stop, b.constant_int(kI32Type, 32), init);
  const auto args = kernel.region(b.region()).args;
  const ValueId ok = b.create(Opcode::kBounds, {x, args[0]});
  const ValueId value = b.create(Opcode::kLoad, {x, args[0], ok}, Type::of(scalar));
  b.yield({b.create(Opcode::kFma, {value, value, args[1]})});
  b.end_region();
  b.create(Opcode::kStore, {out, kernel.op(loop).result(), t});
  b.yield({});
  return kernel;
}

std::vector<std::byte> pack(std::initializer_list<uint64_t> words) {
  std::vector<std::byte> bytes(words.size() * 8);
  std::memcpy(bytes.data(), words.begin(), bytes.size());
  return bytes;
}

bool failed(benchmark::State& state, const Status& status) {
  if (status.ok()) return false;
  state.SkipWithError(std::string(status.message()).c_str());
  return true;
}

void run_arithmetic(benchmark::State& state, Scalar scalar, bool checks) {
  Memory memory;
  const int warps = 8;
  const uint64_t out = memory.allocate(32 * warps * 8).value();
  const Kernel kernel = arithmetic_kernel(scalar);
  const Program program = compile(kernel, {.checks = checks}).value();
  const ParamLayout layout = param_layout(kernel);
  std::vector<std::byte> params = pack({out, 32 * warps, 1, 0, 0});
  params.resize(static_cast<size_t>(layout.bytes));
  const LaunchArgs launch{.grid = {}, .block = {32 * warps, 1, 1}, .params = params};
  for (auto _ : state) {
    if (failed(state, run(program, launch, memory))) return;
  }
  state.counters["lane_ops/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 4 * kTrips * 32 * warps,
                         benchmark::Counter::kIsRate);
}

void BM_Arithmetic(benchmark::State& state, Scalar scalar, bool checks) {
  run_arithmetic(state, scalar, checks);
}
BENCHMARK_CAPTURE(BM_Arithmetic, f32_unchecked, Scalar::kF32, false);
BENCHMARK_CAPTURE(BM_Arithmetic, f32_checked, Scalar::kF32, true);
BENCHMARK_CAPTURE(BM_Arithmetic, i32_unchecked, Scalar::kI32, false);
BENCHMARK_CAPTURE(BM_Arithmetic, f64_unchecked, Scalar::kF64, false);
BENCHMARK_CAPTURE(BM_Arithmetic, f16_unchecked, Scalar::kF16, false);
BENCHMARK_CAPTURE(BM_Arithmetic, bf16_unchecked, Scalar::kBF16, false);

// A load and an fma a trip: two lane-ops.
void BM_Sum(benchmark::State& state, bool checks) {
  Memory memory;
  const int64_t count = 32 * kTrips;
  const uint64_t x = memory.allocate(count * 4).value();
  const uint64_t out = memory.allocate(32 * 4).value();
  if (failed(state, memory.fill(x, 0x3F800000, 4, count))) return;
  const Kernel kernel = sum_kernel(Scalar::kF32);
  const Program program = compile(kernel, {.checks = checks}).value();
  const std::vector<std::byte> params = pack({x, count, 1, out, 32, 1});
  const LaunchArgs launch{.grid = {}, .block = {32, 1, 1}, .params = params};
  for (auto _ : state) {
    if (failed(state, run(program, launch, memory))) return;
  }
  state.counters["lane_ops/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 2 * count, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(state.iterations() * count * 4);
}
BENCHMARK_CAPTURE(BM_Sum, unchecked, false);
BENCHMARK_CAPTURE(BM_Sum, checked, true);

// y[s(i)] = x[i], a load and a store a trip: neighbours side by side, or `stride` apart.
void BM_Copy(benchmark::State& state, int64_t stride, bool checks) {
  Memory memory;
  const int64_t count = 32 * kTrips;
  const uint64_t x = memory.allocate(count * 4).value();
  const uint64_t y = memory.allocate(count * stride * 4).value();
  if (failed(state, memory.fill(x, 0x3F800000, 4, count))) return;
  Kernel kernel("copy");
  const int64_t extents[] = {kDynamic};
  const Type view = Type::view(Scalar::kF32, Space::kGlobal, 1);
  const ValueId from = kernel.add_param("x", view, extents, extents);
  const ValueId to = kernel.add_param("y", view, extents, extents);
  Builder b(kernel);
  const ValueId t = b.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  const ValueId stop = b.create(Opcode::kExtent, {from}, kI32Type, {{AttrKey::kDim, 0}});
  b.begin_for(t, stop, b.constant_int(kI32Type, 32), {});
  const ValueId i = kernel.region(b.region()).args[0];
  const ValueId at = b.create(Opcode::kMul, {i, b.constant_int(kI32Type, stride)});
  const ValueId readable = b.create(Opcode::kBounds, {from, i});
  const ValueId writable = b.create(Opcode::kBounds, {to, at});
  const ValueId value = b.create(Opcode::kLoad, {from, i, readable}, kF32Type);
  b.create(Opcode::kStore, {to, value, at, writable});
  b.yield({});
  b.end_region();
  b.yield({});
  const Program program = compile(kernel, {.checks = checks}).value();
  const std::vector<std::byte> params =
      pack({x, count, 1, y, static_cast<uint64_t>(count * stride), 1});
  const LaunchArgs launch{.grid = {}, .block = {32, 1, 1}, .params = params};
  for (auto _ : state) {
    if (failed(state, run(program, launch, memory))) return;
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK_CAPTURE(BM_Copy, unchecked, 1, false);
BENCHMARK_CAPTURE(BM_Copy, checked, 1, true);
BENCHMARK_CAPTURE(BM_Copy, checked_apart, 3, true);

// Many blocks that each do next to nothing: what a block costs.
void BM_EmptyBlocks(benchmark::State& state) {
  Memory memory;
  Kernel kernel("empty");
  Builder(kernel).yield({});
  const Program program = compile(kernel).value();
  const LaunchArgs launch{.grid = {1024, 1, 1}, .block = {256, 1, 1}};
  for (auto _ : state) {
    if (failed(state, run(program, launch, memory))) return;
  }
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK(BM_EmptyBlocks);

// Compiling a kernel of about as many ops as row_sum has, and running it for one small block.
void BM_Compile(benchmark::State& state) {
  const Kernel kernel = sum_kernel(Scalar::kF32);
  for (auto _ : state) benchmark::DoNotOptimize(compile(kernel));
}
BENCHMARK(BM_Compile);

void BM_CompileLong(benchmark::State& state) {
  Kernel kernel("long");
  const int64_t extents[] = {kDynamic};
  const ValueId out =
      kernel.add_param("out", Type::view(Scalar::kI32, Space::kGlobal, 1), extents, extents);
  Builder b(kernel);
  ValueId x = b.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  for (int i = 0; i < state.range(0); ++i) {
    x = b.create(Opcode::kAdd, {x, b.constant_int(kI32Type, i % 17)});
  }
  b.create(Opcode::kStore, {out, x, x});
  b.yield({});
  for (auto _ : state) benchmark::DoNotOptimize(compile(kernel));
  state.SetItemsProcessed(state.iterations() * state.range(0) * 2);
}
BENCHMARK(BM_CompileLong)->Arg(1000)->Arg(10000);

// The kernel is compiled by the first launch, which is not measured.
void BM_Gemm(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Device device = Device::open("interp").value();
  const Stream stream = device.create_stream().value();
  const std::vector<half> ones(static_cast<size_t>(n * n), half(1.0f));
  const Buffer a = device.upload<half>(ones).value(), b = device.upload<half>(ones).value();
  const Buffer d = device.allocate(n * n * int64_t{sizeof(half)}).value();
  const auto run = [&] {
    return kernels::gemm(stream, as_tensor<const half>(a, {n, n}), as_tensor<const half>(b, {n, n}),
                         as_tensor<half>(d, {n, n}));
  };
  if (Status s = run(); !s.ok()) return state.SkipWithError(std::string(s.message()).c_str());
  for (auto _ : state) benchmark::DoNotOptimize(run());
}
BENCHMARK(BM_Gemm)->Arg(1024)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace heddle::ir::interp

BENCHMARK_MAIN();
