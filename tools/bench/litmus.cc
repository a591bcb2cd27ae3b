// Litmus tests of the memory model on a device, each many times at block, cluster and GPU scope.
// Prints JSON; exit status 1 if an outcome was seen that the model forbids.
//
//   litmus --device cuda:0 --runs 100000000
//   litmus --device interp --runs 2000 --test MP,SB --scope gpu
//
// `weak` outcomes are allowed, but come from no interleaving: where the GPU shows them, the runs
// were close enough together to show what is forbidden as well.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/tools/bench/figures.h"
#include "heddle/tools/bench/litmus_run.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::take;

struct Scope {
  const char* name;
  MemoryScope scope;
};
constexpr Scope kScopes[] = {
    {"block", MemoryScope::block}, {"cluster", MemoryScope::cluster}, {"gpu", MemoryScope::gpu}};

nlohmann::ordered_json measure(const Device& device, const tools::LitmusTest& test,
                               const Scope& scope, int64_t runs, bool* broken) {
  const bool on_gpu = device.kind() == runtime::BackendKind::kCuda;
  const tools::LitmusShape shape =
      on_gpu ? tools::LitmusShape{device.info().sm_count * 4, 16} : tools::LitmusShape{4, 2};
  const auto start = std::chrono::steady_clock::now();
  const tools::LitmusCounts counts =
      take(tools::LitmusRunner(test, scope.scope).run(device, shape, runs));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  int64_t forbidden = 0, weak = 0;
  for (const auto& [outcome, times] : counts.outcomes) {
    if (tools::is_forbidden(test, outcome)) forbidden += times;
    if (test.weak != nullptr && outcome == test.weak) weak += times;
  }
  *broken |= forbidden != 0;
  return {{"test", test.name},
          {"orders", test.orders},
          {"scope", scope.name},
          {"threads", test.threads},
          {"finals", test.finals},
          {"runs", counts.runs},
          {"seconds", seconds.count()},
          {"outcomes", counts.outcomes},
          {"forbidden", test.forbidden},
          {"forbidden_seen", forbidden},
          {"weak_seen", weak}};
}

int run(int argc, char** argv) {
  CLI::App app("Litmus tests of the memory model.");
  std::string device_name = "cuda:0";
  int64_t runs = 100'000'000;
  std::vector<std::string> names, scopes;
  app.add_option("--device", device_name, "cuda:N or interp");
  app.add_option("--runs", runs, "of each test at each scope")->check(CLI::PositiveNumber);
  app.add_option("--test", names, "these alone")->delimiter(',');
  app.add_option("--scope", scopes, "block, cluster, gpu")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open(device_name));
  const auto wanted = [](const std::vector<std::string>& list, const char* name) {
    return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
  };
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  bool broken = false;
  for (const tools::LitmusTest& test : tools::litmus_tests()) {
    for (const Scope& scope : kScopes) {
      if (!wanted(names, test.name) || !wanted(scopes, scope.name)) continue;
      figures.push_back(measure(device, test, scope, runs, &broken));
      const auto& last = figures.back();
      std::fprintf(stderr, "%-5s %-32s %-8s forbidden %lld weak %lld\n", test.name, test.orders,
                   scope.name, last["forbidden_seen"].get<long long>(),
                   last["weak_seen"].get<long long>());
    }
  }
  bench::print_figures("litmus", argc, argv, device, figures);
  return broken ? 1 : 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
