// Sine, cosine and tangent: x = q * pi/2 + r with |r| <= pi/4, polynomials in r.
#include <vector>

#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// Where subtracting multiples of pi/2 in three parts is exact enough.
template <class T>
inline constexpr T kFewTurns = T{1} * (sizeof(T) == 4 ? 1 << 17 : 1 << 30);

template <class T>
struct Parts;  // of pi/2
template <>
struct Parts<float> {
  static constexpr double k1 = 0x1.921fb6p0, k2 = -0x1.777a5cp-25, k3 = -0x1.ee59dap-50;
};
template <>
struct Parts<double> {
  static constexpr double k1 = 0x1.921fb54442d18p0, k2 = 0x1.1a62633145c07p-54,
                          k3 = -0x1.f1976b7ed8fbcp-110;
};

// 2/pi: 32 zeros, then the bits after the binary point.
constexpr uint64_t kTwoOverPi[] = {
    0x00000000a2f9836e, 0x4e441529fc2757d1, 0xf534ddc0db629599, 0x3c439041fe5163ab,
    0xdebbc561b7246e3a, 0x424dd2e006492eea, 0x09d1921cfe1deb1c, 0xb129a73ee88235f5,
    0x2ebb4484e99c7026, 0xb45f7e413991d639, 0x835339f49c845f8b, 0xbdf9283b1ff897ff,
    0xde05980fef2f118b, 0x5a0a6d1f6d367ecf, 0x27cb09b74f463f66, 0x9e5fea2d7527bac7,
    0xebe5f17b3d0739f7, 0x8a5292ea6bfb5fb1, 0x1f8d5d0856033046, 0xfc7b6babf0cfbc20};

// What is left of an angle after so many quarter turns: r + lo, with lo below an ulp of r. In f32
// lo is left out: it would take half an ulp off the largest error of sin and cos, at five
// instructions.
template <class T>
struct Turned {
  Value<T> r, lo;
  Int quarter;
};

template <class T>
Turned<T> reduce_few(const Value<T>& x) {
  const Rounded<T> q = round_product(x, static_cast<T>(0x1.45f306dc9c883p-1));
  const auto less = [&](const Value<T>& from, double part) {
    return fma(q.value, static_cast<T>(-part), from);
  };
  const Value<T> above = less(x, Parts<T>::k1);  // exact
  if constexpr (sizeof(T) == 4) {
    return {less(less(above, Parts<T>::k2), Parts<T>::k3), T{0}, q.integer};
  } else {
    const Value<T> part = q.value * static_cast<T>(-Parts<T>::k2);
    const Value<T> r = above + part;
    const Value<T> lo = less(less(-part, Parts<T>::k2), Parts<T>::k3) + (part - (r - above));
    return {r, lo, cast<int>(q.integer)};
  }
}

// `count` words of 2/pi's bits, from bit `first` on.
std::vector<UInt64> window(const UInt& first, int last_word, int count) {
  std::vector<UInt64> words;
  for (int i = 0; i <= last_word + count; ++i) words.push_back(kTwoOverPi[i]);
  int step = 1;
  while (2 * step <= last_word) step *= 2;
  for (; step > 0; step /= 2) {
    const Bool moves = (first & static_cast<uint32_t>(64 * step)) != 0;
    for (int i = 0; i + step <= last_word + count; ++i) {
      words[i].node() = select(moves, words[i + step], words[i]).node();
    }
  }
  const UInt shift = first & 63u;
  for (int i = 0; i < count; ++i) {
    words[i].node() = ((words[i] << shift) | (words[i + 1] >> (64u - shift))).node();
  }
  return {words.begin(), words.begin() + count};
}

// pi/2 times the 128-bit fraction of a quarter turn, from -1/2 to 1/2, of which high is the upper
// half.
template <class T>
Pair<T> quarter_fraction(const Int64& high, const UInt64& low);
template <>
Pair<float> quarter_fraction<float>(const Int64& high, const UInt64&) {
  const Double wide = cast<double>(high) * 0x1.921fb54442d18p-64;
  return {cast<float>(wide), 0};
}
template <>
Pair<double> quarter_fraction<double>(const Int64& high, const UInt64& low) {
  const Int64 sign = high >> 63;
  const UInt64 top = bitcast<uint64_t>(high ^ sign), rest = low ^ bitcast<uint64_t>(sign);
  const Int zeros = clz(top);
  const UInt lift = bitcast<uint32_t>(zeros);
  const UInt64 word = (top << lift) | (rest >> (64u - lift));
  // As a + b, then times pi/2 in two parts.
  const Double unit =
      with_sign(power_of_two<double>(cast<int64_t>(-64 - zeros)), bitcast<double>(sign));
  const Double a = cast<double>(word & ~uint64_t{0x7FF}) * unit;
  const Double b = cast<double>(word & 0x7FFu) * unit;
  const Double r = a * Parts<double>::k1;
  return {r, fma(a, Parts<double>::k1, -r) + fma(a, Parts<double>::k2, b * Parts<double>::k1)};
}

// x's significand times the bits of 2/pi that matter, modulo 4 turns.
template <class T>
Turned<T> reduce_many(const Value<T>& x) {
  constexpr int kMantissa = Format<T>::kMantissa;
  constexpr bool kWide = sizeof(T) == 8;
  const BitsValue<T> b = bits(abs(x));
  const UInt exponent = cast<uint32_t>(b >> kMantissa);
  const BitsValue<T> hidden = Bits<T>{1} << kMantissa;
  const UInt64 m = cast<uint64_t>((b & (hidden - 1)) | hidden);
  // Bit i is worth 2^(31 - i), x is m * 2^e: the first bit that is no multiple of 4 once
  // multiplied.
  const UInt first = exponent - static_cast<uint32_t>(Format<T>::kBias + kMantissa - 30);
  const std::vector<UInt64> w = window(first, kWide ? 15 : 2, kWide ? 3 : 2);
  const UInt64 low = kWide ? m * w[1] + mulhi(m, w[2]) : m * w[1];
  const Bool carry = kWide ? low < m * w[1] : Bool(false);
  const UInt64 high = m * w[0] + mulhi(m, w[1]) + cast<uint64_t>(carry);
  // The nearest quarter, and what is left.
  const UInt64 quarter = (high + (uint64_t{1} << 61)) >> 62;
  const Pair<T> r = quarter_fraction<T>(bitcast<int64_t>((high << 2) | (low >> 62)), low << 2);
  const Int q = cast<int>(quarter);
  const Bool negative = x < 0;
  return {select(x - x == 0, select(negative, -r.hi, r.hi), Value<T>(kNan<T>)),
          select(negative, -r.lo, r.lo), select(negative, -q, q)};
}

template <class T>
Turned<T> reduce(const Value<T>& x) {
  return If(
      abs(x) >= kFewTurns<T>, [&] { return reduce_many(x); }, [&] { return reduce_few(x); });
}

// (sin(r) - r) / r and (cos(r) - 1) / z, of z = r^2.
Float sin_tail(const Float& z) {
  return z * horner(z, {2.799741878334316425025463104248046875e-6,
                        -1.98498702957294881343841552734375e-4, 8.33337195217609405517578125e-3,
                        -0.16666667163372039794921875});
}
Double sin_tail(const Double& z) {
  return z * horner(z, {1.589486563062082304686550977859097084909922870110676740296185e-10,
                        -2.505072552516104815251640151180234639127775153610855340957642e-8,
                        2.755731348938764431574961755178065914151375181972980499267578e-6,
                        -1.984126982924573287265374021970387730107177048921585083007812e-4,
                        8.33333333332175220375948043738433969803392887115478515625e-3,
                        -0.1666666666666662965923251249478198587894439697265625});
}
Float cos_tail(const Float& z) {
  return horner(z, {2.443142511765472590923309326171875e-5, -1.38873048126697540283203125e-3,
                    4.16666455566883087158203125e-2, -0.5});
}
Double cos_tail(const Double& z) {
  return horner(z, {-1.135737651033521403805865628394881970512908520021255753817968e-11,
                    2.08756787702681522314305428067102154976453221024712547659874e-9,
                    -2.75573140194034052863049583451116042464012040085473656654358e-7,
                    2.480158728830679734666565805500937358374358154833316802978516e-5,
                    -1.38888888888721970422706949976806334380991756916046142578125e-3,
                    4.166666666666658802586908905141171999275684356689453125e-2, -0.5});
}

Float sin_of_rest(const Turned<float>& t) { return fma(sin_tail(t.r * t.r), t.r, t.r); }
Float cos_of_rest(const Turned<float>& t) {
  const Float z = t.r * t.r;
  return fma(z, cos_tail(z), 1);
}
Pair<double> sin_pair(const Turned<double>& t) {
  return sum(t.r, fma(sin_tail(t.r * t.r), t.r, t.lo));
}
Pair<double> cos_pair(const Turned<double>& t) {
  const Double z = t.r * t.r;
  return sum(Double(1), fma(z, cos_tail(z), -t.r * t.lo));
}
Double sin_of_rest(const Turned<double>& t) { return sin_pair(t).hi; }
Double cos_of_rest(const Turned<double>& t) { return cos_pair(t).hi; }

// The sine of what is left plus the quarter turns and `more`.
template <class T>
Value<T> turned_sin(const Turned<T>& t, int more) {
  const Int quarter = t.quarter + more;
  const Value<T> y = select((quarter & 1) != 0, cos_of_rest(t), sin_of_rest(t));
  return select((quarter & 2) != 0, -y, y);
}

}  // namespace

template <class T>
Value<T> sin(const Value<T>& x) {
  const Turned<T> t = reduce(x);
  return select(x == 0, x, turned_sin(t, 0));  // -0 stays
}
template Float sin(const Float&);
template Double sin(const Double&);

template <class T>
Value<T> cos(const Value<T>& x) {
  const Turned<T> t = reduce(x);
  return turned_sin(t, 1);
}
template Float cos(const Float&);
template Double cos(const Double&);

template <class T>
Pair<T> sincos(const Value<T>& x) {
  const Turned<T> t = reduce(x);
  return {select(x == 0, x, turned_sin(t, 0)), turned_sin(t, 1)};
}
template Pair<float> sincos(const Float&);
template Pair<double> sincos(const Double&);

template <>
Float tan(const Float& x) {
  const Turned<float> t = reduce(x);
  const Float z = t.r * t.r;
  const Float tail =
      z * horner(z, {9.3892104923725128173828125e-3, 3.1127030961215496063232421875e-3,
                     2.443529665470123291015625e-2, 5.3409568965435028076171875e-2,
                     0.1333882510662078857421875, 0.3333315551280975341796875});
  const Float y = fma(tail, t.r, t.r);
  return select(x == 0, x, select((t.quarter & 1) != 0, -flushed_rcp(y), y));
}
template <>
Double tan(const Double& x) {
  const Turned<double> t = reduce(x);
  const Pair<double> s = sin_pair(t), c = cos_pair(t);
  const Bool odd = (t.quarter & 1) != 0;
  const Pair<double> above = select(odd, Pair<double>{-c.hi, -c.lo}, s), below = select(odd, s, c);
  const Double inverse = rcp(below.hi), y = above.hi * inverse;
  const Double rest = fma(-y, below.hi, above.hi) + fma(-y, below.lo, above.lo);
  return select(x == 0, x, fma(rest, inverse, y));
}

}  // namespace heddle::detail::math
