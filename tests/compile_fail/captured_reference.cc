#include "heddle/dsl/dsl.h"
using namespace heddle;

// expect-error: captures a reference or a pointer, which may be gone when the kernel is compiled:
// capture values
auto make(float factor) {
  return define_kernel("scale(x)", [&](Tensor<float, 1> x) { x(0) = factor; });
}
