#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<const float, 1> x) {
  Float sum = x(0);
  float host = sum;  // expect-error: cannot convert|no viable conversion
  (void)host;
}
