// Atomics and fences.
#include <array>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/atomic.h"

namespace heddle::codegen {

using ir::AtomicOp;
using ir::AttrKey;
using ir::MemoryOrder;
using ir::MemoryScope;
using ir::Opcode;
using ir::Space;

namespace {

// In the order of MemoryOrder and MemoryScope.
constexpr absl::string_view kOrders[] = {".relaxed", ".acquire", ".release", ".acq_rel", ".sc"};
constexpr absl::string_view kScopes[] = {".cta", ".cluster", ".gpu", ".sys"};

// By how many registers the value takes.
constexpr absl::string_view kVectors[] = {"", "", ".v2", "", ".v4"};

}  // namespace

std::string ordering_of(const ir::Op& op, MemoryOrder order, MemoryScope scope) {
  return absl::StrCat(kOrders[op.attr_or(AttrKey::kOrder, static_cast<int64_t>(order))],
                      kScopes[op.attr_or(AttrKey::kScope, static_cast<int64_t>(scope))]);
}

// Sums of integers have the unsigned name: of 64 bits there is no other, and of 32 bits ptxas makes ATOMS.POPC.INC of an
// unsigned sum with 1 alone, which lanes of one address share. 16-bit floats say that they keep subnormals, as they must.
std::string atomic_type(AtomicOp op, ir::Type element) {
  const ir::Scalar scalar = element.scalar;
  const TypeSpelling& spelling = spelling_of(scalar);
  switch (op) {
    case AtomicOp::kAdd:
      if (ir::is_integer(scalar)) return ir::info(scalar).bits == 64 ? ".u64" : ".u32";
      return absl::StrCat(ir::info(scalar).bits == 16 ? ".noftz" : "",
                          kVectors[layout_of(element).count], ".",
                          is_packed(element) ? spelling.packed : spelling.name);
    case AtomicOp::kMin:
    case AtomicOp::kMax:
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return absl::StrCat(".", spelling.name);
    case AtomicOp::kAnd:
    case AtomicOp::kOr:
    case AtomicOp::kXor:
    case AtomicOp::kExch:
      break;
  }
  return absl::StrCat(".", spelling.bits);
}

void Emitter::emit_atomic(OpId id, const Op& op) {
  Operand* const d = define(op.result());
  if (!is_accessible(id, op)) return;
  check_bounds(id, op.view(), op.check());
  const Type element = type(op.result());
  const Address at = address(id, op.view());
  const std::string head =
      absl::StrCat("atom", ordering_of(op, MemoryOrder::kRelaxed, MemoryScope::kGpu), ".",
                   state_space(type(op.view())));
  // The registers of a 16-bit float are halves of 32-bit ones or their own.
  const auto scalar = [&](ValueId value) { return in_register(lane(value, 0)); };
  if (op.opcode == Opcode::kAtomicCas) {
    return out_->instruction(head, ".cas.", spelling_of(element.scalar).bits, ' ', d[0], ", ", at,
                             ", ", scalar(op.expected()), ", ", scalar(op.value()));
  }
  const auto kind = static_cast<AtomicOp>(*op.attr(AttrKey::kOp));
  const absl::string_view name = ir::kAtomicOpNames[static_cast<size_t>(kind)];
  const std::string suffix = atomic_type(kind, element);
  if (element.is_scalar()) {
    return out_->instruction(head, ".", name, suffix, ' ', d[0], ", ", at, ", ",
                             scalar(op.value()));
  }
  const int count = layout_of(element).count;
  if (count > 1) use(ir::Feature::kVectorAtomics);
  std::array<Operand, 4> values;
  for (int i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = in_register(elements(op.value())[i]);
  }
  out_->instruction(head, ".", name, suffix, ' ', Vector{d, count}, ", ", at, ", ",
                    Vector{values.data(), count});
}

void Emitter::emit_atomic_access(OpId id, const Op& op) {
  const bool loads = op.opcode == Opcode::kAtomicLoad;
  if (loads) define(op.result());
  if (!is_accessible(id, op)) return;
  check_bounds(id, op.view(), op.check());
  const ValueId value = loads ? op.result() : op.value();
  const Operand& reg = elements(value)[0];
  const Address at = address(id, op.view());
  // A byte lies in a wider register, and has no type but an integer's.
  const bool is_byte = bytes_of(type(value).scalar) == 1;
  const std::string head = absl::StrCat(
      loads ? "ld" : "st", ordering_of(op, MemoryOrder::kRelaxed, MemoryScope::kGpu), ".",
      state_space(type(op.view())), ".", is_byte ? "u8" : info(reg.reg_class).type, " ");
  if (loads) return out_->instruction(head, reg, ", ", at);
  out_->instruction(head, at, ", ", reg);
}

void Emitter::emit_prefetch(OpId id, const Op& op) {
  const auto level = static_cast<ir::CacheLevel>(*op.attr(AttrKey::kLevel));
  out_->instruction(level == ir::CacheLevel::kL1 ? "prefetch.global.L1 " : "prefetch.global.L2 ",
                    address(id, op.view()));
}

void Emitter::emit_fence(const Op& op) {
  out_->instruction("fence", ordering_of(op, MemoryOrder::kAcqRel, MemoryScope::kGpu));
}

}  // namespace heddle::codegen
