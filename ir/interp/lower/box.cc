// Copies of boxes. The interpreter has no tensor maps: a copy reads the argument that one describes.
#include "heddle/ir/interp/lower/lowering.h"

namespace heddle::ir::interp {

void Lowering::lower_box(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kAddress);
  const bool im2col = op.opcode == Opcode::kTmaLoadIm2col;
  const bool loads =
      im2col || op.opcode == Opcode::kTmaLoad || op.opcode == Opcode::kTmaLoadMulticast;
  const bool reduces = op.opcode == Opcode::kTmaReduce;
  const bool prefetches = op.opcode == Opcode::kTmaPrefetch;
  const ValueId shared = prefetches ? ValueId::kNone : loads ? op.dst() : op.src();
  const ValueId barrier = loads ? op.barrier() : ValueId::kNone;
  const Op& map = *kernel_.def(op.map());
  const Bound tensor = bound_[map.view()];
  const ViewInfo view = views_[tensor.view];  // a copy: index_operand may add views
  const bool replaced = map.opcode == Opcode::kTensorMapReplace;
  BoxCopy copy;
  copy.kind = loads        ? BoxCopy::Kind::kLoad
              : reduces    ? BoxCopy::Kind::kReduce
              : prefetches ? BoxCopy::Kind::kPrefetch
                           : BoxCopy::Kind::kStore;
  copy.shape = box_shape(kernel_, described_map(kernel_, op.map()));
  copy.view_name = view.name;
  copy.shared_array = bound_[shared].array;
  copy.mbarrier_array = bound_[barrier].array;
  copy.access = static_cast<uint32_t>(code_->accesses.size());
  if (reduces) {
    copy.step = atomic_step(static_cast<AtomicOp>(*op.attr(AttrKey::kOp)), copy.shape.scalar);
    if (copy.step == nullptr) return unimplemented(info(copy.shape.scalar).name);
  }
  absl::InlinedVector<Operand, kMaxTensorMapRank> extents, strides;
  const auto rank = static_cast<size_t>(copy.shape.rank);
  for (size_t d = 0; replaced && d < rank; ++d) {
    extents.push_back(reg(map.numbers()[d]));
    strides.push_back(d == 0 ? constant_index(1, /*wide=*/true) : reg(map.numbers()[rank + d - 1]));
  }
  for (int d = 0; !replaced && d < copy.shape.rank; ++d) {
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
  for (size_t i = 0; im2col && i + 2 < extents.size(); ++i) {
    copy.offsets[i] = table_operand(reg(op.coordinates()[extents.size() + i]));
  }
  Access access;  // for the allocation that the copy finds
  access.offset.reg = table_operand(constant_index(0, /*wide=*/false));
  access.scalar = copy.shape.scalar;
  access.view_name = view.name;
  code_->accesses.push_back(access);
  code_->boxes.push_back(copy);
}

// Copies that take the new map read the op's operands.
void Lowering::lower_map_replace(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kAddress);
  emit(warp_sync_handler(), {});
  MapReplacement map;
  const Type type = kernel_.type(op.result());
  map.scalar = type.scalar;
  map.rank = type.rank;
  map.view_name = views_[bound_[op.view()].view].name;
  map.shared_array = bound_[op.src()].array;
  map.access = static_cast<uint32_t>(code_->accesses.size());
  emit(map_replace_handler(), {.a = reg(op.src()),
                               .b = reg(op.dst()),
                               .aux = static_cast<uint32_t>(code_->map_replacements.size())});
  map.address = table_operand(reg(op.view()));
  const auto rank = static_cast<size_t>(map.rank);
  for (size_t d = 0; d < rank; ++d) {
    map.extents[d] = table_operand(reg(op.numbers()[d]));
    if (d > 0) map.strides[d] = table_operand(reg(op.numbers()[rank + d - 1]));
  }
  Access access;  // for the allocation that the map lies in
  access.offset.reg = table_operand(constant_index(0, /*wide=*/false));
  access.view_name = views_[bound_[op.dst()].view].name;
  code_->accesses.push_back(access);
  code_->map_replacements.push_back(map);
}

}  // namespace heddle::ir::interp
