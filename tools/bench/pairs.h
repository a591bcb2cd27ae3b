// Benchmarks of kernels beside CUDA C++ twins: each pair has the same algorithm, inputs and launch shape. Prints JSON.
//
//   BENCH FOLDER           FOLDER: the twins as cubins (pair_figures.py makes them)
//   BENCH FOLDER --times   compares no outputs
//   BENCH FOLDER --once    runs each kernel once, ours before its twin, for a profiler
//   BENCH --sizes          counts our kernels' instructions as they stand in the program, without a GPU
//
// A side may launch several kernels. The twins' are named cuda_..., and no others are: by that a profiler's list falls
// into sides.
//
// Outputs are compared first. A time is the median of 21 rounds of 10 runs between two events, the two sides
// taking turns.
#pragma once

#include <set>
#include <type_traits>

#include "CLI/CLI.hpp"
#include "bench/twins.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/interp_backend.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/specialize.h"

namespace heddle::bench {

// The kernels that were launched, and of how many instructions they are together.
struct Counted {
  std::set<const ir::KernelSource*> kernels;
  int instructions = 0;
};
// A device that runs nothing: it compiles what is launched, each kernel once, and counts.
inline Device open_counting(Counted* counted) {
  runtime::DeviceInfo info = runtime::InterpBackend::default_info();
  const ir::Target& target = *ir::find_target("sm_90a");
  return runtime::open_dry_run(info, [=](const DryLaunch& launch) -> Status {
    if (!counted->kernels.insert(launch.source).second) return OkStatus();
    CompileOptions options;
    options.target = std::string(target.name);
    options.block = launch.shape.block;
    const auto made = runtime::compile_source(
        *launch.source, runtime::specialize(*launch.source, launch.arguments, target), options);
    if (!made.ok()) return made.status();
    const StatusOr<std::string> listing = codegen::disassemble((*made)->assembly.cubin);
    if (!listing.ok()) return listing.status();
    for (const auto& [opcode, count] : codegen::count_opcodes(codegen::sass_opcodes(*listing))) {
      if (opcode != "NOP") counted->instructions += count;
    }
    return OkStatus();
  });
}

enum class PairMode { kCompare, kTimes, kOnce, kSizes };

// The pairs of one program, and what is found of them.
class Pairs : public Twins {
 public:
  // `counted`: by the device, where mode is kSizes.
  Pairs(const Device& device, const std::string& folder, PairMode mode, Counted* counted)
      : Twins(device, folder), mode_(mode), counted_(counted) {}

  // Whether kernels are timed.
  bool is_timed() const { return mode_ == PairMode::kCompare || mode_ == PairMode::kTimes; }
  void add(nlohmann::ordered_json figure) { figures_.push_back(std::move(figure)); }
  nlohmann::ordered_json figures() { return std::move(figures_); }

  static int64_t blocks(int64_t threads, int64_t per_block = 256) {
    return (threads + per_block - 1) / per_block;
  }
  static std::string by(int64_t a, int64_t b) {
    return std::to_string(a) + " × " + std::to_string(b);
  }

  // `elements`: what instructions are counted by. The twin is cuda_<name> of <file>.cubin: theirs(twin, out); where it
  // has more kernels, cuda_<each> of `more`, it is theirs(twins, out), all of them in order.
  template <class Ours, class Theirs>
  void compare(const std::string& file, const std::string& name, const std::string& size,
               double elements, const std::vector<int64_t>& bytes, const Tolerance& tolerance,
               Ours ours, Theirs theirs, const std::vector<std::string>& more = {}) {
    if (mode_ == PairMode::kSizes) {
      std::vector<Buffer> out = outputs(bytes);
      *counted_ = {};
      check(ours(out.data()));
      return figures_.push_back(
          {{"program", name}, {"size", size}, {"instructions", counted_->instructions}});
    }
    std::vector<Function> twins = {function(file, "cuda_" + name)};
    for (const std::string& kernel : more) twins.push_back(function(file, "cuda_" + kernel));
    const auto run = [&](Buffer* out, bool heddle) {
      if (heddle) return check(ours(out));
      if constexpr (std::is_invocable_v<Theirs, const Function&, Buffer*>) {
        theirs(twins[0], out);
      } else {
        theirs(twins, out);
      }
    };
    if (mode_ == PairMode::kOnce) {
      std::vector<Buffer> out = outputs(bytes);
      for (Buffer& buffer : out) check(buffer.fill(stream(), 0));
      run(out.data(), true);
      run(out.data(), false);
      return check(stream().synchronize());
    }
    nlohmann::ordered_json figure =
        Twins::compare(name, size, bytes,
                       mode_ == PairMode::kTimes ? std::nullopt : std::optional(tolerance), run);
    figure["elements"] = elements;
    figures_.push_back(std::move(figure));
  }

 private:
  const PairMode mode_;
  Counted* const counted_;
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

// A benchmark's main(): Bench is a Pairs with all(), which compares all of its pairs and returns the figures.
template <class Bench>
int run_pairs(const char* title, int argc, char** argv) {
  CLI::App app(title);
  std::string folder;
  bool once = false, sizes = false, times = false;
  CLI::Option* const where = app.add_option("folder", folder, "where the twins' cubins are");
  CLI::Option* const counts =
      app.add_flag("--sizes", sizes, "count our kernels' instructions")->excludes(where);
  CLI::Option* const runs = app.add_flag("--once", once, "run each kernel once")->excludes(counts);
  app.add_flag("--times", times, "compare no outputs")->excludes(counts)->excludes(runs);
  CLI11_PARSE(app, argc, argv);
  Counted counted;
  const Device device = sizes ? open_counting(&counted) : take(Device::open("cuda:0"));
  const PairMode mode = sizes   ? PairMode::kSizes
                        : once  ? PairMode::kOnce
                        : times ? PairMode::kTimes
                                : PairMode::kCompare;
  const nlohmann::ordered_json figures = Bench(device, folder, mode, &counted).all();
  if (!once) std::printf("%s\n", figures.dump(2).c_str());
  for (const auto& figure : figures) {
    if (!figure.value("agree", true)) return 1;
  }
  return 0;
}

}  // namespace heddle::bench
