#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<float, 1> y, Bool p) {
  Var<float> sum(0.0f);
  If(p, [=] { sum = 1.0f; });  // expect-error: operator=|overloaded '='
  y(0) = sum;
}
