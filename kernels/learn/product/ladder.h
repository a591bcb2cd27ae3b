// The rungs of the ladder in order, for programs that run them all.
//
//   for (const ProductRung& rung : product_ladder()) {
//     const Status status = rung.launch(stream, a, b, d);
//   }
#pragma once

#include <vector>

#include "heddle/kernels/learn/product/product.h"
#include "heddle/runtime/heddle.h"

namespace heddle::learn {

// A rung, which computes d = a b^T.
struct ProductRung {
  const char* name;    // "naive"
  const char* change;  // a line on what it changes against the one before
  // Its kernel, and how it is launched on a device.
  const Kernel<ProductIn, ProductIn, ProductOut>& kernel;
  LaunchShape (*shape)(const DeviceInfo& device);

  // One launch of it. kInvalidArgument where the extents do not fit each other, or are no multiples
  // of its tile.
  Status launch(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
                const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d) const {
    return kernel.launch(stream, shape(stream.device().info()), a, b, d);
  }
};

// All rungs, from the first on.
const std::vector<ProductRung>& product_ladder();

}  // namespace heddle::learn
