#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<int32_t, 1> y, Int n) {
  y(0) = n + 1.5f;  // expect-error: no match for .operator\+.|invalid operands to binary expression
}
