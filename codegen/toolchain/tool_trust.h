// Whether a program may be run: nobody but its owner and the administrator can have put something
// else in its place.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// Follows every link and looks at every folder on the way. OK for a regular file that may be
// executed and that, like all those folders, only trusted accounts can write.
//   kInvalidArgument     not an absolute path
//   kNotFound            no such file
//   kFailedPrecondition  a folder, a device, not executable
//   kPermissionDenied    it or a folder on the way can be written by others
// The message is a clause without the path's own introduction: "/opt/bin can be written by
// everyone".
Status check_trusted_program(absl::string_view path);

}  // namespace heddle::codegen
