// Pictures of layouts: tables in text, SVG and HTML.
//
//   std::cout << layout_table(make_layout({2, {2, 2}}, {4, {2, 1}}));
//   std::ofstream("tile.svg") << layout_svg(tile, {.bank_bits = 16});
//   const auto [tiler, tv] = make_layout_tv(threads, values);
//   std::ofstream("copy.html") << layout_html(tv, {.tile = tiler});
//
// A picture has a row for each index of mode 0 and a column for each of mode 1; a layout of one
// mode is one row. A mode that is itself a tuple is counted column-major: coordinates stand beside the
// numbers, and thicker lines separate the tiles, which begin where an inner mode starts again at 0. A
// layout with an unknown number, or with more than kMostDrawn cells, gives "error: …".
#pragma once

#include <optional>
#include <string>

#include "heddle/dsl/layout/layout.h"

namespace heddle {

// The most cells that a picture may have.
inline constexpr int kMostDrawn = 1 << 14;

// What a picture shows besides the indices.
struct DrawOptions {
  // The layout is from (thread, value) to the column-major index in a tile of this shape: each of
  // the tile's cells shows which thread has it as which value, in the thread's colour.
  std::optional<IntTuple> tile = {};
  // What has the tile's values, where it is no thread; its first letter stands in the cells.
  std::string owner = "thread";
  // The layout is of shared memory, with elements of so many bits: cells have the number and the
  // colour of their (first) bank, and the margins say how many turns a warp takes to read the first
  // 32 elements of a row or column at once: green where these are as few as so many words need,
  // orange up to twice as many, red above. 0: it is not.
  int bank_bits = 0;
  // Above the picture; empty: what the layout is.
  std::string caption = {};
};

// A picture in text: the indices as CuTe's print_layout() shows them, with # and = between tiles.
std::string layout_table(const Layout& layout, const DrawOptions& options = {});
// A picture in SVG, and an HTML page, on which pointing at a cell shows its coordinate, index and
// bank.
std::string layout_svg(const Layout& layout, const DrawOptions& options = {});
std::string layout_html(const Layout& layout, const DrawOptions& options = {});

}  // namespace heddle
