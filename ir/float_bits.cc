#include "heddle/ir/float_bits.h"

#include <bit>

#include "heddle/ir/check.h"
#include "heddle/ir/float16.h"
#include "heddle/ir/float8.h"

namespace heddle::ir {
namespace {

struct Format {
  Scalar scalar;
  double (*value)(uint64_t bits);
  uint64_t (*bits)(double value);
};
constexpr Format kFormats[] = {
    {Scalar::kE4M3, [](uint64_t b) { return double{e4m3_to_float(static_cast<uint8_t>(b))}; },
     [](double v) { return uint64_t{double_to_e4m3(v)}; }},
    {Scalar::kE5M2, [](uint64_t b) { return double{e5m2_to_float(static_cast<uint8_t>(b))}; },
     [](double v) { return uint64_t{double_to_e5m2(v)}; }},
    {Scalar::kE8M0, [](uint64_t b) { return double{e8m0_to_float(static_cast<uint8_t>(b))}; },
     [](double v) { return uint64_t{double_to_e8m0(v)}; }},
    {Scalar::kF16, [](uint64_t b) { return double{f16_to_float(static_cast<uint16_t>(b))}; },
     [](double v) { return uint64_t{double_to_f16(v)}; }},
    {Scalar::kBF16, [](uint64_t b) { return double{bf16_to_float(static_cast<uint16_t>(b))}; },
     [](double v) { return uint64_t{double_to_bf16(v)}; }},
    {Scalar::kF32,
     [](uint64_t b) { return double{std::bit_cast<float>(static_cast<uint32_t>(b))}; },
     [](double v) { return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(v))}; }},
    {Scalar::kF64, [](uint64_t b) { return std::bit_cast<double>(b); },
     [](double v) { return std::bit_cast<uint64_t>(v); }},
};

const Format& format_of(Scalar scalar) {
  for (const Format& format : kFormats) {
    if (format.scalar == scalar) return format;
  }
  check_failed(__FILE__, __LINE__, "is_float(scalar)", "not a float type");
}

}  // namespace

double float_value(Scalar scalar, uint64_t bits) { return format_of(scalar).value(bits); }
uint64_t float_bits(Scalar scalar, double value) { return format_of(scalar).bits(value); }

}  // namespace heddle::ir
