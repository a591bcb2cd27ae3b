#include "heddle/dsl/tensor/draw_atom.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/picture_internal.h"
#include "heddle/ir/type.h"

namespace heddle {

namespace {

constexpr int kRowBits = 128;

}  // namespace

std::string copy_atom_svg(const CopyAtom& atom) {
  if (!atom.ok()) return absl::StrCat("error: ", atom.error(), "\n");
  const int bits = 8 * ir::bytes_of(atom.scalar());
  const int rows = std::max(1, 8 * atom.matrices());
  const auto elements = static_cast<int>(cosize(atom.reference()).value());
  const int columns = atom.matrices() > 0 ? kRowBits / bits : elements;
  // Rows of each matrix, which so are set apart.
  const IntTuple matrices = atom.matrices() > 1 ? IntTuple{8, atom.matrices()} : IntTuple(rows);
  // Elements are counted along rows, a picture's cells along columns.
  const Layout cells = make_layout({columns, rows}, {rows, 1});
  detail::Panels panels;
  for (const bool source : {true, false}) {
    const Layout& side = source ? atom.source() : atom.destination();
    const std::string panel = layout_svg(
        composition(cells, side),
        {.tile = IntTuple{matrices, columns},
         .caption = absl::StrCat(source ? "source: " : "destination: ", side.to_string())});
    int width = 0, height = 0;
    if (!detail::Panels::size_of(panel, &width, &height)) return panel;
    // Side by side where they are high, else one below the other.
    const bool beside = rows > 1;
    panels.add(panel, beside ? panels.width() : 0, beside ? 0 : panels.height());
  }
  return panels.svg();
}

CopyAtom parse_copy_atom(const std::string& name, int element_bits) {
  struct Width {
    int bits;
    ir::Scalar scalar;
  };
  constexpr Width kWidths[] = {
      {8, ir::Scalar::kU8}, {16, ir::Scalar::kU16}, {32, ir::Scalar::kU32}, {64, ir::Scalar::kU64}};
  const auto width = std::find_if(std::begin(kWidths), std::end(kWidths),
                                  [&](const Width& w) { return w.bits == element_bits; });
  const ir::Scalar scalar = width == std::end(kWidths) ? ir::Scalar::kU32 : width->scalar;
  if (width == std::end(kWidths)) {
    return CopyAtom(detail::fail_layout({}, absl::StrCat("elements of ", element_bits, " bits"),
                                        "a copy's elements have 8, 16, 32 or 64"));
  }
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  const bool transpose = parts.back() == "trans";
  if (transpose) parts.pop_back();
  int number = 0;
  const bool counted =
      parts.size() >= 2 &&
      absl::SimpleAtoi(parts.back()[0] == 'x' ? parts.back().substr(1) : parts.back(), &number);
  if (counted) parts.pop_back();
  const std::string op = absl::StrJoin(parts, ".");
  if (counted && op == "universal" && !transpose)
    return CopyAtom(scalar, CopyUniversal{number}, {});
  if (counted && op == "cp.async" && !transpose) return CopyAtom(scalar, CopyAsync{number}, {});
  if (counted && op == "ldmatrix") return CopyAtom(scalar, LdMatrix{number, transpose}, {});
  if (counted && op == "stmatrix") return CopyAtom(scalar, StMatrix{number, transpose}, {});
  return CopyAtom(detail::fail_layout(
      {}, absl::StrCat("no copy atom is named '", name, "'"),
      "there are universal.BITS, cp.async.BITS, ldmatrix.xN and stmatrix.xN, these with .trans "
      "behind them where elements of 16 bits are transposed"));
}

}  // namespace heddle
