// Pictures of layouts: people would rather look than read.
//
//   std::cout << layout_table(make_layout({2, {2, 2}}, {4, {2, 1}}));
//
// A picture has a row for each index of mode 0 and a column for each of mode 1, counted through
// column-major where a mode is itself a tuple; a layout of one mode is one row. There has to be no
// unknown number in it, and no more than kMostDrawn cells.
#pragma once

#include <string>

#include "heddle/dsl/layout/layout.h"

namespace heddle {

inline constexpr int kMostDrawn = 1 << 16;

// The indices as text, as CuTe's print_layout() shows them. "error: …" where that cannot be.
std::string layout_table(const Layout& layout);

}  // namespace heddle
