#include "heddle/ir/float16.h"

#include "absl/base/casts.h"

namespace heddle::ir {
namespace {

// Drops `dropped` low bits of a magnitude, rounding to nearest even. A carry runs into the
// exponent, which is what it should do.
uint32_t round_off(uint32_t magnitude, int dropped) {
  const uint32_t half = uint32_t{1} << (dropped - 1);
  const uint32_t odd = (magnitude >> dropped) & 1;
  return (magnitude + half - 1 + odd) >> dropped;
}

constexpr uint32_t kInfinity = 0x7F800000;

}  // namespace

float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7FFF;
  if (magnitude >= 0x7C00)
    return absl::bit_cast<float>(sign | kInfinity | (magnitude & 0x3FF) << 13);
  // The exponent's bias moves from 15 to 127; a product by a power of two does so for subnormals
  // too, exactly.
  const float scaled = absl::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return absl::bit_cast<float>(sign | absl::bit_cast<uint32_t>(scaled));
}

float bf16_to_float(uint16_t bits) {
  return absl::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = absl::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInfinity)
    return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x1FF));
  // 65520 and above round to infinity.
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  // Below 2^-14 f16 is subnormal: multiples of 2^-24, which is the last place of a float in [0.5,
  // 1).
  if (magnitude < 0x38800000) {
    const float sum = absl::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (absl::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  return static_cast<uint16_t>(sign | round_off(magnitude - (uint32_t{112} << 23), 13));
}

uint16_t float_to_bf16(float value) {
  const uint32_t bits = absl::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInfinity) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(sign | round_off(magnitude, 16));
}

}  // namespace heddle::ir
