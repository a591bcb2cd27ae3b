#include "heddle/ir/analysis/aliasing.h"

#include <algorithm>

#include "heddle/ir/analysis/views.h"
#include "heddle/ir/check.h"

namespace heddle::ir {
namespace {

bool is_volatile(const Op& op) { return op.attr_or(AttrKey::kVolatile, 0) != 0; }

// Memory that no kernel writes.
bool is_constant(Space space) { return space == Space::kParam || space == Space::kConst; }

// A block's own memory and the cluster's view of it are one.
bool same_memory(Space a, Space b) {
  const auto shared = [](Space s) { return s == Space::kShared || s == Space::kSharedCluster; };
  return a == b || (shared(a) && shared(b));
}

}  // namespace

Aliasing::Aliasing(const Kernel& kernel) : kernel_(kernel) {
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (op.opcode == Opcode::kDynamicShared && !valid(dynamic_shared_)) {
      dynamic_shared_ = op.result();
    }
    const Effects& effects = info(op).effects;
    for (size_t i = 0; i < op.operands.size() && i < 8; ++i) {
      const bool reads = (effects.reads >> i & 1) != 0;
      const bool writes = (effects.writes >> i & 1) != 0;
      if ((reads || writes) && !kernel.type(op.operands[i]).slot) note(op.operands[i], writes);
    }
  });
}

void Aliasing::note(ValueId view, bool written) {
  const ValueId key = object_key(view);
  int& index = by_key_.at(key);
  if (index < 0) {
    index = object_count();
    const Op* const def = kernel_.def(key);
    const int param = kernel_.param_index(key).value_or(-1);
    const bool shared = def != nullptr && def->attr(AttrKey::kExtents).has_value();
    const bool dynamic = def != nullptr && def->opcode == Opcode::kDynamicShared;
    objects_.push_back({.space = kernel_.type(view).space,
                        .param = param,
                        .shared = shared,
                        .traceable = param >= 0 || shared || dynamic,
                        .written = false});
  }
  objects_[static_cast<size_t>(index)].written |= written;
}

ValueId Aliasing::object_key(ValueId view) const {
  const ValueId root = root_of(kernel_, view);
  const Op* const def = kernel_.def(root);
  return def != nullptr && def->opcode == Opcode::kDynamicShared ? dynamic_shared_ : root;
}

int Aliasing::object_of(ValueId view) const {
  const int object = by_key_[object_key(view)];
  HEDDLE_CHECK(object >= 0, "a view that no access took when the kernel was looked at");
  return object;
}

bool Aliasing::disturbs(const Op& op) {
  const Effects& effects = info(op).effects;
  return (effects.writes != 0 && op.opcode != Opcode::kVarStore) || effects.orders ||
         is_volatile(op);
}

Reach Aliasing::reach(const Op& op, int object) const {
  if (is_constant(objects_[static_cast<size_t>(object)].space)) return Reach::kNo;
  // Whoever asks for a volatile access waits for somebody else's write.
  if (is_volatile(op)) return Reach::kYes;
  Reach result = Reach::kNo;
  const Effects& effects = info(op).effects;
  for (size_t i = 0; i < op.operands.size() && i < 8; ++i) {
    if ((effects.writes >> i & 1) == 0 || kernel_.type(op.operands[i]).slot) continue;
    result = std::max(result, write_reaches(object_of(op.operands[i]), object));
  }
  if (effects.orders) result = std::max(result, order_reaches(op, object));
  return result;
}

Reach Aliasing::write_reaches(int written, int read) const {
  const Object& w = objects_[static_cast<size_t>(written)];
  const Object& r = objects_[static_cast<size_t>(read)];
  if (!same_memory(w.space, r.space)) return Reach::kNo;
  if (written == read || !w.traceable || !r.traceable) return Reach::kYes;
  if (w.param >= 0 && r.param >= 0) return Reach::kUnlessNoOverlap;
  return w.shared || r.shared ? Reach::kNo : Reach::kYes;
}

Reach Aliasing::order_reaches(const Op& op, int read) const {
  const Object& r = objects_[static_cast<size_t>(read)];
  if (r.space == Space::kLocal) return Reach::kNo;
  // Threads of this grid write what the kernel writes. Ops that order more than a block may let
  // other grids' writes through as well.
  const bool within_block =
      info(op).convergence >= Scope::kWarp && info(op).convergence <= Scope::kBlock;
  const bool others_write = std::any_of(objects_.begin(), objects_.end(), [&](const Object& w) {
    return w.written && !w.traceable && same_memory(w.space, r.space);
  });
  if (r.param < 0 || r.written || others_write || !within_block) return Reach::kYes;
  return Reach::kUnlessNoOverlap;
}

bool Aliasing::no_overlap(int object) const {
  const Object& o = objects_[static_cast<size_t>(object)];
  const Fact fact{FactKind::kNoOverlap, static_cast<uint16_t>(o.param), 0};
  return o.param >= 0 && kernel_.fact(fact) == 1;
}

}  // namespace heddle::ir
