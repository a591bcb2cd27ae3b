// What compiling row_sum costs: tracing, passes and PTX (aim: 0.3 ms together), and what lies
// between PTX and a cubin besides ptxas itself (aim: 3 ms).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmark/benchmark.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/compile.h"

namespace heddle {
namespace {

CompiledKernel compile(Stage stage) {
  CompileOptions options;
  options.block = {512, 1, 1};
  options.stage = stage;
  auto compiled = kernels::row_sum_kernel<float>().compile(
      Signature{tensor({kAny, kAny}).aligned(16).strides_divisible_by(16), tensor({kAny})},
      options);
  if (!compiled.ok()) {
    std::fprintf(stderr, "%s\n", std::string(compiled.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(compiled);
}

void to_ptx(benchmark::State& state) {
  runtime::StageTimes sum;
  for (auto _ : state) {
    const CompiledKernel compiled = compile(Stage::kPtx);
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
BENCHMARK(to_ptx)->Unit(benchmark::kMicrosecond);

void to_cubin(benchmark::State& state) {
  double ptxas = 0, ours = 0;
  for (auto _ : state) {
    const CompiledKernel compiled = compile(Stage::kCubin);
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
