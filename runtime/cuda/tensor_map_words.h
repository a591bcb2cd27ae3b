// What the driver calls the element type, swizzle, promotion and fill of a tensor map.
#pragma once

#include "heddle/ir/launch/tensor_map.h"
#include "heddle/runtime/cuda/driver_api.h"

namespace heddle::runtime::cuda {

struct TensorMapWords {
  TensorMapType type;
  TensorMapSwizzle swizzle;
  TensorMapPromotion promotion;
  TensorMapFill fill;
};
// Of a map that the verifier has let pass.
TensorMapWords words_for(const ir::BoxShape& shape);

}  // namespace heddle::runtime::cuda
