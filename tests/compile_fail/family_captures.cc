#include "heddle/dsl/dsl.h"
using namespace heddle;

// expect-error: a family's lambda captures nothing: its values are parameters in front
auto make(float factor) {
  return kernel_family("scale(x)", [=](int n, Tensor<float, 1> x) { x(n) = factor; });
}
