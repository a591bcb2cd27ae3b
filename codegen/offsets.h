// Offsets into views as sums, so that accesses share addresses.
//
//   x(row, col + 3), in a loop over col:  row * stride, convert(col)  + 3
//
// The constant goes into the instruction, and what the loop leaves alone is added before what
// changes in it, so that ptxas computes it once: it takes sums as they come.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/kernel.h"

namespace heddle::codegen {

// offset = sum of the terms + addend, in elements and in the width of the space's addresses. Values
// are i32 (to be extended by their sign) or i64; those from outer regions come first.
//
// A matrix descriptor counts 16 bytes: where every part of its offset is known to be a multiple of
// them, each term says how many one of its value is.
struct SplitOffset {
  struct Term {
    ir::ValueId value;
    int32_t factor = 0;  // 0: `value` elements
    int32_t shift = 0;   // else (value >> shift) * factor times 16 bytes
  };
  absl::InlinedVector<Term, 2> terms;
  int64_t addend = 0;
  // What the sum of the terms is xored with before the addend, as a swizzle's constants are: in an
  // array of shared memory that is aligned to more, so that the same holds of addresses.
  int32_t exclusive = 0;
};

// Where offsets are first used to access a view: from there on they are known to be in bounds.
class AccessedOffsets {
 public:
  explicit AccessedOffsets(const ir::Kernel& kernel);
  // Whether every thread that comes to `op` has accessed its view at `offset`.
  bool before(ir::OpId op, ir::ValueId offset) const;

 private:
  struct First {
    ir::RegionId region;
    int position;
  };
  const ir::Kernel& kernel_;
  absl::flat_hash_map<std::pair<ir::ValueId, ir::ValueId>, First> first_;  // by view and offset
  ir::IdMap<ir::OpId, int> positions_;
};

// Of an op that has a view and an offset. `depth`: of each region, 0 for the kernel's body.
SplitOffset split_offset(const ir::Kernel& kernel, const std::vector<int>& depth,
                         const AccessedOffsets& accessed, ir::Analyses& analyses, ir::OpId op);

}  // namespace heddle::codegen
