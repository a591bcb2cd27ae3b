// Warm-up lists: text that says which variants of kernels and which calls of operations a process needed, for the next one to compile
// before its first request (warm_up.h). HEDDLE_RECORD writes them (launch_recorder.h).
//
//   # a comment
//   kernel row_sum at=row_sum.cc:14 takes="x: const f32[?, ?], y: f32[?]" values=726f77 target=sm_90a block=128x1x1 cluster=1x1x1
//       options="" facts="align(0)=16 extent_div(0,1)=16 …"      (on the same line)
//   call softmax dtype=bf16 scale=1 x:bf16[8192,4096]{4096,1} y:bf16[8192,4096]{4096,1}
//
// A line is a variant or a call. Of a variant it has all facts of the arguments, since nobody knows which of them other versions of the
// kernel ask for; extents stand among them. `values` are what the kernel was given (KernelSource::origin()), in hexadecimal; "?": they
// cannot be compared between processes. `options` are those that it was compiled with, for readers: a launch compiles with
// its device's.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/dim3.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// Which kernel: what is the same in every process that has it.
struct KernelIdentity {
  std::string name = {};    // as the kernel's author gave it
  std::string place = {};   // "row_sum.cc:14"; "" where it is not known
  std::string takes = {};   // its parameters
  std::string values = {};  // in hexadecimal; "?": not known

  bool operator==(const KernelIdentity&) const = default;
};
// The identity of a kernel at hand.
KernelIdentity identity_of(const ir::KernelSource& source);

// A variant of a kernel.
struct KernelLine {
  KernelIdentity kernel = {};         // whose
  std::string target = {};            // "sm_90a"
  Dim3 block = {};                    // of the launch; kBlockOfKernel: the kernel's own
  Dim3 cluster = {};                  // of the launch, in blocks
  std::string options = {};           // as print_compile_options() has them, without the target
  std::vector<ir::Guard> facts = {};  // all facts of the arguments
};

// A tensor of a call.
struct CallTensor {
  std::string name = {};              // as the operation has it
  TensorShape shape = {};             // its type and extents
  std::vector<int64_t> strides = {};  // in elements, one a mode
};

// A call of an operation.
struct CallLine {
  std::string operation = {};            // its name
  Settings settings = {};                // all of them
  std::vector<CallTensor> tensors = {};  // all of them
};

// One line of a list.
struct WarmListEntry {
  int line = 0;  // its number, from 1 up
  // std::string: the first word of a line of another kind, which a later version may have written.
  std::variant<KernelLine, CallLine, std::string> content;
};

// The lines, without their ends.
std::string print(const KernelLine& line);
std::string print(const CallLine& line);
// "align(0)=16 extent_div(0,1)=16"
std::string print_facts(absl::Span<const ir::Guard> facts);

// The entries of a list; of equal lines the first one, blank lines and comments left out. kInvalidArgument names the line that is damaged.
StatusOr<std::vector<WarmListEntry>> parse_warm_list(absl::string_view text);
// Likewise of a file. kNotFound, or the system's reason, where it cannot be read.
StatusOr<std::vector<WarmListEntry>> read_warm_list(const std::string& path);

}  // namespace heddle::runtime
