// Tensor-core ops. A pending fragment keeps its registers until it is settled, as on the GPU.
#include "heddle/ir/interp/lower/lowering.h"
#include "heddle/ir/mma_atom.h"

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
  const bool in_registers = type(a).is_pending();
  require_defined(a, in_registers ? DefinedUse::kMultiplied : DefinedUse::kAddress);
  require_defined(b, DefinedUse::kAddress);
  require_defined(op.scale(), DefinedUse::kScale);
  bind(op.result(), reg(op.accumulator()));
  const Type accumulator = type(op.result());
  Wgmma entry;
  const MmaProduct product = product_of(kernel_, op);
  const MmaAtom& atom = *product.atom;
  entry.types = product.types;
  emit(wgmma_handler(),
       {.dst = reg(op.result()),
        .a = reg(a),
        .b = reg(b),
        .c = reg(op.scale()),
        .count = accumulator.count,
        .aux = static_cast<uint32_t>(code_->wgmmas.size())},
       // Each element is so many products and as many sums.
       {.ops = accumulator.count * 2u * static_cast<uint32_t>(atom.k)});
  entry.a = FragmentPlaces(fragment_of(atom, MmaOperand::kA, entry.types.a, product.n));
  entry.accumulator =
      FragmentPlaces(fragment_of(atom, MmaOperand::kAccumulator, accumulator.scalar, product.n));
  if (!in_registers) entry.a_format = table_operand(bound_[a].format);
  entry.b_format = table_operand(bound_[b].format);
  entry.transpose_a = op.attr_or(AttrKey::kTransposeA, 0) != 0;
  entry.transpose_b = op.attr_or(AttrKey::kTransposeB, 0) != 0;
  entry.negates = op.attr_or(AttrKey::kNegateA, 0) != op.attr_or(AttrKey::kNegateB, 0);
  entry.poisoned = poisoned(op.result());
  code_->wgmmas.push_back(entry);
}

void Lowering::lower_mma(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kMultiplied);
  const Type accumulator = type(op.result());
  Mma entry;
  const MmaProduct product = product_of(kernel_, op);
  const MmaAtom& atom = *product.atom;
  entry.types = product.types;
  entry.a = FragmentPlaces(fragment_of(atom, MmaOperand::kA, entry.types.a, product.n));
  entry.b = FragmentPlaces(fragment_of(atom, MmaOperand::kB, entry.types.b, product.n));
  entry.accumulator =
      FragmentPlaces(fragment_of(atom, MmaOperand::kAccumulator, accumulator.scalar, product.n));
  bind(op.result(), new_reg(accumulator));
  emit(mma_handler(),
       {.dst = reg(op.result()),
        .a = reg(op.a()),
        .b = reg(op.b()),
        .c = reg(op.accumulator()),
        .count = accumulator.count,
        .aux = static_cast<uint32_t>(code_->mmas.size())},
       {.ops = accumulator.count * 2u * static_cast<uint32_t>(atom.k)});
  code_->mmas.push_back(entry);
}

}  // namespace heddle::ir::interp
