// Interval arithmetic on the integers of the IR: what an op makes of its operands' ranges.
//
//   range_of(Opcode::kAdd, Scalar::kI32, {{0, 31}, {0, 96}})      // {0, 127}
//   range_of(Opcode::kAdd, Scalar::kI32, {{0, 1}, {0, INT32_MAX}})  // may wrap: all of i32
//
// A range is in the numbers that the type holds, but for u64, whose numbers beyond 2^63 - 1 count
// as the negative i64 with the same bits: {-1, -1} is 2^64 - 1. A range of u64 with min >= 0
// therefore means what it says. Vectors and fragments: the range holds for every element.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/types/span.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  bool operator==(const IntRange&) const = default;

  constexpr bool is_constant() const { return min == max; }
  constexpr bool contains(int64_t value) const { return min <= value && value <= max; }
  constexpr bool contains(IntRange other) const { return min <= other.min && other.max <= max; }
};

// Every number of the type; everything for types that are no integers.
IntRange type_range(Scalar scalar);
IntRange join(IntRange a, IntRange b);

// Elementwise ops on integers and bools: the result's range. `scalar` is the type that the op
// computes in (the operands', for a comparison). nullopt for ops that have no rule.
std::optional<IntRange> range_of(Opcode opcode, Scalar scalar, absl::Span<const IntRange> operands);
// The same for convert and bitcast between integers and bools.
IntRange converted_range(Scalar from, Scalar to, IntRange operand);

// Whether the exact result may lie outside of `scalar`, so that arithmetic modulo 2^n differs from
// arithmetic: add, sub, mul, fma, neg, abs, shl. False for other ops.
bool may_wrap(Opcode opcode, Scalar scalar, absl::Span<const IntRange> operands);

// The comparison with its operands exchanged: gt for lt. Other ops are their own.
Opcode mirrored(Opcode comparison);

}  // namespace heddle::ir
