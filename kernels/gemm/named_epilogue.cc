#include "heddle/kernels/gemm/named_epilogue.h"

#include <cmath>

namespace heddle::kernels {
namespace {

using Sums = Fragment<float>;
using Traced = TracedAddends;

// The activations, traced and in double precision. A NaN stays one.
Sums relu(const Sums& x) { return max_nan(x, 0.0f); }
double relu(double x) { return x < 0 ? 0 : x; }

Sums gelu(const Sums& x, const Traced& with) {
  return with.is_narrow ? x * fast::normcdf(x) : x * 0.5f * (erf(x * 0.707106781f) + 1.0f);
}
double gelu(double x) { return x / 2 * std::erfc(-x * M_SQRT1_2); }

Sums silu(const Sums& x) {
  const FlushSubnormals flush;
  return x * fast::rcp(fast::exp(-x) + 1.0f);
}
double silu(double x) { return x / (1 + std::exp(-x)); }

// gelu is steepest at the square root of 2, silu near 2.4; 1 + erf(x), and 1 + exp(-x) and its inverse, have
// some roundings of numbers up to 2, which count by x.
constexpr double kGeluSlope = 1.13, kSiluSlope = 1.1;
constexpr double kGeluRounding = 4 * 0x1p-24, kNarrowGeluRounding = 0x1p-12;
constexpr double kSiluRounding = 8 * 0x1p-24;

}  // namespace

const std::vector<NamedEpilogue>& named_epilogues() {
  // Name; whether it takes a bias and a residual; traced; exact; slope and rounding of a curved one.
  static const auto& rows = *new std::vector<NamedEpilogue>{
      {"none", false, false, [](const Sums& x, const Traced&) { return x; },
       [](double x, const Addends&) { return x; }},
      {"bias", true, false, [](const Sums& x, const Traced& with) { return x + with.bias(); },
       [](double x, const Addends& with) { return x + with.bias; }},
      {"relu", false, false, [](const Sums& x, const Traced&) { return relu(x); },
       [](double x, const Addends&) { return relu(x); }},
      {"gelu", false, false, [](const Sums& x, const Traced& with) { return gelu(x, with); },
       [](double x, const Addends&) { return gelu(x); }, kGeluSlope, kGeluRounding,
       kNarrowGeluRounding},
      {"silu", false, false, [](const Sums& x, const Traced&) { return silu(x); },
       [](double x, const Addends&) { return silu(x); }, kSiluSlope, kSiluRounding, kSiluRounding},
      {"bias_relu", true, false,
       [](const Sums& x, const Traced& with) { return relu(x + with.bias()); },
       [](double x, const Addends& with) { return relu(x + with.bias); }},
      {"bias_gelu", true, false,
       [](const Sums& x, const Traced& with) { return gelu(x + with.bias(), with); },
       [](double x, const Addends& with) { return gelu(x + with.bias); }, kGeluSlope, kGeluRounding,
       kNarrowGeluRounding},
      {"bias_silu", true, false,
       [](const Sums& x, const Traced& with) { return silu(x + with.bias()); },
       [](double x, const Addends& with) { return silu(x + with.bias); }, kSiluSlope,
       kSiluRounding},
      {"residual", false, true,
       [](const Sums& x, const Traced& with) { return x + with.residual(); },
       [](double x, const Addends& with) { return x + with.residual; }},
      {"bias_residual", true, true,
       [](const Sums& x, const Traced& with) { return x + with.bias() + with.residual(); },
       [](double x, const Addends& with) { return x + with.bias + with.residual; }},
      {"bias_relu_residual", true, true,
       [](const Sums& x, const Traced& with) { return relu(x + with.bias()) + with.residual(); },
       [](double x, const Addends& with) { return relu(x + with.bias) + with.residual; }},
      {"bias_gelu_residual", true, true,
       [](const Sums& x, const Traced& with) {
         return gelu(x + with.bias(), with) + with.residual();
       },
       [](double x, const Addends& with) { return gelu(x + with.bias) + with.residual; },
       kGeluSlope, kGeluRounding, kNarrowGeluRounding},
      {"bias_silu_residual", true, true,
       [](const Sums& x, const Traced& with) { return silu(x + with.bias()) + with.residual(); },
       [](double x, const Addends& with) { return silu(x + with.bias) + with.residual; },
       kSiluSlope, kSiluRounding, kSiluRounding},
  };
  return rows;
}

}  // namespace heddle::kernels
