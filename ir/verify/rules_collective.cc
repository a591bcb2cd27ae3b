// Rules of what threads do together: named barriers, reductions, matrices of a warp, tensor cores.

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

constexpr int64_t kMaxWgmmaColumns = 256;

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

bool is_wgmma_input(Scalar scalar) { return scalar == Scalar::kF16 || scalar == Scalar::kBF16; }

void check_accumulator(RuleContext& c, Type type) {
  const int64_t columns = int64_t{2} * type.count;
  if (type.scalar == Scalar::kF32 && columns % 8 == 0 && columns <= kMaxWgmmaColumns) return;
  c.error(
      absl::StrCat("wgmma accumulates m64nNk16 in f32 with N = 2 x count a multiple of 8 up to ",
                   kMaxWgmmaColumns, "; ", to_string(type), " is no such accumulator"),
      "use a fragment of 4, 8, ... 128 f32 elements");
}

// The remainder that elements leave when `unit` divides them, where it is known.
std::optional<int64_t> remainder_of(const Kernel& kernel, IntAnalysis& ints, ValueId elements,
                                    int64_t unit) {
  int64_t sum = 0;
  while (!ints.divisible(elements, unit)) {
    if (const auto constant = kernel.constant_int(elements)) return (sum + *constant % unit) % unit;
    const Op* const op = kernel.def(elements);
    if (op == nullptr || op->opcode != Opcode::kAdd) return std::nullopt;
    const auto constant = kernel.constant_int(op->b());
    sum += constant.value_or(0) % unit;
    if (!constant && !ints.divisible(op->b(), unit)) return std::nullopt;
    elements = op->a();
  }
  return sum % unit;
}

// Descriptors count 16 bytes from the start of an array, which is aligned to as many.
void check_start_of_tile(RuleContext& c) {
  constexpr int64_t kUnit = 16;
  const Kernel& kernel = c.kernel();
  const int64_t size = bytes_of(c.type(c.op().view()).scalar);
  IntAnalysis ints(kernel, FactUse::kIgnore);
  int64_t bytes = 0;
  for (const Op* op = &c.op(); op == nullptr || op->opcode != Opcode::kShared;
       op = kernel.def(op->view())) {
    if (op == nullptr || (op != &c.op() && op->opcode != Opcode::kSubview)) return;
    const auto remainder = remainder_of(kernel, ints, op->offset(), kUnit / size);
    if (!remainder) return;
    bytes += *remainder * size;
  }
  bytes = (bytes % kUnit + kUnit) % kUnit;
  if (bytes == 0) return;
  c.error(absl::StrCat("this tile starts ", bytes, " bytes behind a multiple of ", kUnit,
                       " bytes, and descriptors count in ", kUnit, " bytes"),
          absl::StrCat("start it at a multiple of ", kUnit / size, " elements"));
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

void check_smem_desc(RuleContext& c) {
  const Type view = c.type(c.op().view());
  if (view.space == Space::kShared && is_wgmma_input(view.scalar)) return check_start_of_tile(c);
  c.error(absl::StrCat("'smem.desc' describes f16 or bf16 tiles in shared memory, not ",
                       to_string(view)),
          "copy the tile to a shared array first");
}

void check_wgmma_begin(RuleContext& c) { check_accumulator(c, c.result_type()); }

void check_wgmma(RuleContext& c) {
  check_accumulator(c, c.result_type());
  const Scalar a = c.type(c.op().a()).scalar;
  const Scalar b = c.type(c.op().b()).scalar;
  if (a != b || !is_wgmma_input(a)) {
    c.error(absl::StrCat("wgmma multiplies f16 by f16 or bf16 by bf16, not ", info(a).name, " by ",
                         info(b).name),
            "bring both tiles to one of these types");
  }
  if (c.kernel().has_dynamic_block() || c.kernel().block.count() % 128 == 0) return;
  c.error(absl::StrCat("wgmma is one operation of 128 threads, but the block has ",
                       c.kernel().block.count()),
          "use a block of a multiple of 128 threads");
}

void check_pin(RuleContext& c) {
  if (!c.op().operands.empty()) return;
  c.error("this pin has no values", "list those that are to be computed in front of it");
}

}  // namespace heddle::ir
