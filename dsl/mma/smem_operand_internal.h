// Operands of wgmma in shared memory: a tensor's descriptors. Not for users.
#pragma once

#include "heddle/dsl/mma/descriptor.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle::detail {

// A tile (rows, depth) in shared memory, and the descriptors of instructions of so many rows.
class SmemOperand {
 public:
  // Reports a tile that has no descriptors; `name` is the operand's.
  SmemOperand(const AnyTensor& tensor, int64_t rows, const char* name, SourceLoc loc);

  bool ok() const { return descriptor_.ok(); }
  Major major() const { return descriptor_.major(); }
  int64_t row_parts() const { return descriptor_.row_parts(); }
  int64_t steps() const { return descriptor_.steps(); }

  // The descriptor of an instruction's part.
  Node part(int64_t row_part, int64_t step) const;

 private:
  AnyTensor tensor_;
  SourceLoc loc_;
  SmemDescriptor descriptor_;
};

// One instruction of wgmma: a is a descriptor or a pending fragment. Gives the accumulator.
struct WgmmaOperand {
  Node node;
  Major major = Major::k;
  bool negated = false;
};
Node record_wgmma(const Node& accumulator, const WgmmaOperand& a, const WgmmaOperand& b,
                  const Node& scale, SourceLoc loc);

}  // namespace heddle::detail
