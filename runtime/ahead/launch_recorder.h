// Notes what a process compiles or takes from the disk for its launches in a warm-up list (warm_list.h), which warm_up() of another
// process compiles before its first request.
//
//   HEDDLE_RECORD=warm.list ./server      or      record_launches("warm.list")
//
// Each variant of a kernel and each call of an operation that is compiled (operation/compile_call.h) becomes a line when it is first needed; a launch
// that finds its variant is not concerned. Several processes may write one file: lines are appended as a whole. A line that the
// process has written, or that stood in the file when it was opened, is not written again.
#pragma once

#include <string>

#include "heddle/ir/kernel_source.h"
#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/compile_options.h"
#include "heddle/runtime/operation/bound_call.h"

namespace heddle::runtime {

// Records in this file from now on, in the place of any other one; made where there is none. Empty: records nothing, whatever
// HEDDLE_RECORD says. kFailedPrecondition where it cannot be opened to append; what was recorded before goes on then.
Status record_launches(const std::string& path);

// Whether the process records. The first call reads HEDDLE_RECORD; of a file that cannot be opened it says so on stderr.
bool launches_are_recorded();

// Notes a variant, compiled with these options for the arguments of a launch; not where the thread has VariantsOfCall.
void record_variant(const ir::KernelSource& source, const ir::LaunchShape& shape,
                    const ir::Target& target, const CompileOptions& options,
                    absl::Span<const Argument> arguments);
// Notes a call of an operation on tensors of these strides.
void record_call(const BoundCall& call, absl::Span<const Argument> arguments);

// Keeps the calling thread from noting variants: they belong to a call that is noted itself.
class VariantsOfCall {
 public:
  // From now on, until the object goes.
  VariantsOfCall();
  ~VariantsOfCall();
  VariantsOfCall(const VariantsOfCall&) = delete;
  VariantsOfCall& operator=(const VariantsOfCall&) = delete;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::record_launches;
}  // namespace heddle
