// What ops of ops.def mean on one lane, as far as several files need it: arithmetic, which atomics and
// rounding modes share. The others stand beside the table of their rows: bits.cc, compare.cc, convert.cc.
//
// All of it is total: a lane that does not take part may hold any bits. Where ops.def leaves a case open,
// the value here is arbitrary.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "heddle/ir/interp/scalar/lane.h"

namespace heddle::ir::interp {

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

}  // namespace heddle::ir::interp
