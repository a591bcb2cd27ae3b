#include "vectors/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/text/literal.h"

namespace heddle::vectors {
namespace {

using ir::Opcode;
using ir::Scalar;

// A unit in the last place of f32 at a number of that size.
double f32_ulp(double value) {
  const int exponent = value == 0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - 23);
}

constexpr double kPi = 3.141592653589793;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The bounds of approximate ops, as the comments in ops.def state them.
struct Approximation {
  Opcode opcode;
  double (*exact)(double x);
  double (*error)(double x, double exact);  // how far a result may be from it
};
constexpr Approximation kApproximations[] = {
    {Opcode::kRcpApprox, [](double x) { return 1 / x; },
     [](double, double exact) { return f32_ulp(exact); }},
    {Opcode::kExp2, [](double x) { return std::exp2(x); },
     [](double, double exact) { return 2 * f32_ulp(exact); }},
    {Opcode::kRsqrt, [](double x) { return 1 / std::sqrt(x); },
     [](double, double exact) { return 2 * f32_ulp(exact); }},
    {Opcode::kLog2, [](double x) { return std::log2(x); },
     [](double, double exact) { return std::fabs(exact) <= 1 ? 0x1p-22 : 2 * f32_ulp(exact); }},
    {Opcode::kSinApprox, [](double x) { return std::sin(x); },
     [](double x, double) { return std::fabs(x) <= kPi ? 0x1p-20 : kUnbounded; }},
    {Opcode::kCosApprox, [](double x) { return std::cos(x); },
     [](double x, double) { return std::fabs(x) <= kPi ? 0x1p-20 : kUnbounded; }},
    {Opcode::kTanhApprox, [](double x) { return std::tanh(x); },
     [](double, double exact) { return 0x1p-10 * std::fabs(exact); }},
};

// An end of the interval of f32 results, as the op's own type rounds it. f32's ends stay where they
// are, but beyond its largest number lies infinity.
double end_of(Scalar scalar, double end) {
  const double rounded = float_value(scalar, ir::float_bits(scalar, end));
  return scalar == Scalar::kF32 && std::isfinite(rounded) ? end : rounded;
}

constexpr double kSmallestNormal = 0x1p-126;

// `flushes`: subnormal numbers count as zeros of their sign.
std::string out_of_bound(const Approximation& op, Scalar scalar, bool flushes, uint64_t operand,
                         uint64_t got) {
  double x = float_value(scalar, operand);
  if (flushes && std::fabs(x) < kSmallestNormal) x = std::copysign(0.0, x);
  const double exact = op.exact(x);
  if (std::isnan(exact)) return is_nan(scalar, got) ? "" : "it must be a NaN";
  const double value = float_value(scalar, got);
  if (std::isinf(exact)) return value == exact ? "" : absl::StrCat("it must be ", exact);
  const double error = op.error(x, exact);
  if (error == kUnbounded) return "";
  if (flushes && std::fabs(exact) - error < kSmallestNormal && value == 0) return "";
  const double low = end_of(scalar, exact - error), high = end_of(scalar, exact + error);
  if (low <= value && value <= high) return "";
  return absl::StrFormat("it must lie between %.17g and %.17g", low, high);
}

const Approximation* find_approximation(Opcode opcode) {
  for (const Approximation& row : kApproximations) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

}  // namespace

bool is_nan(Scalar scalar, uint64_t bits) {
  return is_float(scalar) && std::isnan(float_value(scalar, bits));
}

bool passes_bits(const Case& c) {
  switch (c.opcode) {
    case Opcode::kSelect:
    case Opcode::kBitcast:
    case Opcode::kNeg:  // all but the sign, which it flips
      return true;
    case Opcode::kConvert:
      // The 8-bit floats' NaN is always the same one.
      return c.operands[0] == c.result || ir::info(c.result).bits == 8;
    default:
      return false;
  }
}

bool is_unspecified(const Case& c, const Column& operands) {
  constexpr uint64_t kUpperBits = 0x7fffe000, kInfinity = 0x7f800000;
  return c.opcode == Opcode::kConvert && c.operands[0] == Scalar::kF32 &&
         c.result == Scalar::kTF32 && is_nan(Scalar::kF32, operands[0]) &&
         (operands[0] & kUpperBits) == kInfinity;
}

bool is_folded(const Case& c) {
  // Approximate results are the GPU's own; ops that name a rounding are left as they are.
  return !has(ir::info(c.opcode), ir::kApproximate) && c.attrs.empty();
}

std::string complaint(const Case& c, const Column& operands, uint64_t recorded, uint64_t got) {
  if (has(ir::info(c.opcode), ir::kApproximate)) {
    const Approximation* const op = find_approximation(c.opcode);
    if (op == nullptr) return "approximate, and comparison.cc has no bound for it";
    const auto is_ftz = [](const ir::Attr& attr) { return attr.key == ir::AttrKey::kFtz; };
    const bool flushes = std::any_of(c.attrs.begin(), c.attrs.end(), is_ftz);
    return out_of_bound(*op, c.result, flushes, operands[0], got);
  }
  if (got == recorded || is_unspecified(c, operands)) return "";
  if (!passes_bits(c) && is_nan(c.result, recorded) && is_nan(c.result, got)) return "";
  return absl::StrCat("recorded was ", describe(c.result, recorded));
}

std::string describe(Scalar scalar, uint64_t bits) {
  return absl::StrFormat("%#x (%s)", bits,
                         is_nan(scalar, bits) ? "NaN" : ir::literal_to_string(scalar, bits));
}

std::string describe(const Case& c, const Column& operands) {
  std::string text = absl::StrCat(c.name, " of ");
  for (size_t i = 0; i < operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", describe(c.operands[i], operands[i]));
  }
  return text;
}

}  // namespace heddle::vectors
