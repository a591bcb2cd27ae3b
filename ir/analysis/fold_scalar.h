// What an op makes of constant elements, by ops.def and by nothing else: the interpreter and the
// GPU have their own accounts of the same semantics, and tests hold the three against each other.
//
//   const uint64_t bits[] = {0x3F800000, 0x40000000};                        // 1.0f, 2.0f
//   fold_scalar(Opcode::kAdd, Scalar::kF32, Scalar::kF32, bits)              // 0x40400000
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// Whether ops.def says what the result is: it leaves integer division by zero, INT_MIN / -1 and
// their remainders open. Operands as fold_scalar has them.
bool is_specified(Opcode opcode, Scalar operand, absl::Span<const uint64_t> bits);

// Whether fold_scalar knows the op at all: those that work on elements, approximate ones apart.
bool can_fold_scalar(Opcode opcode);

// Which operand's element type fold_scalar asks for: the first in the row's role T, or the first
// where none has it (conversions).
size_t typed_operand(Opcode opcode);

// The result's bits, zero-extended. `operand` is the element type of the typed operand, `result`
// that of the result. Bits of a shift's count are u32, of a choice's condition bool.
//
// nullopt: the result is unspecified or approximate, or a NaN that the op makes up, whose bits are
// unspecified; or the op is none that works on elements.
std::optional<uint64_t> fold_scalar(Opcode opcode, Scalar operand, Scalar result,
                                    absl::Span<const uint64_t> bits);

}  // namespace heddle::ir
