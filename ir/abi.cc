#include "heddle/ir/abi.h"

namespace heddle::ir {

const ParamSlot* ParamLayout::find(SlotKind kind, int param, int dim) const {
  for (const ParamSlot& slot : slots) {
    if (slot.kind == kind && slot.param == param && slot.dim == dim) return &slot;
  }
  return nullptr;
}

namespace {

int append(int bytes, ParamLayout* layout) {
  const int offset = (layout->bytes + bytes - 1) / bytes * bytes;
  layout->bytes = offset + bytes;
  return offset;
}

}  // namespace

ParamLayout param_layout(const Kernel& kernel) {
  ParamLayout layout;
  const auto add = [&layout](SlotKind kind, int param, int dim, int bytes) {
    layout.slots.push_back({kind, param, dim, append(bytes, &layout), bytes});
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

ParamLayout launch_layout(const Kernel& kernel, absl::FunctionRef<bool(OpId)> is_needed) {
  ParamLayout layout = param_layout(kernel);
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    // The verifier asks before it knows that the op is right.
    if (op.opcode != Opcode::kAtLaunch || op.results.empty() || !is_needed(id)) return;
    const Type type = kernel.type(op.result());
    if (!type.is_scalar()) return;
    const int bytes = bytes_of(type.scalar);
    layout.at_launch.push_back({id, append(bytes, &layout), bytes});
  });
  return layout;
}

}  // namespace heddle::ir
