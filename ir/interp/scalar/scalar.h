// What each scalar op of ops.def means on one lane. All of it is total: a lane that does not take
// part may hold any bits. Where ops.def leaves a case open, the value here is arbitrary.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "heddle/ir/interp/scalar/half.h"
#include "heddle/ir/type.h"

namespace heddle::ir::interp {

// How a lane of each element type is stored. A bool is a byte that holds 0 or 1; no other type uses
// uint8_t: u8 has C++'s other unsigned byte.
using Bool = uint8_t;

template <Scalar kScalar>
struct LaneOf;
template <>
struct LaneOf<Scalar::kBool> {
  using type = Bool;
};
template <>
struct LaneOf<Scalar::kI8> {
  using type = int8_t;
};
template <>
struct LaneOf<Scalar::kU8> {
  using type = char8_t;
};
template <>
struct LaneOf<Scalar::kI16> {
  using type = int16_t;
};
template <>
struct LaneOf<Scalar::kU16> {
  using type = uint16_t;
};
template <>
struct LaneOf<Scalar::kE4M3> {
  using type = E4M3;
};
template <>
struct LaneOf<Scalar::kE5M2> {
  using type = E5M2;
};
template <>
struct LaneOf<Scalar::kE8M0> {
  using type = E8M0;
};
template <>
struct LaneOf<Scalar::kE2M1X2> {
  using type = E2M1x2;
};
template <>
struct LaneOf<Scalar::kI32> {
  using type = int32_t;
};
template <>
struct LaneOf<Scalar::kU32> {
  using type = uint32_t;
};
template <>
struct LaneOf<Scalar::kI64> {
  using type = int64_t;
};
template <>
struct LaneOf<Scalar::kU64> {
  using type = uint64_t;
};
template <>
struct LaneOf<Scalar::kF16> {
  using type = F16;
};
template <>
struct LaneOf<Scalar::kBF16> {
  using type = BF16;
};
template <>
struct LaneOf<Scalar::kF32> {
  using type = float;
};
template <>
struct LaneOf<Scalar::kF64> {
  using type = double;
};
template <Scalar kScalar>
using Lane = typename LaneOf<kScalar>::type;

template <class T>
inline constexpr bool kIsByteFloat =
    std::is_same_v<T, E4M3> || std::is_same_v<T, E5M2> || std::is_same_v<T, E8M0>;
// Floats that the host has no type for.
template <class T>
inline constexpr bool kIsHalf =
    std::is_same_v<T, F16> || std::is_same_v<T, BF16> || kIsByteFloat<T>;
template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalf<T>;

template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int8_t> {
  using type = char8_t;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};
// Two's-complement arithmetic is done in the unsigned type, where it is defined.
template <class T>
using Unsigned = typename UnsignedOf<T>::type;

inline float widen(F16 x) { return to_float(x); }
inline float widen(BF16 x) { return to_float(x); }
inline float widen(E4M3 x) { return to_float(x); }
inline float widen(E5M2 x) { return to_float(x); }
inline float widen(E8M0 x) { return to_float(x); }
template <class T>
T widen(T x) {
  return x;
}
template <class T>
T half_from(float x) {
  if constexpr (std::is_same_v<T, E4M3>) {
    return e4m3_from(x);
  } else if constexpr (std::is_same_v<T, E5M2>) {
    return e5m2_from(x);
  } else if constexpr (std::is_same_v<T, E8M0>) {
    return e8m0_from<true>(x);
  } else if constexpr (std::is_same_v<T, F16>) {
    return f16_from(x);
  } else {
    return bf16_from(x);
  }
}

// Computes in f32 for the half types, and in the type itself otherwise.
template <class T, class Function>
T through_float(T a, T b, Function function) {
  if constexpr (kIsHalf<T>) {
    return half_from<T>(function(to_float(a), to_float(b)));
  } else {
    return function(a, b);
  }
}

// --- Arithmetic -----------------------------------------------------------------------------
// kSignless: signed and unsigned lanes give the same bits, so one instance serves both.

struct Add {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return through_float(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Sub {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return through_float(a, b, [](auto x, auto y) { return x - y; });
  }
};

struct Mul {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return through_float(a, b, [](auto x, auto y) { return x * y; });
  }
};

struct MulHi {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    using Product = std::conditional_t<sizeof(T) == 8, Wide,
                                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
    return static_cast<T>(static_cast<Product>(a) * static_cast<Product>(b) >> (sizeof(T) * 8));
  }
};

struct Div {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return through_float(a, b, [](auto x, auto y) { return x / y; });
    } else {
      if (b == 0) return static_cast<T>(~T{0});
      if (std::is_signed_v<T> && b == static_cast<T>(~T{0})) {
        return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
      }
      return a / b;
    }
  }
};

struct Rem {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(~T{0})) return 0;
    return a % b;
  }
};

// min and max of floats: equal operands are told apart by the sign bit of zero, and a NaN gives
// way.
template <bool kMax, class T>
T float_extreme(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits a_bits = std::bit_cast<Bits>(a);
  const Bits b_bits = std::bit_cast<Bits>(b);
  const bool first = kMax ? a > b : a < b;
  Bits result = first ? a_bits : b_bits;
  result = a == b ? (kMax ? (a_bits & b_bits) : (a_bits | b_bits)) : result;
  result = b != b ? a_bits : result;
  return std::bit_cast<T>(result);
}

template <bool kMax>
struct Extreme {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return through_float(a, b, [](auto x, auto y) { return float_extreme<kMax>(x, y); });
    } else {
      return (kMax ? a > b : a < b) ? a : b;
    }
  }
};
using Min = Extreme<false>;
using Max = Extreme<true>;

struct Neg {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return {static_cast<uint16_t>(a.bits ^ 0x8000u)};
    } else if constexpr (kIsFloat<T>) {
      return -a;
    } else {
      return T{0} - a;
    }
  }
};

struct Abs {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return {static_cast<uint16_t>(a.bits & 0x7FFFu)};
    } else if constexpr (kIsFloat<T>) {
      return std::fabs(a);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a < 0 ? Unsigned<T>{0} - static_cast<Unsigned<T>>(a)
                                  : static_cast<Unsigned<T>>(a));
    } else {
      return a;
    }
  }
};

// f32 and f64 are in fma.h: processors have an instruction for them.
struct Fma {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b, T c) {
    if constexpr (kIsHalf<T>) {
      // The product of two halves is exact in f64. The sum is not, and rounding it twice would be
      // wrong; rounding to odd twice before the last step is not.
      const double product = double{to_float(a)} * double{to_float(b)};
      return half_from<T>(odd_float_from(odd_sum(product, double{to_float(c)})));
    } else {
      return a * b + c;
    }
  }
};

struct Sqrt {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return half_from<T>(std::sqrt(to_float(a)));
    } else {
      return std::sqrt(a);
    }
  }
};

struct Rcp {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return half_from<T>(1.0f / to_float(a));
    } else {
      return T{1} / a;
    }
  }
};

// A function of the host's library; in f32 for the half types.
template <class Function>
struct HostFunction {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return half_from<T>(Function{}(to_float(a)));
    } else {
      return Function{}(a);
    }
  }
};
#define HEDDLE_HOST_FUNCTION(name, expression) \
  struct name##Function {                      \
    template <class F>                         \
    F operator()(F x) const {                  \
      return expression;                       \
    }                                          \
  };                                           \
  using name = HostFunction<name##Function>;
HEDDLE_HOST_FUNCTION(Exp2, std::exp2(x))
HEDDLE_HOST_FUNCTION(Rsqrt, 1 / std::sqrt(x))
HEDDLE_HOST_FUNCTION(Log2, std::log2(x))
HEDDLE_HOST_FUNCTION(Sin, std::sin(x))
HEDDLE_HOST_FUNCTION(Cos, std::cos(x))
HEDDLE_HOST_FUNCTION(Tanh, std::tanh(x))
HEDDLE_HOST_FUNCTION(Floor, std::floor(x))
HEDDLE_HOST_FUNCTION(Ceil, std::ceil(x))
HEDDLE_HOST_FUNCTION(Trunc, std::trunc(x))
HEDDLE_HOST_FUNCTION(Rint, std::nearbyint(x))
#undef HEDDLE_HOST_FUNCTION

struct Saturate {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a) {
    if constexpr (kIsHalf<T>) {
      return half_from<T>(apply(to_float(a)));
    } else {
      const T low = a > 0 ? a : T{0};  // a NaN is not more
      return low < 1 ? low : T{1};
    }
  }
};

template <bool kMax>
struct NanExtreme {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    return through_float(a, b, [](auto x, auto y) {
      const auto number = float_extreme<kMax>(x, y);
      return x != x || y != y ? std::numeric_limits<decltype(x)>::quiet_NaN() : number;
    });
  }
};
using MinNan = NanExtreme<false>;
using MaxNan = NanExtreme<true>;

// --- Bits -----------------------------------------------------------------------------------

struct And {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};

struct Or {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};

struct Xor {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};

struct Not {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a) {
    if constexpr (std::is_same_v<T, Bool>) {
      return a ^ 1u;
    } else {
      return ~a;
    }
  }
};

struct Shl {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a, uint32_t count) {
    constexpr uint32_t kWidth = sizeof(T) * 8;
    return count < kWidth ? a << (count & (kWidth - 1)) : T{0};
  }
};

struct Shr {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, uint32_t count) {
    constexpr uint32_t kWidth = sizeof(T) * 8;
    const T beyond = std::is_signed_v<T> && a < 0 ? static_cast<T>(~T{0}) : T{0};
    return count < kWidth ? a >> (count & (kWidth - 1)) : beyond;
  }
};

struct Popc {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::popcount(a));
  }
};

struct Clz {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::countl_zero(a));
  }
};

struct Brev {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T a) {
    T result = 0;
    for (size_t i = 0; i < sizeof(T) * 8; ++i) result = result << 1 | (a >> i & 1);
    return result;
  }
};

struct FunnelShl {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t low, uint32_t high, uint32_t count) {
    return static_cast<uint32_t>(((uint64_t{high} << 32 | low) << (count % 32)) >> 32);
  }
};

struct FunnelShr {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t low, uint32_t high, uint32_t count) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (count % 32));
  }
};

struct FunnelShlClamp {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t low, uint32_t high, uint32_t count) {
    return count < 32 ? FunnelShl::apply(low, high, count) : low;
  }
};

struct FunnelShrClamp {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t low, uint32_t high, uint32_t count) {
    return count < 32 ? FunnelShr::apply(low, high, count) : high;
  }
};

struct Prmt {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; ++i, selector >>= 4) {
      const uint32_t from = (selector & 4) != 0 ? b : a;
      const auto byte = static_cast<uint8_t>(from >> 8 * (selector & 3));
      const uint32_t sign = byte >> 7 != 0 ? 0xFF : 0;
      result |= ((selector & 8) != 0 ? sign : byte) << 8 * i;
    }
    return result;
  }
};

struct Dp4a {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b, T c) {
    using Byte = std::conditional_t<std::is_signed_v<T>, int8_t, uint8_t>;
    auto sum = static_cast<uint32_t>(c);
    for (int i = 0; i < 32; i += 8) {
      sum += static_cast<uint32_t>(static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i));
    }
    return static_cast<T>(sum);
  }
};

// Halves times the bytes of b from bit `kShift` on.
template <int kShift>
struct Dp2a {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b, T c) {
    using Byte = std::conditional_t<std::is_signed_v<T>, int8_t, uint8_t>;
    using Half = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
    auto sum = static_cast<uint32_t>(c);
    for (int i = 0; i < 2; ++i) {
      sum += static_cast<uint32_t>(static_cast<Half>(a >> 16 * i) *
                                   static_cast<Byte>(b >> (kShift + 8 * i)));
    }
    return static_cast<T>(sum);
  }
};

// --- Comparison -----------------------------------------------------------------------------

template <class Function>
struct Compare {
  static constexpr bool kSignless = false;
  template <class T>
  static Bool apply(T a, T b) {
    return Function{}(widen(a), widen(b)) ? 1 : 0;
  }
};
struct EqualTo {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqualTo {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};

// --- Conversion -----------------------------------------------------------------------------

// Truncates and saturates. `From` is f32 or f64; `kWide` says that source or destination has 64
// bits, which decides what a NaN gives.
template <class To, bool kWide, class From>
To saturate(From x) {
  constexpr int kBits = sizeof(To) * 8;
  // The bounds are powers of two or zero, so both are exact in every float type.
  const From above =
      std::is_signed_v<To> ? std::ldexp(From{1}, kBits - 1) : std::ldexp(From{1}, kBits);
  const From below = std::is_signed_v<To> ? -std::ldexp(From{1}, kBits - 1) : From{0};
  const bool inside = x >= below && x < above;
  const To converted = static_cast<To>(inside ? x : From{0});
  const To high = std::numeric_limits<To>::max();
  const To low = std::numeric_limits<To>::min();
  const To nan = kWide ? static_cast<To>(uint64_t{1} << (kBits - 1)) : To{0};
  To result = x >= above ? high : converted;
  result = x < below ? low : result;
  return x != x ? nan : result;
}

template <class To>
struct Convert {
  static constexpr bool kSignless = false;
  template <class From>
  static To apply(From x) {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<To, Bool>) {
      if constexpr (std::is_same_v<From, E8M0>) {
        return 1;  // it has no zero
      } else if constexpr (kIsHalf<From>) {
        return (x.bits & (0x7FFFu >> (16 - 8 * sizeof(x)))) != 0 ? 1 : 0;
      } else {
        return x != 0 ? 1 : 0;
      }
    } else if constexpr (kIsHalf<To>) {
      if constexpr (kIsHalf<From>) {
        return half_from<To>(to_float(x));
      } else if constexpr (std::is_same_v<From, float>) {
        return half_from<To>(x);
      } else if constexpr (std::is_same_v<From, double>) {
        return half_from<To>(odd_float_from(x));
      } else if constexpr (sizeof(From) < 8) {
        return half_from<To>(odd_float_from(static_cast<double>(x)));
      } else {
        return half_from<To>(odd_float_from(x));
      }
    } else if constexpr (kIsFloat<To>) {
      return static_cast<To>(widen(x));
    } else if constexpr (kIsFloat<From>) {
      return saturate<To, (sizeof(From) == 8 || sizeof(To) == 8)>(widen(x));
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace heddle::ir::interp
