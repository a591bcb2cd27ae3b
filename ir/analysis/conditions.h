// What the conditions that dominate a place say of integers.
//
//   if %c {            // %c = ge %t, 128
//     %s = sub %t, 128 // %t is 128 or more here, so %s is 0 or more
//
// Conditions are comparisons with constants, joined by and, or and not. They speak of the compared
// value, and of all values that differ from it by a constant. Such a fact holds for a value where it
// is used inside the region, not for ops that a pass moves out of it.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class Conditions {
 public:
  explicit Conditions(const Kernel& kernel) : kernel_(kernel) {}

  // What is left of a value's range where the region's ops run.
  IntRange inside(RegionId region, ValueId value, IntRange range);
  // The same where a condition is true, or false.
  IntRange where(ValueId condition, bool holds, ValueId value, IntRange range) const;

  // How far a counter that starts again where a comparison says so may go: the last number from
  // `from` upwards, or downwards, before one that the value is compared with, or `otherwise`.
  int64_t bound_above(ValueId value, int64_t from, int64_t otherwise);
  int64_t bound_below(ValueId value, int64_t from, int64_t otherwise);

 private:
  // value = root + addend, modulo 2^n.
  struct Sum {
    ValueId root;
    int64_t addend;
  };
  // value <opcode> constant.
  struct Comparison {
    Opcode opcode;
    Sum sum;
    int64_t constant;
  };
  // The sum is in the range; or it is not, and the range is one number.
  struct Fact {
    Sum sum;
    IntRange range;
    bool excluded = false;
  };
  using Facts = absl::InlinedVector<Fact, 4>;
  using Numbers = absl::InlinedVector<int64_t, 4>;

  Sum sum_of(ValueId value) const;
  std::optional<Comparison> comparison_of(const Op& op) const;
  void collect(ValueId condition, bool holds, int depth, Facts& facts) const;
  const Facts& facts_of(RegionId region);
  const Numbers& compared_with(ValueId value);
  IntRange narrowed(const Facts& facts, ValueId value, IntRange range) const;

  const Kernel& kernel_;
  absl::flat_hash_map<RegionId, Facts> facts_;                     // of the ifs around it too
  std::optional<absl::flat_hash_map<ValueId, Numbers>> compared_;  // roots, with what
};

}  // namespace heddle::ir
