// Poison words: which lanes of a value nobody has written.
#include <algorithm>

#include "heddle/ir/interp/lower/lowering.h"
#include "heddle/ir/interp/scalar/lane.h"

namespace heddle::ir::interp {

uint32_t Lowering::poison_stride(ValueId value) const {
  const Type t = type(value);
  switch (t.kind) {
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      return static_cast<uint32_t>(bytes_of(t.scalar));
    case TypeKind::kView:
    case TypeKind::kDescriptor:
      return sizeof(uint64_t);  // of the address
    case TypeKind::kNone:
    case TypeKind::kCheck:
    case TypeKind::kTensorMap:
      return sizeof(Bool);
  }
  return 0;
}

uint32_t Lowering::poison_size(ValueId value, uint32_t count) const {
  if (!poisoned(value)) return 0;
  return poison_stride(value) | (count > 1 && type(value).count <= 1 ? 0x80u : 0u);
}

void Lowering::emit_poison(ValueId result, absl::Span<const ValueId> operands) {
  if (!poisoned(result)) return;
  const uint32_t count = std::max<uint32_t>(type(result).count, 1);
  // Three operands at a time; from the second time on the result so far is one of them.
  std::vector<ValueId> left;
  for (const ValueId operand : operands) {
    if (poisoned(operand)) left.push_back(operand);
  }
  do {
    Operand regs[3];
    uint32_t sizes = poison_stride(result);
    for (int i = 0; i < 3 && !left.empty(); ++i) {
      regs[i] = reg(left.back());
      sizes |= poison_size(left.back(), count) << (8 * (i + 1));
      left.pop_back();
    }
    emit(poison_union_handler(), {.dst = reg(result),
                                  .a = regs[0],
                                  .b = regs[1],
                                  .c = regs[2],
                                  .count = count,
                                  .aux = sizes});
    if (!left.empty()) left.push_back(result);
  } while (!left.empty());
}

void Lowering::require_defined(ValueId value, DefinedUse use) {
  if (!poisoned(value)) return;
  emit(require_defined_handler(), {.a = reg(value),
                                   .count = std::max<uint32_t>(type(value).count, 1),
                                   .aux = static_cast<uint32_t>(use) | poison_stride(value) << 8});
}

}  // namespace heddle::ir::interp
