#include "heddle/runtime/tuning/tuned_choices.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/user_folder.h"
#include "heddle/codegen/environment.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/observe/log.h"
#include "nlohmann/json.hpp"

namespace heddle::runtime {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

// Letters and digits of a name, for a file's.
std::string plain(absl::string_view name) {
  std::string text;
  for (const char c : name) text += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
  return text.empty() ? "_" : text;
}

StatusOr<std::string> path_of(const std::string& device, const std::string& operation) {
  const StatusOr<std::string> folder = tuning_folder();
  if (!folder.ok()) return folder;
  return absl::StrCat(*folder, "/", plain(device), "/", plain(operation), ".json");
}

const Tuning* find(const std::vector<Tuning>& tunings, const std::string& device,
                   const std::string& operation) {
  const auto found = std::find_if(tunings.begin(), tunings.end(), [&](const Tuning& tuning) {
    return tuning.device == device && tuning.operation == operation;
  });
  return found == tunings.end() ? nullptr : &*found;
}

Status write_whole(const std::string& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  // Another process may write the same file.
  static std::atomic<int> number{0};
  const std::string fresh = absl::StrCat(path, ".", getpid(), ".", ++number);
  errno = 0;
  std::ofstream file(fresh);
  file << text;
  file.close();
  if (!file) {
    const std::string why = errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno));
    fs::remove(fresh, error);
    return FailedPreconditionError(absl::StrCat(path, ": cannot be written", why,
                                                "; fix: set HEDDLE_CACHE_DIR to a folder "
                                                "that can be"));
  }
  fs::rename(fresh, path, error);
  if (!error) return OkStatus();
  const std::string why = error.message();
  fs::remove(fresh, error);
  return FailedPreconditionError(absl::StrCat(path, ": cannot be replaced: ", why));
}

// What this process knows of files, by device and operation: looked up by each launch, without a copy of their names.
struct Known {
  struct Less {
    using is_transparent = void;
    template <class X, class Y>
    bool operator()(const X& x, const Y& y) const {
      const int devices = absl::string_view(x.first).compare(y.first);
      return devices < 0 || (devices == 0 && absl::string_view(x.second) < y.second);
    }
  };
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ChosenConfigs>, Less> of;
};
Known& known() {
  static Known* const instance = new Known();
  return *instance;
}

std::shared_ptr<ChosenConfigs> from_file(const std::string& device, const std::string& operation) {
  const StatusOr<std::string> path = path_of(device, operation);
  if (!path.ok()) return nullptr;
  const StatusOr<std::vector<Tuning>> tunings = read_tunings(*path);
  if (!tunings.ok()) {
    if (!IsNotFound(tunings.status())) {
      std::fprintf(stderr, "heddle: tuned choices are ignored: %s\n",
                   std::string(tunings.status().message()).c_str());
    }
    return nullptr;
  }
  const Tuning* const tuning = find(*tunings, device, operation);
  if (tuning == nullptr || tuning->choices.empty()) return nullptr;
  ChosenConfigs::Names names;
  for (const TunedChoice& choice : tuning->choices) names[choice.problem] = choice.choice;
  if (logs(LogLevel::kInfo)) {
    log(LogLevel::kInfo,
        absl::StrCat(operation, " on ", device, ": tuned choices for ",
                     ir::counted(static_cast<int64_t>(names.size()), "problem"), ", from ", *path));
  }
  return std::make_shared<ChosenConfigs>(std::move(names));
}

}  // namespace

StatusOr<std::string> tuning_folder() {
  const StatusOr<std::string> folder = codegen::user_cache_folder();
  if (folder.ok()) return absl::StrCat(*folder, "/tuned");
  return FailedPreconditionError(
      "there is no folder for tuned choices; fix: set HEDDLE_CACHE_DIR to one");
}

std::string tunings_to_json(const std::vector<Tuning>& tunings) {
  Json all = Json::array();
  for (const Tuning& tuning : tunings) {
    Json choices = Json::array();
    for (const TunedChoice& c : tuning.choices) {
      choices.push_back({{"problem", c.problem},
                         {"choice", c.choice},
                         {"us", c.us},
                         {"model", c.model},
                         {"model_us", c.model_us},
                         {"date", c.date}});
    }
    all.push_back({{"device", tuning.device},
                   {"operation", tuning.operation},
                   {"choices", std::move(choices)}});
  }
  const Json page = {{"version", kVersion}, {"tunings", std::move(all)}};
  return page.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<std::vector<Tuning>> tunings_from_json(absl::string_view text) {
  const Json page = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!page.is_object() || !page.contains("tunings")) {
    return InvalidArgumentError("this is no file of tuned choices");
  }
  if (page.value("version", Json()) != Json(kVersion)) {
    return InvalidArgumentError(absl::StrCat("it has the version ",
                                             page.value("version", Json()).dump(),
                                             " of files of tuned choices, and this Heddle reads ",
                                             kVersion, "; fix: tune again with 'heddle tune'"));
  }
  // Values of the wrong kind throw inside of the JSON library.
  try {
    std::vector<Tuning> tunings;
    for (const Json& one : page.at("tunings")) {
      Tuning& tuning = tunings.emplace_back();
      tuning.device = one.at("device");
      tuning.operation = one.at("operation");
      for (const Json& c : one.at("choices")) {
        tuning.choices.push_back({c.at("problem"), c.at("choice"), c.at("model"), c.at("us"),
                                  c.at("model_us"), c.at("date")});
      }
    }
    return tunings;
  } catch (const Json::exception& error) {
    return InvalidArgumentError(absl::StrCat("this is no file of tuned choices: ", error.what()));
  }
}

StatusOr<std::vector<Tuning>> read_tunings(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFoundError(absl::StrCat(path, ": there is no such file"));
  std::stringstream text;
  text << file.rdbuf();
  StatusOr<std::vector<Tuning>> tunings = tunings_from_json(text.str());
  if (tunings.ok()) return tunings;
  return Status(tunings.status().code(), absl::StrCat(path, ": ", tunings.status().message()));
}

StatusOr<std::vector<Tuning>> read_all_tunings(std::vector<std::string>* warnings) {
  const StatusOr<std::string> folder = tuning_folder();
  if (!folder.ok()) return folder.status();
  std::error_code none;  // a folder that is not there has no files
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(*folder, none)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Tuning> all;
  for (const std::string& path : paths) {
    StatusOr<std::vector<Tuning>> tunings = read_tunings(path);
    if (tunings.ok()) {
      all.insert(all.end(), tunings->begin(), tunings->end());
    } else {
      warnings->emplace_back(tunings.status().message());
    }
  }
  return all;
}

Status keep_tuning(const Tuning& tuning) {
  const StatusOr<std::string> path = path_of(tuning.device, tuning.operation);
  if (!path.ok()) return path.status();
  Tuning merged{.device = tuning.device, .operation = tuning.operation, .choices = {}};
  const StatusOr<std::vector<Tuning>> before = read_tunings(*path);
  if (before.ok()) {
    if (const Tuning* const old = find(*before, tuning.device, tuning.operation)) merged = *old;
  }
  for (const TunedChoice& choice : tuning.choices) {
    const auto same =
        std::find_if(merged.choices.begin(), merged.choices.end(),
                     [&](const TunedChoice& known) { return known.problem == choice.problem; });
    if (same == merged.choices.end()) {
      merged.choices.push_back(choice);
    } else {
      *same = choice;
    }
  }
  if (Status s = write_whole(*path, tunings_to_json({merged})); !s.ok()) return s;
  Known& k = known();
  const std::lock_guard<std::mutex> lock(k.mutex);
  k.of.erase({tuning.device, tuning.operation});
  return OkStatus();
}

std::shared_ptr<ChosenConfigs> tuned_choices(const std::string& device,
                                             const std::string& operation) {
  static const bool off = codegen::environment_variable("HEDDLE_TUNE") == "off";
  if (off) return nullptr;
  Known& k = known();
  const std::lock_guard<std::mutex> lock(k.mutex);
  const auto known_one =
      k.of.find(std::pair<absl::string_view, absl::string_view>(device, operation));
  if (known_one != k.of.end()) return known_one->second;
  return k.of.emplace(std::pair(device, operation), from_file(device, operation)).first->second;
}

void log_choice(const std::string& operation, const std::string& device, const std::string& problem,
                const std::string& choice, bool tuned) {
  log(LogLevel::kDebug, absl::StrCat(operation, " of ", problem, " on ", device, ": ", choice,
                                     tuned ? ", as tuned" : ", as the model chooses"));
}

}  // namespace heddle::runtime
