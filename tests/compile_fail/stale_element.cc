#include "heddle/dsl/dsl.h"
using namespace heddle;

void body(Tensor<float, 1> y) {
  auto element = y(0);
  element = 1.0f;  // expect-error: operator=|overloaded '='
}
