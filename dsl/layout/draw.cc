#include "heddle/dsl/layout/draw.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"

namespace heddle {
namespace {

// What a cell shows.
struct Cell {
  std::string text;
  std::string second_line;  // may be empty
  std::string title;        // when it is pointed at
  int colour = 0;           // in the palette; -1: nothing is there
};

struct Picture {
  int rows = 0;
  int columns = 0;
  std::vector<Cell> cells;  // by rows
  std::vector<std::string> row_notes, column_notes;
  std::string caption;
  bool banks = false;
  std::string error;

  Cell& at(int row, int column) {
    return cells[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                 static_cast<size_t>(column)];
  }
  const Cell& at(int row, int column) const { return const_cast<Picture*>(this)->at(row, column); }
};

Picture refused(const std::string& why) {
  Picture picture;
  picture.error = absl::StrCat("error: ", why);
  return picture;
}

// --- Grids ----------------------------------------------------------------------------------

// Why it has no rows and columns; empty where it has.
std::string why_no_grid(const Layout& layout) {
  if (!layout.ok()) return layout.error();
  if (!is_static(layout)) return layout.to_string() + " has numbers that are not known yet";
  if (rank(layout) > 2) {
    return absl::StrCat(layout.to_string(), " has ", rank(layout),
                        " modes; group_modes() makes them two");
  }
  const SymInt count = size(layout);
  if (!count.is_constant() || count.value() < 1 || count.value() > kMostDrawn) {
    return absl::StrCat(layout.to_string(), " is too large to draw: at most ", kMostDrawn,
                        " cells");
  }
  return {};
}

int rows_of(const Layout& layout) {
  return rank(layout) == 1 ? 1 : static_cast<int>(size(get(layout.shape(), 0)).value());
}
int columns_of(const Layout& layout) {
  return static_cast<int>(size(layout).value()) / rows_of(layout);
}
IntTuple index_at(const Layout& layout, int row, int column) {
  return rank(layout) == 1 ? layout(column) : layout({row, column});
}

// --- What pictures show ---------------------------------------------------------------------

constexpr int kBanks = 32;
constexpr int kBankBits = 32;
constexpr int kColours = 8;

// How many words of one bank the elements lie in, at most: the turns that a warp takes.
int turns(const std::vector<int64_t>& indices, int bits) {
  std::map<int64_t, std::set<int64_t>> words;
  for (const int64_t index : indices) {
    const int64_t word = index * bits / kBankBits;
    words[word % kBanks].insert(word);
  }
  size_t most = 0;
  for (const auto& [bank, in_bank] : words) most = std::max(most, in_bank.size());
  return static_cast<int>(most);
}

Picture picture_of_indices(const Layout& layout, const DrawOptions& options) {
  if (const std::string why = why_no_grid(layout); !why.empty()) return refused(why);
  Picture picture;
  picture.rows = rows_of(layout);
  picture.columns = columns_of(layout);
  picture.caption = layout.to_string();
  picture.banks = options.bank_bits > 0;
  picture.cells.resize(static_cast<size_t>(picture.rows) * static_cast<size_t>(picture.columns));
  std::vector<std::vector<int64_t>> by_row(static_cast<size_t>(picture.rows)),
      by_column(static_cast<size_t>(picture.columns));
  for (int m = 0; m < picture.rows; ++m) {
    for (int n = 0; n < picture.columns; ++n) {
      const IntTuple index = index_at(layout, m, n);
      const IntTuple coord = rank(layout) == 1 ? IntTuple(n) : IntTuple{m, n};
      Cell& cell = picture.at(m, n);
      cell.text = index.to_string();
      cell.title = absl::StrCat("coordinate ", idx2crd(coord, layout.shape()).to_string(),
                                ", index ", cell.text);
      if (!index.is_int() || index.node().is_basis()) continue;
      const int64_t value = index.value().value();
      cell.colour = static_cast<int>((value % kColours + kColours) % kColours);
      if (!picture.banks) continue;
      const int64_t bank = value * options.bank_bits / kBankBits % kBanks;
      cell.colour = static_cast<int>((bank + kBanks) % kBanks);
      absl::StrAppend(&cell.title, ", bank ", bank);
      if (n < kBanks) by_row[static_cast<size_t>(m)].push_back(value);
      if (m < kBanks) by_column[static_cast<size_t>(n)].push_back(value);
    }
  }
  if (picture.banks) {
    for (const auto& row : by_row) {
      picture.row_notes.push_back(absl::StrCat(turns(row, options.bank_bits), "×"));
    }
    for (const auto& column : by_column) {
      picture.column_notes.push_back(absl::StrCat(turns(column, options.bank_bits), "×"));
    }
  }
  return picture;
}

Picture picture_of_threads(const Layout& tv, const IntTuple& tile) {
  if (const std::string why = why_no_grid(tv); !why.empty()) return refused(why);
  const Layout cells = make_layout(tile);
  if (const std::string why = why_no_grid(cells); !why.empty()) return refused(why);
  Picture picture;
  picture.rows = rows_of(cells);
  picture.columns = columns_of(cells);
  picture.caption =
      absl::StrCat("threads and values ", tv.to_string(), " of a tile ", tile.to_string());
  picture.cells.resize(static_cast<size_t>(picture.rows) * static_cast<size_t>(picture.columns));
  for (Cell& cell : picture.cells) {
    cell.colour = -1;
    cell.title = "nobody's";
  }
  for (int t = 0; t < rows_of(tv); ++t) {
    for (int v = 0; v < columns_of(tv); ++v) {
      const IntTuple index = index_at(tv, t, v);
      const int64_t value = index.is_int() ? index.value().value() : -1;
      if (value < 0 || value >= picture.rows * picture.columns) {
        return refused(absl::StrCat("thread ", t, "'s value ", v, " is at ", index.to_string(),
                                    ", outside the tile ", tile.to_string()));
      }
      const int m = static_cast<int>(value % picture.rows);
      const int n = static_cast<int>(value / picture.rows);
      Cell& cell = picture.at(m, n);
      // Where several have it, the first is shown and the title names all.
      const bool first = cell.colour < 0;
      if (first) {
        cell.colour = t % kColours;
        cell.text = absl::StrCat("T", t);
        cell.second_line = absl::StrCat("V", v);
        cell.title = absl::StrCat("coordinate (", m, ",", n, "), index ", value, ", thread ", t,
                                  " value ", v);
      } else {
        absl::StrAppend(&cell.title, ", thread ", t, " value ", v);
      }
    }
  }
  return picture;
}

Picture picture_of(const Layout& layout, const DrawOptions& options) {
  if (options.bank_bits < 0 || options.bank_bits > 1024) {
    return refused(absl::StrCat("elements of ", options.bank_bits, " bits"));
  }
  Picture picture = options.tile ? picture_of_threads(layout, *options.tile)
                                 : picture_of_indices(layout, options);
  if (!options.caption.empty()) picture.caption = options.caption;
  return picture;
}

// --- SVG ------------------------------------------------------------------------------------

constexpr int kMargin = 34;
constexpr int kHeight = 28;

// A light colour of a hue, in degrees: black text can be read on it.
std::string pastel(int hue, double depth) {
  const auto channel = [&](int shift) {
    // The hue's distance from the channel's own: full up to 60 degrees, nothing from 120 on.
    const int away = std::abs((hue - shift + 540) % 360 - 180);
    const double share = std::clamp((120 - away) / 60.0, 0.0, 1.0);
    return static_cast<int>(255 * (1 - depth * (1 - share)));
  };
  return absl::StrFormat("#%02x%02x%02x", channel(0), channel(120), channel(240));
}

// Few colours are far apart; the banks go round, every other one deeper.
std::string colour(int index, bool banks) {
  if (index < 0) return "#ffffff";
  if (banks) return pastel(index * 360 / kBanks, index % 2 == 0 ? 0.35 : 0.55);
  return pastel(index * 360 / kColours, 0.3);
}

// As XML has it: captions have swizzles.
std::string escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

void append_text(std::string* svg, int x, int y, const std::string& text, const char* style = "") {
  absl::StrAppend(svg,
                  absl::Substitute("<text x='$0' y='$1'$2>$3</text>", x, y, style, escaped(text)));
}

std::string svg_of(const Picture& picture) {
  size_t widest = 2;
  for (const Cell& cell : picture.cells) widest = std::max(widest, cell.text.size());
  const int width = std::max(kHeight, static_cast<int>(widest) * 8 + 10);
  const int notes = picture.row_notes.empty() ? 0 : kMargin;
  const int full_width = std::max(kMargin + picture.columns * width + notes + 6,
                                  static_cast<int>(picture.caption.size()) * 8 + 12);
  const int top = 2 * kMargin - 10;
  const int full_height = top + picture.rows * kHeight + notes + 6;
  std::string svg = absl::Substitute(
      "<svg xmlns='http://www.w3.org/2000/svg' width='$0' height='$1' viewBox='0 0 $0 $1' "
      "font-family='ui-monospace,monospace' font-size='12' text-anchor='middle'>\n"
      "<rect width='$0' height='$1' fill='#fff'/>\n",
      full_width, full_height);
  append_text(&svg, 6, 16, picture.caption, " text-anchor='start' font-weight='bold'");
  svg += "\n";
  for (int n = 0; n < picture.columns; ++n) {
    append_text(&svg, kMargin + n * width + width / 2, top - 8, absl::StrCat(n), " fill='#666'");
  }
  svg += "\n";
  for (int m = 0; m < picture.rows; ++m) {
    const int y = top + m * kHeight;
    append_text(&svg, kMargin / 2, y + kHeight / 2 + 4, absl::StrCat(m), " fill='#666'");
    for (int n = 0; n < picture.columns; ++n) {
      const Cell& cell = picture.at(m, n);
      const int x = kMargin + n * width;
      absl::StrAppend(
          &svg,
          absl::Substitute("<g class='cell'><title>$5</title><rect x='$0' y='$1' width='$2' "
                           "height='$3' fill='$4' stroke='#444' stroke-width='.6'/>",
                           x, y, width, kHeight, colour(cell.colour, picture.banks), cell.title));
      if (cell.second_line.empty()) {
        append_text(&svg, x + width / 2, y + kHeight / 2 + 4, cell.text);
      } else {
        append_text(&svg, x + width / 2, y + 12, cell.text, " font-size='10'");
        append_text(&svg, x + width / 2, y + 24, cell.second_line, " font-size='10'");
      }
      svg += "</g>";
    }
    if (!picture.row_notes.empty()) {
      append_text(&svg, kMargin + picture.columns * width + kMargin / 2, y + kHeight / 2 + 4,
                  picture.row_notes[static_cast<size_t>(m)], " fill='#b00'");
    }
    svg += "\n";
  }
  for (size_t n = 0; n < picture.column_notes.size(); ++n) {
    append_text(&svg, kMargin + static_cast<int>(n) * width + width / 2,
                top + picture.rows * kHeight + 18, picture.column_notes[n], " fill='#b00'");
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string layout_table(const Layout& layout) {
  const Picture picture = picture_of(layout, {});
  if (!picture.error.empty()) return picture.error + "\n";
  size_t width = absl::StrCat(picture.columns - 1).size();
  for (const Cell& cell : picture.cells) width = std::max(width, cell.text.size());
  const int cell_width = static_cast<int>(width);
  const int margin = static_cast<int>(absl::StrCat(picture.rows - 1).size());
  const std::string indent(static_cast<size_t>(margin) + 2, ' ');
  std::string text = picture.caption + "\n" + indent;
  for (int n = 0; n < picture.columns; ++n)
    absl::StrAppendFormat(&text, " %*d ", cell_width + 1, n);
  std::string rule = indent;
  for (int n = 0; n < picture.columns; ++n) rule += "+" + std::string(width + 2, '-');
  rule += "+\n";
  absl::StrAppend(&text, "\n", rule);
  for (int m = 0; m < picture.rows; ++m) {
    absl::StrAppendFormat(&text, "%*d  ", margin, m);
    for (int n = 0; n < picture.columns; ++n) {
      absl::StrAppendFormat(&text, "| %*s ", cell_width, picture.at(m, n).text);
    }
    absl::StrAppend(&text, "|\n", rule);
  }
  return text;
}

std::string layout_svg(const Layout& layout, const DrawOptions& options) {
  const Picture picture = picture_of(layout, options);
  return picture.error.empty() ? svg_of(picture) : picture.error + "\n";
}

std::string layout_html(const Layout& layout, const DrawOptions& options) {
  const Picture picture = picture_of(layout, options);
  if (!picture.error.empty()) return picture.error + "\n";
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>",
      escaped(picture.caption),
      "</title>\n<style>\n"
      "body { font-family: ui-monospace, monospace; margin: 1.5em; }\n"
      "#where { position: sticky; top: 0; background: #fff; padding: .4em 0; min-height: 1.2em; }\n"
      ".cell:hover rect { stroke-width: 2.5; stroke: #000; }\n"
      "</style></head><body>\n<div id='where'>point at a cell</div>\n",
      svg_of(picture),
      "<script>\n"
      "const where = document.getElementById('where');\n"
      "for (const cell of document.querySelectorAll('.cell')) {\n"
      "  cell.addEventListener('mouseenter', () => {\n"
      "    where.textContent = cell.querySelector('title').textContent;\n"
      "  });\n"
      "}\n"
      "</script>\n</body></html>\n");
}

}  // namespace heddle
