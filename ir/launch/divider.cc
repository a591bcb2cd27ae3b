#include "heddle/ir/launch/divider.h"

#include <bit>

namespace heddle::ir {
namespace {

constexpr Type kU64Type = Type::of(Scalar::kU64);

ValueId widened(Builder& b, ValueId value) { return b.create(Opcode::kConvert, {value}, kU64Type); }

}  // namespace

// A. D. Robison, "N-bit unsigned division via N-bit multiply-add" (ARITH 2005). With 2^k <= d < 2^(k+1) and
// m = floor(2^(32+k) / d): one of m + 1, and m with m added once, errs by no more than 2^k over all n, which rounding down
// forgives. A power of two takes the largest m that there is.
Divider make_divider(Builder& b, ValueId divisor) {
  const auto make = [&](Opcode opcode, ValueId x, ValueId y) { return b.create(opcode, {x, y}); };
  const auto select = [&](ValueId condition, ValueId x, ValueId y) {
    return b.create(Opcode::kSelect, {condition, x, y});
  };
  const auto at_launch = [&](ValueId value) { return b.create(Opcode::kAtLaunch, {value}); };
  const auto number = [&](Type type, int64_t n) { return b.constant_int(type, n); };
  const ValueId d = widened(b, divisor);
  const ValueId k = make(Opcode::kSub, number(kU32Type, 31), b.create(Opcode::kClz, {divisor}));
  const ValueId one = number(kU64Type, 1), none = number(kU64Type, 0);
  const ValueId power = make(Opcode::kShl, one, make(Opcode::kAdd, k, number(kU32Type, 32)));
  const ValueId down = make(Opcode::kDiv, power, d);
  const ValueId rest = make(Opcode::kSub, power, make(Opcode::kMul, down, d));
  const ValueId is_power = make(Opcode::kEq, rest, none);
  const ValueId is_little =
      make(Opcode::kLe, make(Opcode::kSub, d, rest), make(Opcode::kShl, one, k));
  const ValueId rounds_up = make(Opcode::kAnd, make(Opcode::kNe, rest, none), is_little);
  const ValueId rounded = select(rounds_up, make(Opcode::kAdd, down, one), down);
  const ValueId multiplier = select(is_power, number(kU64Type, 0xFFFFFFFF), rounded);
  const ValueId narrow = b.create(Opcode::kConvert, {multiplier}, kU32Type);
  const ValueId addend = select(rounds_up, none, multiplier);
  return {at_launch(narrow), at_launch(addend), at_launch(k)};
}

Divider make_divider(Builder& b, uint32_t divisor) {
  const int k = 31 - std::countl_zero(divisor);
  const uint64_t power = uint64_t{1} << (32 + k), down = power / divisor, rest = power % divisor;
  const bool is_power = rest == 0, rounds_up = !is_power && divisor - rest <= uint64_t{1} << k;
  const uint64_t multiplier = is_power ? 0xFFFFFFFF : down + (rounds_up ? 1 : 0);
  return {b.constant(kU32Type, multiplier), b.constant(kU64Type, rounds_up ? 0 : multiplier),
          b.constant_int(kU32Type, k)};
}

ValueId quotient(Builder& b, ValueId n, const Divider& divider) {
  const ValueId factor = widened(b, divider.multiplier);
  const ValueId product = b.kernel().constant_int(divider.addend) == 0
                              ? b.create(Opcode::kMul, {widened(b, n), factor})
                              : b.create(Opcode::kFma, {widened(b, n), factor, divider.addend});
  const ValueId upper = b.create(Opcode::kShr, {product, b.constant_int(kU32Type, 32)});
  const ValueId low = b.create(Opcode::kConvert, {upper}, kU32Type);
  return b.create(Opcode::kShr, {low, divider.shift});
}

}  // namespace heddle::ir
