// Exponentials. The argument is n * log(2) + r with |r| <= log(2) / 2, e^r a polynomial, 2^n exact. exp, exp2 and exp10 of f32
// have the special function unit instead: the argument is (n + f) * log(2) with f between 0 and 1.
#include "heddle/dsl/math/fast_math.h"
#include "heddle/dsl/math/formulas_internal.h"
#include "heddle/dsl/math/rounding.h"

namespace heddle::detail::math {
namespace {

// Beyond these every result is 0 or infinite, and n would not fit.
template <class T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr double kLow = -150.5, kHigh = 129;
};
template <>
struct Limits<double> {
  static constexpr double kLow = -1075.5, kHigh = 1025;
};

// x, but not below `low`; NaN stays. Beyond the high end n is clipped, and r overflows instead.
template <class T>
Value<T> not_below(const Value<T>& x, double low) {
  return select(x < static_cast<T>(low), Value<T>(static_cast<T>(low)), x);
}

Float exp_polynomial(const Float& r) {
  return horner(r, {0x1.696f82p-10, 0x1.123f3ap-7, 0x1.555b18p-5, 0x1.555486p-3, 0.5, 1, 1});
}
Double exp_polynomial(const Double& r) {
  return horner(r, {2.500350048238004182599832569359327161251371762773487716913223e-8,
                    2.76318845762159472808348371908326868151561939157545566558838e-7,
                    2.75575825665585774458662612906856281824730103835463523864746e-6,
                    2.48014887221353711192674967866977908670378383249044418334961e-5,
                    1.984126950299158601877247409817073275917209684848785400390625e-4,
                    1.38888889476309327665470849666462527238763868808746337890625e-3,
                    8.3333333334996463614974260281087481416761875152587890625e-3,
                    4.166666666651586137248841623659245669841766357421875e-2,
                    0.1666666666666639928795490277479984797537326812744140625,
                    0.50000000000000122124532708767219446599483489990234375, 1, 1});
}
Double exp2_polynomial(const Double& r) {
  return horner(r, {2.718754908925929793524817652404008570463100902259157010121271e-11,
                    4.46553946101159033684314441167576351099377518494293326511979e-10,
                    7.053799333885052162055988300704001403573784045875072479248047e-9,
                    1.017798579081734393267909006414173589405436359811574220657349e-7,
                    1.321548990799142141947539533242128584333840990439057350158691e-6,
                    1.525273403599452128455524896333272977244632784277200698852539e-5,
                    1.540353038934879682277101498044658001163043081760406494140625e-4,
                    1.33335581461657671185905282840167274116538465023040771484375e-3,
                    9.61812910763081008180819253539084456861019134521484375e-3,
                    5.550410866482292926438191216220729984343051910400390625e-2,
                    0.2402265069591006663163312850883812643587589263916015625,
                    0.69314718055994528622676398299518041312694549560546875, 1});
}

template <class T>
bool is_zero(const Value<T>& x) {
  return x.node().is_host() && x.node().bits == 0;
}

// A number as a sum of two floats.
struct Sum {
  float hi, lo;
};

// 2^(x log2_base + lo / log(2)) = 2^n 2^f. n is rounded down and kept between -126 and 126, where 2^n is a
// normal number: a fraction of 252 saturates. Beyond, and where results are subnormal, 2^f takes what is left. All times
// 2^shift, of n + shift within the same bounds.
Float two_to(const Float& x, Sum log2_base, const Float& lo = 0.0f, int shift = 0) {
  constexpr float kLeast = -126, kSteps = 252, kFirst = kShifter<float> + 1;
  const Float part = saturate(fma(x, log2_base.hi / kSteps, 0.5f));
  const Float shifted = fma(part, Float(kSteps), Float(kFirst), Rounding::down);
  const Float n = shifted - (kFirst - kLeast);
  Float f = fma(x, log2_base.lo, fma(x, log2_base.hi, -n));
  if (!is_zero(lo)) f.node() = fma(lo, log2_base.hi, f).node();
  Int scale = bits(shifted) << Format<float>::kMantissa;
  if (shift != 0) scale.node() = (scale + shift * (1 << Format<float>::kMantissa)).node();
  return flushed_exp2(f) * from_bits<float>(scale);
}

}  // namespace

Float flushed_exp2(const Float& x) {
  const FlushSubnormals flush;
  return fast::exp2(x);
}
Float flushed_rcp(const Float& x) {
  const FlushSubnormals flush;
  return fast::rcp(x);
}
Pair<float> near_quotient(const Float& x, const Float& y) {
  const Float inverse = flushed_rcp(y), near = x * inverse;
  return {near, fma(-near, y, x) * inverse};
}

// The constants' first parts have zeros at their ends, so that their products with n are exact.
template <class T>
struct Log2;
template <>
struct Log2<float> {
  static constexpr double kHigh = 0x1.62e43p-1, kLow = -0x1.05c61p-29;
};
template <>
struct Log2<double> {
  static constexpr double kHigh = 0x1.62e42fefa39efp-1, kLow = 0x1.abc9e3b39803fp-56;
};

template <class T>
Value<T> exp_sum(const Value<T>& x, const Value<T>& lo, int shift) {
  using L = Limits<T>;
  constexpr double kLn2 = Log2<double>::kHigh;
  const Value<T> u = not_below(x, L::kLow * kLn2);
  const Rounded<T> n =
      round_product(min(u, static_cast<T>(L::kHigh * kLn2)), static_cast<T>(1 / kLn2));
  const Value<T> above = fma(n.value, static_cast<T>(-Log2<T>::kHigh), u);
  const Value<T> r = fma(n.value, static_cast<T>(-Log2<T>::kLow), above);
  return scale(exp_polynomial(is_zero(lo) ? r : r + lo),
               shift == 0 ? n.integer : n.integer + shift);
}
template Float exp_sum(const Float&, const Float&, int);
template Double exp_sum(const Double&, const Double&, int);

template <>
Float near_exp_sum(const Float& x, const Float& lo, int shift) {
  return two_to(x, {0x1.715476p0f, 0x1.4ae0cp-26f}, lo, shift);
}
template <>
Double near_exp_sum(const Double& x, const Double& lo, int shift) {
  return exp_sum(x, lo, shift);
}

template <class T>
Value<T> exp(const Value<T>& x) {
  return near_exp_sum(x, Value<T>(T{0}));
}
template Float exp(const Float&);
template Double exp(const Double&);

template <>
Float exp2(const Float& x) {
  return fast::exp2(x);
}
template <>
Double exp2(const Double& x) {
  using L = Limits<double>;
  const Double u = not_below(x, L::kLow);
  const Rounded<double> n = round_product(min(u, L::kHigh), 1.0);
  return scale(exp2_polynomial(u - n.value), n.integer);
}

template <>
Float exp10(const Float& x) {
  return two_to(x, {0x1.a934fp1f, 0x1.2f346ep-24f});
}
// 10^x = 2^n e^r: what x is off a multiple of log10(2), times log(10), in two steps.
template <>
Double exp10(const Double& x) {
  constexpr double kLg2 = 0x1.34413509f79ffp-2, kLg2Low = -0x1.9dc1da994fd21p-59;
  constexpr double kLn10 = 0x1.26bb1bbb55516p1, kLn10Low = -0x1.f48ad494ea3e9p-53;
  const Double high = Limits<double>::kHigh * kLg2;
  const Double u = select(x > high, high, not_below(x, Limits<double>::kLow * kLg2));
  const Rounded<double> n = round_product(u, 1 / kLg2);
  const Double r = fma(n.value, -kLg2Low, fma(n.value, -kLg2, u));
  return scale(exp_polynomial(fma(r, kLn10, r * kLn10Low)), n.integer);
}

namespace {

// e^r - 1 - r of |r| up to 0.52.
Float expm1_tail(const Float& r) {
  return r * r *
         horner(r, {1.98799694771878421306610107421875e-4, 1.40084023587405681610107421875e-3,
                    8.333510719239711761474609375e-3, 4.16650064289569854736328125e-2,
                    0.16666664183139801025390625, 0.500000059604644775390625});
}
Double expm1_tail(const Double& r) {
  return r * r *
         horner(r, {1.60139836088951007387712796390256530382201205497949558775872e-10,
                    2.09737511105056692187803775754510043904943472745625926052332e-9,
                    2.505278780845624549044360358362321106184822383511345833539963e-8,
                    2.755700956517081545893335225300146973381743009667843580245972e-7,
                    2.75573168571270050135205501029567187742941314354538917541504e-6,
                    2.480158776142617427446293576487335030833492055535316467285156e-5,
                    1.984126984475448600853814129507668440055567771196365356445312e-4,
                    1.38888888885785603995171033631095269811339676380157470703125e-3,
                    8.33333333333112491470018312611500732600688934326171875e-3,
                    4.1666666666667399876455846197131904773414134979248046875e-2,
                    0.1666666666666667129259593593815225176513195037841796875, 0.5});
}

}  // namespace

template <class T>
Power<T> exp_parts(const Value<T>& x) {
  const Rounded<T> n = round_product(x, static_cast<T>(1 / Log2<double>::kHigh));
  const Value<T> r = fma(n.value, static_cast<T>(-Log2<T>::kLow),
                         fma(n.value, static_cast<T>(-Log2<T>::kHigh), x));
  return {sum(Value<T>(T{1}), r + expm1_tail(r)), n.integer};
}
template Power<float> exp_parts(const Float&);
template Power<double> exp_parts(const Double&);

// 2^n (e^r - 1) + (2^n - 1), all halved lest 2^n overflow; below 1/2 n is 0.
template <class T>
Value<T> expm1(const Value<T>& x) {
  constexpr double kLn2 = Log2<double>::kHigh;
  const Value<T> zero = T{0}, high = static_cast<T>((Format<T>::kBias + 1.4) * kLn2);
  const Value<T> u = not_below(x, -(Format<T>::kMantissa + 3) * kLn2);
  const Value<T> clipped = min(u, high);
  const Rounded<T> n =
      round_product(select(abs(x) < static_cast<T>(0.5), zero, clipped), static_cast<T>(1 / kLn2));
  const Value<T> above = fma(n.value, static_cast<T>(-Log2<T>::kHigh), u);
  const Value<T> r = fma(n.value, static_cast<T>(-Log2<T>::kLow), above);
  const Value<T> half = power_of_two<T>(n.integer - 1);
  const Value<T> y = fma(half, expm1_tail(r), fma(half, r, half - static_cast<T>(0.5)));
  return select(abs(x) < std::numeric_limits<T>::epsilon() / 4, x, y + y);
}
template Float expm1(const Float&);
template Double expm1(const Double&);

}  // namespace heddle::detail::math
