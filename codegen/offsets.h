// Offsets into views as sums, so that accesses share addresses.
//
//   x(row, col + 3), in a loop over col:  row * stride, convert(col)  + 3
//
// The constant goes into the instruction, and what the loop leaves alone is added before what
// changes in it, so that ptxas computes it once: it takes sums as they come.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/kernel.h"

namespace heddle::codegen {

// What is known of a kernel, found out when first asked.
class Analyses {
 public:
  explicit Analyses(const ir::Kernel& kernel) : kernel_(kernel) {}
  ir::IntAnalysis& ints() {
    if (!ints_) ints_.emplace(kernel_, ir::FactUse::kIgnore);
    return *ints_;
  }
  const ir::Uniformity& uniformity() {
    if (!uniformity_) uniformity_.emplace(kernel_);
    return *uniformity_;
  }
  const ir::Aliasing& aliasing() {
    if (!aliasing_) aliasing_.emplace(kernel_);
    return *aliasing_;
  }

 private:
  const ir::Kernel& kernel_;
  std::optional<ir::IntAnalysis> ints_;
  std::optional<ir::Uniformity> uniformity_;
  std::optional<ir::Aliasing> aliasing_;
};

// offset = sum of the terms + addend, in the width of the space's addresses. Terms are i32 (to be
// extended by their sign) or i64; those from outer regions come first.
struct SplitOffset {
  absl::InlinedVector<ir::ValueId, 2> terms;
  int64_t addend = 0;
};

// `depth`: of each region, 0 for the kernel's body.
SplitOffset split_offset(const ir::Kernel& kernel, const std::vector<int>& depth,
                         Analyses& analyses, ir::ValueId view, ir::ValueId offset);

}  // namespace heddle::codegen
