#include "heddle/tools/elements.h"

#include <cstdint>
#include <cstring>

#include "heddle/ir/check.h"
#include "heddle/ir/float16.h"
#include "heddle/ir/float8.h"

namespace heddle::tools {
namespace {

using ir::Scalar;

template <class T, class Convert>
void convert_each(absl::Span<const std::byte> bytes, std::vector<double>& out, Convert&& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(element);
  }
}

template <class T, class Convert>
void store_each(absl::Span<const double> values, absl::Span<std::byte> bytes, Convert&& convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
}

template <class T>
double widen(T element) {
  return static_cast<double>(element);
}

}  // namespace

std::vector<double> to_doubles(Scalar dtype, absl::Span<const std::byte> bytes) {
  HEDDLE_CHECK(dtype != Scalar::kNone, "a tensor has an element type");
  std::vector<double> out(bytes.size() / ir::bytes_of(dtype));
  switch (dtype) {
    case Scalar::kNone:
      break;
    case Scalar::kBool:
      convert_each<uint8_t>(bytes, out, widen<uint8_t>);
      break;
    case Scalar::kI8:
      convert_each<int8_t>(bytes, out, widen<int8_t>);
      break;
    case Scalar::kU8:
      convert_each<uint8_t>(bytes, out, widen<uint8_t>);
      break;
    case Scalar::kI16:
      convert_each<int16_t>(bytes, out, widen<int16_t>);
      break;
    case Scalar::kU16:
      convert_each<uint16_t>(bytes, out, widen<uint16_t>);
      break;
    case Scalar::kI32:
      convert_each<int32_t>(bytes, out, widen<int32_t>);
      break;
    case Scalar::kU32:
      convert_each<uint32_t>(bytes, out, widen<uint32_t>);
      break;
    case Scalar::kI64:
      convert_each<int64_t>(bytes, out, widen<int64_t>);
      break;
    case Scalar::kU64:
      convert_each<uint64_t>(bytes, out, widen<uint64_t>);
      break;
    case Scalar::kE4M3:
      convert_each<uint8_t>(bytes, out, ir::e4m3_to_float);
      break;
    case Scalar::kE5M2:
      convert_each<uint8_t>(bytes, out, ir::e5m2_to_float);
      break;
    case Scalar::kE8M0:
      convert_each<uint8_t>(bytes, out, ir::e8m0_to_float);
      break;
    case Scalar::kE2M1X2:  // two numbers: their bits
      convert_each<uint8_t>(bytes, out, widen<uint8_t>);
      break;
    case Scalar::kF16:
      convert_each<uint16_t>(bytes, out, ir::f16_to_float);
      break;
    case Scalar::kBF16:
      convert_each<uint16_t>(bytes, out, ir::bf16_to_float);
      break;
    case Scalar::kF32:
      convert_each<float>(bytes, out, widen<float>);
      break;
    case Scalar::kF64:
      convert_each<double>(bytes, out, widen<double>);
      break;
  }
  return out;
}

void from_doubles(Scalar float_type, absl::Span<const double> values, absl::Span<std::byte> bytes) {
  HEDDLE_CHECK(ir::is_float(float_type), "only floats are made from doubles");
  HEDDLE_CHECK(bytes.size() == values.size() * ir::bytes_of(float_type), "the room must be exact");
  if (float_type == Scalar::kE4M3) {
    store_each<uint8_t>(values, bytes, ir::double_to_e4m3);
  } else if (float_type == Scalar::kE5M2) {
    store_each<uint8_t>(values, bytes, ir::double_to_e5m2);
  } else if (float_type == Scalar::kE8M0) {
    store_each<uint8_t>(values, bytes, [](double v) { return ir::double_to_e8m0(v); });
  } else if (float_type == Scalar::kF16) {
    store_each<uint16_t>(values, bytes, ir::double_to_f16);
  } else if (float_type == Scalar::kBF16) {
    store_each<uint16_t>(values, bytes, ir::double_to_bf16);
  } else if (float_type == Scalar::kF32) {
    store_each<float>(values, bytes, [](double v) { return static_cast<float>(v); });
  } else {
    store_each<double>(values, bytes, [](double v) { return v; });
  }
}

}  // namespace heddle::tools
