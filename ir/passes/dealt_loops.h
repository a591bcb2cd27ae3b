// Loops whose trips are dealt out to the threads of a warp, a block or the grid.
//
//   for %i in %tid .. %n step %threads { y(row, i) = a * x(row, i) }
//
// Where threads agree on all that a trip takes but its index, and no trip's accesses meet another's or those of the
// rest of the kernel, it shows nowhere which thread runs a trip: they may be dealt out anew, for instance so that a
// thread has neighbours.
#pragma once

#include <optional>

#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// A thread has trips base + lane, base + lane + lanes … before the loop's end; each lane below `lanes` is a thread's.
struct Dealing {
  int64_t base;
  Scope scope;          // whose threads have the lanes
  int64_t least_lanes;  // there are no fewer
};

class DealtLoops {
 public:
  // All must outlive it.
  DealtLoops(const Kernel& kernel, const Aliasing& aliasing, const Uniformity& uniformity,
             LinearSums& sums)
      : kernel_(kernel), aliasing_(aliasing), uniformity_(uniformity), sums_(sums) {}

  // How a loop's trips are dealt out, if by all that its bounds and ops say any thread could have any of them.
  std::optional<Dealing> of(OpId loop);
  // Whether it shows nowhere which thread has which trip, as far as memory goes. May ask facts of overlap.
  bool may_be_dealt_anew(OpId loop);

 private:
  std::optional<Dealing> bounds_of(const Op& loop);
  bool is_the_same_for_all(OpId loop, Scope scope) const;
  bool is_apart_from_itself(OpId loop, Scope scope) const;
  bool keeps_dealing() const;

  const Kernel& kernel_;
  const Aliasing& aliasing_;
  const Uniformity& uniformity_;
  LinearSums& sums_;
  std::optional<bool> keeps_dealing_;  // whether something in the kernel does
};

}  // namespace heddle::ir
