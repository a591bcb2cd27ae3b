#include "heddle/codegen/cache/user_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/environment.h"

namespace heddle::codegen {

StatusOr<std::string> user_cache_folder() {
  if (const std::string folder = environment_variable("HEDDLE_CACHE_DIR"); !folder.empty()) {
    return folder;
  }
  constexpr std::pair<const char*, const char*> kPlaces[] = {{"XDG_CACHE_HOME", "/heddle"},
                                                             {"HOME", "/.cache/heddle"}};
  for (const auto& [name, below] : kPlaces) {
    const std::string folder = environment_variable(name);
    if (folder.empty()) continue;
    // As sudo leaves it: folders made there would be of no use to whom it belongs.
    struct stat status;
    if (stat(folder.c_str(), &status) == 0 && status.st_uid != geteuid()) {
      return FailedPreconditionError(absl::StrCat(name, " is ", folder, ", another user's"));
    }
    return folder + below;
  }
  return FailedPreconditionError("none of HEDDLE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

}  // namespace heddle::codegen
