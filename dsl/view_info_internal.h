// What is known of a view while tracing. Not for users.
#pragma once

#include <algorithm>
#include <optional>

#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/analysis/views.h"

namespace heddle::detail {

// A view as tracing sees it: where its extents and strides come from.
class ViewInfo {
 public:
  ViewInfo(Trace& trace, ir::ValueId view)
      : kernel_(trace.kernel()),
        ints_(trace.ints()),
        view_(view),
        param_(kernel_.param_index(view)) {
    const ir::Op* def = kernel_.def(view);
    if (def != nullptr && def->opcode == ir::Opcode::kMapShared) def = kernel_.def(def->view());
    if (def != nullptr && def->attr(ir::AttrKey::kExtents)) {
      extents_ = kernel_.ints(*def->attr(ir::AttrKey::kExtents));
    }
  }

  int rank() const { return kernel_.type(view_).rank; }
  bool is_param() const { return param_.has_value(); }
  bool unbounded() const { return is_unbounded(kernel_, view_); }

  // A host constant where the extent is one.
  int64_t extent(int dim) const {
    if (param_) return param().extents[dim];
    return extents_.empty() ? ir::kDynamic : extents_[dim];
  }
  int64_t stride(int dim) const {
    if (param_) {
      if (unbounded()) return 1;
      if (param().strides[dim] != ir::kDynamic) return param().strides[dim];
      return is_unit(dim) ? 1 : ir::kDynamic;
    }
    int64_t stride = 1;
    for (int i = dim + 1; i < rank(); ++i) stride *= extents_[i];
    return stride;
  }
  bool fits_32() const { return !param_ || fact(ir::FactKind::kFits32) == 1; }
  int64_t base_align() const { return ir::alignment_of(kernel_, view_, ints_); }
  int64_t stride_divisor(int dim) const {
    const int64_t known = stride(dim);
    if (known == ir::kDynamic) return fact(ir::FactKind::kStrideDivisor, dim);
    return known == 0 ? 16 : known & -known;
  }
  int64_t fact(ir::FactKind kind, int dim = 0) const {
    return kernel_.fact({kind, static_cast<uint16_t>(*param_), static_cast<uint8_t>(dim)});
  }

 private:
  // Whether the dynamic stride of a mode is 1. Mostly that of the last mode is, else that of one before, as in a
  // matrix that is stored by columns, or with its batches behind. Each answer is a guard: only those modes are
  // asked for that come before the first one with it.
  bool is_unit(int dim) const {
    const auto& strides = param().strides;
    if (std::find(strides.begin(), strides.end(), 1) != strides.end()) return false;
    int last = rank() - 1;
    while (last >= 0 &&
           (strides[last] != ir::kDynamic || fact(ir::FactKind::kUnitStride, last) != 1)) {
      --last;
    }
    return last == dim;
  }
  const ir::Param& param() const { return kernel_.params()[*param_]; }

  ir::Kernel& kernel_;
  ir::IntAnalysis& ints_;
  ir::ValueId view_;
  std::optional<int> param_;
  absl::Span<const int64_t> extents_;
};

}  // namespace heddle::detail
