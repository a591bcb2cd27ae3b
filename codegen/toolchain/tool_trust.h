// Whether a file's code may be run: nobody but its owner and the administrator can have put something
// else in its place.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// What the code is run as: a process of its own, for which it must be executable, or a part of this one.
enum class CodeFile { kProgram, kLibrary };

// Follows every link and looks at every folder on the way. OK for a regular file that, like all those
// folders, only trusted accounts can write.
//   kInvalidArgument     not an absolute path
//   kNotFound            no such file
//   kFailedPrecondition  a folder, a device, a program that is not executable
//   kPermissionDenied    it or a folder on the way can be written by others
// The message is a clause without the path's own introduction: "/opt/bin can be written by
// everyone".
Status check_trusted(CodeFile kind, absl::string_view path);

}  // namespace heddle::codegen
