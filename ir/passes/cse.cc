// cse: what is computed twice is computed once.
//
// What: a pure op, or a promise, whose twin (same op, attributes and operands, in either order
// where they commute) has run before it, in the same region or one around it, becomes its twin's
// result. So does a load, where nothing in between may have written that memory or let somebody
// else's writes through. Shuffles, votes and whatever else threads do together stay as they are,
// and so does a fragment whose registers an op takes over. The fact that a parameter does not
// overlap with what is written is read only where two loads become one by it.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints, uniformity.
//
// Why: traces name the same index arithmetic and bounds again at every access.
//
//   %0 = mul %row, %pitch : i32             %0 = mul %row, %pitch : i32
//   %1 = add %0, %col : i32                 %1 = add %0, %col : i32
//   %2 = mul %pitch, %row : i32      →      %4 = load %x, %1 : f32
//   %3 = add %2, %col : i32                 store %y, %4, %1
//   %4 = load %x, %1 : f32
//   store %y, %4, %3
#include <algorithm>
#include <bit>

#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/op_key.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

class Elimination {
 public:
  explicit Elimination(PassContext& context)
      : kernel_(context.kernel()),
        aliasing_(context.analysis<Aliasing>()),
        tied_(tied_values(kernel_)),
        object_changed_(static_cast<size_t>(aliasing_.object_count())),
        kind_changed_(static_cast<size_t>(aliasing_.kind_count())),
        heads_(std::bit_ceil(kernel_.op_count() + 1), -1) {}

  bool run() {
    visit(kernel_.body());
    return merged_;
  }

 private:
  // An op that has run, chained to others of the same bucket.
  struct Entry {
    uint64_t hash;
    OpId op;
    int next;
    uint32_t time;  // loads: when
  };
  // When memory last changed, and when it did so unless it overlaps with nothing that is written.
  struct Changes {
    uint32_t surely = 0;
    uint32_t maybe = 0;
  };

  void visit(RegionId region) {
    const size_t mark = entries_.size();
    for (const OpId id : kernel_.ops(region)) {
      replaced_.resolve_operands(kernel_.op(id));
      const Op& op = kernel_.op(id);
      if (is_loop(op)) {
        // What any trip changes is changed before the next one.
        for (const RegionId inner : op.regions) {
          kernel_.walk(inner, [&](OpId nested) { note_changes(kernel_.op(nested)); });
        }
      }
      for (size_t i = 0; i < kernel_.op(id).regions.size(); ++i) visit(kernel_.op(id).regions[i]);
      if (is_candidate(op)) merge_or_enter(id);
      note_changes(kernel_.op(id));
    }
    // Nothing here dominates what follows the region.
    while (entries_.size() > mark) {
      heads_[bucket_of(entries_.back().hash)] = entries_.back().next;
      entries_.pop_back();
    }
  }

  bool is_candidate(const Op& op) const {
    if (op.opcode == Opcode::kLoad) return op.attr_or(AttrKey::kVolatile, 0) == 0;
    const OpInfo& row = info(op);
    return (has(row, kPure) || has(row, kPromise)) && tied_[op.result()] == 0;
  }

  void note_changes(const Op& op) {
    if (!Aliasing::may_clobber(op)) return;
    ++time_;
    for (int kind = 0; kind < aliasing_.kind_count(); ++kind) {
      Changes& changes = kind_changed_[static_cast<size_t>(kind)];
      const Clobber reach = aliasing_.clobber_of_kind(op, kind);
      if (reach == Clobber::kYes) changes.surely = time_;
      if (reach == Clobber::kUnlessNoOverlap) changes.maybe = time_;
    }
    aliasing_.for_each_written(
        op, [&](int object) { object_changed_[static_cast<size_t>(object)] = time_; });
  }

  void merge_or_enter(OpId id) {
    const Op& op = kernel_.op(id);
    const OpKey key = key_of(kernel_, op);
    const uint64_t hash = hash_of(key);
    int& head = heads_[bucket_of(hash)];
    for (int at = head; at >= 0; at = entries_[static_cast<size_t>(at)].next) {
      const Entry& entry = entries_[static_cast<size_t>(at)];
      if (entry.hash != hash || key_of(kernel_, kernel_.op(entry.op)) != key) continue;
      if (op.opcode == Opcode::kLoad && !still_holds(entry)) continue;
      const ValueId twin = kernel_.op(entry.op).result();
      inherit_name(kernel_, twin, op.result());
      replaced_.add(op.result(), twin);
      kernel_.erase(id);
      merged_ = true;
      return;
    }
    entries_.push_back({hash, id, head, time_});
    head = static_cast<int>(entries_.size()) - 1;
  }

  bool still_holds(const Entry& entry) const {
    const int object = aliasing_.object_of(kernel_.op(entry.op).view());
    const Changes& changes = kind_changed_[static_cast<size_t>(aliasing_.kind_of(object))];
    const uint32_t own = object_changed_[static_cast<size_t>(object)];
    if (std::max(own, changes.surely) > entry.time) return false;
    return changes.maybe <= entry.time || aliasing_.no_overlap(object);
  }

  size_t bucket_of(uint64_t hash) const { return hash & (heads_.size() - 1); }

  Kernel& kernel_;
  const Aliasing& aliasing_;
  IdMap<ValueId, uint8_t> tied_;
  std::vector<uint32_t> object_changed_;  // by a write to it
  std::vector<Changes> kind_changed_;     // by ops that need not name the object
  std::vector<int> heads_;                // by bucket: the newest entry, or -1
  std::vector<Entry> entries_;            // those in scope, outermost first
  uint32_t time_ = 1;
  Replacements replaced_;
  bool merged_ = false;
};

}  // namespace

bool cse(PassContext& context) { return Elimination(context).run(); }

}  // namespace heddle::ir
