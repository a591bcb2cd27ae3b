#include "heddle/codegen/cache/user_folder.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace heddle::codegen {

StatusOr<std::string> user_cache_folder() {
  constexpr struct {
    const char* variable;
    const char* below;
  } kPlaces[] = {
      {"HEDDLE_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/heddle"}, {"HOME", "/.cache/heddle"}};
  for (const auto& place : kPlaces) {
    const char* const folder = std::getenv(place.variable);
    if (folder != nullptr && *folder != '\0') return absl::StrCat(folder, place.below);
  }
  return FailedPreconditionError("none of HEDDLE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

}  // namespace heddle::codegen
