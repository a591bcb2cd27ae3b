#include "heddle/ir/passes/dealt_loops.h"

#include "absl/container/flat_hash_set.h"
#include "heddle/ir/passes/loop_walks.h"

namespace heddle::ir {
namespace {

// The first trip is this far from 0 at most, so that counting from there wraps nowhere.
constexpr int64_t kMostBase = 1 << 20;

bool is_plain_access(const Op& op) {
  return (op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore) &&
         op.attr_or(AttrKey::kVolatile, 0) == 0;
}

// Of one element.
bool is_single(const Kernel& kernel, const Op& access) {
  const bool loads = access.opcode == Opcode::kLoad;
  return kernel.type(loads ? access.result() : access.value()).is_scalar();
}

// Of memory that a block's threads share by one address.
bool is_shared(const Kernel& kernel, const Op& access) {
  const Space space = kernel.type(access.view()).space;
  return space != Space::kLocal && space != Space::kSharedCluster;
}

}  // namespace

std::optional<Dealing> DealtLoops::of(OpId id) {
  const Op& loop = kernel_.op(id);
  // What is carried goes from trip to trip in their order.
  if (loop.opcode != Opcode::kFor || !loop.results.empty()) return std::nullopt;
  const std::optional<Dealing> dealing = bounds_of(loop);
  if (!dealing || uniformity_.control(loop.parent) < dealing->scope ||
      uniformity_.of(loop.stop()) < dealing->scope || !is_the_same_for_all(id, dealing->scope) ||
      !is_apart_from_itself(id, dealing->scope)) {
    return std::nullopt;
  }
  if (!keeps_dealing_) keeps_dealing_ = keeps_dealing();
  return *keeps_dealing_ ? std::nullopt : dealing;
}

// Of the forms thread + base, by the block's threads; lane + base, by a warp's; block * threads + thread + base, by the
// grid's.
std::optional<Dealing> DealtLoops::bounds_of(const Op& loop) {
  if (kernel_.has_dynamic_block()) return std::nullopt;
  const LinearSum start = sums_.of(loop.start());
  if (start.terms.empty() || start.constant < 0 || start.constant > kMostBase) return std::nullopt;
  // How often a coordinate's x is in a sum.
  const auto factor_of = [&](const LinearSum& sum, Opcode opcode) {
    int64_t factor = 0;
    for (const LinearSum::Term& term : sum.terms) {
      const Op* const op = kernel_.def(term.value);
      if (op != nullptr && op->opcode == opcode && op->attr_or(AttrKey::kAxis, 0) == 0) {
        factor += term.factor;
      }
    }
    return factor;
  };
  const int64_t threads = kernel_.block.x;
  const std::optional<int64_t> step = kernel_.constant_int(loop.step());
  if (start.terms.size() == 1) {
    if (factor_of(start, Opcode::kLaneId) == 1 && step == 32 && kernel_.block.count() % 32 == 0) {
      return Dealing{start.constant, Scope::kWarp, 32};
    }
    if (factor_of(start, Opcode::kThreadIdx) != 1 || step != threads) return std::nullopt;
    if (threads == kernel_.block.count()) return Dealing{start.constant, Scope::kBlock, threads};
    if (threads == 32) return Dealing{start.constant, Scope::kWarp, threads};
    return std::nullopt;
  }
  const LinearSum by = sums_.of(loop.step());
  if (start.terms.size() == 2 && factor_of(start, Opcode::kThreadIdx) == 1 &&
      factor_of(start, Opcode::kBlockIdx) == threads && by.terms.size() == 1 && by.constant == 0 &&
      factor_of(by, Opcode::kGridDim) == threads && threads == kernel_.block.count()) {
    return Dealing{start.constant, Scope::kGrid, threads};
  }
  return std::nullopt;
}

// Whether a trip hangs on its index alone: what else it takes is the same for the threads.
bool DealtLoops::is_the_same_for_all(OpId id, Scope scope) const {
  const absl::flat_hash_set<ValueId> inside = values_inside(kernel_, id);
  bool same = true;
  kernel_.walk(kernel_.op(id).regions[0], [&](OpId inner) {
    const Op& op = kernel_.op(inner);
    const OpInfo& row = info(op);
    const bool computes = has(row, kPure) && row.uniform >= scope;
    same &= computes || op.opcode == Opcode::kIf || op.opcode == Opcode::kYield ||
            (is_plain_access(op) && is_shared(kernel_, op));
    for (const ValueId operand : op.operands) {
      same &= inside.contains(operand) || uniformity_.of(operand) >= scope;
    }
  });
  return same;
}

// Whether threads meet between two runs of the loop, so that it does not matter whose an element was in the first.
bool DealtLoops::is_apart_from_itself(OpId id, Scope scope) const {
  for (RegionId region = kernel_.op(id).parent; valid(kernel_.region(region).parent);
       region = kernel_.op(kernel_.region(region).parent).parent) {
    if (!is_loop(kernel_.op(kernel_.region(region).parent))) continue;
    bool meet = false;
    for (const OpId op : kernel_.ops(region)) meet |= kernel_.op(op).opcode == Opcode::kBarrier;
    if (!meet || scope > Scope::kBlock) return false;
  }
  return true;
}

// Whether the kernel has an op through which threads show each other, or other kernels, what one of them has done so
// far: more than a barrier of all.
bool DealtLoops::keeps_dealing() const {
  bool keeps = false;
  kernel_.walk([&](OpId id) {
    const Op& op = kernel_.op(id);
    const OpInfo& row = info(op);
    const bool harmless = is_plain_access(op) || op.opcode == Opcode::kBarrier ||
                          (!row.effects.touches_memory() && !row.effects.unnamed &&
                           row.effects.admits == Admits::kNothing && !row.effects.async);
    keeps |= !harmless;
  });
  return keeps;
}

bool DealtLoops::may_be_dealt_anew(OpId id) {
  const Op& loop = kernel_.op(id);
  const absl::flat_hash_set<ValueId> inside = values_inside(kernel_, id);
  const ValueId index = kernel_.region(loop.regions[0]).args[0];
  absl::InlinedVector<OpId, 8> accesses;
  absl::flat_hash_set<OpId> own;
  kernel_.walk(loop.regions[0], [&](OpId inner) {
    if (!is_plain_access(kernel_.op(inner))) return;
    accesses.push_back(inner);
    own.insert(inner);
  });
  // Whether accesses of different threads, of which one stores, could be to the same element.
  const auto may_meet = [&](OpId a_id, OpId b_id) {
    const Op &a = kernel_.op(a_id), &b = kernel_.op(b_id);
    const bool a_stores = a.opcode == Opcode::kStore;
    if (!a_stores && b.opcode != Opcode::kStore) return false;
    const int a_object = aliasing_.object_of(a.view()), b_object = aliasing_.object_of(b.view());
    if (a_object != b_object)
      return aliasing_.may_change(a_stores ? a : b, a_stores ? b_object : a_object);
    // The same element in the same trip alone.
    if (!own.contains(b_id) || a.view() != b.view() || a.offset() != b.offset()) return true;
    return inside.contains(a.view()) || !is_single(kernel_, a) || !is_single(kernel_, b) ||
           !walks_by_one(sums_.of(a.offset()), index, inside);
  };
  bool apart = true;
  kernel_.walk([&](OpId other) {
    if (!apart || !is_plain_access(kernel_.op(other))) return;
    for (const OpId access : accesses) apart &= !may_meet(access, other);
  });
  return apart;
}

}  // namespace heddle::ir
