#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<float, 1> y, Int n, Float a) {
  y(0) = a + n;  // expect-error: no match for .operator\+.|invalid operands to binary expression
}
