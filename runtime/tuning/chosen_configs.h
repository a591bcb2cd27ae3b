// Configurations by problem, as they are named in files: found among an operation's candidates once, and
// remembered.
#pragma once

#include <any>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/runtime/device_info.h"

namespace heddle::runtime {

// The chosen candidates of one operation on devices of one name. Thread-safe.
class ChosenConfigs {
 public:
  // Names of problems, and of the candidate that each is solved by.
  using Names = std::map<std::string, std::string>;
  // Of these choices.
  explicit ChosenConfigs(Names names) : names_(std::move(names)) {}

  // Chooses a candidate for a problem. It takes the place of an earlier one.
  void set(const std::string& problem, std::string candidate) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string& name = names_[problem];
    if (name == candidate) return;
    name = std::move(candidate);
    found_.clear();
  }

  // The candidate that was chosen for a problem. None where none was, or the chosen one is no candidate on
  // this device. `candidates()` gives all of them, and is called once for a problem.
  template <class Config, class Candidates>
  std::optional<Config> find(const DeviceInfo& device, const std::string& problem,
                             const Candidates& candidates) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto name = names_.find(problem);
    if (name == names_.end()) return std::nullopt;
    // Two devices of one name may have other limits, as interpreters do.
    std::any& found = found_[absl::StrCat(device.sm_count, " ", device.limits.max_shared_per_block,
                                          " ", problem)];
    if (!found.has_value()) {
      std::optional<Config> config;
      for (const Config& candidate : candidates()) {
        if (candidate.to_string() == name->second) config = candidate;
      }
      found = config;
    }
    return std::any_cast<std::optional<Config>>(found);
  }

 private:
  std::mutex mutex_;
  Names names_;
  std::map<std::string, std::any> found_;  // std::optional<Config>
};

}  // namespace heddle::runtime
