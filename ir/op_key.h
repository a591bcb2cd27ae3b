// What the result of a pure op follows from: of two ops with one key, the later one computes again what the earlier
// one did, wherever the earlier one has always run before.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct OpKey {
  Opcode opcode;
  Type type;
  absl::Span<const ValueId> operands;
  absl::Span<const Attr> attrs;

  // Operands of a commutative op in either order.
  friend bool operator==(const OpKey& a, const OpKey& b);
};

// Of an op with one result; views into the op.
OpKey key_of(const Kernel& kernel, const Op& op);

// The same for keys that are equal.
uint64_t hash_of(const OpKey& key);

}  // namespace heddle::ir
