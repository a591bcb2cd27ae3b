// Operations on the bits of integers, and on bytes and halves packed into words.
#include <bit>

#include "heddle/ir/interp/scalar/arithmetic.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

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

struct Vabsdiff4 {
  static constexpr bool kSignless = false;
  template <class T>
  static T apply(T a, T b) {
    using Byte = std::conditional_t<std::is_signed_v<T>, int8_t, uint8_t>;
    uint32_t result = 0;
    for (int i = 0; i < 32; i += 8) {
      const int difference = static_cast<Byte>(a >> i) - static_cast<Byte>(b >> i);
      result |= static_cast<uint32_t>(difference < 0 ? -difference : difference) << i;
    }
    return static_cast<T>(result);
  }
};

using Words = ScalarList<Scalar::kI32, Scalar::kU32>;

constexpr OpcodeRow kRows[] = {
    {Opcode::kNot, unary_row<Not>(BitTypes{})},
    {Opcode::kShl, shift_row<Shl>(Integers{})},
    {Opcode::kShr, shift_row<Shr>(Integers{})},
    {Opcode::kPopc, unary_row<Popc>(Integers{})},
    {Opcode::kClz, unary_row<Clz>(Integers{})},
    {Opcode::kBrev, unary_row<Brev>(Integers{})},
    {Opcode::kFunnelShl, funnel_row<FunnelShl>(Words{})},
    {Opcode::kFunnelShr, funnel_row<FunnelShr>(Words{})},
    {Opcode::kFunnelShlClamp, funnel_row<FunnelShlClamp>(Words{})},
    {Opcode::kFunnelShrClamp, funnel_row<FunnelShrClamp>(Words{})},
    {Opcode::kPrmt, ternary_row<Prmt>(ScalarList<Scalar::kU32>{})},
    {Opcode::kDp4a, ternary_row<Dp4a>(Words{})},
    {Opcode::kDp2aLo, ternary_row<Dp2a<0>>(Words{})},
    {Opcode::kDp2aHi, ternary_row<Dp2a<16>>(Words{})},
    {Opcode::kVabsdiff4, binary_row<Vabsdiff4>(Words{})},
};

}  // namespace

Handler bits_handler(Opcode opcode, Scalar scalar) { return handler_in(kRows, opcode, scalar); }

}  // namespace heddle::ir::interp
