#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<const float, 1> x) {
  x(0) = 1.0f;  // expect-error: operator=|overloaded '='
}
// expect-error: ValuesNeverChangeUseVarOrANonConstTensor
