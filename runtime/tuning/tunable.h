// What an operation can be tuned by: its configurations for a problem, and the one that a model chooses
// where none was measured.
//
//   const Tunable<GemmProblem, GemmConfig> tunable("gemm", gemm_configs, choose_gemm);
//   const GemmConfig config = tunable.choose(problem, device.info());
//
// `heddle tune` measures the candidates, and keeps the fastest in a file (tuned_choices.h). Launches of the
// same problem on a device of the same name use it from then on. HEDDLE_TUNE=off in the environment ignores
// such files.
//
// A problem and a configuration have to_string(): what tells problems apart, and the candidates of one
// problem.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/runtime/device_info.h"
#include "heddle/runtime/observe/log.h"
#include "heddle/runtime/tuning/tuned_choices.h"
#include "heddle/runtime/tuning/tuning_scope.h"

namespace heddle::runtime {

// The configurations of an operation. Thread-safe.
template <class Problem, class Config>
class Tunable {
 public:
  // All configurations that a device can run, and the one that a model chooses among them.
  using Candidates = std::vector<Config> (*)(const Problem&, const DeviceInfo&);
  using Model = Config (*)(const Problem&, const DeviceInfo&);

  // `operation` is the name under which choices are kept.
  Tunable(std::string operation, Candidates candidates, Model model)
      : operation_(std::move(operation)), candidates_(candidates), model_(model) {}

  // The configuration to launch: that of this thread's TuningScope, else the tuned one, else the model's.
  Config choose(const Problem& problem, const DeviceInfo& device) const {
    const std::optional<Config> tuned = choose_tuned(problem, device);
    const Config config = tuned ? *tuned : model_(problem, device);
    if (logs(LogLevel::kDebug)) {
      log_choice(operation_, device.name, problem.to_string(), config.to_string(),
                 tuned.has_value());
    }
    return config;
  }

 private:
  // None where nobody has tuned the operation for the problem.
  std::optional<Config> choose_tuned(const Problem& problem, const DeviceInfo& device) const {
    TuningScope* const scope = TuningScope::current();
    const std::shared_ptr<ChosenConfigs> tuned =
        scope == nullptr ? tuned_choices(device.name, operation_) : nullptr;
    if (scope == nullptr && tuned == nullptr) return std::nullopt;
    const std::string text = problem.to_string();
    const auto candidates = [&] { return candidates_(problem, device); };
    if (scope != nullptr && !scope->knows(operation_, text)) {
      std::vector<std::string> names;
      for (const Config& candidate : candidates()) names.push_back(candidate.to_string());
      scope->add({operation_, text, std::move(names), model_(problem, device).to_string()});
    }
    ChosenConfigs& chosen = scope == nullptr ? *tuned : scope->of(operation_);
    return chosen.find<Config>(device, text, candidates);
  }

  std::string operation_;
  Candidates candidates_;
  Model model_;
};

}  // namespace heddle::runtime
