// What compiling costs: tracing, passes and PTX of row_sum (aim: 0.19 ms together) and tv_add (1 ms), and what lies
// between PTX and a cubin besides ptxas itself (aim: 3 ms).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmark/benchmark.h"
#include "heddle/kernels/learn/14_tv_add.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/compile.h"

namespace heddle {
namespace {

template <class Kernel>
CompiledKernel compile(const Kernel& kernel, const Signature& signature, int block, Stage stage) {
  CompileOptions options;
  options.block = {block, 1, 1};
  options.stage = stage;
  options.disk_cache = DiskCaching::kOff;
  auto compiled = kernel.compile(signature, options);
  if (!compiled.ok()) {
    std::fprintf(stderr, "%s\n", std::string(compiled.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(compiled);
}

CompiledKernel compile_row_sum(Stage stage) {
  return compile(kernels::row_sum_kernel<float>(),
                 {tensor({kAny, kAny}).aligned(16).strides_divisible_by(16), tensor({kAny})}, 512,
                 stage);
}
CompiledKernel compile_tv_add(Stage stage) {
  const auto matrix = tensor({kAny, kAny}).aligned(16).strides_divisible_by(16).no_overlap();
  return compile(learn::tv_add, {matrix, matrix, matrix}, learn::kAddThreads, stage);
}

template <CompiledKernel (*kCompile)(Stage)>
void to_ptx(benchmark::State& state) {
  runtime::StageTimes sum;
  for (auto _ : state) {
    const CompiledKernel compiled = kCompile(Stage::kPtx);
    const runtime::StageTimes& times = compiled.compilation().times;
    sum.trace += times.trace;
    sum.passes += times.passes;
    sum.emit += times.emit;
  }
  const auto mean = [](double total) {
    return benchmark::Counter(total, benchmark::Counter::kAvgIterations);
  };
  state.counters["trace_us"] = mean(sum.trace);
  state.counters["passes_us"] = mean(sum.passes);
  state.counters["emit_us"] = mean(sum.emit);
}
BENCHMARK(to_ptx<compile_row_sum>)->Name("to_ptx")->Unit(benchmark::kMicrosecond);
BENCHMARK(to_ptx<compile_tv_add>)->Name("tv_add_to_ptx")->Unit(benchmark::kMicrosecond);

void to_cubin(benchmark::State& state) {
  double ptxas = 0, ours = 0;
  for (auto _ : state) {
    const CompiledKernel compiled = compile_row_sum(Stage::kCubin);
    const runtime::StageTimes& times = compiled.compilation().times;
    ptxas += times.ptxas;
    ours += times.assemble - times.ptxas;
  }
  state.counters["ptxas_us"] = benchmark::Counter(ptxas, benchmark::Counter::kAvgIterations);
  state.counters["above_ptxas_us"] = benchmark::Counter(ours, benchmark::Counter::kAvgIterations);
}
BENCHMARK(to_cubin)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle

BENCHMARK_MAIN();
