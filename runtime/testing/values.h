// Lists of elements, as `execute` and `expect` write them.
//
//   [1, 2.5, -inf, nan, 0x80, ?]      nested for several modes: [[1, 2], [3, 4]]
//   iota(8)  iota(2x4, 10)            0, 1, … or from 10 on
//   fill(8, 1.5)                      one element everywhere
//   unwritten(8)                      memory that nobody has written
//
// Elements are literals of the type (ir/text/literal.h). `nan` is any NaN where it is expected; `?`, which
// is only expected, is anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/ir/type.h"

namespace heddle::filetest {

struct Element {
  enum class Kind : uint8_t { kBits, kNan, kAny };
  Kind kind = Kind::kBits;
  uint64_t bits = 0;
};

struct ElementList {
  std::vector<int64_t> extents;
  std::vector<Element> elements;  // row-major
  bool written = true;
};

// Parts of a text between commas that stand in no brackets or backticks, without spaces around them.
std::vector<absl::string_view> split_outside(absl::string_view text, char separator = ',');

StatusOr<Element> element_from(ir::Scalar scalar, absl::string_view text);
StatusOr<ElementList> list_from(ir::Scalar scalar, absl::string_view text);

// How far an element may be from what is expected.
struct Bound {
  enum class Unit : uint8_t { kExact, kAbsolute, kUlp };
  Unit unit = Unit::kExact;
  double amount = 0;
};
// "2 ulp" or "1e-3".
StatusOr<Bound> bound_from(absl::string_view text);

bool matches(ir::Scalar scalar, uint64_t bits, const Element& expected, const Bound& bound);
std::string to_string(ir::Scalar scalar, const Element& element);

}  // namespace heddle::filetest
