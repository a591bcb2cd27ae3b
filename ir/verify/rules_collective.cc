// Rules of what threads do together: named barriers, reductions, matrices of a warp.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

void check_matrices(RuleContext& c, Type fragment) {
  constexpr int kBytesOfLane = 4;  // of each matrix
  const Type view = c.type(c.op().view());
  const int size = bytes_of(view.scalar);
  if (view.space != Space::kShared) {
    c.error(absl::StrCat(c.quoted(), " reaches the block's own shared memory alone, and ",
                         c.name(c.op().view()), " is in ", name_of(view.space), " memory"),
            "copy the tile to a shared array first, or access its elements one by one");
  }
  if (view.scalar == Scalar::kBool || size > kBytesOfLane) {
    return c.error(
        absl::StrCat(c.quoted(), " moves elements of 1, 2 or 4 bytes that are no bools, not ",
                     info(view.scalar).name),
        "access the elements one by one");
  }
  if (size != 2 && c.attr_or(AttrKey::kTranspose, 0) != 0) {
    c.error(absl::StrCat(c.quoted(), " transposes elements of 2 bytes, and ",
                         info(view.scalar).name, " has ", size),
            "leave 'transpose' out, and exchange elements by shuffles");
  }
  const int64_t count = *c.attr(AttrKey::kCount);
  const Type wanted = Type::fragment(view.scalar, static_cast<int>(count) * kBytesOfLane / size);
  if (fragment != wanted) {
    c.error(absl::StrCat(c.quoted(), " with count = ", count, " has ", to_string(wanted),
                         " in each lane, not ", to_string(fragment)),
            "a lane has 4 bytes of each matrix: make the fragment and the count agree");
  }
  if (c.kernel().has_dynamic_block() || c.kernel().block.count() % 32 == 0) return;
  c.error(absl::StrCat(c.quoted(), " is one operation of 32 threads, but the block has ",
                       c.kernel().block.count()),
          "use a block of a multiple of 32 threads");
}

}  // namespace

void check_named_barrier(RuleContext& c) {
  const auto number = c.kernel().constant_int(c.op().id());
  if (!number || (*number >= 1 && *number <= 15)) return;
  c.error(absl::StrCat("there is no named barrier ", *number),
          "a block's named barriers are 1 to 15; sync_threads() is that of all threads");
}

void check_redux(RuleContext& c) {
  const auto op = c.enum_attr(AttrKey::kOp, AtomicOp::kAdd);
  if (op <= AtomicOp::kXor) return;
  c.error(absl::StrCat("'redux' has no op '", kAtomicOpNames[static_cast<size_t>(op)], "'"),
          "use add, min, max, and, or or xor");
}

void check_ldmatrix(RuleContext& c) { check_matrices(c, c.result_type()); }

void check_stmatrix(RuleContext& c) {
  require_writable(c, c.op().view(), "store of matrices");
  check_matrices(c, c.type(c.op().value()));
}

void check_pin(RuleContext& c) {
  if (!c.op().operands.empty() || c.op().attr_or(AttrKey::kEarlyLoads, 0) != 0) return;
  c.error("this pin has no values", "list those that are to be computed in front of it");
}

}  // namespace heddle::ir
