// What a server waits for its kernels at its start: 300 of them, compiled on all cores by compile_all() in a process of their own. Cold; with
// their machine code on the disk, traced; and recalled. Each run prints milliseconds, and for the cold one the assembler's own of all
// threads together.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "heddle/kernels/learn/01_saxpy.h"
#include "heddle/kernels/learn/03_histogram.h"
#include "heddle/kernels/learn/04_nbody.h"
#include "heddle/kernels/learn/05_mandelbrot.h"
#include "heddle/kernels/learn/06_black_scholes.h"
#include "heddle/kernels/learn/09_spmv.h"
#include "heddle/kernels/learn/10_pi.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/ahead/compile_all.h"

namespace heddle {
namespace {

constexpr int kKernels = 300, kBlocks = 32;

// Each kernel for each number of warps of a block.
std::vector<CompileJob> make_jobs(Recall recall) {
  const ir::KernelSource* const sources[] = {&learn::saxpy.source(),
                                             &learn::nbody.source(),
                                             &learn::mandelbrot.source(),
                                             &learn::black_scholes.source(),
                                             &learn::spmv.source(),
                                             &learn::monte_carlo_pi.source(),
                                             &kernels::row_sum_kernel<float>().source(),
                                             &kernels::row_sum_kernel<half>().source(),
                                             &kernels::row_sum_kernel<bfloat16>().source(),
                                             &learn::histogram.source()};
  std::vector<CompileJob> jobs;
  for (int i = 0; i < kKernels; ++i) {
    const ir::KernelSource& source = *sources[i / kBlocks];
    Signature signature;
    for (const ir::ParamInfo& param : source.params()) {
      ArgumentSpec spec = scalar();
      if (param.type.is_view()) spec = tensor(std::vector<int64_t>(param.type.rank, kAny));
      signature.push_back(spec.aligned(16).strides_divisible_by(16));
    }
    jobs.push_back(
        {&source, signature, {.block = {32 * (i % kBlocks + 1), 1, 1}, .recall = recall}});
  }
  return jobs;
}

// Milliseconds of a process that knows no kernel and no assembler yet: all of it, and what the assembler took, all threads together.
struct Took {
  double all = 0, assembler = 0;
};
Took in_a_process(const std::string& folder, Recall recall) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    setenv("HEDDLE_CACHE", "", 1);
    setenv("HEDDLE_CACHE_DIR", folder.c_str(), 1);
    const std::vector<CompileJob> jobs = make_jobs(recall);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<StatusOr<CompiledKernel>> compiled = compile_all(jobs);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    Took result{took.count()};
    for (const StatusOr<CompiledKernel>& kernel : compiled) {
      if (!kernel.ok()) {
        std::fprintf(stderr, "%s\n", std::string(kernel.status().message()).c_str());
        _exit(1);
      }
      result.assembler += kernel->compilation().times.ptxas * 1e-3;
    }
    _exit(write(ends[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  close(ends[1]);
  Took took;
  if (read(ends[0], &took, sizeof(took)) != sizeof(took)) std::exit(1);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  return took;
}

// A folder for a cache, as long as this object lives.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "heddle_bench_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::exit(1);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void cold(benchmark::State& state) {
  double assembler = 0;
  for (auto _ : state) {
    const Folder folder;
    const Took took = in_a_process(folder.path(), Recall::kOff);
    state.SetIterationTime(took.all * 1e-3);
    assembler += took.assembler;
  }
  state.counters["assembler_ms"] =
      benchmark::Counter(assembler, benchmark::Counter::kAvgIterations);
}
template <Recall kRecall>
void warm(benchmark::State& state) {
  const Folder folder;
  in_a_process(folder.path(), kRecall);  // the first process
  for (auto _ : state) {
    state.SetIterationTime(in_a_process(folder.path(), kRecall).all * 1e-3);
  }
}
BENCHMARK(cold)->Name("cold")->Unit(benchmark::kMillisecond)->UseManualTime();
BENCHMARK(warm<Recall::kOff>)->Name("traced")->Unit(benchmark::kMillisecond)->UseManualTime();
BENCHMARK(warm<Recall::kUse>)->Name("recalled")->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
}  // namespace heddle

BENCHMARK_MAIN();
