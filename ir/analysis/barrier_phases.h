// What shared memory holds between two barriers of the block.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class BarrierPhases {
 public:
  explicit BarrierPhases(const Kernel& kernel);

  // Whether a barrier before a load settles what it reads: the load is from a shared array of the
  // block's own, which stores alone write, and none of them can come between that barrier and the
  // next. Threads that read one address there get one value, whatever synchronises them besides.
  bool settles(OpId load);

 private:
  using Arrays = absl::flat_hash_set<ValueId>;

  bool is_own_array(ValueId view) const;
  OpId barrier_before(OpId op) const;
  // The arrays that are written between a barrier and the next.
  const Arrays& written_after(OpId barrier);
  // Adds what is written from an op on to the next barrier; `begun`: loop bodies that this has
  // gone through from their start.
  void follow(OpId op, RegionId region, absl::flat_hash_set<RegionId>& begun,
              Arrays& written) const;

  const Kernel& kernel_;
  Arrays shared_;  // used otherwise than by loads and stores
  absl::flat_hash_map<OpId, Arrays> written_;
};

}  // namespace heddle::ir
