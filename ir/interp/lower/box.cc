// Copies of boxes. The interpreter has no tensor maps: a copy reads the argument that one describes.
#include "heddle/ir/interp/lower/lowering.h"

namespace heddle::ir::interp {

void Lowering::lower_box(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kAddress);
  const bool loads = op.opcode == Opcode::kTmaLoad || op.opcode == Opcode::kTmaLoadMulticast;
  const bool reduces = op.opcode == Opcode::kTmaReduce;
  const bool prefetches = op.opcode == Opcode::kTmaPrefetch;
  const ValueId shared = prefetches ? ValueId::kNone : loads ? op.dst() : op.src();
  const ValueId barrier = loads ? op.barrier() : ValueId::kNone;
  const Op& map = *kernel_.def(op.map());
  const Bound tensor = bound_[map.view()];
  const ViewInfo view = views_[tensor.view];  // a copy: index_operand may add views
  BoxCopy copy;
  copy.kind = loads        ? BoxCopy::Kind::kLoad
              : reduces    ? BoxCopy::Kind::kReduce
              : prefetches ? BoxCopy::Kind::kPrefetch
                           : BoxCopy::Kind::kStore;
  copy.shape = box_shape(kernel_, map);
  copy.view_name = view.name;
  copy.shared_array = bound_[shared].array;
  copy.mbarrier_array = bound_[barrier].array;
  copy.access = static_cast<uint32_t>(code_->accesses.size());
  if (reduces) {
    copy.step = atomic_step(static_cast<AtomicOp>(*op.attr(AttrKey::kOp)), copy.shape.scalar);
    if (copy.step == nullptr) return unimplemented(info(copy.shape.scalar).name);
  }
  absl::InlinedVector<Operand, kMaxTensorMapRank> extents, strides;
  for (int d = 0; d < copy.shape.rank; ++d) {
    const auto mode = static_cast<size_t>(copy.shape.modes[static_cast<size_t>(d)]);
    extents.push_back(index_operand(view.extents[mode], /*wide=*/true));
    strides.push_back(index_operand(view.strides[mode], /*wide=*/true));
  }
  emit(box_handler(options_.checks),
       {.a = reg(shared), .b = reg(barrier), .aux = static_cast<uint32_t>(code_->boxes.size())});
  copy.address = table_operand(tensor.reg);
  if (op.opcode == Opcode::kTmaLoadMulticast) copy.ranks = table_operand(reg(op.mask()));
  for (size_t d = 0; d < extents.size(); ++d) {
    copy.extents[d] = table_operand(extents[d]);
    copy.strides[d] = table_operand(strides[d]);
    copy.coordinates[d] = table_operand(reg(op.coordinates()[d]));
  }
  Access access;  // for the allocation that the copy finds
  access.offset.reg = table_operand(constant_index(0, /*wide=*/false));
  access.scalar = copy.shape.scalar;
  access.view_name = view.name;
  code_->accesses.push_back(access);
  code_->boxes.push_back(copy);
}

}  // namespace heddle::ir::interp
