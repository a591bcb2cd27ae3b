#include "heddle/dsl/layout/draw.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace heddle {
namespace {

// A layout as rows and columns.
struct Grid {
  Layout layout;
  int rows = 0;
  int columns = 0;
  std::string error;

  IntTuple at(int row, int column) const {
    return rank(layout) == 1 ? layout(column) : layout({row, column});
  }
};

Grid grid_of(const Layout& layout) {
  Grid grid;
  grid.layout = layout;
  const auto refuse = [&](const std::string& why) {
    grid.error = absl::StrCat("error: ", why);
    return grid;
  };
  if (!layout.ok()) return refuse(layout.error());
  if (!is_static(layout)) return refuse(layout.to_string() + " has numbers that are not known yet");
  if (rank(layout) > 2) {
    return refuse(absl::StrCat(layout.to_string(), " has ", rank(layout),
                               " modes; group_modes() makes them two"));
  }
  const SymInt count = size(layout);
  if (!count.is_constant() || count.value() < 1 || count.value() > kMostDrawn) {
    return refuse(
        absl::StrCat(layout.to_string(), " is too large to draw: at most ", kMostDrawn, " cells"));
  }
  const bool row = rank(layout) == 1;
  grid.rows = row ? 1 : static_cast<int>(size(get(layout.shape(), 0)).value());
  grid.columns = static_cast<int>(count.value()) / grid.rows;
  return grid;
}

}  // namespace

std::string layout_table(const Layout& layout) {
  const Grid grid = grid_of(layout);
  if (!grid.error.empty()) return grid.error + "\n";
  std::vector<std::string> cells;
  size_t width = absl::StrCat(grid.columns - 1).size();
  for (int m = 0; m < grid.rows; ++m) {
    for (int n = 0; n < grid.columns; ++n) {
      cells.push_back(grid.at(m, n).to_string());
      width = std::max(width, cells.back().size());
    }
  }
  const int cell = static_cast<int>(width);
  const int margin = static_cast<int>(absl::StrCat(grid.rows - 1).size());
  std::string text = layout.to_string() + "\n" + std::string(margin + 2, ' ');
  for (int n = 0; n < grid.columns; ++n) absl::StrAppendFormat(&text, " %*d ", cell + 1, n);
  std::string rule = std::string(margin + 2, ' ');
  for (int n = 0; n < grid.columns; ++n) rule += "+" + std::string(width + 2, '-');
  rule += "+\n";
  absl::StrAppend(&text, "\n", rule);
  for (int m = 0; m < grid.rows; ++m) {
    absl::StrAppendFormat(&text, "%*d  ", margin, m);
    for (int n = 0; n < grid.columns; ++n) {
      absl::StrAppendFormat(&text, "| %*s ", cell,
                            cells[static_cast<size_t>(m * grid.columns + n)]);
    }
    absl::StrAppend(&text, "|\n", rule);
  }
  return text;
}

}  // namespace heddle
