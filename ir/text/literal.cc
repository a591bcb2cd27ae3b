#include "heddle/ir/text/literal.h"

#include <cmath>
#include <optional>

#include "absl/base/casts.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "heddle/ir/check.h"
#include "heddle/ir/float_bits.h"

namespace heddle::ir {
namespace {

// Digits that tell any two numbers of the widest type apart.
constexpr int kMaxDigits = 17;

uint64_t all_ones(Scalar scalar) { return ~uint64_t{0} >> (64 - value_bits(scalar)); }

// The nearest value of a float type; nullopt where `text` is no finite decimal number.
std::optional<uint64_t> float_from_text(Scalar scalar, absl::string_view text) {
  const absl::string_view digits = absl::StripPrefix(text, "-");
  if (digits.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(digits[0]))) {
    return std::nullopt;  // SimpleAtod also reads "inf" and "nan"
  }
  double wide = 0;
  if (!absl::SimpleAtod(text, &wide)) return std::nullopt;
  if (scalar != Scalar::kF32) return float_bits(scalar, wide);
  float narrow = 0;  // by way of a double it would be rounded twice
  if (!absl::SimpleAtof(text, &narrow)) return std::nullopt;
  return absl::bit_cast<uint32_t>(narrow);
}

std::string float_to_literal(Scalar scalar, uint64_t bits) {
  const double value = float_value(scalar, bits);
  const bool negative_zero = value == 0 && std::signbit(value);
  if (std::isfinite(value) && !negative_zero) {
    for (int digits = 1; digits <= kMaxDigits; ++digits) {
      std::string text = absl::StrFormat("%.*g", digits, value);
      if (float_from_text(scalar, text) != bits) continue;
      if (text.find_first_of(".e") == std::string::npos) absl::StrAppend(&text, ".0");
      return text;
    }
  }
  return absl::StrFormat("0x%0*x", info(scalar).bits / 4, bits);
}

std::optional<uint64_t> integer_bits(Scalar scalar, absl::string_view text) {
  if (is_signed(scalar)) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
    const int unused = 64 - value_bits(scalar);
    if (value << unused >> unused != value) return std::nullopt;
    return static_cast<uint64_t>(value) & all_ones(scalar);
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value > all_ones(scalar)) return std::nullopt;
  return value;
}

}  // namespace

int value_bits(Scalar scalar) { return scalar == Scalar::kBool ? 1 : info(scalar).bits; }

std::string literal_to_string(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::kNone || bits > all_ones(scalar)) return absl::StrFormat("0x%x", bits);
  if (scalar == Scalar::kBool) return bits != 0 ? "true" : "false";
  if (is_float(scalar)) return float_to_literal(scalar, bits);
  if (!is_signed(scalar)) return absl::StrCat(bits);
  const int unused = 64 - value_bits(scalar);
  return absl::StrCat(static_cast<int64_t>(bits << unused) >> unused);
}

StatusOr<uint64_t> literal_from_string(Scalar scalar, absl::string_view text) {
  if (scalar == Scalar::kNone) return InvalidArgumentError("this type has no constants");
  const absl::string_view type = info(scalar).name;
  if (absl::StartsWith(text, "0x")) {
    uint64_t bits = 0;
    if (!absl::SimpleHexAtoi(text, &bits)) {
      return InvalidArgumentError(absl::StrCat("'", text, "' is not a hexadecimal number"));
    }
    if (bits > all_ones(scalar)) {
      return InvalidArgumentError(absl::StrCat("'", text, "' has more bits than ", type,
                                               ", which has ", value_bits(scalar)));
    }
    return bits;
  }
  if (scalar == Scalar::kBool) {
    if (text == "true") return uint64_t{1};
    if (text == "false") return uint64_t{0};
    return InvalidArgumentError(absl::StrCat("'", text, "' is not a bool; write true or false"));
  }
  const std::optional<uint64_t> bits =
      is_float(scalar) ? float_from_text(scalar, text) : integer_bits(scalar, text);
  if (!bits) {
    return InvalidArgumentError(absl::StrCat("'", text, "' is not a value of ", type));
  }
  if (is_float(scalar) && std::isinf(float_value(scalar, *bits))) {
    return InvalidArgumentError(absl::StrCat("'", text, "' is too large for ", type,
                                             "; write infinity as its bits, ",
                                             float_to_literal(scalar, *bits)));
  }
  return *bits;
}

}  // namespace heddle::ir
