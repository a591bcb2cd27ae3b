#include "fuzz/outcome.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/text/literal.h"

namespace heddle::fuzz {
namespace {

using ir::Scalar;

bool is_nan(Scalar scalar, uint64_t bits) {
  const int width = ir::info(scalar).bits;
  const int fraction = scalar == Scalar::kF64    ? 52
                       : scalar == Scalar::kF32  ? 23
                       : scalar == Scalar::kBF16 ? 7
                                                 : 10;
  const uint64_t infinity = ((uint64_t{1} << (width - 1 - fraction)) - 1) << fraction;
  return (bits & ~(uint64_t{1} << (width - 1))) > infinity;
}

uint64_t element(const std::vector<uint8_t>& bytes, size_t index, Scalar scalar) {
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(ir::bytes_of(scalar));
  std::memcpy(&bits, &bytes[index * size], size);
  return bits;
}

}  // namespace

std::string difference(const ir::Kernel& kernel, const Inputs& inputs, const Outcome& before,
                       const Outcome& after) {
  for (size_t p = 0; p < kernel.params().size(); ++p) {
    const ir::Value& value = kernel.value(kernel.params()[p].value);
    if (!value.type.is_view()) continue;
    const Scalar scalar = value.type.scalar;
    const std::vector<uint8_t>& a = before.buffers[inputs.arguments[p].buffer];
    const std::vector<uint8_t>& b = after.buffers[inputs.arguments[p].buffer];
    if (a == b) continue;
    const size_t first = inputs.arguments[p].start / static_cast<size_t>(ir::bytes_of(scalar));
    for (size_t i = 0; i < a.size() / static_cast<size_t>(ir::bytes_of(scalar)); ++i) {
      const uint64_t was = element(a, i, scalar);
      const uint64_t is = element(b, i, scalar);
      if (was == is) continue;
      if (ir::is_float(scalar) && is_nan(scalar, was) && is_nan(scalar, is)) continue;
      return absl::StrCat("%", kernel.text(value.name), "[", i - first, "] was ",
                          ir::literal_to_string(scalar, was), " and became ",
                          ir::literal_to_string(scalar, is));
    }
  }
  return "";
}

}  // namespace heddle::fuzz
