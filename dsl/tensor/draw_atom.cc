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
#include "heddle/dsl/mma/smem_box.h"
#include "heddle/ir/type.h"

namespace heddle {

namespace {

constexpr int kRowBits = 128;
constexpr char kError[] = "error: ";

std::string page_unless_wrong(const std::string& title, const std::string& svg) {
  return svg.rfind(kError, 0) == 0 ? svg : detail::page_of(title, svg);
}

// From (box, place in it) to the column-major index in a tile of one or two modes.
Layout cells_of(const detail::BoxGrid& grid, int contiguous) {
  IntTuple counts, steps, extents, strides;
  for (int mode = 0; mode < grid.modes; ++mode) {
    const int64_t stride = mode == 0 ? 1 : grid.extent(0);
    counts = append(counts, grid.counts[mode]);
    steps = append(steps, grid.box[mode] * stride);
    // The contiguous mode is counted first.
    const bool is_first = mode == contiguous;
    extents = is_first ? prepend(extents, grid.box[mode]) : append(extents, grid.box[mode]);
    strides = is_first ? prepend(strides, stride) : append(strides, stride);
  }
  return make_layout(make_layout(counts, steps), make_layout(extents, strides));
}

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

std::string copy_atom_html(const CopyAtom& atom) {
  return page_unless_wrong("a copy atom", copy_atom_svg(atom));
}

std::string boxes_text(const Layout& tile, ir::Scalar scalar) {
  const SmemBox box = detail::box_of(tile, scalar, {});
  if (!box.ok()) return absl::StrCat(kError, box.error(), "\n");
  const detail::BoxGrid grid(tile, box);
  const int64_t bytes = ir::bytes_of(scalar);
  std::string text = absl::StrCat(
      "boxes of ", box.extents.to_string(), ", ", size(box.extents).value() * bytes, " bytes, ",
      box.swizzle == 0 ? "no swizzle" : absl::StrCat("a swizzle of ", box.swizzle, " bytes"), "\n");
  for (int64_t number = 0; number < box.count; ++number) {
    const IntTuple first = grid.first(number);
    absl::StrAppend(&text, first.to_string(), ": byte ",
                    tile.outer()(first).value().value() * bytes, "\n");
  }
  return text;
}

std::string boxes_svg(const Layout& tile, ir::Scalar scalar) {
  const SmemBox box = detail::box_of(tile, scalar, {});
  if (!box.ok()) return absl::StrCat(kError, box.error(), "\n");
  const detail::BoxGrid grid(tile, box);
  if (grid.modes > 2) return absl::StrCat(kError, "a picture shows two modes; slice the tile\n");
  IntTuple shape;
  for (int mode = 0; mode < grid.modes; ++mode) shape = append(shape, grid.extent(mode));
  return layout_svg(
      cells_of(grid, box.contiguous),
      {.tile = shape, .owner = "box", .caption = absl::StrCat("boxes of ", tile.to_string())});
}

std::string boxes_html(const Layout& tile, ir::Scalar scalar) {
  return page_unless_wrong("boxes of the copy engine", boxes_svg(tile, scalar));
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
