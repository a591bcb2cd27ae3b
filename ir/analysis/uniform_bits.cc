#include "heddle/ir/analysis/uniform_bits.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace heddle::ir {

// 2^bits neighbouring threads, by their linear index in the block.
struct UniformBits::Group {
  int bits;
  Scope scope;
  int64_t size() const { return int64_t{1} << bits; }
};

namespace {

bool is_integer_like(Type type) {
  return type.is_data() && (is_integer(type.scalar) || type.scalar == Scalar::kBool);
}

std::optional<int> exponent_of(int64_t value) {
  if (value <= 0 || !std::has_single_bit(static_cast<uint64_t>(value))) return std::nullopt;
  return std::countr_zero(static_cast<uint64_t>(value));
}

bool is_order_comparison(Opcode opcode) { return mirrored(opcode) != opcode; }

// Where agreement can arise although an operand differs between threads.
bool can_raise_uniformity(Opcode opcode) {
  return opcode == Opcode::kShr || opcode == Opcode::kDiv || opcode == Opcode::kAnd ||
         opcode == Opcode::kRem || is_order_comparison(opcode);
}

}  // namespace

Scope UniformBits::lifted(Scope level) const {
  if (kernel_.has_dynamic_block() || level >= Scope::kBlock) return level;
  const int64_t threads = kernel_.block.count();
  const bool one_group = (level == Scope::kThread && threads == 1) ||
                         (level == Scope::kWarp && threads <= 32) ||
                         (level == Scope::kWarpGroup && threads <= 128);
  return one_group ? Scope::kBlock : level;
}

Scope UniformBits::coordinate_level(int64_t axis) const {
  if (kernel_.has_dynamic_block()) return Scope::kThread;
  const Dim3& block = kernel_.block;
  if ((axis == 0 ? block.x : axis == 1 ? block.y : block.z) == 1) return Scope::kGrid;
  // How many neighbouring threads share the coordinate.
  const int64_t run = axis == 0 ? 1 : axis == 1 ? block.x : int64_t{block.x} * block.y;
  return run % 128 == 0 ? Scope::kWarpGroup : run % 32 == 0 ? Scope::kWarp : Scope::kThread;
}

bool UniformBits::is_lane(ValueId value) {
  const IntRange range = ints_.range(value);
  return range.min >= 0 && range.max <= 31;
}

Scope UniformBits::agreement(ValueId result) {
  const Op& op = *kernel_.def(result);
  if (!can_raise_uniformity(op.opcode) || !is_integer_like(kernel_.type(op.a()))) {
    return Scope::kThread;
  }
  if (ints_.range(result).is_constant()) return Scope::kGrid;
  for (const Group& group : {Group{7, Scope::kWarpGroup}, Group{5, Scope::kWarp}}) {
    budget_ = 32;  // beyond that, nobody wrote the expression with warps in mind
    if (is_order_comparison(op.opcode) ? comparison_agrees(op, group) : agrees(result, group)) {
      return group.scope;
    }
  }
  return Scope::kThread;
}

bool UniformBits::agrees(ValueId result, const Group& group) {
  return bits_of_op(*kernel_.def(result), group) <= zeros_of(result);
}

// v < c and v >= c, for c a multiple of 2^k, ask about v >> k alone.
bool UniformBits::comparison_agrees(const Op& op, const Group& group) {
  for (const bool swapped : {false, true}) {
    const ValueId varying = swapped ? op.b() : op.a();
    const ValueId bound = swapped ? op.a() : op.b();
    const Opcode comparison = swapped ? mirrored(op.opcode) : op.opcode;
    if (levels_[bound] < group.scope) continue;
    const int k = bits(varying, group);
    if (k >= 62) continue;
    if (comparison == Opcode::kLt || comparison == Opcode::kGe) {
      if (k <= zeros_of(bound)) return true;
    } else {  // v <= c is v < c + 1
      const IntRange range = ints_.range(bound);
      // Past the largest number comes 0 modulo 2^64: all are at most that one.
      const uint64_t next = static_cast<uint64_t>(range.min) + 1;
      if (range.is_constant() && (next & ((uint64_t{1} << k) - 1)) == 0) return true;
    }
  }
  return false;
}

int UniformBits::zeros_of(ValueId value) {
  const int64_t divisor = ints_.divisor(value);
  return divisor == 0 ? kMany - 1 : std::countr_zero(static_cast<uint64_t>(divisor));
}

int UniformBits::width_of(ValueId value) {
  const IntRange range = ints_.range(value);
  return range.min < 0 ? kMany : std::bit_width(static_cast<uint64_t>(range.max));
}

UniformBits::Term UniformBits::term(ValueId value, const Group& group) {
  const Type type = kernel_.type(value);
  if (!is_integer_like(type)) return {levels_[value] >= group.scope ? 0 : kMany, 0, kMany};
  Term result{kMany, zeros_of(value), width_of(value)};
  if (levels_[value] >= group.scope) {
    result.lane = 0;
    return result;
  }
  if (--budget_ < 0) return result;
  if (const Op* const op = kernel_.def(value)) {
    result.lane = bits_of_op(*op, group);
  } else if (const OpId owner = kernel_.region(kernel_.value(value).region).parent;
             valid(owner) && kernel_.op(owner).opcode == Opcode::kFor &&
             kernel_.value(value).index == 0) {
    // Threads take the same trip together, so their indices differ as their starts do.
    const Op& loop = kernel_.op(owner);
    result.lane = bits_of_sum(term(loop.start(), group), term(loop.step(), group));
  }
  // A small number has no upper bits to disagree on; zeros agree.
  result.lane = std::min(result.lane, result.width);
  if (result.lane >= info(type.scalar).bits) result.lane = kMany;
  if (result.lane <= result.zeros) result.lane = 0;
  return result;
}

int UniformBits::bits_of_op(const Op& op, const Group& group) {
  const auto is = [&](Opcode opcode) { return op.opcode == opcode; };
  const auto constant = [&](ValueId value) -> std::optional<int64_t> {
    const IntRange range = ints_.range(value);
    return range.is_constant() ? std::optional(range.min) : std::nullopt;
  };
  if (has(info(op), kForwards)) return bits(op.a(), group);
  if (is(Opcode::kThreadIdx)) return bits_of_coordinate(op.attr_or(AttrKey::kAxis, 0), group);
  if (is(Opcode::kWarpId)) return group.bits - 5;
  if (is(Opcode::kAdd)) return bits_of_sum(term(op.a(), group), term(op.b(), group));
  if (is(Opcode::kSub)) {
    const int k = bits(op.a(), group);
    const Term by = term(op.b(), group);
    return by.lane == 0 && k <= by.zeros ? k : kMany;
  }
  if (is(Opcode::kMul) || is(Opcode::kFma)) {
    const Scalar scalar = kernel_.type(op.a()).scalar;
    const Term result = product(term(op.a(), group), term(op.b(), group), scalar);
    if (is(Opcode::kMul)) return result.lane;
    return bits_of_sum(result, term(op.c(), group));
  }
  if (is(Opcode::kAnd) || is(Opcode::kOr) || is(Opcode::kXor)) {
    return std::max(bits(op.a(), group), bits(op.b(), group));
  }
  if (is(Opcode::kNot)) return bits(op.a(), group);
  if (is(Opcode::kConvert) && is_integer_like(kernel_.type(op.a()))) {
    return bits(op.a(), group);
  }
  if (is(Opcode::kSelect)) {
    if (levels_[op.condition()] < group.scope) return kMany;
    return std::max(bits(op.a(), group), bits(op.b(), group));
  }
  if (is(Opcode::kShl) || is(Opcode::kShr)) {
    const std::optional<int64_t> count = constant(op.count());
    const int k = bits(op.a(), group);
    if (!count || *count >= kMany || k == kMany) return kMany;
    const int by = static_cast<int>(*count);
    return is(Opcode::kShl) ? std::min(k + by, kMany) : std::max(k - by, 0);
  }
  if (is(Opcode::kDiv) || is(Opcode::kRem)) {
    const std::optional<int64_t> by = constant(op.b());
    if (!by || *by <= 0 || ints_.range(op.a()).min < 0) return kMany;
    const int k = bits(op.a(), group);
    // (2^k q + low) / (2^k c) is q / c; the remainder keeps `low`.
    if (k <= 62 && *by % (int64_t{1} << k) == 0) return is(Opcode::kDiv) ? 0 : k;
    const std::optional<int> exponent = exponent_of(*by);
    return is(Opcode::kDiv) && exponent && k < kMany ? std::max(k - *exponent, 0) : kMany;
  }
  return kMany;
}

int UniformBits::bits_of_coordinate(int64_t axis, const Group& group) const {
  if (kernel_.has_dynamic_block()) return kMany;
  const Dim3& block = kernel_.block;
  const int64_t run = axis == 0 ? 1 : axis == 1 ? block.x : int64_t{block.x} * block.y;
  const int64_t period = axis == 0   ? block.x
                         : axis == 1 ? int64_t{block.x} * block.y
                                     : block.count();
  // The coordinate is t / run modulo its extent. Where a group never wraps around, it counts up
  // once in every `run` threads.
  const bool no_wrap = period == block.count() || period % group.size() == 0;
  const std::optional<int> exponent = exponent_of(run);
  if (!no_wrap || !exponent) return kMany;
  return std::max(group.bits - *exponent, 0);
}

int UniformBits::bits_of_sum(Term a, Term b) {
  for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    // y adds a multiple of 2^k that the threads agree on.
    if (y.lane == 0 && x.lane <= y.zeros) return x.lane;
    // x fits below y's lowest bit: nothing carries, the sum is a bitwise or.
    if (x.width <= y.zeros) return std::max(x.lane, y.lane);
  }
  return kMany;
}

UniformBits::Term UniformBits::product(Term a, Term b, Scalar scalar) {
  Term result{kMany, std::min(a.zeros + b.zeros, kMany - 1), a.width + b.width};
  if (result.width >= info(scalar).bits) result.width = kMany;  // may wrap
  if (a.lane == 0 && b.lane == 0) {
    result.lane = 0;
  } else {
    for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
      // y is the same power of two, or zero, for all: the product is a shift.
      if (y.lane == 0 && y.width == y.zeros + 1) result.lane = std::min(x.lane + y.zeros, kMany);
    }
  }
  return result;
}

Scope UniformBits::trip_agreement(OpId for_op) {
  const Op& op = kernel_.op(for_op);
  const IntRange start = ints_.range(op.start());
  const IntRange stop = ints_.range(op.stop());
  const IntRange step = ints_.range(op.step());
  const IntAnalysis::Trips known = ints_.trips(for_op);
  if (known.none || known.exactly_one) return Scope::kGrid;
  if (!step.is_constant() || step.min <= 0) return Scope::kThread;
  // Starts within one step of a stop that is a multiple of the step all take stop / step trips.
  if (start.min >= 0 && start.max < step.min && ints_.divisible(op.stop(), step.min)) {
    return levels_[op.stop()];
  }
  constexpr IntRange kTame{-(int64_t{1} << 62), int64_t{1} << 62};
  if (!stop.is_constant() || !kTame.contains(start) || !kTame.contains(stop)) {
    return Scope::kThread;
  }
  const auto trips = [&](int64_t from) {
    return from >= stop.min ? 0 : (stop.min - from - 1) / step.min + 1;
  };
  return trips(start.min) == trips(start.max) ? Scope::kGrid : Scope::kThread;
}

}  // namespace heddle::ir
