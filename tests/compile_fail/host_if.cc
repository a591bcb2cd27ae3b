#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<float, 1> y, Int n) {
  if (thread_idx.x < n) y(0) = 1.0f;
}
// expect-error: device condition used in host control flow: use If\(\), While\(\) or select\(\)
