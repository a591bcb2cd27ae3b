// The 16-bit float formats on the host: exact to float, rounded to nearest even from it.
//
//   uint16_t bits = float_to_bf16(0.1f);
//   float back = bf16_to_float(bits);
#pragma once

#include <cstdint>

namespace heddle::ir {

// Every f16 and bf16 value is a float. NaNs keep the payload that fits.
float f16_to_float(uint16_t bits);
float bf16_to_float(uint16_t bits);

// Rounds once, to nearest even. Too large a number becomes infinity; a NaN stays one.
uint16_t float_to_f16(float value);
uint16_t float_to_bf16(float value);

}  // namespace heddle::ir
