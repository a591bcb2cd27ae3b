#include "heddle/ir/analysis/views.h"

#include <algorithm>

namespace heddle::ir {
namespace {

// Bytes, of arrays that say nothing else and of dynamic shared memory.
constexpr int64_t kUsualAlignment = 16;
// More than any access asks for, in elements: as bytes it is no number too large.
constexpr int64_t kMostAlignment = int64_t{1} << 32;

}  // namespace

ValueId root_of(const Kernel& kernel, ValueId view) {
  const Op* op = kernel.def(view);
  while (op != nullptr && has(info(*op), kSameMemory) && valid(op->view())) {
    view = op->view();
    op = kernel.def(view);
  }
  return view;
}

bool is_unbounded(const Kernel& kernel, ValueId view) {
  if (const auto param = kernel.param_index(view)) {
    return kernel.params()[static_cast<size_t>(*param)].unbounded;
  }
  const Op* const def = kernel.def(view);
  return def != nullptr && def->opcode == Opcode::kPointer;
}

std::optional<int64_t> fixed_layout(const Kernel& kernel, const Op& op) {
  const ValueId view = op.view();
  const auto dim = static_cast<size_t>(op.attr_or(AttrKey::kDim, 0));
  const bool is_extent = op.opcode == Opcode::kExtent;
  if (const auto index = kernel.param_index(view)) {
    const Param& param = kernel.params()[static_cast<size_t>(*index)];
    const auto& list = is_extent ? param.extents : param.strides;
    if (dim >= list.size() || list[dim] == kDynamic) return std::nullopt;
    return list[dim];
  }
  const Op* def = kernel.def(view);
  if (def != nullptr && def->opcode == Opcode::kMapShared) def = kernel.def(def->view());
  if (def == nullptr || !def->attr(AttrKey::kExtents)) return std::nullopt;
  const absl::Span<const int64_t> extents = kernel.ints(*def->attr(AttrKey::kExtents));
  if (dim >= extents.size()) return std::nullopt;
  if (is_extent) return extents[dim];
  int64_t stride = 1;  // row-major
  for (size_t i = dim + 1; i < extents.size(); ++i) stride *= extents[i];
  return stride;
}

int most_access_elements(const Kernel& kernel, ValueId view) {
  const Type type = kernel.type(view);
  const int bytes = type.space == Space::kGlobal ? kernel.target->max_access_bytes : 16;
  return std::min(bytes / bytes_of(type.scalar), kMostVectorElements);
}

int64_t alignment_of(const Kernel& kernel, ValueId view, IntAnalysis& ints) {
  if (const auto param = kernel.param_index(view)) {
    return kernel.fact({FactKind::kAlignment, static_cast<uint16_t>(*param), 0});
  }
  const Op* const op = kernel.def(view);
  if (op == nullptr) return 1;
  switch (op->opcode) {
    case Opcode::kShared:
    case Opcode::kLocal:
    case Opcode::kTable:
    case Opcode::kDynamicShared:
      return op->attr_or(AttrKey::kAlign, kUsualAlignment);
    case Opcode::kMapShared:
      return alignment_of(kernel, op->view(), ints);
    case Opcode::kPointer:
      return power_of_two_in(ints.divisor(op->address()));
    case Opcode::kSubview: {
      const int64_t elements =
          std::min(power_of_two_in(ints.divisor(op->offset())), kMostAlignment);
      const int64_t start = elements * bytes_of(kernel.type(view).scalar);
      const int64_t whole = alignment_of(kernel, op->view(), ints);
      return start == 0 ? whole : std::min(whole, start);
    }
    default:
      return 1;
  }
}

}  // namespace heddle::ir
