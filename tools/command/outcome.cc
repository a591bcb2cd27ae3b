#include "heddle/tools/command/outcome.h"

#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "heddle/tools/command/advice.h"

namespace heddle::tools {

void remark(absl::string_view message) {
  // Earlier output comes first where both streams go to the same place.
  std::fflush(stdout);
  absl::FPrintF(stderr, "heddle: %s\n", advise(absl::StripTrailingAsciiWhitespace(message)));
}

Exit failed(absl::string_view message) {
  remark(message);
  return Exit::kFailed;
}

Exit failed(const Status& status) { return failed(status.message()); }

Exit misused(absl::string_view message) {
  remark(message);
  return Exit::kMisused;
}

Exit misused(const Status& status) { return misused(status.message()); }

}  // namespace heddle::tools
