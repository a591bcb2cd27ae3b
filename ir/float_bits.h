// The numbers of every float type, as doubles, which hold them all.
//
//   float_value(Scalar::kF16, 0x3C00) == 1.0
//   float_bits(Scalar::kE4M3, 1e9) == 0x7E      // rounded once, as conversions are (ops.def)
#pragma once

#include <cstdint>

#include "heddle/ir/type.h"

namespace heddle::ir {

// `scalar` is a float type; `bits` are an element's, zero-extended.
double float_value(Scalar scalar, uint64_t bits);
uint64_t float_bits(Scalar scalar, double value);

}  // namespace heddle::ir
