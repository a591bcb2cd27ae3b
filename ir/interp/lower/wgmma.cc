// Tensor-core ops. A pending fragment keeps its registers until it is settled, as on the GPU.
#include "heddle/ir/interp/lower/lowering.h"

namespace heddle::ir::interp {

void Lowering::lower_descriptor(const Op& op) {
  const ValueId view = op.view();
  const ValueId offset = op.offset();
  Bound& bound = bound_.at(op.result());
  bound.reg = new_reg(Type::of(Scalar::kU64));
  const uint64_t format = static_cast<uint64_t>(op.attr_or(AttrKey::kLeading, 0)) |
                          static_cast<uint64_t>(op.attr_or(AttrKey::kStride, 0)) << 24 |
                          static_cast<uint64_t>(op.attr_or(AttrKey::kSwizzle, 0)) << 48;
  bound.format = initial(InitKind::kConst, Scalar::kU64, 1, format);
  emit(address_handler(type(offset).scalar == Scalar::kI64),
       {.dst = bound.reg,
        .a = reg(view),
        .b = reg(offset),
        .aux = static_cast<uint32_t>(bytes_of(type(view).scalar))});
  emit_poison(op.result(), op.operands);
}

void Lowering::lower_wgmma_begin(const Op& op) {
  // A copy, because parts of the settled fragment may still be read by their names.
  std::vector<Move> moves;
  bound_.at(op.result()) = fresh(op.result(), op.fragment());
  append_moves(op.result(), bound_[op.result()], op.fragment(), &moves);
  emit_moves(std::move(moves), /*blended=*/false);
}

void Lowering::lower_wgmma(const Op& op) {
  const ValueId a = op.a();
  const ValueId b = op.b();
  require_defined(a, DefinedUse::kAddress);
  require_defined(b, DefinedUse::kAddress);
  require_defined(op.scale(), DefinedUse::kScale);
  bind(op.result(), reg(op.accumulator()));
  const uint32_t count = type(op.result()).count;
  emit(wgmma_handler(),
       {.dst = reg(op.result()),
        .a = reg(a),
        .b = reg(b),
        .c = reg(op.scale()),
        .count = count,
        .aux = static_cast<uint32_t>(code_->wgmmas.size())},
       // Each element is 16 products and as many sums.
       {.ops = count * 32});
  Wgmma entry;
  entry.scalar = type(a).scalar;
  entry.a_format = table_operand(bound_[a].format);
  entry.b_format = table_operand(bound_[b].format);
  entry.poisoned = poisoned(op.result());
  code_->wgmmas.push_back(entry);
}

}  // namespace heddle::ir::interp
