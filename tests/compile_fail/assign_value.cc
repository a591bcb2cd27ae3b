#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<float, 1> y) {
  Float sum = 0.0f;
  sum = sum + y(0);  // expect-error: operator=|overloaded '='
}
// expect-error: ValuesNeverChangeUseVarOrANonConstTensor
