// Lanes: how one holds an element of each type, and how floats that the host has no type for are computed with.
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
struct LaneOf<Scalar::kTF32> {
  using type = TF32;
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
    std::is_same_v<T, F16> || std::is_same_v<T, BF16> || std::is_same_v<T, TF32> || kIsByteFloat<T>;
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
inline float widen(TF32 x) { return to_float(x); }
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
  } else if constexpr (std::is_same_v<T, TF32>) {
    return tf32_from(x);
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

}  // namespace heddle::ir::interp
