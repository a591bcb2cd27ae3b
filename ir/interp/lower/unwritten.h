// Which values may hold what nobody has written: those that an `undef` can reach. Only they need
// poison words. Memory plays no part: reading unwritten memory is reported at the load.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir::interp {

class UnwrittenAnalysis {
 public:
  explicit UnwrittenAnalysis(const Kernel& kernel);
  bool may_be(ValueId id) const { return reached_[id]; }
  // Whether any value may be.
  bool any() const { return any_; }

 private:
  bool visit(const Kernel& kernel, OpId id);
  bool visit_regions(const Kernel& kernel, const Op& op);
  // Makes `to` at least what `from` is; true when that changed it.
  bool join(ValueId to, ValueId from);

  IdMap<ValueId, bool> reached_{false};
  bool any_ = false;
};

}  // namespace heddle::ir::interp
