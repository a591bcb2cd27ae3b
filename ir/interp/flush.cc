// Subnormal operands and results as zeros of their sign: what the attribute `ftz` asks for.
#include <cmath>

#include "heddle/ir/interp/elementwise.h"

namespace heddle::ir::interp {
namespace {

struct Flush {
  static float apply(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  }
};

}  // namespace

Handler flush_handler() { return &run_unary<Flush, float, float>; }

}  // namespace heddle::ir::interp
