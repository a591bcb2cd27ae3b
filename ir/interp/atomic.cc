// What atomics put in place of an element, as bits.
#include <bit>

#include "heddle/ir/interp/scalar/arithmetic.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

template <class T>
uint64_t bits_of(T value) {
  if constexpr (kIsHalf<T>) {
    return value.bits;
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(value);
  } else {
    return std::bit_cast<uint64_t>(value);
  }
}
template <class T>
T from_bits(uint64_t bits) {
  if constexpr (kIsHalf<T>) {
    return {static_cast<uint16_t>(bits)};
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  } else {
    return std::bit_cast<T>(bits);
  }
}

template <class Function, class T>
uint64_t step(uint64_t old, uint64_t value) {
  return bits_of<T>(Function::apply(from_bits<T>(old), from_bits<T>(value)));
}

struct Increment {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t old, uint32_t last) { return old >= last ? 0 : old + 1; }
};
struct Decrement {
  static constexpr bool kSignless = true;
  static uint32_t apply(uint32_t old, uint32_t last) {
    return old == 0 || old > last ? last : old - 1;
  }
};
struct Exchange {
  static constexpr bool kSignless = true;
  template <class T>
  static T apply(T, T value) {
    return value;
  }
};

using Row = std::array<AtomicStep, kScalarCount>;

template <class Function, Scalar... kTypes>
constexpr Row row(ScalarList<kTypes...>) {
  Row result{};
  ((result[static_cast<size_t>(kTypes)] = &step<Function, WorkLane<Function, kTypes>>), ...);
  return result;
}

// In the order of AtomicOp. Which of them a target has, for atomics and for bulk reductions, is the
// verifier's to say.
constexpr Row kSteps[kAtomicOpCount] = {
    row<Add>(Numbers{}),
    row<Min>(Numbers{}),
    row<Max>(Numbers{}),
    row<And>(Integers{}),
    row<Or>(Integers{}),
    row<Xor>(Integers{}),
    row<Increment>(ScalarList<Scalar::kU32>{}),
    row<Decrement>(ScalarList<Scalar::kU32>{}),
    row<Exchange>(ScalarList<Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64, Scalar::kF32,
                             Scalar::kF64>{}),
};

}  // namespace

AtomicStep atomic_step(AtomicOp op, Scalar scalar) {
  return kSteps[static_cast<size_t>(op)][static_cast<size_t>(scalar)];
}

}  // namespace heddle::ir::interp
