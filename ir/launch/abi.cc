#include "heddle/ir/launch/abi.h"

namespace heddle::ir {

const ParamSlot* ParamLayout::find(SlotKind kind, int param, int dim) const {
  for (const ParamSlot& slot : slots) {
    if (slot.kind == kind && slot.param == param && slot.dim == dim) return &slot;
  }
  return nullptr;
}

int ParamLayout::append(int count, int align) {
  const int offset = (bytes + align - 1) / align * align;
  bytes = offset + count;
  return offset;
}

std::vector<int> ParamLayout::places() const {
  std::vector<int> offsets;
  for (const ParamSlot& slot : slots) offsets.push_back(slot.offset);
  for (const LaunchSlot& slot : at_launch) offsets.push_back(slot.offset);
  for (const MapSlot& slot : tensor_maps) offsets.push_back(slot.offset);
  return offsets;
}

int ParamLayout::offset_of_map(OpId tensor_map) const {
  for (const MapSlot& slot : tensor_maps) {
    if (slot.op == tensor_map) return slot.offset;
  }
  return -1;
}

ParamLayout param_layout(const Kernel& kernel) {
  ParamLayout layout;
  const auto add = [&layout](SlotKind kind, int param, int dim, int bytes) {
    layout.slots.push_back({kind, param, dim, layout.append(bytes), bytes});
  };
  for (int i = 0; i < static_cast<int>(kernel.params().size()); ++i) {
    const Param& param = kernel.params()[i];
    const Type type = kernel.type(param.value);
    if (!type.is_view()) {
      add(SlotKind::kScalar, i, 0, bytes_of(type.scalar));
      continue;
    }
    add(SlotKind::kAddress, i, 0, 8);
    if (param.unbounded) continue;
    for (int dim = 0; dim < type.rank; ++dim) {
      if (param.extents[dim] == kDynamic) add(SlotKind::kExtent, i, dim, 8);
    }
    for (int dim = 0; dim < type.rank; ++dim) {
      if (param.strides[dim] == kDynamic) add(SlotKind::kStride, i, dim, 8);
    }
  }
  return layout;
}

}  // namespace heddle::ir
