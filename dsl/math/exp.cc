// Exponentials: the argument is n * log(2) + r with |r| <= log(2) / 2, e^r a polynomial, 2^n exact.
#include "heddle/dsl/math/formulas_internal.h"

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
Float exp2_polynomial(const Float& r) {
  return horner(r, {1.52412845636717975139617919921875e-4, 1.339130220003426074981689453125e-3,
                    9.61883366107940673828125e-3, 5.55035881698131561279296875e-2,
                    0.240226447582244873046875, 0.693147182464599609375, 1});
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

}  // namespace

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
  const bool alone = lo.node().is_host() && lo.node().bits == 0;
  return scale(exp_polynomial(alone ? r : r + lo), shift == 0 ? n.integer : n.integer + shift);
}
template Float exp_sum(const Float&, const Float&, int);
template Double exp_sum(const Double&, const Double&, int);

template <class T>
Value<T> exp(const Value<T>& x) {
  return exp_sum(x, Value<T>(T{0}));
}
template Float exp(const Float&);
template Double exp(const Double&);

template <class T>
Value<T> exp2(const Value<T>& x) {
  const Value<T> u = not_below(x, Limits<T>::kLow);
  const Rounded<T> n = round_product(min(u, static_cast<T>(Limits<T>::kHigh)), T{1});
  return scale(exp2_polynomial(u - n.value), n.integer);
}
template Float exp2(const Float&);
template Double exp2(const Double&);

// 10^x = 2^n e^r: what x is off a multiple of log10(2), times log(10), in two steps.
template <class T>
struct Log10;
template <>
struct Log10<float> {
  static constexpr double k2High = 0x1.344p-2, k2Low = 0x1.3509f8p-18, k2Rest = -0x1.80433cp-43;
  static constexpr double kHigh = 0x1.26bb1cp1, kLow = -0x1.12aabap-25;
};
template <>
struct Log10<double> {
  static constexpr double k2High = 0x1.34413509f79ffp-2, k2Low = -0x1.9dc1da994fd21p-59, k2Rest = 0;
  static constexpr double kHigh = 0x1.26bb1bbb55516p1, kLow = -0x1.f48ad494ea3e9p-53;
};
template <class T>
Value<T> exp10(const Value<T>& x) {
  using L = Limits<T>;
  constexpr double kLg2 = Log10<double>::k2High;
  const Value<T> high = static_cast<T>(L::kHigh * kLg2);
  const Value<T> u = select(x > high, high, not_below(x, L::kLow * kLg2));
  const Rounded<T> n = round_product(u, static_cast<T>(1 / kLg2));
  const Value<T> r = fma(n.value, static_cast<T>(-Log10<T>::k2Low),
                         fma(n.value, static_cast<T>(-Log10<T>::k2High), u));
  const Value<T> e = fma(r, static_cast<T>(Log10<T>::kHigh), r * static_cast<T>(Log10<T>::kLow));
  return scale(exp_polynomial(e), n.integer);
}
template Float exp10(const Float&);
template Double exp10(const Double&);

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
