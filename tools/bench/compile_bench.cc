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

Compilation compile(Stage stage) {
  CompileOptions options;
  options.block = {512, 1, 1};
  options.stage = stage;
  const auto compiled = kernels::row_sum_kernel<float>().compile(
      Signature{tensor({kAny, kAny}).aligned(16).strides_divisible_by(16), tensor({kAny})},
      options);
  if (!compiled.ok()) {
    std::fprintf(stderr, "%s\n", std::string(compiled.status().message()).c_str());
    std::exit(1);
  }
  return compiled->compilation();
}

void to_ptx(benchmark::State& state) {
  runtime::StageTimes sum;
  for (auto _ : state) {
    const Compilation compilation = compile(Stage::kPtx);
    sum.trace += compilation.times.trace;
    sum.passes += compilation.times.passes;
    sum.emit += compilation.times.emit;
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
    const Compilation compilation = compile(Stage::kCubin);
    ptxas += compilation.times.ptxas;
    ours += compilation.times.assemble - compilation.times.ptxas;
  }
  state.counters["ptxas_us"] = benchmark::Counter(ptxas, benchmark::Counter::kAvgIterations);
  state.counters["above_ptxas_us"] = benchmark::Counter(ours, benchmark::Counter::kAvgIterations);
}
BENCHMARK(to_cubin)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle

BENCHMARK_MAIN();
