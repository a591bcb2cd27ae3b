// The error function and its complement.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// e^(-x^2), with what x * x loses.
template <class T>
Value<T> exp_minus_square(const Value<T>& x) {
  const Value<T> square = x * x;
  return near_exp_sum(-square, -fma(x, x, -square));
}

// erf(x) / x - 1, near 0.
Float erf_near(const Float& x) {
  const Float z = x * x;
  return horner(
      z, {8.16904357634484767913818359375e-5, -8.0892373807728290557861328125e-4,
          5.1956214010715484619140625e-3, -2.68568210303783416748046875e-2,
          0.112836383283138275146484375, -0.37612628936767578125, 0.128379166126251220703125});
}
Double erf_near(const Double& x) {
  const Double z = x * x;
  return horner(z, {5.67500304015005921651800648722801601389620351767462125280872e-11,
                    -1.119215072781058093604886072704000798960777274260181002318859e-9,
                    1.460867979739339258216414410085706720998643959319451823830605e-8,
                    -1.634191750667257238035498306469306406540908940938040956854820251e-7,
                    1.646011306975821057252493823108707715618947986513376235961914e-6,
                    -1.492553215017806625278598553485664979234570637345314025878906e-5,
                    1.2055328042601747245803067709601918977568857371807098388671875e-4,
                    -8.54832687923602987413451703702094164327718317508697509765625e-4,
                    5.223977622580405939800574088849316467531025409698486328125e-3,
                    -2.68661706447637267658468118725068052699320697784423828125e-2,
                    0.11283791670952315888687422784641967155039310455322265625,
                    -0.376126389031836427800925548581290058791637420654296875,
                    0.1283791670955125585606992899556644260883331298828125});
}

// erfc(a) for a from 0.9 on: 2 to a polynomial, since an error in it counts a fifth at most. Beyond 4 the polynomial only
// falls, down to minus infinity, and 1 less what it gives rounds to 1.
Float erfc_beyond_near(const Float& a) {
  return flushed_exp2(horner(
      a, {-3.06154070131015e-05, 0.0006288766162469983, -0.006027542985975742, 0.036265645176172256,
          -0.1562548577785492, -0.9136907458305359, -1.6295629739761353, 0.0002556010731495917}));
}

}  // namespace

template <>
Float erf(const Float& x) {
  const Float a = abs(x);
  const Float far = with_sign(1 - erfc_beyond_near(a), x);
  return select(a <= 0.93f, fma(erf_near(x), x, x), far);
}

// Beyond 1: 1 - e^(-x^2) times a polynomial in (x - 2) / (x + 2).
template <>
Double erf(const Double& x) {
  const Double a = abs(x), b = min(a, 6);
  const Double t = (b - 2) / (b + 2);
  const Double g = horner(t, {-3.001461763048929996973695349948840771503455471247434616088867e-7,
                              -7.28136883097183401679711178822174133529188111424446105957031e-7,
                              1.234749542622626756595912052294483629566457238979637622833252e-6,
                              3.851325256159959637921631758761265018620179034769535064697266e-6,
                              1.355701920198298009582788155313881617303195525892078876495361e-6,
                              -1.3973329650042841539557547658745306762284599244594573974609375e-5,
                              -2.757287711421931513484581688366858998051611706614494323730469e-5,
                              2.752520546499848819047354120392867571354145184159278869628906e-5,
                              1.743605267065373031105945944574386885506100952625274658203125e-4,
                              4.35556744429060565637450153086973614335875026881694793701172e-5,
                              -9.819769955888789890463552723076645634137094020843505859375e-4,
                              -8.471432555199249515853754388672314235009253025054931640625e-4,
                              6.997461738419159978097372487582106259651482105255126953125e-3,
                              3.732892404454423752879765885381857515312731266021728515625e-3,
                              -7.897858101572306777082843609605333767831325531005859375e-2,
                              0.24165819424246504087960829565417952835559844970703125,
                              -0.427185847413958430518476916404324583709239959716796875,
                              0.25539567631050574814111087107448838651180267333984375});
  const Double far = with_sign(1 - exp_minus_square(b) * g, x);
  return select(a > 1, far, fma(erf_near(x), x, x));
}

namespace {

// Of erfc(|x|) beyond 0.47; erf_near is good up to `near_end`.
template <class T>
Value<T> erfc_of(const Value<T>& x, const Value<T>& tail, T near_end) {
  const Value<T> a = abs(x), one = T{1}, two = T{2};
  const Value<T> near = fma(-erf_near(x), x, one - x);
  const Value<T> far = select(x < 0, two - tail, tail);
  const Value<T> number = select(a > near_end, far, select(x > static_cast<T>(0.47), tail, near));
  return select(x == x, number, x);
}

}  // namespace

// Beyond 0.47: e^(-x^2) times a polynomial in (x - 2) / (x + 2) over 1 + 2 x, all of these of moderate size.
template <>
Float erfc(const Float& x) {
  const Float a = abs(x);
  const Float b = min(a, 10.5f);
  const Float t = (b - 2) * flushed_rcp(b + 2);
  const Float g =
      horner(t, {2.38280437770299613475799560546875e-4, -3.007710329256951808929443359375e-4,
                 -1.503789913840591907501220703125e-3, 1.20688159950077533721923828125e-3,
                 8.74506123363971710205078125e-3, -8.021698333323001861572265625e-3,
                 -5.42245097458362579345703125e-2, 0.16405029594898223876953125,
                 -0.16603003442287445068359375, -9.2763803899288177490234375e-2,
                 1.27697837352752685546875});
  return erfc_of(x, times(exp_minus_square(b), near_quotient(g, fma(b, 2, 1))), 0.93f);
}

// Beyond 0.47: the same with (x - 3) / (x + 3).
template <>
Double erfc(const Double& x) {
  const Double a = abs(x);
  const Double b = min(a, 27.5);
  const Double t = (b - 3) / (b + 3);
  const Double g =
      horner(t, {0x1.7621a61f041e4p-27,  0x1.265250f65146fp-24,  -0x1.7df08cd6a8376p-24,
                 -0x1.362c13292e669p-21, 0x1.4987da67e972ap-22,  0x1.ce8f270d0ba74p-19,
                 -0x1.79499fc961e49p-21, -0x1.510c9eafb9f76p-16, 0x1.4b7416c8aec4fp-18,
                 0x1.0658a76f71971p-13,  -0x1.b90fe59dd915bp-14, -0x1.98db403088ed2p-11,
                 0x1.ef1bd772eabf8p-10,  0x1.4b884dd579b7ap-9,   -0x1.8574c4042321ap-6,
                 0x1.17ca287823417p-4,   -0x1.e88b803a5dab5p-4,  0x1.098366a5b3c3ap-3,
                 -0x1.85a15c58a9b56p-5,  -0x1.15c084bb9e8dep-3,  0x1.40c522d7e4987p0});
  return erfc_of(x, exp_minus_square(b) * (g / fma(b, 2, 1)), 1.0);
}

// A polynomial in (x - 2) / (x + 2).
Float erfcx_numerator(const Float& x) {
  const Float b = min(x, 0x1p30f);
  const Float t = (b - 2) * flushed_rcp(b + 2);
  return horner(t, {-0x1.7e44f4p-17, 0x1.088ca8p-15, 0x1.e2172ap-14, -0x1.7672eap-13,
                    -0x1.828bfp-11, 0x1.3eebaep-11, 0x1.1e1884p-8, -0x1.06c0dep-8, -0x1.bc3008p-6,
                    0x1.4ff92p-4, -0x1.54079ep-4, -0x1.7bf5dap-5, 0x1.46e80ep-1});
}

template <>
Float erfcx(const Float& x) {
  const Float a = abs(x), y = erfcx_numerator(a) / (a + 0.5f);
  const Float b = min(a, 10), square = b * b;
  const Float twice = exp_sum(square, fma(b, b, -square), 1);
  return select(x < 0, twice - y, y);
}

}  // namespace heddle::detail::math
