#include "heddle/tools/elements.h"

#include <cstdint>
#include <cstring>

#include "heddle/ir/check.h"
#include "heddle/ir/float_bits.h"

namespace heddle::tools {
namespace {

using ir::Scalar;

// An element's number; of a pair of numbers, its bits. Little-endian, as GPUs and their hosts are.
double real_of(Scalar scalar, uint64_t bits) {
  if (ir::is_float(scalar)) return ir::float_value(scalar, bits);
  if (!ir::is_signed(scalar)) return static_cast<double>(bits);
  return static_cast<double>(ir::number_of(scalar, bits));
}

}  // namespace

std::vector<double> to_doubles(Scalar dtype, absl::Span<const std::byte> bytes) {
  HEDDLE_CHECK(dtype != Scalar::kNone, "a tensor has an element type");
  const auto size = static_cast<size_t>(ir::bytes_of(dtype));
  std::vector<double> out(bytes.size() / size);
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    out[i] = real_of(dtype, bits);
  }
  return out;
}

void from_doubles(Scalar float_type, absl::Span<const double> values, absl::Span<std::byte> bytes) {
  HEDDLE_CHECK(ir::is_float(float_type), "only floats are made from doubles");
  const auto size = static_cast<size_t>(ir::bytes_of(float_type));
  HEDDLE_CHECK(bytes.size() == values.size() * size, "the room must be exact");
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = ir::float_bits(float_type, values[i]);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
}

}  // namespace heddle::tools
