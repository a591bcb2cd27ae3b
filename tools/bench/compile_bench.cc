// What compiling costs: tracing, passes and PTX of row_sum (aim: 0.19 ms together) and tv_add (1 ms), and what lies
// between PTX and a cubin besides ptxas itself (aim: 3 ms); and all of it in a second process, by the cache on disk, traced or
// recalled (aim: 0.3 ms).
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "benchmark/benchmark.h"
#include "heddle/kernels/learn/14_tv_add.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/compile.h"

namespace heddle {
namespace {

template <class Kernel>
CompiledKernel compile(const Kernel& kernel, const Signature& signature, CompileOptions options) {
  auto compiled = kernel.compile(signature, options);
  if (!compiled.ok()) {
    std::fprintf(stderr, "%s\n", std::string(compiled.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(compiled);
}

CompiledKernel compile_row_sum(CompileOptions options) {
  options.block = {512, 1, 1};
  return compile(kernels::row_sum_kernel<float>(),
                 {tensor({kAny, kAny}).aligned(16).strides_divisible_by(16), tensor({kAny})},
                 options);
}
CompiledKernel compile_tv_add(Stage stage) {
  const auto matrix = tensor({kAny, kAny}).aligned(16).strides_divisible_by(16).no_overlap();
  return compile(
      learn::tv_add, {matrix, matrix, matrix},
      {.block = {learn::kAddThreads, 1, 1}, .disk_cache = DiskCaching::kOff, .stage = stage});
}

// Microseconds that a process of its own, which knows no kernel and no ptxas yet, takes to a cubin by the cache in `folder`.
double by_disk_us(const std::string& folder, Recall recall) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    setenv("HEDDLE_CACHE", "", 1);
    setenv("HEDDLE_CACHE_DIR", folder.c_str(), 1);
    const auto begin = std::chrono::steady_clock::now();
    (void)compile_row_sum({.recall = recall});
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    const double us = took.count();
    _exit(write(ends[1], &us, sizeof(us)) == sizeof(us) ? 0 : 1);
  }
  close(ends[1]);
  double us = 0;
  if (read(ends[0], &us, sizeof(us)) != sizeof(us)) std::exit(1);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  return us;
}

// First of all: children have what this process has found.
template <Recall kRecall>
void second_process(benchmark::State& state) {
  std::string folder = std::filesystem::temp_directory_path() / "heddle_bench_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::exit(1);
  by_disk_us(folder, kRecall);  // the first process
  for (auto _ : state) state.SetIterationTime(by_disk_us(folder, kRecall) * 1e-6);
  std::filesystem::remove_all(folder);
}
BENCHMARK(second_process<Recall::kOff>)
    ->Name("second_process")
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime();
BENCHMARK(second_process<Recall::kUse>)
    ->Name("second_process_recalled")
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime();

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
CompiledKernel row_sum(Stage stage) {
  return compile_row_sum({.disk_cache = DiskCaching::kOff, .stage = stage});
}
BENCHMARK(to_ptx<row_sum>)->Name("to_ptx")->Unit(benchmark::kMicrosecond);
BENCHMARK(to_ptx<compile_tv_add>)->Name("tv_add_to_ptx")->Unit(benchmark::kMicrosecond);

template <Assembler kAssembler>
void to_cubin(benchmark::State& state) {
  double ptxas = 0, ours = 0;
  for (auto _ : state) {
    const CompiledKernel compiled =
        compile_row_sum({.assembler = kAssembler, .disk_cache = DiskCaching::kOff});
    const runtime::StageTimes& times = compiled.compilation().times;
    ptxas += times.ptxas;
    ours += times.assemble - times.ptxas;
  }
  state.counters["ptxas_us"] = benchmark::Counter(ptxas, benchmark::Counter::kAvgIterations);
  state.counters["above_ptxas_us"] = benchmark::Counter(ours, benchmark::Counter::kAvgIterations);
}
BENCHMARK(to_cubin<Assembler::kPtxas>)->Name("to_cubin")->Unit(benchmark::kMicrosecond);
BENCHMARK(to_cubin<Assembler::kLibrary>)->Name("to_cubin_library")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle

BENCHMARK_MAIN();
