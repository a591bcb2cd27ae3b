// Constants as text: what stands after `const` in the text form.
//
//   literal_to_string(Scalar::kF32, 0x3F000000) == "0.5"
//   literal_to_string(Scalar::kF32, 0x7FC00000) == "0x7fc00000"      // a NaN
//   literal_from_string(Scalar::kI32, "-1").value() == 0xFFFFFFFF
//
// Integers are decimal, bools `true` and `false`. Floats are the shortest decimal that reads back
// as the same bits; NaNs, infinities, -0, and bits that are not the type's, are hexadecimal bits.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// How many bits of a constant of this type may be set: a bool has one.
int value_bits(Scalar scalar);

// `bits` is an element's bit pattern, zero-extended.
std::string literal_to_string(Scalar scalar, uint64_t bits);

// The bits of what literal_to_string prints, or of any decimal number or 0x bits in range. A
// decimal is rounded to nearest. The error says why `text` is no value of the type.
StatusOr<uint64_t> literal_from_string(Scalar scalar, absl::string_view text);

}  // namespace heddle::ir
