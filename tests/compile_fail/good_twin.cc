// Every mistake of this folder's other files, made well.
// expect-ok
#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<const float, 1> x, Tensor<float, 1> y, Tensor<int32_t, 1> z, Int n, Float a,
          Bool p) {
  If(thread_idx.x < n, [&] { y(0) = 1.0f; });
  Var<float> sum(0.0f);
  sum = sum + y(0);
  sum += x(0);
  If(p, [&] { sum = 1.0f; });
  y(0) = a + cast<float>(n);
  z(0) = n + 1;
  Float element = y(0);
  y(1) = element;
  y(2) = sum;
}
