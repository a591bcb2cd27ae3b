// Whether two accounts of a result agree, by what ops.def fixes of it.
#pragma once

#include <optional>
#include <string>

#include "vectors/case.h"
#include "vectors/inputs.h"

namespace heddle::vectors {

// Whether the bits are a NaN of a float type.
bool is_nan(ir::Scalar scalar, uint64_t bits);
// Whether the case's result is an operand's bits, also of a NaN: it is compared by them.
bool passes_bits(const Case& c);

// Whether ops.def leaves the result for these operands open.
bool is_unspecified(const Case& c, const Column& operands);
// Whether the folder must compute every result that is specified and no NaN; it must compute none
// otherwise.
bool is_folded(const Case& c);

// What a result must be like, in words; empty where `got` is. For exact ops that is what was
// recorded; for approximate ones, what the bound of ops.def allows.
std::string complaint(const Case& c, const Column& operands, uint64_t recorded, uint64_t got);

// "add f32 f32 -> f32 of 0x3f800000 (1), 0x7fc00000 (NaN)"
std::string describe(const Case& c, const Column& operands);
std::string describe(ir::Scalar scalar, uint64_t bits);

}  // namespace heddle::vectors
