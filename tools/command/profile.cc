#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/python.h"
#include "heddle/tools/command/shape.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

// Nsight Compute: HEDDLE_NCU, or the first `ncu` of PATH, or that of a CUDA toolkit.
StatusOr<std::string> find_profiler() {
  std::vector<std::string> places;
  if (const char* const given = std::getenv("HEDDLE_NCU"); given != nullptr && *given != '\0') {
    places = {given};
  } else {
    const char* const path = std::getenv("PATH");
    for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
      places.push_back(absl::StrCat(folder, "/ncu"));
    }
    places.emplace_back("/usr/local/cuda/bin/ncu");
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0 && !std::filesystem::is_directory(place)) return place;
  }
  return NotFoundError(
      places.size() == 1
          ? absl::StrCat("HEDDLE_NCU is ", places[0], ", which is no program")
          : "profile reads Nsight Compute, and there is no ncu in PATH or /usr/local/cuda/bin; "
            "fix: "
            "install it (Debian's and NVIDIA's packages nsight-compute), or set HEDDLE_NCU to it");
}

}  // namespace

Exit profile_kernel(const ProfileOptions& options) {
  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  runtime::Sizes sizes = kernel->sizes;
  if (!options.shape.empty()) {
    const StatusOr<runtime::Sizes> parsed = parse_shape("--shape", *kernel, options.shape);
    if (!parsed.ok()) return misused(parsed.status());
    sizes = *parsed;
  }
  const StatusOr<runtime::BoundCall> call =
      runtime::bind(*kernel->operation, kernel->settings, {}, sizes);
  if (!call.ok()) return misused(call.status());
  for (const std::string& file : {options.json, options.html}) {
    if (file.empty()) continue;
    if (Status s = check_writable(file); !s.ok()) return misused(s);
  }
  const StatusOr<std::string> library = shared_library();
  if (!library.ok()) return failed(library.status());
  const StatusOr<std::string> profiler = find_profiler();
  if (!profiler.ok()) return failed(profiler.status());
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return run_python("profile", "profile_kernel.py",
                    {{"library", *library},
                     {"heddle", self},
                     {"device", options.device.empty() ? "cuda:0" : options.device},
                     {"case",
                      {{"kernel", kernel->operation->name()},
                       {"settings", kernel->settings},
                       {"shape", shape_text(*kernel, call->sizes)},
                       {"sizes", call->sizes}}},
                     {"ncu", *profiler},
                     {"command", options.command},
                     {"json", options.json},
                     {"html", options.html}});
}

}  // namespace heddle::tools
