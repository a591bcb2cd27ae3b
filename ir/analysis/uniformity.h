// Which threads are sure to agree: on a value, and on whether they run a region.
//
//   Uniformity uniformity(kernel);
//   uniformity.of(x) >= Scope::kWarp            // all 32 lanes of a warp have the same x
//   uniformity.control(region) < Scope::kBlock  // a barrier in it is an error; cause() says why
//
// of() speaks of threads that compute a value together, in the same trip of the loops around it.
// A value that leaves a loop whose number of trips differs between threads agrees no more than the
// number of trips does.
//
// What is known of the launch is used: with a block of {256, 1, 1}, thread_idx.x / 32 and
// thread_idx.x < 64 are the same throughout a warp and thread_idx.x / 128 throughout a warp group;
// with {64, 4, 1} thread_idx.y is. Where a block is but one warp, a warp's agreement is the
// block's. With a cluster of {4, 1, 1}, block_idx.x / 4 is the cluster's. Facts about arguments are
// never read: whether a kernel is legal does not depend on its data.
//
// What warps and blocks do together gives what they share: one lane's value, a vote, redux, a value
// that lanes exchange and combine with a commutative op; and a value of each warp that all warps
// read from shared memory and combine so, as block_reduce() does, is the block's (agreement.h).
//
// Loads: threads that read one address together get one value, since the program has no races. A
// write between two threads' reads of the same instance would have to be ordered against both by
// synchronisation that one thread passes before its read and the other after, which collective
// barriers, in uniform control, cannot do. A volatile access, a barrier with a mask, a number or a
// phase, a loop around an atomic and inline PTX with effects can, so behind one of these, loads of
// memory that can be written agree on nothing, unless a barrier settles what they read
// (barrier_phases.h).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class Analyses;

class Uniformity {
 public:
  static constexpr absl::string_view kName = "uniformity";
  // Analyses the kernel as it is now, finished or not.
  explicit Uniformity(Analyses& analyses);
  explicit Uniformity(const Kernel& kernel);

  // The largest scope all of whose threads have the same value. For a slot: of what it holds.
  // Nothing is known of values and regions that are newer than this.
  Scope of(ValueId value) const { return is_known(value) ? values_[value] : Scope::kThread; }
  // The largest scope whose threads run the region together, or not at all.
  Scope control(RegionId region) const {
    return index_of(region) < known_regions_ ? regions_[region].control : Scope::kThread;
  }
  // The innermost op around (or owning) the region whose condition or number of trips narrows
  // control() to what it is; kNone where nothing does.
  OpId cause(RegionId region) const { return regions_[region].cause; }

  // A value on which more threads agree than by another analysis of the kernel, in words.
  std::string disagreement(const Uniformity& other) const;

 private:
  struct Control {
    Scope control = Scope::kGrid;
    OpId cause = OpId::kNone;
  };
  void propagate(Analyses& analyses);
  bool is_known(ValueId value) const { return index_of(value) < known_values_; }

  const Kernel& kernel_;
  size_t known_values_ = 0, known_regions_ = 0;
  IdMap<ValueId, Scope> values_{Scope::kGrid};
  IdMap<RegionId, Control> regions_;
};

}  // namespace heddle::ir
