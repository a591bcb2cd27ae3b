#include "heddle/dsl/layout/draw.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "heddle/dsl/layout/picture_internal.h"

namespace heddle {
namespace {

using detail::Axis;
using detail::Cell;
using detail::kBanks;
using detail::kColours;
using detail::Picture;
using detail::Turns;

constexpr char kTurnsNote[] = "turns of a warp for the first 32 of a row or column";

size_t longest(const std::vector<std::string>& texts) {
  size_t length = 0;
  for (const std::string& text : texts) length = std::max(length, text.size());
  return length;
}

// --- SVG ------------------------------------------------------------------------------------

constexpr int kHeight = 28;    // of a cell
constexpr int kLine = 18;      // of text beside the grid
constexpr int kCharacter = 8;  // width, at 12 px
constexpr int kSmall = 7;      // at 10 px
constexpr int kEdge = 8;

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

// Green as few as there can be, orange twice as many, red more.
const char* colour(const Turns& turns) {
  if (!turns.in_conflict()) return "#1a7f37";
  return turns.taken <= 2 * turns.least ? "#c06000" : "#c00000";
}

// As XML has it: captions have swizzles.
std::string escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

class Svg {
 public:
  explicit Svg(const Picture& picture) : picture_(picture) {
    size_t widest = 2;
    for (const Cell& cell : picture.cells) widest = std::max(widest, cell.text.size());
    width_ = std::max({kHeight, static_cast<int>(widest) * kCharacter + 10,
                       static_cast<int>(longest(columns().coordinates)) * kSmall});
    const auto beside = static_cast<int>(longest(rows().coordinates)) * kSmall;
    left_ = 34 + beside;
    top_ = kLine + kEdge + (columns().coordinates.empty() ? 0 : kLine) + kLine;
  }

  std::string text() {
    const int right = left_ + columns().count * width_, bottom = top_ + rows().count * kHeight;
    cells();
    borders(right, bottom);
    labels();
    turns(right, bottom);
    int end = bottom + kEdge + (picture_.column_turns.empty() ? 0 : kLine);
    int full_width = right + kEdge + (picture_.row_turns.empty() ? 0 : 30);
    full_width =
        std::max(full_width, static_cast<int>(picture_.caption.size()) * kCharacter + 2 * kEdge);
    if (picture_.banks) {
      full_width = std::max(full_width, legend(end));
      end += 2 * kLine + 2 * kEdge;
    }
    return absl::Substitute(
               "<svg xmlns='http://www.w3.org/2000/svg' width='$0' height='$1' viewBox='0 0 $0 $1' "
               "font-family='ui-monospace,monospace' font-size='12' text-anchor='middle'>\n"
               "<rect width='$0' height='$1' fill='#fff'/>\n"
               "<text x='$2' y='16' text-anchor='start' font-weight='bold'>$3</text>\n",
               full_width, end, kEdge, escaped(picture_.caption)) +
           body_ + "</svg>\n";
  }

 private:
  const Axis& rows() const { return picture_.rows; }
  const Axis& columns() const { return picture_.columns; }

  void add_text(int x, int y, const std::string& text, const std::string& style = "") {
    absl::StrAppend(
        &body_, absl::Substitute("<text x='$0' y='$1'$2>$3</text>", x, y, style, escaped(text)));
  }

  void cells() {
    for (int m = 0; m < rows().count; ++m) {
      const int y = top_ + m * kHeight;
      for (int n = 0; n < columns().count; ++n) {
        const Cell& cell = picture_.at(m, n);
        const int x = left_ + n * width_;
        absl::StrAppend(
            &body_, absl::Substitute(
                        "<g class='cell'><title>$5</title><rect x='$0' y='$1' width='$2' "
                        "height='$3' fill='$4' stroke='#444' stroke-width='.6'/>",
                        x, y, width_, kHeight, colour(cell.colour, picture_.banks), cell.title));
        if (cell.second_line.empty()) {
          add_text(x + width_ / 2, y + kHeight / 2 + 4, cell.text);
        } else {
          add_text(x + width_ / 2, y + 12, cell.text, " font-size='10'");
          add_text(x + width_ / 2, y + 24, cell.second_line, " font-size='10' fill='#444'");
        }
        body_ += "</g>";
      }
      body_ += "\n";
    }
  }

  // Between tiles, and between tiles of these.
  void borders(int right, int bottom) {
    const auto line = [&](int level, int x, int y, const char* way, int to) {
      if (level == 0) return;
      absl::StrAppend(&body_, absl::Substitute("<path class='tile' d='M$0 $1$2$3' stroke='#000' "
                                               "stroke-width='$4'/>",
                                               x, y, way, to, level == 1 ? 2 : 4));
    };
    for (int m = 0; m < rows().count; ++m) {
      line(rows().levels[static_cast<size_t>(m)], left_, top_ + m * kHeight, "H", right);
    }
    for (int n = 0; n < columns().count; ++n) {
      line(columns().levels[static_cast<size_t>(n)], left_ + n * width_, top_, "V", bottom);
    }
    body_ += "\n";
  }

  // Numbers, and coordinates beside them where modes are nested.
  void labels() {
    for (int n = 0; n < columns().count; ++n) {
      const int x = left_ + n * width_ + width_ / 2;
      if (!columns().coordinates.empty()) {
        add_text(x, top_ - 6 - kLine, columns().coordinates[static_cast<size_t>(n)],
                 " font-size='10' fill='#06c'");
      }
      add_text(x, top_ - 6, absl::StrCat(n), " fill='#666'");
    }
    body_ += "\n";
    for (int m = 0; m < rows().count; ++m) {
      const int y = top_ + m * kHeight + kHeight / 2 + 4;
      add_text(left_ - 17, y, absl::StrCat(m), " fill='#666'");
      if (!rows().coordinates.empty()) {
        add_text(left_ - 34, y, rows().coordinates[static_cast<size_t>(m)],
                 " text-anchor='end' font-size='10' fill='#06c'");
      }
    }
    body_ += "\n";
  }

  void turns(int right, int bottom) {
    const auto note = [&](int x, int y, const Turns& turns) {
      add_text(x, y, turns.to_string(),
               absl::Substitute(" fill='$0'$1", colour(turns),
                                turns.in_conflict() ? " font-weight='bold'" : ""));
    };
    for (size_t m = 0; m < picture_.row_turns.size(); ++m) {
      note(right + 17, top_ + static_cast<int>(m) * kHeight + kHeight / 2 + 4,
           picture_.row_turns[m]);
    }
    for (size_t n = 0; n < picture_.column_turns.size(); ++n) {
      note(left_ + static_cast<int>(n) * width_ + width_ / 2, bottom + kLine,
           picture_.column_turns[n]);
    }
    body_ += "\n";
  }

  // Which colour is which bank, and what the turns are; gives its width.
  int legend(int y) {
    constexpr int kSwatch = 22;
    add_text(kEdge, y + 14, "bank", " text-anchor='start'");
    const int left = kEdge + 5 * kCharacter;
    for (int bank = 0; bank < kBanks; ++bank) {
      absl::StrAppend(
          &body_, absl::Substitute("<rect class='bank' x='$0' y='$1' width='$2' height='$3' "
                                   "fill='$4' stroke='#444' stroke-width='.6'/>",
                                   left + bank * kSwatch, y, kSwatch, kLine, colour(bank, true)));
      add_text(left + bank * kSwatch + kSwatch / 2, y + 13, absl::StrCat(bank), " font-size='10'");
    }
    body_ += "\n";
    // One with a conflict of each kind.
    int x = kEdge;
    const auto key = [&](const std::string& text, const char* fill) {
      add_text(x, y + kLine + 16, text, absl::Substitute(" text-anchor='start' fill='$0'", fill));
      x += (static_cast<int>(text.size()) + 2) * kCharacter;
    };
    key(kTurnsNote, "#000");
    key("none in conflict", colour(Turns{1, 1}));
    key("up to twice as many", colour(Turns{2, 1}));
    key("more", colour(Turns{4, 1}));
    body_ += "\n";
    return std::max(left + kBanks * kSwatch, x) + kEdge;
  }

  const Picture& picture_;
  int width_ = 0;  // of a cell
  int left_ = 0, top_ = 0;
  std::string body_;
};

// --- Text -----------------------------------------------------------------------------------

// The grid as characters: '#' and '=' between tiles, '|' and '-' within.
class Table {
 public:
  explicit Table(const Picture& picture) : picture_(picture) {
    std::vector<std::string> numbers;
    for (const Cell& cell : picture.cells) numbers.push_back(text_of(cell));
    numbers.push_back(absl::StrCat(columns().count - 1));
    width_ = static_cast<int>(std::max(longest(numbers), longest(columns().coordinates)));
    number_ = static_cast<int>(absl::StrCat(rows().count - 1).size());
    coordinate_ = static_cast<int>(longest(rows().coordinates));
    margin_ = number_ + (coordinate_ > 0 ? coordinate_ + 1 : 0) + 2;
  }

  std::string text() {
    std::string out = picture_.caption + "\n";
    if (!columns().coordinates.empty()) {
      header(&out, [&](int n) { return columns().coordinates[static_cast<size_t>(n)]; });
    }
    header(&out, [](int n) { return absl::StrCat(n); });
    for (int m = 0; m < rows().count; ++m) {
      rule(&out, rows().levels[static_cast<size_t>(m)] > 0 ? '=' : '-');
      absl::StrAppendFormat(&out, "%*d", number_, m);
      if (coordinate_ > 0) {
        absl::StrAppendFormat(&out, " %*s", coordinate_,
                              rows().coordinates[static_cast<size_t>(m)]);
      }
      out += "  ";
      for (int n = 0; n < columns().count; ++n) {
        absl::StrAppendFormat(&out, "%c %*s ", side(n, '|'), width_, text_of(picture_.at(m, n)));
      }
      out += "|";
      if (!picture_.row_turns.empty()) {
        absl::StrAppend(&out, " ", marked(picture_.row_turns[static_cast<size_t>(m)]));
      }
      out += "\n";
    }
    rule(&out, '-');
    if (!picture_.banks) return out;
    out.append(static_cast<size_t>(margin_), ' ');
    for (const Turns& turns : picture_.column_turns) {
      // The sign takes two bytes and one place.
      absl::StrAppendFormat(&out, " %*s ", width_ + 2, marked(turns));
    }
    while (out.back() == ' ') out.pop_back();
    absl::StrAppend(&out, "\nb: bank; ×: ", kTurnsNote, ", with ! where more than needed\n");
    return out;
  }

 private:
  const Axis& rows() const { return picture_.rows; }
  const Axis& columns() const { return picture_.columns; }

  static std::string text_of(const Cell& cell) {
    return cell.second_line.empty() ? cell.text : absl::StrCat(cell.text, " ", cell.second_line);
  }
  static std::string marked(const Turns& turns) {
    return turns.to_string() + (turns.in_conflict() ? "!" : "");
  }
  char side(int column, char within) const {
    return column < columns().count && columns().levels[static_cast<size_t>(column)] > 0 ? '#'
                                                                                         : within;
  }

  template <class Label>
  void header(std::string* out, const Label& label) {
    out->append(static_cast<size_t>(margin_), ' ');
    for (int n = 0; n < columns().count; ++n) {
      absl::StrAppendFormat(out, " %*s ", width_ + 1, label(n));
    }
    *out += "\n";
  }
  void rule(std::string* out, char line) {
    out->append(static_cast<size_t>(margin_), ' ');
    for (int n = 0; n < columns().count; ++n) {
      *out += side(n, '+');
      out->append(static_cast<size_t>(width_) + 2, line);
    }
    *out += "+\n";
  }

  const Picture& picture_;
  int width_ = 0;       // of a cell's text
  int number_ = 0;      // of a row's number
  int coordinate_ = 0;  // of a row's coordinate; 0 without
  int margin_ = 0;
};

}  // namespace

std::string layout_table(const Layout& layout, const DrawOptions& options) {
  const Picture picture = detail::picture_of(layout, options);
  return picture.error.empty() ? Table(picture).text() : picture.error + "\n";
}

std::string layout_svg(const Layout& layout, const DrawOptions& options) {
  const Picture picture = detail::picture_of(layout, options);
  return picture.error.empty() ? Svg(picture).text() : picture.error + "\n";
}

std::string layout_html(const Layout& layout, const DrawOptions& options) {
  const Picture picture = detail::picture_of(layout, options);
  if (!picture.error.empty()) return picture.error + "\n";
  return detail::page_of(picture.caption, Svg(picture).text());
}

// --- Several pictures, and pages ------------------------------------------------------------

bool detail::Panels::size_of(const std::string& svg, int* width, int* height) {
  return std::sscanf(svg.c_str(), "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d'",
                     width, height) == 2;
}

void detail::Panels::add(const std::string& svg, int x, int y) {
  int width = 0, height = 0;
  size_of(svg, &width, &height);
  absl::StrAppend(&panels_, "<svg x='", x, "' y='", y, "'", svg.substr(4));
  width_ = std::max(width_, x + width);
  height_ = std::max(height_, y + height);
}

std::string detail::Panels::svg() const {
  return absl::Substitute(
      "<svg xmlns='http://www.w3.org/2000/svg' width='$0' height='$1' viewBox='0 0 $0 $1'>\n"
      "<rect width='$0' height='$1' fill='#fff'/>\n$2</svg>\n",
      width_, height_, panels_);
}

std::string detail::page_of(const std::string& title, const std::string& svg) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>", escaped(title),
      "</title>\n<style>\n"
      "body { font-family: ui-monospace, monospace; margin: 1.5em; }\n"
      "#where { position: sticky; top: 0; background: #fff; padding: .4em 0; min-height: 1.2em; }\n"
      ".cell:hover rect { stroke-width: 2.5; stroke: #000; }\n"
      "</style></head><body>\n<div id='where'>point at a cell</div>\n",
      svg,
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
