// What a launch needs of a compilation, as bytes: parameters, PTX, and what the host computes; of the IR nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/runtime/compile.h"

namespace heddle::runtime {

// Facts and their values.
std::string encode_guards(absl::Span<const ir::Guard> guards);
// nullopt where the bytes are none.
std::optional<std::vector<ir::Guard>> decode_guards(absl::string_view bytes);

// A compilation of such a kernel that has its PTX. Empty where it would not come back as it is: then it cannot be kept.
std::string encode_compilation(const Compilation& compilation, const ir::KernelSource& source);
// The compilation of such a kernel for such options, from its PTX on; nullptr where the bytes are none. Its traced and its optimised
// kernel are what the host computes (ir/launch/host_part.h).
std::shared_ptr<Compilation> decode_compilation(absl::string_view bytes,
                                                const ir::KernelSource& source,
                                                const CompileOptions& options);

}  // namespace heddle::runtime
