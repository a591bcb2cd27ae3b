// Fuzzes the passes and analyses: random kernels run on the interpreter before and after every pass
// of eight pipelines, and each time must write what they write by the oracle.
//
//   fuzz_passes --seed 0 --count 250000 --record tests/fuzz/recorded.json
//   fuzz_passes --seed 0 --count 5000 --json     # counts, ops by type, what passes changed
//   fuzz_passes --seed 106262                    # that program alone
//   fuzz_passes --file reduced.ir --seed 106262  # a kernel as text, with that program's arguments
//
// A program that differs is printed as small as it still does, with the command that repeats it.
// The exit code is 1 then, and 3 where a program crashed or hung.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fuzz/coverage.h"
#include "fuzz/differential.h"
#include "fuzz/generator.h"
#include "fuzz/pipelines.h"
#include "fuzz/record.h"
#include "fuzz/reducer.h"
#include "fuzz/stopped.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "nlohmann/json.hpp"

namespace heddle::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kSecondsPerProgram = 60;

struct Options {
  uint64_t seed = 0;
  uint64_t count = 1;
  double seconds = 0;  // 0: no limit
  int max_failures = 3;
  std::string file;
  std::string record;
  std::string commit;
  bool json = false;
  bool print = false;
  bool reduce = true;
};

// Text of a file; false where it cannot be read.
bool read_file(const std::string& path, std::string& text) {
  std::ifstream in(path);
  std::stringstream content;
  content << in.rdbuf();
  text = content.str();
  return in.good() || in.eof();
}

class Fuzzer {
 public:
  explicit Fuzzer(Options options) : options_(std::move(options)), differential_(registry_) {}

  int run() {
    const auto began = Clock::now();
    uint64_t seed = options_.seed;
    for (; seed < options_.seed + options_.count; ++seed) {
      const std::chrono::duration<double> took = Clock::now() - began;
      if (options_.seconds > 0 && took.count() > options_.seconds) break;
      begin_seed(seed, kSecondsPerProgram);
      if (!one(seed)) return 2;
      if (failures_ >= options_.max_failures) break;
    }
    begin_seed(seed, 0);
    const std::chrono::duration<double> took = Clock::now() - began;
    return report(seed, took.count());
  }

 private:
  // False where there is no program.
  bool one(uint64_t seed) {
    ir::Kernel kernel("fuzz");
    if (options_.file.empty()) {
      kernel = random_program(seed);
    } else {
      std::string text;
      if (!read_file(options_.file, text)) {
        std::cerr << "cannot read " << options_.file << "\n";
        return false;
      }
      auto parsed = ir::parse(text, options_.file);
      if (!parsed.ok()) {
        std::cerr << parsed.status().message() << "\n";
        return false;
      }
      kernel = *std::move(parsed);
    }
    if (options_.print) std::cout << ir::print(kernel);
    std::mt19937_64 random(seed ^ 0xABCD);
    const auto all = pipelines_for({kernel, registry_, random});
    ++programs_;
    coverage_.add(kernel);
    switch (differential_.check(kernel, seed, all)) {
      case Verdict::kSame:
        break;
      case Verdict::kDiscarded:
        ++discarded_;
        if (options_.count == 1) std::cout << "discarded: " << differential_.failure().what << "\n";
        break;
      case Verdict::kDiffers:
        ++failures_;
        show(kernel, seed);
    }
    return true;
  }

  // The program as small as it still differs after the same passes.
  void show(const ir::Kernel& kernel, uint64_t seed) {
    const Failure failure = differential_.failure();
    std::cout << "seed " << seed << " differs";
    if (!failure.passes.empty()) std::cout << " after " << absl::StrJoin(failure.passes, ",");
    std::cout << ": " << failure.what << std::endl;
    if (!options_.reduce) return;
    const std::vector<std::vector<std::string>> only = {failure.passes};
    Differential again(registry_);
    const ir::Kernel small = reduce(kernel, [&](const ir::Kernel& candidate) {
      begin_seed(seed, kSecondsPerProgram);
      return again.check(candidate, seed, only) == Verdict::kDiffers;
    });
    again.check(small, seed, only);
    std::cout << "reduced to " << count_ops(small) << " ops (" << again.failure().what << "):\n"
              << ir::print(small) << "repeat: fuzz_passes --seed " << seed << "\n"
              << std::flush;
  }

  int report(uint64_t end, double seconds) {
    const Counts& counts = differential_.counts();
    std::vector<absl::string_view> names;
    for (const NamedPipeline& pipeline : pipelines()) names.push_back(pipeline.name);
    const std::string limit =
        options_.seconds > 0 ? absl::StrCat(" --seconds ", options_.seconds) : "";
    const nlohmann::ordered_json json = {
        {"command",
         absl::StrCat("fuzz_passes --seed ", options_.seed, " --count ", options_.count, limit)},
        {"date", today()},
        {"commit", options_.commit},
        {"first_seed", options_.seed},
        {"programs", programs_},
        {"ops", coverage_.ops()},
        {"discarded", discarded_},
        {"held_against_the_oracle", counts.consulted},
        {"named_pipelines", names},
        {"lists_of_passes_run", counts.pipelines},
        {"passes_run", counts.passes},
        {"passes_that_changed_something_new", counts.passes_changed},
        {"programs_changed_by_pass", counts.programs_changed_by},
        {"programs_with", coverage_.programs_with()},
        {"comparisons", counts.comparisons},
        {"differing_programs", failures_},
        {"seconds", seconds},
        {"ops_of_the_table_used", coverage_.made().size()},
        {"ops_of_the_table_never_used", coverage_.never_made()},
        {"elementwise_ops_never_used_of_type", coverage_.never_made_of_type()},
        {"ops_by_type", coverage_.made()},
    };
    fuzz::report(json, options_.json, options_.record);
    if (!options_.json && options_.record.empty()) {
      std::cout << programs_ << " programs from seed " << options_.seed << " to " << end - 1 << ", "
                << discarded_ << " discarded, " << counts.comparisons << " comparisons, "
                << failures_ << " differ, " << static_cast<int64_t>(seconds) << " s\n";
    }
    return failures_ == 0 ? 0 : 1;
  }

  const Options options_;
  ir::PassRegistry registry_;
  Differential differential_;
  Coverage coverage_;
  int64_t programs_ = 0;
  int64_t discarded_ = 0;
  int failures_ = 0;
};

}  // namespace
}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  heddle::fuzz::Options options;
  CLI::App app("Fuzzes Heddle's passes: random kernels must write what they do by the oracle.");
  app.add_option("--seed", options.seed, "the first program's seed");
  app.add_option("--count", options.count, "how many programs, of following seeds");
  app.add_option("--seconds", options.seconds, "start no program after so many seconds");
  app.add_option("--max-failures", options.max_failures, "stop after so many programs that differ");
  app.add_option("--file", options.file, "a kernel's text in place of a random program");
  app.add_option("--record", options.record, "write counts to this file, as JSON");
  app.add_option("--commit", options.commit, "what the record says of the source's version");
  app.add_flag("--json", options.json, "print counts as JSON, ops by type among them");
  app.add_flag("--reduce,!--no-reduce", options.reduce, "do not make programs that differ smaller");
  app.add_flag("--print", options.print, "print each program");
  CLI11_PARSE(app, argc, argv);
  heddle::fuzz::watch_for_signals("fuzz_passes");
  return heddle::fuzz::Fuzzer(options).run();
}
