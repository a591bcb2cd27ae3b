// What a case is applied to: numbers chosen by the case alone, so that recordings hold results
// only.
//
// Operands of 16 bits or fewer in all take every value. Otherwise: every combination, or a sample
// of them, of the values at which a type's arithmetic changes; numbers of all magnitudes, many of
// them at or beside a tie of some rounding; and operands that nearly cancel. What ops.def leaves
// unspecified is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "vectors/case.h"

namespace heddle::vectors {

// Elements' bits, zero-extended.
using Column = std::vector<uint64_t>;

// A column for each operand, all of one length.
std::vector<Column> inputs_for(const Case& c);

// FNV-1a, 64 bits.
uint64_t checksum(const std::vector<Column>& columns);

}  // namespace heddle::vectors
