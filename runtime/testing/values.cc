#include "heddle/runtime/testing/values.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/text/literal.h"

namespace heddle::filetest {
namespace {

constexpr int64_t kMostElements = 1 << 24;

Status wrong(absl::string_view text, absl::string_view why) {
  return InvalidArgumentError(absl::StrCat("'", text, "' ", why));
}

// "2x4"
StatusOr<std::vector<int64_t>> shape_from(absl::string_view text) {
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0 || extent > kMostElements) {
      return wrong(text, "is no shape such as 8 or 2x4");
    }
    extents.push_back(extent);
    count *= extent;
    if (count > kMostElements) return wrong(text, "has too many elements for a test");
  }
  return extents;
}

int64_t count_of(const std::vector<int64_t>& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

Status append_nested(ir::Scalar scalar, absl::string_view text, size_t depth, ElementList& list) {
  if (!absl::ConsumePrefix(&text, "[")) {
    if (depth != list.extents.size()) return wrong(text, "stands at another depth than the rest");
    const StatusOr<Element> element = element_from(scalar, text);
    if (!element.ok()) return element.status();
    list.elements.push_back(*element);
    return OkStatus();
  }
  if (!absl::ConsumeSuffix(&text, "]")) return wrong(text, "lacks its ']'");
  const std::vector<absl::string_view> parts = split_outside(text);
  const auto extent = static_cast<int64_t>(parts.size());
  if (depth == list.extents.size() && list.elements.empty()) list.extents.push_back(extent);
  if (depth >= list.extents.size() || list.extents[depth] != extent) {
    return wrong(text, "has another number of elements than its neighbours");
  }
  for (const absl::string_view part : parts) {
    if (Status s = append_nested(scalar, part, depth + 1, list); !s.ok()) return s;
  }
  return OkStatus();
}

uint64_t infinity(ir::Scalar scalar, bool negative) {
  const double infinite = std::numeric_limits<double>::infinity();
  return ir::float_bits(scalar, negative ? -infinite : infinite);
}

StatusOr<ElementList> iota(ir::Scalar scalar, ElementList list, absl::string_view from) {
  int64_t first = 0;
  if (!from.empty() && !absl::SimpleAtoi(from, &first)) return wrong(from, "is no whole number");
  for (int64_t i = 0; i < count_of(list.extents); ++i) {
    const StatusOr<Element> element = element_from(scalar, absl::StrCat(first + i));
    if (!element.ok()) return element.status();
    list.elements.push_back(*element);
  }
  return list;
}

}  // namespace

std::vector<absl::string_view> split_outside(absl::string_view text, char separator) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') quoted = !quoted;
    if (quoted) continue;
    if (absl::StrContains("([<", text[i])) ++depth;
    if (absl::StrContains(")]>", text[i])) --depth;
    if (text[i] != separator || depth != 0) continue;
    parts.push_back(absl::StripAsciiWhitespace(text.substr(start, i - start)));
    start = i + 1;
  }
  const absl::string_view last = absl::StripAsciiWhitespace(text.substr(start));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

StatusOr<Element> element_from(ir::Scalar scalar, absl::string_view text) {
  if (text == "?") return Element{Element::Kind::kAny, 0};
  if (ir::is_float(scalar)) {
    if (text == "inf" || text == "-inf")
      return Element{Element::Kind::kBits, infinity(scalar, text[0] == '-')};
    if (text == "nan") {
      return Element{Element::Kind::kNan, ir::float_bits(scalar, std::nan(""))};
    }
    if (text == "-0" || text == "-0.0") {
      return Element{Element::Kind::kBits, uint64_t{1} << (ir::info(scalar).bits - 1)};
    }
  }
  const StatusOr<uint64_t> bits = ir::literal_from_string(scalar, text);
  if (!bits.ok())
    return wrong(text,
                 absl::StrCat("is no ", ir::info(scalar).name, ": ", bits.status().message()));
  return Element{Element::Kind::kBits, *bits};
}

StatusOr<ElementList> list_from(ir::Scalar scalar, absl::string_view text) {
  ElementList list;
  if (absl::StartsWith(text, "[")) {
    const Status status = append_nested(scalar, text, 0, list);
    if (!status.ok()) return status;
    return list;
  }
  const size_t open = text.find('(');
  if (open == text.npos || !absl::EndsWith(text, ")")) {
    return wrong(text, "is no list; write [1, 2], iota(8), fill(8, 1.5) or unwritten(8)");
  }
  const absl::string_view word = text.substr(0, open);
  const std::vector<absl::string_view> inside =
      split_outside(text.substr(open + 1, text.size() - open - 2));
  const StatusOr<std::vector<int64_t>> shape = shape_from(inside.empty() ? "" : inside[0]);
  if (!shape.ok()) return shape.status();
  list.extents = *shape;
  const auto count = static_cast<size_t>(count_of(list.extents));
  if (word == "iota" && inside.size() <= 2)
    return iota(scalar, list, inside.size() == 2 ? inside[1] : "");
  if (word == "unwritten" && inside.size() == 1) {
    list.written = false;
    list.elements.resize(count);
    return list;
  }
  if (word != "fill" || inside.size() != 2) {
    return wrong(text, "is no list; write [1, 2], iota(8), fill(8, 1.5) or unwritten(8)");
  }
  const StatusOr<Element> element = element_from(scalar, inside[1]);
  if (!element.ok()) return element.status();
  list.elements.assign(count, *element);
  return list;
}

StatusOr<Bound> bound_from(absl::string_view text) {
  Bound bound;
  bound.unit = absl::ConsumeSuffix(&text, " ulp") ? Bound::Unit::kUlp : Bound::Unit::kAbsolute;
  if (!absl::SimpleAtod(text, &bound.amount) || !(bound.amount > 0)) {
    return wrong(text, "is no bound; write 'within 2 ulp' or 'within 1e-3'");
  }
  return bound;
}

bool matches(ir::Scalar scalar, uint64_t bits, const Element& expected, const Bound& bound) {
  if (expected.kind == Element::Kind::kAny) return true;
  if (expected.kind == Element::Kind::kNan) return std::isnan(ir::float_value(scalar, bits));
  if (bits == expected.bits || bound.unit == Bound::Unit::kExact) return bits == expected.bits;
  if (!ir::is_float(scalar)) return false;
  const double value = ir::float_value(scalar, bits);
  const double wanted = ir::float_value(scalar, expected.bits);
  double most = bound.amount;
  if (bound.unit == Bound::Unit::kUlp) {
    // The distance to the next number away from zero.
    most *= std::abs(ir::float_value(scalar, expected.bits + 1) - wanted);
  }
  return std::abs(value - wanted) <= most;
}

std::string to_string(ir::Scalar scalar, const Element& element) {
  if (element.kind == Element::Kind::kAny) return "?";
  if (element.kind == Element::Kind::kNan) return "nan";
  return ir::literal_to_string(scalar, element.bits);
}

}  // namespace heddle::filetest
