// Accesses of a loop's body to elements beside each other in trips beside each other, which vectorize merges once
// such trips stand side by side.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// One of them.
struct Walk {
  OpId op;
  LinearSum sum;  // of the offset
  int64_t width;  // elements of the widest access

  // Whether it is aligned where another one, at least as wide, is.
  bool follows(const Walk& other) const {
    return sum.is_beside(other.sum) && (sum.constant - other.sum.constant) % width == 0;
  }
};
using Walks = absl::InlinedVector<Walk, 4>;

class LoopWalks {
 public:
  // All must outlive it. Of `ints` facts of alignment are asked, of accesses that could be merged for all else.
  LoopWalks(const Kernel& kernel, const Aliasing& aliasing, LinearSums& sums, IntAnalysis& ints)
      : kernel_(kernel), aliasing_(aliasing), sums_(sums), ints_(ints) {}

  // Those of a loop's body, the widest first, which rounds of trips are aligned to; without those that are never
  // aligned where it is.
  Walks of(OpId loop);
  // Whether the element of a trip whose index is divisible by the width is aligned to a whole access.
  bool is_aligned(const Walk& walk, ValueId index);

 private:
  bool is_simple(const Op& op) const;
  bool stands_alone(OpId loop, OpId id);
  int64_t width_of(const Op& op);

  const Kernel& kernel_;
  const Aliasing& aliasing_;
  LinearSums& sums_;
  IntAnalysis& ints_;
};

// The values that a loop's body computes, with its arguments.
absl::flat_hash_set<ValueId> values_inside(const Kernel& kernel, OpId loop);
// Whether an offset is the index and something from outside of the loop.
bool walks_by_one(const LinearSum& sum, ValueId index, const absl::flat_hash_set<ValueId>& inside);

}  // namespace heddle::ir
