// Tensor elements in host memory as doubles, for checking and making data.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/type.h"

namespace heddle::tools {

// Every element as a double; 64-bit integers beyond 2^53 are rounded. `bytes` holds a whole number
// of elements.
std::vector<double> to_doubles(ir::Scalar dtype, absl::Span<const std::byte> bytes);

// Each value rounded once to a float type; `bytes` has room for exactly these.
void from_doubles(ir::Scalar float_type, absl::Span<const double> values,
                  absl::Span<std::byte> bytes);

}  // namespace heddle::tools
