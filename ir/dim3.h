// A block's, cluster's or grid's extents along x, y and z.
#pragma once

#include <cstdint>

namespace heddle::ir {

struct Dim3 {
  int x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
  int64_t count() const { return int64_t{x} * y * z; }
};

}  // namespace heddle::ir
