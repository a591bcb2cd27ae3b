// Rules of what runs beside the threads: asynchronous and bulk copies, and mbarriers.

#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

void check_mbarrier(RuleContext& c, ValueId barrier) {
  const Type view = c.type(barrier);
  if (is_shared(view) && view.scalar == Scalar::kU64) return;
  c.error(
      absl::StrCat("an mbarrier is a u64 in shared memory, not an element of ", to_string(view)),
      "declare a shared array of u64 for it");
}

// Of the block's own shared memory.
void check_own(RuleContext& c, ValueId view) {
  if (c.type(view).space != Space::kSharedCluster) return;
  c.error(
      absl::StrCat(c.quoted(), " reaches the block's own shared memory alone, and ", c.name(view),
                   " is in ", name_of(c.type(view).space), " memory"),
      "take the block's own array; another block's mbarrier can be arrived at, or told of bytes");
}

// Of another block's shared memory.
void check_elsewhere(RuleContext& c, std::initializer_list<ValueId> views) {
  for (const ValueId view : views) {
    if (c.type(view).space == Space::kSharedCluster) continue;
    c.error(absl::StrCat(c.quoted(), " goes to another block's shared memory, and ", c.name(view),
                         " is ", to_string(c.type(view))),
            "map the array and the mbarrier to the other block by map_shared");
  }
}

// Relaxed or `strong`.
void check_order(RuleContext& c, MemoryOrder strong) {
  const auto order = c.enum_attr(AttrKey::kOrder, strong);
  if (order == MemoryOrder::kRelaxed || order == strong) return;
  c.error(absl::StrCat(c.quoted(), " has no order '", kMemoryOrderNames[static_cast<size_t>(order)],
                       "'"),
          absl::StrCat("use relaxed or ", kMemoryOrderNames[static_cast<size_t>(strong)]));
}

// Likewise, among the threads of a block or of a cluster.
void check_mbarrier_order(RuleContext& c, MemoryOrder strong) {
  check_order(c, strong);
  const auto scope = c.enum_attr(AttrKey::kScope, MemoryScope::kBlock);
  if (scope != MemoryScope::kBlock && scope != MemoryScope::kCluster) {
    c.error(
        absl::StrCat(c.quoted(), " has no scope '", kMemoryScopeNames[static_cast<size_t>(scope)],
                     "': only the threads of a cluster reach an mbarrier"),
        "use the scope block or cluster, with a memory fence where others must see the data");
  }
}

// A copy between global memory and shared memory, in `own` where not of any block.
void check_bulk(RuleContext& c, Type global, Type shared, Space own = Space::kNone) {
  const bool reaches = own == Space::kNone ? is_shared(shared) : shared.space == own;
  if (global.space == Space::kGlobal && reaches) return;
  c.error(absl::StrCat(c.quoted(), " copies between global and ",
                       own == Space::kNone ? "" : "the block's own ", "shared memory, not between ",
                       to_string(global), " and ", to_string(shared)),
          "load and store instead");
}

}  // namespace

void check_cluster_arrive(RuleContext& c) { check_order(c, MemoryOrder::kRelease); }

void check_copy_async(RuleContext& c) {
  const Type to = c.type(c.op().dst());
  const Type from = c.type(c.op().src());
  if (to.space != Space::kShared || from.space != Space::kGlobal || to.scalar != from.scalar) {
    c.error(absl::StrCat(c.quoted(), " copies from global to shared memory, not from ",
                         to_string(from), " to ", to_string(to)),
            "load and store instead");
    return;
  }
  const int64_t bytes = *c.attr(AttrKey::kWidth) * bytes_of(to.scalar);
  if (bytes == 4 || bytes == 8 || bytes == 16) return;
  c.error(absl::StrCat(c.quoted(), " copies 4, 8 or 16 bytes, not ", bytes),
          "choose another width, or load and store instead");
}

void check_own_mbarrier(RuleContext& c) {
  check_mbarrier(c, c.op().view());
  check_own(c, c.op().view());
}

void check_mbarrier_arrival(RuleContext& c) {
  check_mbarrier(c, c.op().view());
  check_mbarrier_order(c, MemoryOrder::kRelease);
}

void check_mbarrier_wait(RuleContext& c) {
  check_own_mbarrier(c);
  check_mbarrier_order(c, MemoryOrder::kAcquire);
}

void check_bulk_load(RuleContext& c) {
  const Op& op = c.op();
  check_mbarrier(c, op.barrier());
  check_bulk(c, c.type(op.src()), c.type(op.dst()));
  if (!valid(op.mask())) return;
  // The mask says which blocks; the views, where in each.
  check_own(c, op.dst());
  check_own(c, op.barrier());
}

void check_bulk_copy(RuleContext& c) {
  const Op& op = c.op();
  check_mbarrier(c, op.barrier());
  check_elsewhere(c, {op.dst(), op.barrier()});
  if (c.type(op.src()).space == Space::kShared) return;
  c.error(absl::StrCat(c.quoted(), " takes the block's own shared memory, and ", c.name(op.src()),
                       " is ", to_string(c.type(op.src()))),
          "copy from the block that has the data");
}

void check_store_async(RuleContext& c) {
  check_mbarrier(c, c.op().barrier());
  check_elsewhere(c, {c.op().view(), c.op().barrier()});
  const Type value = c.type(c.op().value());
  const int64_t bytes = value.bytes();
  if (value.scalar != Scalar::kBool && (bytes == 4 || bytes == 8 || bytes == 16)) return;
  c.error(absl::StrCat(c.quoted(), " stores 4, 8 or 16 bytes, not ", to_string(value)),
          "store neighbours together, or store and arrive");
}

void check_bulk_store(RuleContext& c) {
  require_writable(c, c.op().dst(), "bulk store");
  check_bulk(c, c.type(c.op().dst()), c.type(c.op().src()), Space::kShared);
}

void check_bulk_reduce(RuleContext& c) {
  const Type to = c.type(c.op().dst());
  const Type from = c.type(c.op().src());
  const auto op = c.enum_attr(AttrKey::kOp, AtomicOp::kAdd);
  const bool tells = valid(c.op().barrier());
  if (to.space == Space::kGlobal) {
    require_writable(c, c.op().dst(), "bulk reduction");
    check_bulk(c, to, from, Space::kShared);
    if (tells) c.error("a bulk reduction in global memory tells no mbarrier", "commit and wait");
  } else if (!tells) {
    c.error(absl::StrCat("a bulk reduction in ", name_of(to.space),
                         " memory tells an mbarrier, and there is none"),
            "give it one in the memory of the same block");
  } else {
    check_bulk_copy(c);
    if (c.attr(AttrKey::kL2Evict)) require_global(c, c.op().dst(), "cache hint");
  }
  if (from.scalar != to.scalar) {
    c.error(absl::StrCat(c.quoted(), " combines elements of one type, not ", info(from.scalar).name,
                         " and ", info(to.scalar).name),
            "convert the tile");
  }
  if (has_bulk_reduction(op, to.scalar, to.space)) return;
  c.error(absl::StrCat("a bulk reduction by ", kAtomicOpNames[static_cast<size_t>(op)], " in ",
                       name_of(to.space), " memory takes ", bulk_reduction_types(op, to.space),
                       ", not ", info(to.scalar).name),
          "use atomics");
}

void check_bulk_prefetch(RuleContext& c) { require_global(c, c.op().src(), "bulk prefetch"); }

}  // namespace heddle::ir
