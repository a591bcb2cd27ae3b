#include "heddle/ir/float_bits.h"

#include <array>
#include <bit>

#include "heddle/ir/check.h"
#include "heddle/ir/float16.h"
#include "heddle/ir/float8.h"
#include "heddle/ir/tfloat32.h"

namespace heddle::ir {
namespace {

struct Format {
  Scalar scalar = Scalar::kNone;
  double (*value)(uint64_t bits) = nullptr;
  uint64_t (*bits)(double value) = nullptr;
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
    {Scalar::kTF32, [](uint64_t b) { return double{tf32_to_float(static_cast<uint32_t>(b))}; },
     [](double v) { return uint64_t{double_to_tf32(v)}; }},
    {Scalar::kF32,
     [](uint64_t b) { return double{std::bit_cast<float>(static_cast<uint32_t>(b))}; },
     [](double v) { return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(v))}; }},
    {Scalar::kF64, [](uint64_t b) { return std::bit_cast<double>(b); },
     [](double v) { return std::bit_cast<uint64_t>(v); }},
};

// By Scalar; empty for others than floats.
constexpr auto kByScalar = [] {
  std::array<Format, kScalarCount> table{};
  for (const Format& format : kFormats) table[static_cast<size_t>(format.scalar)] = format;
  for (int i = 0; i < kScalarCount; ++i) {
    const bool has_format = table[static_cast<size_t>(i)].value != nullptr;
    if (is_float(static_cast<Scalar>(i)) != has_format) throw "a float type has no numbers";
  }
  return table;
}();

const Format& format_of(Scalar scalar) {
  const Format& format = kByScalar[static_cast<size_t>(scalar)];
  HEDDLE_CHECK(format.value != nullptr, "not a float type");
  return format;
}

}  // namespace

double float_value(Scalar scalar, uint64_t bits) { return format_of(scalar).value(bits); }
uint64_t float_bits(Scalar scalar, double value) { return format_of(scalar).bits(value); }

}  // namespace heddle::ir
