// Cases: every way to apply an op of ops.def to scalars, found from its row.
//
//   for (const Case& c : all_cases()) …     // "add f32 f32 -> f32", "convert f16 -> i32", …
//
// A case is an elementwise op (or bitcast), the values of its attributes, and the types of operands
// and result; the verifier decides which of them exist. Rows and types that are new to Heddle are
// cases without anything said about them here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/builder.h"

namespace heddle::vectors {

struct Case {
  ir::Opcode opcode{};
  std::vector<ir::Attr> attrs;
  std::vector<ir::Scalar> operands;
  ir::Scalar result = ir::Scalar::kNone;
  std::string name;  // tells it from all others
};

// Of these ops.
std::vector<ir::Opcode> recorded_ops();
// In the order of ops.def.
std::vector<Case> all_cases();

// The op on these values.
ir::ValueId apply(ir::Builder& b, const Case& c, absl::Span<const ir::ValueId> operands);

// The element type that decides what the op computes with: see fold_scalar.h.
ir::Scalar working_type(const Case& c);

}  // namespace heddle::vectors
