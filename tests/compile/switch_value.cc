// A Switch() that returns a value. CMakeLists.txt of the tests says how it is compiled, and why.
#include "heddle/dsl/dsl.h"
using namespace heddle;

void choose(Tensor<int, 1> y, Int n) {
  y(0) = Switch(n, Case(1, [] { return Int(2); }), Default([] { return Int(3); }));
}
