#include "heddle/ir/analysis/aliasing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/check.h"
#include "heddle/ir/text/printer.h"

namespace heddle::ir {
namespace {

bool is_volatile(const Op& op) {
  return !op.attrs.empty() && op.attr_or(AttrKey::kVolatile, 0) != 0;
}

// Memory that no kernel writes.
bool is_constant(Space space) { return space == Space::kParam || space == Space::kConst; }

// Whether other grids' writes may show behind an op; see Effects::admits.
bool admits_other_grids(const Op& op) {
  // Whoever asks for a volatile access waits for somebody else's write.
  if (is_volatile(op)) return true;
  const Admits admits = info(op).effects.admits;
  if (admits == Admits::kNothing) return false;
  const auto scope = static_cast<MemoryScope>(
      op.attr_or(AttrKey::kScope, static_cast<int64_t>(MemoryScope::kGpu)));
  if (scope < MemoryScope::kGpu) return false;
  if (admits == Admits::kOtherGrids) return true;
  const auto order = static_cast<MemoryOrder>(
      op.attr_or(AttrKey::kOrder, static_cast<int64_t>(MemoryOrder::kRelaxed)));
  return order != MemoryOrder::kRelaxed && order != MemoryOrder::kRelease;
}

// Whether a value stands for memory: no variable, nor a fragment in a place that a descriptor may have too.
bool is_memory(Type type) { return !type.slot && !type.is_pending(); }

// A block's own memory and the cluster's view of it are one.
bool same_memory(Space a, Space b) {
  const auto shared = [](Space s) { return s == Space::kShared || s == Space::kSharedCluster; };
  return a == b || (shared(a) && shared(b));
}

}  // namespace

Aliasing::Aliasing(const Kernel& kernel) : kernel_(kernel) {
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    // A pass may let accesses through one view go through an equal one.
    if (op.results.size() == 1 && kernel.type(op.result()).is_view()) {
      if (op.opcode == Opcode::kDynamicShared && !valid(dynamic_shared_)) {
        dynamic_shared_ = op.result();
      }
      note(op.result(), /*written=*/false);
    }
    const Effects& effects = info(op).effects;
    const uint32_t touched = effects.reads | effects.writes;
    if (touched == 0 && effects.admits == Admits::kNothing && !effects.unnamed) return;
    strangers_write_ |= effects.unnamed || admits_other_grids(op);
    for (size_t i = 0; i < op.operands.size() && touched >> i != 0; ++i) {
      if ((touched >> i & 1) == 0 || !is_memory(kernel.type(op.operands[i]))) continue;
      note(op.operands[i], (effects.writes >> i & 1) != 0);
    }
  });
  for (Object& object : objects_) {
    for (int other = 0; other < object_count() && object.arena >= 0; ++other) {
      const Object& there = objects_[static_cast<size_t>(other)];
      if (there.arena == object.arena && there.region != object.region) {
        object.shares.push_back(other);
      }
    }
    const auto found = std::find(kinds_.begin(), kinds_.end(), object.kind);
    kind_of_.push_back(static_cast<int>(found - kinds_.begin()));
    if (found == kinds_.end()) kinds_.push_back(object.kind);
  }
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
    objects_.push_back({.kind = {.space = kernel_.type(view).space,
                                 .param = param >= 0,
                                 .shared = shared,
                                 .traceable = param >= 0 || shared || dynamic,
                                 .written = false},
                        .param = param,
                        .arena = shared ? def->attr_or(AttrKey::kArena, -1) : -1,
                        .region = shared ? def->attr_or(AttrKey::kRegion, -1) : -1,
                        .shares = {}});
  }
  objects_[static_cast<size_t>(index)].kind.written |= written;
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

bool Aliasing::may_clobber(const Op& op) {
  const Effects& effects = info(op).effects;
  return (effects.writes != 0 && op.opcode != Opcode::kVarStore) || effects.orders ||
         effects.unnamed || is_volatile(op);
}

void Aliasing::for_each_written(const Op& op, absl::FunctionRef<void(int)> visit) const {
  const Effects& effects = info(op).effects;
  for (size_t i = 0; i < op.operands.size() && i < 8; ++i) {
    if ((effects.writes >> i & 1) == 0 || kernel_.type(op.operands[i]).slot) continue;
    const int object = object_of(op.operands[i]);
    visit(object);
    for (const int other : objects_[static_cast<size_t>(object)].shares) visit(other);
  }
}

Clobber Aliasing::clobber(const Op& op, int object) const {
  Clobber result = clobber_of_kind(op, kind_of(object));
  for_each_written(op, [&](int written) {
    if (written == object) result = Clobber::kYes;
  });
  return result;
}

// Whether others' writes may show behind an op that did not in front of it. What only releases shows the thread's
// own to others; behind wgmma.wait there are new registers, but nothing new in memory.
bool Aliasing::may_show_writes(const Op& op) {
  constexpr int64_t kReleases = static_cast<int64_t>(MemoryOrder::kRelease);
  return info(op).effects.orders && op.opcode != Opcode::kWgmmaWait &&
         op.attr_or(AttrKey::kOrder, -1) != kReleases;
}

Clobber Aliasing::clobber_of_kind(const Op& op, int kind) const {
  const Kind& read = kinds_[static_cast<size_t>(kind)];
  if (is_constant(read.space)) return Clobber::kNo;
  if (is_volatile(op)) return Clobber::kYes;
  Clobber result = Clobber::kNo;
  for_each_written(op, [&](int written) {
    result = std::max(result, write_clobbers(objects_[static_cast<size_t>(written)].kind, read));
  });
  const OpInfo& row = info(op);
  // The thread's own memory has no address that another could use.
  if ((!may_show_writes(op) && !row.effects.unnamed) || read.space == Space::kLocal) return result;
  // What orders more than a block may order others' writes as well.
  const bool within_block = row.convergence >= Scope::kWarp && row.convergence <= Scope::kBlock;
  return within_block && !is_written_unseen(read) ? std::max(result, Clobber::kUnlessNoOverlap)
                                                  : Clobber::kYes;
}

Clobber Aliasing::write_clobbers(const Kind& written, const Kind& read) {
  if (!same_memory(written.space, read.space)) return Clobber::kNo;
  if (!written.traceable || !read.traceable) return Clobber::kYes;
  if (written.param && read.param) return Clobber::kUnlessNoOverlap;
  return written.shared || read.shared ? Clobber::kNo : Clobber::kYes;
}

// Whether somebody else may write such memory, for all that is known of overlaps: other threads of
// this grid, which write what the kernel writes, or other grids.
bool Aliasing::is_written_unseen(const Kind& read) const {
  if (!read.param || read.written || strangers_write_) return true;
  return std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    return kind.written && !kind.traceable && same_memory(kind.space, read.space);
  });
}

bool Aliasing::is_never_written(int object) const {
  return !is_written_unseen(kinds_[static_cast<size_t>(kind_of(object))]);
}

bool Aliasing::no_overlap(int object) const {
  const Object& o = objects_[static_cast<size_t>(object)];
  const Fact fact{FactKind::kNoOverlap, static_cast<uint16_t>(o.param), 0};
  return o.param >= 0 && kernel_.fact(fact) == 1;
}

std::string Aliasing::disagreement(const Aliasing&) const {
  std::string what;
  kernel_.walk([&](OpId id) {
    const Op& op = kernel_.op(id);
    const Effects& effects = info(op).effects;
    const uint32_t touched = effects.reads | effects.writes;
    for (size_t i = 0; i < op.operands.size() && touched >> i != 0 && what.empty(); ++i) {
      if ((touched >> i & 1) == 0 || !is_memory(kernel_.type(op.operands[i]))) continue;
      const int object = by_key_[object_key(op.operands[i])];
      // Whether other memory than a parameter's is written makes no difference.
      const bool writes = (effects.writes >> i & 1) != 0;
      const auto known = [&] { return objects_[static_cast<size_t>(object)].kind; };
      if (object >= 0 && (!writes || !known().param || known().written)) continue;
      what = absl::StrCat("nobody ", writes ? "writes" : "uses", " the memory of '",
                          print_op(kernel_, id), "'");
    }
  });
  return what;
}

}  // namespace heddle::ir
