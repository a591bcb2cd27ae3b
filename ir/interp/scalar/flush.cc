// Subnormal operands and results as zeros of their sign: what the attribute `ftz` asks for.
#include <cmath>

#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

struct Flush {
  static float apply(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  }
};

struct FlushQuotient {
  static float apply(float a, float b, float rounded) {
    // In f64 a quotient of f32 is on the right side of a power of two.
    const double exact = static_cast<double>(a) / b;
    return std::fabs(exact) < 0x1p-126 ? std::copysign(0.0f, rounded) : rounded;
  }
};

}  // namespace

Handler flush_quotient_handler() { return &run_ternary<FlushQuotient, float>; }
Handler flush_handler() { return &run_unary<Flush, float, float>; }

}  // namespace heddle::ir::interp
