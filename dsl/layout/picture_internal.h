// What a picture of a layout shows, whether it is drawn or written.
#pragma once

#include <string>
#include <vector>

#include "heddle/dsl/layout/draw.h"

namespace heddle::detail {

struct Cell {
  std::string text;
  std::string second_line;  // may be empty
  std::string title;        // when it is pointed at
  int colour = -1;          // in the palette; -1: nothing is there
};

// Rows or columns: a mode, counted through column-major.
struct Axis {
  explicit Axis(const IntTuple& shape);
  Axis() : Axis(1) {}

  int count = 0;
  // As coordinates of the mode, where it is nested; else empty.
  std::vector<std::string> coordinates;
  // How many of the mode's own modes start anew at each: tiles begin there.
  std::vector<int> levels;
};

// How many turns a warp takes, and how many it would take for as many words without conflicts.
struct Turns {
  int taken = 0;
  int least = 0;

  bool in_conflict() const { return taken > least; }
  std::string to_string() const;  // "4×"
};

struct Picture {
  Axis rows, columns;
  std::vector<Cell> cells;                     // by rows
  std::vector<Turns> row_turns, column_turns;  // of a picture of banks
  std::string caption;
  bool banks = false;
  std::string error;

  Cell& at(int row, int column) {
    return cells[static_cast<size_t>(row) * static_cast<size_t>(columns.count) +
                 static_cast<size_t>(column)];
  }
  const Cell& at(int row, int column) const { return const_cast<Picture*>(this)->at(row, column); }
};

inline constexpr int kBanks = 32;
inline constexpr int kColours = 8;

// Where there is none, its error is "error: …".
Picture picture_of(const Layout& layout, const DrawOptions& options);

// Several pictures in one.
class Panels {
 public:
  // Of a picture in SVG; false for the "error: …" in its place.
  static bool size_of(const std::string& svg, int* width, int* height);

  // Puts a picture where its left upper corner is to be.
  void add(const std::string& svg, int x, int y);
  std::string svg() const;
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  std::string panels_;
  int width_ = 0, height_ = 0;
};

// The HTML page of a picture in SVG: pointing at a cell shows its title.
std::string page_of(const std::string& title, const std::string& svg);

}  // namespace heddle::detail
