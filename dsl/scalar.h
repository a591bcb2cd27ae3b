// Host types of a kernel's scalars: bool, std::int8_t to std::uint64_t, float8_e4m3,
// float8_e5m2, float8_e8m0, float4_e2m1x2, half, bfloat16, tfloat32, float, double.
//
//   half h(0.5f);            // rounds to nearest even
//   float f = float(h);      // or h.to_float()
#pragma once

#include <cstdint>
#include <type_traits>

namespace heddle::ir {
enum class Scalar : uint8_t;
}

namespace heddle {

// A 16-bit float on the host, IEEE binary16: storage, and conversion from and to float.
struct half {
  uint16_t bits = 0;  // the encoding
  half() = default;
  // Rounds to nearest even.
  explicit half(double value);
  // The number with this encoding.
  static half from_bits(uint16_t bits) {
    half h;
    h.bits = bits;
    return h;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// A 16-bit float on the host, bfloat16: the upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;  // the encoding
  bfloat16() = default;
  // Rounds to nearest even.
  explicit bfloat16(double value);
  // The number with this encoding.
  static bfloat16 from_bits(uint16_t bits) {
    bfloat16 b;
    b.bits = bits;
    return b;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// A float of which tensor cores read the upper 19 bits alone, ten of them of fraction: storage in 32 bits. The lower 13
// bits are zeros where it is made here; elsewhere they do not count.
struct tfloat32 {
  uint32_t bits = 0;  // the encoding
  tfloat32() = default;
  // Rounds to nearest, ties away from zero.
  explicit tfloat32(double value);
  // The number with this encoding, which may be that of any float.
  static tfloat32 from_bits(uint32_t bits) {
    tfloat32 f;
    f.bits = bits;
    return f;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// An 8-bit float as storage: four bits of exponent, three of fraction, no infinity. Numbers beyond
// the largest, 448, become that, as they do on the GPU.
struct float8_e4m3 {
  uint8_t bits = 0;  // the encoding
  float8_e4m3() = default;
  // Rounds to nearest even.
  explicit float8_e4m3(double value);
  // The number with this encoding.
  static float8_e4m3 from_bits(uint8_t bits) {
    float8_e4m3 f;
    f.bits = bits;
    return f;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// An 8-bit float as storage: the upper half of a half. Numbers beyond the largest, 57344, become
// that, as they do on the GPU.
struct float8_e5m2 {
  uint8_t bits = 0;  // the encoding
  float8_e5m2() = default;
  // Rounds to nearest even.
  explicit float8_e5m2(double value);
  // The number with this encoding.
  static float8_e5m2 from_bits(uint8_t bits) {
    float8_e5m2 f;
    f.bits = bits;
    return f;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// An 8-bit exponent as storage, for scales: the powers of two from 2^-127 to 2^127, and a NaN. A
// number's magnitude is rounded up to one of these.
struct float8_e8m0 {
  uint8_t bits = 0;  // the encoding
  float8_e8m0() = default;
  // Rounds up in magnitude.
  explicit float8_e8m0(double value);
  // The number with this encoding.
  static float8_e8m0 from_bits(uint8_t bits) {
    float8_e8m0 f;
    f.bits = bits;
    return f;
  }
  // The same number; every one is a float.
  float to_float() const;
  explicit operator float() const { return to_float(); }
};

// Two 4-bit floats in a byte, the first one in the lower bits: 0, 0.5, 1, 1.5, 2, 3, 4 and 6 of
// either sign. Numbers are rounded to nearest even.
struct float4_e2m1x2 {
  uint8_t bits = 0;  // the encoding
  float4_e2m1x2() = default;
  // Rounds to nearest even.
  float4_e2m1x2(double first, double second);
  // The number with this encoding.
  static float4_e2m1x2 from_bits(uint8_t bits) {
    float4_e2m1x2 f;
    f.bits = bits;
    return f;
  }
  // The two numbers.
  float first() const;
  float second() const;
};

namespace detail {

// The IR's name of a host type. Defined for the scalars alone.
template <class T>
ir::Scalar scalar_of();

template <class T>
inline constexpr bool is_half_like = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_float8 = std::is_same_v<T, float8_e4m3> ||
                                  std::is_same_v<T, float8_e5m2> || std::is_same_v<T, float8_e8m0>;
// Floats that are stored and converted only.
template <class T>
inline constexpr bool is_stored_float = is_float8<T> || std::is_same_v<T, tfloat32>;
// Two numbers in one element.
template <class T>
inline constexpr bool is_pair = std::is_same_v<T, float4_e2m1x2>;
// Floats that kernels compute with.
template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || is_half_like<T>;
// Integers that become an int32_t where they are computed with, as in C++.
template <class T>
inline constexpr bool is_promoted = std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> ||
                                    std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>;
template <class T>
inline constexpr bool is_word = std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t> ||
                                std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>;
template <class T>
inline constexpr bool is_number =
    is_word<T> || is_promoted<T> || is_floating<T> || is_stored_float<T>;

template <class T>
inline constexpr bool is_scalar = is_number<T> || is_pair<T> || std::is_same_v<T, bool>;

// The bit pattern of a host scalar, zero-extended.
template <class T>
uint64_t bits_of(T value) {
  if constexpr (is_half_like<T> || is_stored_float<T> || is_pair<T>) {
    return value.bits;
  } else if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(uint32_t, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return __builtin_bit_cast(uint64_t, value);
  } else {
    return static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - 8 * sizeof(T)));
  }
}

// A host number that may stand where a Value<T> is expected: Float + 1 and Float + 0.5, but not
// Int + 0.5, and nothing but bool for a Bool.
template <class H, class T>
concept HostConstant = std::is_same_v<H, T> ||
    (std::is_arithmetic_v<H> && !std::is_same_v<H, bool> && is_number<T> &&
     (std::is_integral_v<H> || !std::is_integral_v<T>));

// Whether a conversion to T changes the number. Floats may round.
template <class T, class H>
constexpr bool fits(H value) {
  if constexpr (std::is_integral_v<H> && std::is_integral_v<T>) {
    return static_cast<H>(static_cast<T>(value)) == value &&
           (value < H{}) == (static_cast<T>(value) < T{});
  } else {
    return true;
  }
}

}  // namespace detail
}  // namespace heddle
