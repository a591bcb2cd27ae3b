// Floats. To nearest even, the host computes in f64: the numbers of a narrower format have so few
// digits that rounding a sum, product, quotient or root twice rounds it once. All else is MPFR's.
#include <cmath>
#include <limits>
#include <utility>

#include "fuzz/oracle_scalar.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::Opcode;
using ir::Scalar;

using Result = std::optional<uint64_t>;

constexpr int kMaxOperands = 3;
constexpr double kLeastNormal = 0x1p-126;  // of f32

// The operands' numbers.
template <int kCount>
struct Numbers {
  Numbers(const ScalarOp& op, const uint64_t* operands) : format(*find_format(op.from)) {
    for (int i = 0; i < kCount; ++i) {
      values[i] = number(format, op.ftz ? flushed(operands[i]) : operands[i]);
    }
  }
  const Format& format;
  double values[kMaxOperands] = {};
};

Result result_of(const ScalarOp& op, const Format& format, double value) {
  const uint64_t bits = rounded(format, value);
  return op.ftz ? flushed(bits) : bits;
}

template <auto kFunction>
Result unary(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<1> x(op, operands);
  return result_of(op, x.format, kFunction(x.values[0]));
}
template <auto kFunction>
Result binary(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<2> x(op, operands);
  return result_of(op, x.format, kFunction(x.values[0], x.values[1]));
}
template <auto kFunction>
Result compare(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<2> x(op, operands);
  return kFunction(x.values[0], x.values[1]) ? 1 : 0;
}

constexpr MpfrFunction kAdd = {.of_two = mpfr_add};
constexpr MpfrFunction kSub = {.of_two = mpfr_sub};
constexpr MpfrFunction kMul = {.of_two = mpfr_mul};
constexpr MpfrFunction kDiv = {.of_two = mpfr_div};
constexpr MpfrFunction kFma = {.of_three = mpfr_fma};
constexpr MpfrFunction kSqrt = {.of_one = mpfr_sqrt};

// Rounded as the op says.
template <const MpfrFunction& kFunction, int kOperands>
Result once(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<kOperands> x(op, operands);
  return result_of(op, x.format, rounded_once(x.format, op.rounding, kFunction, x.values));
}

Result divided(const ScalarOp& op, const Format& format, double a, double b) {
  // The smallest normal number times a normal one is exact in f64.
  if (op.ftz && std::fabs(a) < std::fabs(b) * kLeastNormal) {
    return std::signbit(a) == std::signbit(b) ? 0 : 0x8000'0000;
  }
  const double operands[] = {a, b};
  return result_of(op, format, rounded_once(format, op.rounding, kDiv, operands));
}
Result divide_rounded(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<2> x(op, operands);
  return divided(op, x.format, x.values[0], x.values[1]);
}
Result invert_rounded(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<1> x(op, operands);
  return divided(op, x.format, 1, x.values[0]);
}

Result multiply_add(const ScalarOp& op, const uint64_t* operands) {
  const Numbers<3> x(op, operands);
  const auto& [a, b, c] = x.values;
  if (op.from == Scalar::kF64) return result_of(op, x.format, std::fma(a, b, c));
  if (op.from == Scalar::kF32) {
    const float sum = std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
    return result_of(op, x.format, sum);
  }
  return result_of(op, x.format, rounded_once(x.format, ir::Rounding::kNearest, kFma, x.values));
}

// The lesser, or the greater; of two zeros the negative one is less.
template <bool kMax, bool kKeepsNan>
double extreme(double a, double b) {
  if (std::isnan(a)) return kKeepsNan ? a : b;
  if (std::isnan(b)) return kKeepsNan ? b : a;
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return less == kMax ? b : a;
}

uint64_t sign_bit(const ScalarOp& op) { return uint64_t{1} << (width_of(op.from) - 1); }
Result negate(const ScalarOp& op, const uint64_t* operands) { return operands[0] ^ sign_bit(op); }
Result absolute(const ScalarOp& op, const uint64_t* operands) {
  return operands[0] & ~sign_bit(op);
}

double clamp(double x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// --- Approximations ---------------------------------------------------------------------------

// A unit in the last place of f32 at a number of that size.
double unit(double value) {
  const double size = std::fmax(std::fabs(value), kLeastNormal);
  return std::ldexp(1, std::ilogb(size) - 23);
}

int inverse(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t direction) {
  return mpfr_ui_div(result, 1, x, direction);
}
int inverse_root(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t direction) {
  mpfr_sqrt(result, x, direction);
  return mpfr_ui_div(result, 1, result, direction);
}

constexpr double kPi = 3.141592653589793;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// ops.def bounds these, and each target has its own values. The interpreter's are the host library's;
// so are the oracle's, which sees to it that they keep the bound.
struct Approximation {
  Opcode opcode;
  float (*value)(float x);
  MpfrFunction exact;
  double (*error)(double x, double exact);
};
constexpr Approximation kApproximations[] = {
    {Opcode::kRcpApprox,
     [](float x) { return 1 / x; },
     {.of_one = inverse},
     [](double, double exact) { return unit(exact); }},
    {Opcode::kExp2,
     [](float x) { return std::exp2(x); },
     {.of_one = mpfr_exp2},
     [](double, double exact) { return 2 * unit(exact); }},
    {Opcode::kRsqrt,
     [](float x) { return 1 / std::sqrt(x); },
     {.of_one = inverse_root},
     [](double, double exact) { return 2 * unit(exact); }},
    {Opcode::kLog2,
     [](float x) { return std::log2(x); },
     {.of_one = mpfr_log2},
     [](double, double exact) { return std::fabs(exact) <= 1 ? 0x1p-22 : 2 * unit(exact); }},
    {Opcode::kSinApprox,
     [](float x) { return std::sin(x); },
     {.of_one = mpfr_sin},
     [](double x, double) { return std::fabs(x) <= kPi ? 0x1p-20 : kUnbounded; }},
    {Opcode::kCosApprox,
     [](float x) { return std::cos(x); },
     {.of_one = mpfr_cos},
     [](double x, double) { return std::fabs(x) <= kPi ? 0x1p-20 : kUnbounded; }},
    {Opcode::kTanhApprox,
     [](float x) { return std::tanh(x); },
     {.of_one = mpfr_tanh},
     [](double, double exact) { return 0x1p-10 * std::fabs(exact); }},
};

bool is_near(const Approximation& row, double x, double value) {
  if (std::isnan(x)) return std::isnan(value);
  if (row.error(x, 0) == kUnbounded) return std::isnan(value) == std::isinf(x);
  const double exact = nearest(row.exact, x);
  if (std::isnan(exact)) return std::isnan(value);
  if (std::isinf(exact)) return value == exact;
  const double error = row.error(x, exact);
  // Beyond the largest number lies infinity.
  if (std::isinf(value)) {
    return std::fabs(exact) + error > std::numeric_limits<float>::max() && value * exact > 0;
  }
  return std::fabs(value - exact) <= error;
}

template <size_t kIndex>
Result approximate(const ScalarOp& op, const uint64_t* operands) {
  constexpr const Approximation& kRow = kApproximations[kIndex];
  const Numbers<1> x(op, operands);
  const float value = kRow.value(static_cast<float>(x.values[0]));
  if (!is_near(kRow, x.values[0], value)) return std::nullopt;
  return result_of(op, x.format, value);
}

constexpr std::pair<Opcode, Rule> kRules[] = {
    {Opcode::kAdd, binary<[](double a, double b) { return a + b; }>},
    {Opcode::kSub, binary<[](double a, double b) { return a - b; }>},
    {Opcode::kMul, binary<[](double a, double b) { return a * b; }>},
    {Opcode::kDiv, binary<[](double a, double b) { return a / b; }>},
    {Opcode::kMin, binary<extreme<false, false>>},
    {Opcode::kMax, binary<extreme<true, false>>},
    {Opcode::kMinNan, binary<extreme<false, true>>},
    {Opcode::kMaxNan, binary<extreme<true, true>>},
    {Opcode::kFma, multiply_add},
    {Opcode::kNeg, negate},
    {Opcode::kAbs, absolute},
    {Opcode::kSqrt, unary<[](double x) { return std::sqrt(x); }>},
    {Opcode::kRcp, unary<[](double x) { return 1 / x; }>},
    {Opcode::kFloor, unary<[](double x) { return std::floor(x); }>},
    {Opcode::kCeil, unary<[](double x) { return std::ceil(x); }>},
    {Opcode::kTrunc, unary<[](double x) { return std::trunc(x); }>},
    {Opcode::kRint, unary<[](double x) { return std::nearbyint(x); }>},
    {Opcode::kSaturate, unary<clamp>},
    {Opcode::kAddRounded, once<kAdd, 2>},
    {Opcode::kSubRounded, once<kSub, 2>},
    {Opcode::kMulRounded, once<kMul, 2>},
    {Opcode::kDivRounded, divide_rounded},
    {Opcode::kFmaRounded, once<kFma, 3>},
    {Opcode::kSqrtRounded, once<kSqrt, 1>},
    {Opcode::kRcpRounded, invert_rounded},
    {Opcode::kEq, compare<[](double a, double b) { return a == b; }>},
    {Opcode::kNe, compare<[](double a, double b) { return a != b; }>},
    {Opcode::kLt, compare<[](double a, double b) { return a < b; }>},
    {Opcode::kLe, compare<[](double a, double b) { return a <= b; }>},
    {Opcode::kGt, compare<[](double a, double b) { return b < a; }>},
    {Opcode::kGe, compare<[](double a, double b) { return a >= b; }>},
    {kApproximations[0].opcode, approximate<0>},
    {kApproximations[1].opcode, approximate<1>},
    {kApproximations[2].opcode, approximate<2>},
    {kApproximations[3].opcode, approximate<3>},
    {kApproximations[4].opcode, approximate<4>},
    {kApproximations[5].opcode, approximate<5>},
    {kApproximations[6].opcode, approximate<6>},
};

}  // namespace

bool keeps_bound(Opcode opcode, double x, double value) {
  for (const Approximation& row : kApproximations) {
    if (row.opcode == opcode) return is_near(row, x, value);
  }
  return false;
}

Rule float_rule(const ScalarOp& op) {
  if (!ir::is_float(op.from) || find_format(op.from) == nullptr) return nullptr;
  return find_in<Rule>(kRules, op.opcode);
}

}  // namespace heddle::fuzz::oracle
