// Element types and kinds of memory as DLPack numbers them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/type.h"
#include "heddle/runtime/interop/dlpack_abi_internal.h"

namespace heddle::runtime::dlpack {

// Heddle's element type of one of DLPack's; kNone where there is none. `padded`: elements of less than a byte have a byte each.
ir::Scalar scalar_of(const DLDataType& type, bool padded);
// DLPack's element type of one of Heddle's.
DLDataType type_of(ir::Scalar scalar);
// "float32", "bfloat16", "float32 x 4", "type code 99"
std::string describe(const DLDataType& type);
// Of a type for which scalar_of() has none: why, and a cure, "which is …; fix: …".
std::string why_unknown(const DLDataType& type);

// "kDLCUDA", of DLDevice::device_type.
std::string name_of_memory(int32_t type);

// The strides of a tensor without gaps. What 64 bits do not hold becomes the largest.
std::vector<int64_t> row_major(absl::Span<const int64_t> extents);

}  // namespace heddle::runtime::dlpack
