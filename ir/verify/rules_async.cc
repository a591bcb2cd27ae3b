// Rules of what runs beside the threads: asynchronous and bulk copies, and mbarriers.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

void check_mbarrier(RuleContext& c, size_t operand) {
  const Type view = c.operand_type(operand);
  if (is_shared(view) && view.scalar == Scalar::kU64) return;
  c.error(
      absl::StrCat("an mbarrier is a u64 in shared memory, not an element of ", to_string(view)),
      "declare a shared array of u64 for it");
}

// Of the block's own shared memory.
void check_own(RuleContext& c, size_t operand) {
  if (c.operand_type(operand).space != Space::kSharedCluster) return;
  c.error(
      absl::StrCat(c.quoted(), " reaches the block's own shared memory alone, and ",
                   c.operand_name(operand), " is in ", name_of(c.operand_type(operand).space),
                   " memory"),
      "take the block's own array; another block's mbarrier can be arrived at, or told of bytes");
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

void check_copy_async(RuleContext& c) {
  const Type to = c.operand_type(0);
  const Type from = c.operand_type(1);
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
  check_mbarrier(c, 0);
  check_own(c, 0);
}

void check_any_mbarrier(RuleContext& c) { check_mbarrier(c, 0); }

void check_bulk_load(RuleContext& c) {
  check_mbarrier(c, 3);
  check_bulk(c, c.operand_type(1), c.operand_type(0));
  if (c.operand_count() < 5) return;
  // The mask says which blocks; the views, where in each.
  check_own(c, 0);
  check_own(c, 3);
}

void check_bulk_copy(RuleContext& c) {
  check_mbarrier(c, 3);
  for (const size_t operand : {size_t{0}, size_t{3}}) {
    if (c.operand_type(operand).space == Space::kSharedCluster) continue;
    c.error(absl::StrCat(c.quoted(), " goes to another block's shared memory, and ",
                         c.operand_name(operand), " is ", to_string(c.operand_type(operand))),
            "map the array and the mbarrier to the other block by map_shared");
  }
  if (c.operand_type(1).space == Space::kShared) return;
  c.error(absl::StrCat(c.quoted(), " takes the block's own shared memory, and ", c.operand_name(1),
                       " is ", to_string(c.operand_type(1))),
          "copy from the block that has the data");
}

void check_bulk_store(RuleContext& c) {
  require_writable(c, "bulk store");
  check_bulk(c, c.operand_type(0), c.operand_type(1), Space::kShared);
}

void check_bulk_reduce(RuleContext& c) {
  const Type to = c.operand_type(0);
  const auto op = c.enum_attr(AttrKey::kOp, AtomicOp::kAdd);
  const bool tells = c.operand_count() > 3;
  if (to.space == Space::kGlobal) {
    require_writable(c, "bulk reduction");
    check_bulk(c, to, c.operand_type(1), Space::kShared);
    if (tells) c.error("a bulk reduction in global memory tells no mbarrier", "commit and wait");
  } else if (!tells) {
    c.error(absl::StrCat("a bulk reduction in ", name_of(to.space),
                         " memory tells an mbarrier, and there is none"),
            "give it one in the memory of the same block");
  } else {
    check_bulk_copy(c);
    if (c.attr(AttrKey::kL2Evict)) require_global(c, "cache hint");
  }
  const Scalar from = c.operand_type(1).scalar;
  if (from != to.scalar) {
    c.error(absl::StrCat(c.quoted(), " combines elements of one type, not ", info(from).name,
                         " and ", info(to.scalar).name),
            "convert the tile");
  }
  if (has_bulk_reduction(op, to.scalar, to.space)) return;
  c.error(absl::StrCat("a bulk reduction by ", kAtomicOpNames[static_cast<size_t>(op)], " in ",
                       name_of(to.space), " memory takes ", bulk_reduction_types(op, to.space),
                       ", not ", info(to.scalar).name),
          "use atomics");
}

void check_bulk_prefetch(RuleContext& c) { require_global(c, "bulk prefetch"); }

}  // namespace heddle::ir
