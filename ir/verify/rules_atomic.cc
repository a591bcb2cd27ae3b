// Rules of atomics and fences.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

void require_shared_or_global(RuleContext& c) {
  const Space space = c.type(c.op().view()).space;
  if (space == Space::kGlobal || is_shared(c.type(c.op().view()))) return;
  c.error(
      absl::StrCat("an atomic access to ", name_of(space), " memory, which no two threads share"),
      "read and write it as usual");
}

void check_scope(RuleContext& c) {
  const bool cluster = c.enum_attr(AttrKey::kScope, MemoryScope::kGpu) == MemoryScope::kCluster;
  if (cluster) c.require(Feature::kClusters, "use the scope gpu");
}

void check_order(RuleContext& c) {
  require_shared_or_global(c);
  if (c.enum_attr(AttrKey::kOrder, MemoryOrder::kRelaxed) == MemoryOrder::kSeqCst) {
    c.error(absl::StrCat(c.quoted(), " has no order 'seq_cst'"),
            "use acq_rel, with a fence of order seq_cst before it");
  }
  check_scope(c);
}

// An atomic load or store: one element, relaxed or `strong`.
void check_ordered(RuleContext& c, Type element, MemoryOrder strong) {
  if (!element.is_scalar() || element.is_bool()) {
    c.error(
        absl::StrCat(c.quoted(), " takes one element that is no bool, not ", to_string(element)),
        "access it in parts");
  }
  const auto order = c.enum_attr(AttrKey::kOrder, MemoryOrder::kRelaxed);
  if (order != MemoryOrder::kRelaxed && order != strong) {
    const absl::string_view name = kMemoryOrderNames[static_cast<size_t>(strong)];
    c.error(absl::StrCat(c.quoted(), " has no order '",
                         kMemoryOrderNames[static_cast<size_t>(order)], "'"),
            absl::StrCat("use relaxed or ", name, ", with a fence where that is too weak"));
  }
  require_shared_or_global(c);
  check_scope(c);
}

void check_vector_atomic(RuleContext& c, AtomicOp op, Type vector) {
  constexpr char kOneByOne[] = "update the elements one by one";
  const std::string what =
      absl::StrCat("atomic ", kAtomicOpNames[static_cast<size_t>(op)], " of ", to_string(vector));
  const VectorSum* const sum = op == AtomicOp::kAdd ? find_vector_sum(vector) : nullptr;
  if (sum == nullptr) {
    return c.error(absl::StrCat("no GPU has ", what,
                                "; of vectors there is add alone, of 2 or 4 f32 and of 2, 4 or 8 "
                                "f16 or bf16"),
                   kOneByOne);
  }
  if (sum->global_only && c.type(c.op().view()).space != Space::kGlobal) {
    return c.error(absl::StrCat(what, " is there in global memory alone, not in ",
                                name_of(c.type(c.op().view()).space)),
                   kOneByOne);
  }
  c.require(sum->feature, kOneByOne, what);
}

}  // namespace

void check_atomic(RuleContext& c) {
  require_writable(c, c.op().view(), "atomic");
  const auto op = c.enum_attr(AttrKey::kOp, AtomicOp::kAdd);
  const Type element = c.result_type();
  const absl::string_view name = kAtomicOpNames[static_cast<size_t>(op)];
  if (!element.is_scalar()) {
    check_vector_atomic(c, op, element);
  } else if (!has_atomic(op, element.scalar, c.target())) {
    c.error(absl::StrCat("atomic ", name, " of ", to_string(element), " is not there on ",
                         c.target().name, "; it takes ", atomic_types(op)),
            "convert the element, or update it with atomic.cas in a loop");
  }
  check_order(c);
}

void check_atomic_cas(RuleContext& c) {
  require_writable(c, c.op().view(), "atomic");
  const Type element = c.result_type();
  if (!element.is_scalar() || !has_compare_and_swap(element.scalar)) {
    c.error(
        absl::StrCat("atomic.cas takes one element of 16, 32 or 64 bits, not ", to_string(element)),
        "use an integer of 32 bits");
  }
  check_order(c);
}

void check_atomic_load(RuleContext& c) { check_ordered(c, c.result_type(), MemoryOrder::kAcquire); }

void check_atomic_store(RuleContext& c) {
  require_writable(c, c.op().view(), "atomic store");
  check_ordered(c, c.type(c.op().value()), MemoryOrder::kRelease);
}

void check_fence(RuleContext& c) {
  const auto order = c.enum_attr(AttrKey::kOrder, MemoryOrder::kAcqRel);
  if (order != MemoryOrder::kAcqRel && order != MemoryOrder::kSeqCst) {
    c.error(
        absl::StrCat("a fence has no order '", kMemoryOrderNames[static_cast<size_t>(order)], "'"),
        "use acq_rel or seq_cst");
  }
  check_scope(c);
}

}  // namespace heddle::ir
