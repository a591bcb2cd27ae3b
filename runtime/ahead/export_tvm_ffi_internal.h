// Writes NAME_tvm_ffi.c, the exported function in the form of TVM-FFI.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/ahead/export.h"

namespace heddle::runtime {

// The text of the file, of plans that export_calls() takes. kInvalidArgument where the shapes of the tensors do not say every size,
// or do so otherwise in another plan, and for element types that DLPack lacks.
StatusOr<std::string> tvm_ffi_source(absl::string_view name, absl::Span<const std::string> sizes,
                                     absl::Span<const ExportedPlan> plans);

}  // namespace heddle::runtime
