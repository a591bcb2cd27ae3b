// How much of an integer depends on which thread of a warp, or of a warp group, looks at it.
//
// The *lane bits* of a value are the smallest known k such that value >> k is the same for all
// threads of the group: 5 for thread_idx.x in a block of one dimension, seen by a warp; 2 for
// warp_id, seen by a warp group; 0 for what they agree on. Adding a multiple of 2^k, whatever its
// value, leaves them alone, and dividing by 2^k or comparing with a multiple of it makes the
// threads agree: that is how thread_idx.x / 32, (block_idx.x * 256 + thread_idx.x) >> 7 and
// thread_idx.x < 32 are found out. Bits are what survives arithmetic that wraps.
#pragma once

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class UniformBits {
 public:
  // `levels` is what is known of values so far and may go on changing. All must outlive this.
  UniformBits(const Kernel& kernel, const IdMap<ValueId, Scope>& levels, IntAnalysis& ints)
      : kernel_(kernel), levels_(levels), ints_(ints) {}

  // The scope, warp group or warp, throughout which an integer op's result is the same although its
  // operands are not; kThread where none is known.
  Scope agreement(ValueId result);

  // The agreement on the number of trips of a `for` that follows from bounds alone: kGrid where
  // every start, however it differs between threads, gives the same number.
  Scope trip_agreement(OpId for_op);

  // Below this scope, all threads of the block fit into one group: a warp's agreement is the
  // block's.
  Scope lifted(Scope level) const;
  // Whether an integer is surely the number of a lane, 0 to 31.
  bool is_lane(ValueId value);
  // thread_idx along an axis.
  Scope coordinate_level(int64_t axis) const;

 private:
  struct Group;
  // What sums and products of an integer depend on, in bits; kMany for no bound.
  struct Term {
    int lane;   // lane bits
    int zeros;  // low bits known to be zero
    int width;  // bits that are not known to be zero, from the bottom
  };
  static constexpr int kMany = 64;

  int bits(ValueId value, const Group& group) { return term(value, group).lane; }
  Term term(ValueId value, const Group& group);
  Term product(Term a, Term b, Scalar scalar);
  int bits_of_op(const Op& op, const Group& group);
  int bits_of_coordinate(int64_t axis, const Group& group) const;
  static int bits_of_sum(Term a, Term b);
  bool comparison_agrees(const Op& op, const Group& group);
  bool agrees(ValueId result, const Group& group);
  int zeros_of(ValueId value);
  int width_of(ValueId value);

  const Kernel& kernel_;
  const IdMap<ValueId, Scope>& levels_;
  IntAnalysis& ints_;
  int budget_ = 0;
};

}  // namespace heddle::ir
