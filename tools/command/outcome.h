// How a command ends, and how it says why.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::tools {

// What the program returns.
enum class Exit : int {
  kDone = 0,
  kFailed = 1,   // a kernel, a result or something outside (ptxas, a GPU) is wrong
  kMisused = 2,  // the command line or a file that it names is; textual IR that breaks a rule too
};

// Both print "heddle: <message>" to stderr, as the command line says it (advice.h), and return the
// code.
Exit failed(absl::string_view message);
Exit failed(const Status& status);
Exit misused(absl::string_view message);
Exit misused(const Status& status);

// A note for the user, which does not change the exit code.
void remark(absl::string_view message);

}  // namespace heddle::tools
