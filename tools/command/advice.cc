#include "heddle/tools/command/advice.h"

#include "absl/strings/str_replace.h"

namespace heddle::tools {

std::string advise(absl::string_view message) {
  return absl::StrReplaceAll(
      message, {{"Device::open(\"interp\")", "--device interp"},
                {"fix: set ", "fix: --set "},
                {"fix: set HEDDLE_", "fix: set HEDDLE_"}});  // a variable; the longest match counts
}

}  // namespace heddle::tools
