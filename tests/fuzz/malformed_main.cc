// Gives malformed input to what reads it: kernels as text, .npy files and layout lines.
//
//   fuzz_malformed --count 20000 --record tests/fuzz/malformed.json
//   fuzz_malformed --format ir --seed 17        # that input alone, printed
//
// The exit code is 1 where a message does not say where, and 3 where an input crashes or hangs.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "fuzz/malformed.h"
#include "fuzz/mutate.h"
#include "fuzz/stopped.h"
#include "nlohmann/json.hpp"

namespace heddle::fuzz {
namespace {

constexpr unsigned kSecondsPerInput = 10;

struct Options {
  uint64_t seed = 0;
  uint64_t count = 1;  // of all formats together
  int max_failures = 10;
  std::string format;
  std::string record;
  std::string commit;
};

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  nlohmann::ordered_json json = {
      {"command", absl::StrCat("fuzz_malformed --count ", options.count)},
      {"commit", options.commit},
      {"first_seed", options.seed}};
  int failures = 0;
  uint64_t chosen = 0;
  for (const Format& format : formats()) {
    chosen += options.format.empty() || options.format == format.name ? 1 : 0;
  }
  for (const Format& format : formats()) {
    if (!options.format.empty() && options.format != format.name) continue;
    const std::vector<std::string> samples = format.samples(HEDDLE_TEST_DATA_DIR);
    uint64_t inputs = 0;
    uint64_t taken = 0;
    double slowest = 0;
    // Shared out evenly, rounded up.
    for (; inputs < (options.count + chosen - 1) / chosen; ++inputs) {
      const uint64_t seed = options.seed + inputs;
      std::mt19937_64 random(seed);
      const std::string text = mutated(samples, random);
      if (options.count == 1) std::cout << text << std::endl;
      begin_seed(seed, kSecondsPerInput);
      const auto start = Clock::now();
      bool accepted = false;
      const std::string complaint = format.complaint(text, accepted);
      const std::chrono::duration<double> took = Clock::now() - start;
      slowest = std::max(slowest, took.count());
      taken += accepted ? 1 : 0;
      if (complaint.empty()) continue;
      std::cout << complaint << "\nrepeat: fuzz_malformed --format " << format.name << " --seed "
                << seed << "\n";
      if (++failures >= options.max_failures) return 1;
    }
    begin_seed(0, 0);
    std::cout << format.name << ": " << inputs << " inputs, " << taken << " accepted, slowest "
              << slowest << " s\n";
    json["formats"][std::string(format.name)] = {
        {"inputs", inputs}, {"accepted", taken}, {"slowest_seconds", slowest}};
  }
  const std::chrono::duration<double> took = Clock::now() - began;
  json["complaints"] = failures;
  json["seconds"] = took.count();
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  json["date"] = date;
  if (!options.record.empty()) std::ofstream(options.record) << json.dump(2) << "\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  heddle::fuzz::Options options;
  CLI::App app("Gives malformed input to Heddle's readers.");
  app.add_option("--seed", options.seed, "the first input's seed");
  app.add_option("--count", options.count, "how many inputs, of all formats together");
  app.add_option("--format", options.format, "ir, npy or layout; all of them by default");
  app.add_option("--max-failures", options.max_failures, "stop after so many");
  app.add_option("--record", options.record, "write counts to this file, as JSON");
  app.add_option("--commit", options.commit, "what the record says of the source's version");
  CLI11_PARSE(app, argc, argv);
  heddle::fuzz::watch_for_signals("fuzz_malformed");
  return heddle::fuzz::run(options);
}
