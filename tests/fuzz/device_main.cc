// Fuzzes the emitter and what comes behind it: random kernels run on a GPU, after passes of one of
// eight pipelines and assembled by ptxas at -O0 and at -O3, and must write what they write by the oracle.
//
//   fuzz_device --device cuda:0 --seed 0 --count 20000 --record tests/fuzz/recorded_device.json
//   fuzz_device --device cuda:0 --seed 4711 --print     # that program alone: IR and PTX
//   fuzz_device --device cuda:0 --seed 4711 --reduce    # and as small as it still differs
//
// Programs that differ are named with what differs, the passes and ptxas's level. The exit code is 1
// then, and 3 where a program crashed or hung. --device interp tries the program itself. In the place of
// approximate ops, whose results are a GPU's own, stand square roots.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fuzz/coverage.h"
#include "fuzz/differential.h"
#include "fuzz/generator.h"
#include "fuzz/oracle.h"
#include "fuzz/outcome.h"
#include "fuzz/pipelines.h"
#include "fuzz/record.h"
#include "fuzz/reducer.h"
#include "fuzz/stopped.h"
#include "heddle/heddle.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/executable.h"
#include "nlohmann/json.hpp"

namespace heddle::fuzz {
namespace {

constexpr unsigned kSecondsPerProgram = 120;
constexpr int kPtxasLevels[] = {0, 3};

struct Options {
  std::string device = "cuda:0";
  uint64_t seed = 0;
  uint64_t count = 1;
  int max_failures = 10;
  std::string record;
  std::string commit;
  bool json = false;
  bool print = false;
  bool reduce = false;
};

ir::Kernel exact_program(uint64_t seed) {
  ir::Kernel kernel = random_program(seed);
  kernel.walk([&](ir::OpId id) {
    ir::Op& op = kernel.op(id);
    if (has(info(op), ir::kApproximate)) op.opcode = ir::Opcode::kSqrt;
  });
  return kernel;
}

// A kernel as its own trace.
class Program : public ir::KernelSource {
 public:
  explicit Program(ir::Kernel kernel) : kernel_(std::move(kernel)) {
    for (const ir::Param& param : kernel_.params()) {
      const ir::Value& value = kernel_.value(param.value);
      params_.push_back({.name = std::string(kernel_.text(value.name)), .type = value.type});
    }
  }

  const ir::Kernel& kernel() const { return kernel_; }
  const std::string& name() const override { return kernel_.name(); }
  ir::SourceLine place() const override { return {}; }
  absl::Span<const ir::ParamInfo> params() const override { return params_; }
  ir::TraceResult trace(const ir::Specialization&) const override { return {kernel_, {}}; }

 private:
  ir::Kernel kernel_;
  std::vector<ir::ParamInfo> params_;
};

class Fuzzer {
 public:
  Fuzzer(Options options, Device device)
      : options_(std::move(options)), device_(std::move(device)) {}

  int run() {
    const auto began = std::chrono::steady_clock::now();
    uint64_t seed = options_.seed;
    for (; seed < options_.seed + options_.count && failures_ < options_.max_failures; ++seed) {
      begin_seed(seed, kSecondsPerProgram);
      one(seed);
    }
    begin_seed(seed, 0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return report(took.count());
  }

 private:
  void one(uint64_t seed) {
    at_ = seed;
    const ir::Kernel kernel = exact_program(seed);
    ++programs_;
    coverage_.add(kernel);
    if (options_.print) std::cout << ir::print(kernel);
    const std::string passes = passes_for(kernel, seed);
    for (const int level : kPtxasLevels) {
      const std::string wrong = what_differs(kernel, seed, passes, level);
      if (wrong.empty()) continue;
      ++failures_;
      std::cout << "seed " << seed << " differs after " << passes << " and ptxas -O" << level
                << ": " << wrong << std::endl;
      if (options_.reduce) show_reduced(kernel, seed, passes, level);
      return;
    }
  }

  // Empty where the device writes what the oracle does.
  std::string what_differs(const ir::Kernel& kernel, uint64_t seed, const std::string& passes,
                           int level) {
    const Inputs inputs = inputs_for(kernel, seed);
    const Outcome meant = consult_oracle(kernel, inputs);
    if (!meant.error.empty()) return meant.error;
    const Outcome outcome = launch(Program(kernel), inputs, passes, level);
    return outcome.error.empty() ? difference(kernel, inputs, meant, outcome) : outcome.error;
  }

  // The program as small as it is still right, and differs at that level alone.
  void show_reduced(const ir::Kernel& kernel, uint64_t seed, const std::string& passes, int level) {
    Differential interpreted(registry_);
    const ir::Kernel small = reduce(kernel, [&](const ir::Kernel& candidate) {
      begin_seed(seed, kSecondsPerProgram);
      if (interpreted.check(candidate, seed, {}) != Verdict::kSame) return false;
      for (const int other : kPtxasLevels) {
        if (what_differs(candidate, seed, passes, other).empty() == (other == level)) return false;
      }
      return true;
    });
    std::cout << "reduced to " << count_ops(small) << " ops ("
              << what_differs(small, seed, passes, level) << "):\n"
              << ir::print(small) << std::flush;
  }

  // One of the pipelines' lists; at its end what the emitter needs.
  std::string passes_for(const ir::Kernel& kernel, uint64_t seed) {
    std::mt19937_64 random(seed ^ 0xDE'71CE);
    const NamedPipeline& pipeline = pipelines()[random() % pipelines().size()];
    const auto lists = pipeline.passes({kernel, registry_, random});
    std::vector<std::string> passes = lists[random() % lists.size()];
    passes.emplace_back("promote-vars");
    ++programs_by_pipeline_[std::string(pipeline.name)];
    return absl::StrJoin(passes, ",");
  }

  Outcome launch(const Program& program, const Inputs& inputs, const std::string& passes,
                 int level) {
    Outcome outcome{.buffers = inputs.buffers};
    const Status status = try_launch(program, inputs, passes, level, outcome);
    if (!status.ok()) outcome.error = std::string(status.message());
    return outcome;
  }

  Status try_launch(const Program& program, const Inputs& inputs, const std::string& passes,
                    int level, Outcome& outcome) {
    const ir::Kernel& kernel = program.kernel();
    const auto options = runtime::Executable::options_for(
        *device_.backend(), {.block = kernel.block, .passes = passes, .opt_level = level});
    const auto compilation = runtime::compile_source(program, {}, options);
    if (!compilation.ok()) return compilation.status();
    if (options_.print) std::cout << (*compilation)->ptx.text;
    ptxas_ = (*compilation)->assembly.ptxas_version.to_string();
    std::vector<Buffer> buffers;
    for (const std::vector<uint8_t>& bytes : inputs.buffers) {
      StatusOr<Buffer> buffer = device_.upload<uint8_t>(bytes);
      if (!buffer.ok()) return buffer.status();
      buffers.push_back(*std::move(buffer));
    }
    const int64_t extents[] = {kElements}, strides[] = {1};
    std::vector<runtime::Argument> arguments;
    for (size_t p = 0; p < inputs.arguments.size(); ++p) {
      const Inputs::Argument& argument = inputs.arguments[p];
      const ir::Type type = program.params()[p].type;
      arguments.push_back(type.is_view() ? runtime::tensor_argument(
                                               buffers[argument.buffer].address() + argument.start,
                                               extents, strides, 1, ir::bytes_of(type.scalar))
                                         : runtime::scalar_argument(argument.scalar));
    }
    const Stream stream = device_.default_stream();
    const Status status =
        CompiledKernel(*compilation)
            .launch(stream, {.grid = inputs.grid, .block = inputs.block}, arguments);
    if (!status.ok()) give_up(status);
    ++launches_;
    for (size_t i = 0; i < buffers.size(); ++i) {
      StatusOr<std::vector<uint8_t>> bytes = buffers[i].download<uint8_t>(stream);
      if (!bytes.ok()) give_up(bytes.status());
      outcome.buffers[i] = *std::move(bytes);
    }
    return OkStatus();
  }

  // A fault of the device stays: what is launched after it fails as well.
  [[noreturn]] void give_up(const Status& status) {
    std::cout << "the device fails at --seed " << at_ << ": " << status.message() << std::endl;
    std::_Exit(3);
  }

  int report(double seconds) {
    const nlohmann::ordered_json json = {
        {"command", absl::StrCat("fuzz_device --device ", options_.device, " --seed ",
                                 options_.seed, " --count ", options_.count)},
        {"date", today()},
        {"commit", options_.commit},
        {"device", device_.info().name},
        {"cuda_of_driver", absl::StrCat(device_.info().driver_version / 1000, ".",
                                        device_.info().driver_version % 1000 / 10)},
        {"ptxas", ptxas_},
        {"first_seed", options_.seed},
        {"programs", programs_},
        {"ops", coverage_.ops()},
        {"launches", launches_},
        {"programs_by_pipeline", programs_by_pipeline_},
        {"ptxas_levels", kPtxasLevels},
        {"differing_programs", failures_},
        {"seconds", seconds},
        {"ops_by_type", coverage_.made()},
    };
    fuzz::report(json, options_.json, options_.record);
    if (!options_.json && options_.record.empty()) {
      std::cout << programs_ << " programs, " << launches_ << " launches, " << failures_
                << " differ\n";
    }
    return failures_ == 0 ? 0 : 1;
  }

  const Options options_;
  const Device device_;
  const ir::PassRegistry registry_;
  Coverage coverage_;
  std::map<std::string, int64_t> programs_by_pipeline_;
  std::string ptxas_;  // its version
  uint64_t at_ = 0;    // the seed at hand
  int64_t programs_ = 0;
  int64_t launches_ = 0;
  int failures_ = 0;
};

}  // namespace
}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  heddle::fuzz::Options options;
  CLI::App app("Fuzzes a GPU: random kernels must write there what they do by the oracle.");
  app.add_option("--device", options.device, "where programs run: cuda:0, or interp");
  app.add_option("--seed", options.seed, "the first program's seed");
  app.add_option("--count", options.count, "how many programs, of following seeds");
  app.add_option("--max-failures", options.max_failures, "stop after so many programs that differ");
  app.add_option("--record", options.record, "write counts to this file, as JSON");
  app.add_option("--commit", options.commit, "what the record says of the source's version");
  app.add_flag("--json", options.json, "print counts as JSON, ops by type among them");
  app.add_flag("--print", options.print, "print each program and its PTX");
  app.add_flag("--reduce", options.reduce, "make programs that differ smaller");
  CLI11_PARSE(app, argc, argv);
  heddle::StatusOr<heddle::Device> device = heddle::Device::open(options.device);
  if (!device.ok()) {
    std::cerr << device.status().message() << "\n";
    return 2;
  }
  heddle::fuzz::watch_for_signals("fuzz_device");
  return heddle::fuzz::Fuzzer(options, *std::move(device)).run();
}
