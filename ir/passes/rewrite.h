// Small tools that passes share.
#pragma once

#include <cstdint>

#include "heddle/ir/kernel.h"

namespace heddle::ir {

// Values that have been replaced by others, to be looked up as a walk comes to their uses.
// Dominance is nesting, so a walk in order sees every use after the replacement, but for those that
// a loop's arguments have inside the loop.
class Replacements {
 public:
  void add(ValueId from, ValueId to) {
    map_.at(from) = to;
    any_ = true;
  }
  ValueId resolve(ValueId value) const {
    while (valid(map_[value])) value = map_[value];
    return value;
  }
  void resolve_operands(Op& op) const {
    if (!any_) return;
    for (ValueId& operand : op.operands) operand = resolve(operand);
  }
  // Sweeps over the whole kernel, for uses that no walk comes to any more.
  void apply_everywhere(Kernel& kernel) const { kernel.replace_uses(map_); }

 private:
  IdMap<ValueId, ValueId> map_{ValueId::kNone};
  bool any_ = false;
};

// How many operands each value is.
IdMap<ValueId, uint32_t> count_uses(const Kernel& kernel);

// 1 for each value that an op ties to a result. Its registers end there, so it may neither become
// one with another value nor move to where it would have to be copied.
IdMap<ValueId, uint8_t> tied_values(const Kernel& kernel);

// What a region hands to its owner.
absl::Span<const ValueId> yielded(const Kernel& kernel, RegionId region);

// Hands a hint for people on to a value that has none.
inline void inherit_name(Kernel& kernel, ValueId to, ValueId from) {
  if (!valid(kernel.value(to).name)) kernel.value(to).name = kernel.value(from).name;
}

}  // namespace heddle::ir
