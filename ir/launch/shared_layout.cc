#include "heddle/ir/launch/shared_layout.h"

#include <algorithm>
#include <vector>

namespace heddle::ir {
namespace {

SharedLayout layout_of(const Kernel& kernel, Opcode kind) {
  std::vector<OpId> arrays;
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode == kind) arrays.push_back(id);
  });
  const auto align_of = [&kernel](OpId id) {
    return static_cast<int>(kernel.op(id).attr_or(AttrKey::kAlign, 16));
  };
  // The most aligned first, so that padding is at most the last array's.
  std::stable_sort(arrays.begin(), arrays.end(),
                   [&](OpId a, OpId b) { return align_of(a) > align_of(b); });
  SharedLayout layout;
  for (const OpId id : arrays) {
    const Op& op = kernel.op(id);
    int64_t bytes = bytes_of(kernel.type(op.result()).scalar);
    for (const int64_t extent : kernel.ints(*op.attr(AttrKey::kExtents))) bytes *= extent;
    const int align = align_of(id);
    layout.align = std::max(layout.align, align);
    layout.offset.at(id) = (layout.bytes + align - 1) / align * align;
    layout.bytes = layout.offset[id] + static_cast<int>(bytes);
  }
  return layout;
}

}  // namespace

SharedLayout shared_layout(const Kernel& kernel) { return layout_of(kernel, Opcode::kShared); }
SharedLayout local_layout(const Kernel& kernel) { return layout_of(kernel, Opcode::kLocal); }

}  // namespace heddle::ir
