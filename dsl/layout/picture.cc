#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/picture_internal.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle::detail {

// --- Grids ----------------------------------------------------------------------------------

Axis::Axis(const IntTuple& shape) : count(static_cast<int>(size(shape).value())) {
  const IntTuple extents = flatten_to_tuple(shape);
  const bool nested = heddle::rank(extents) > 1;
  for (int i = 0; i < count; ++i) {
    if (nested) coordinates.push_back(idx2crd(i, shape).to_string());
    int level = 0;
    int64_t span = 1;
    for (const TupleNode& extent : Elements(extents)) {
      span *= extent.value.value();
      if (extent.value.is_constant(1) || span == count) continue;
      level += i > 0 && i % span == 0;
    }
    levels.push_back(level);
  }
}

namespace {

Picture refused(const std::string& why) {
  Picture picture;
  picture.error = absl::StrCat("error: ", why);
  return picture;
}

// Why a shape has no rows and columns; empty where it has. `what` has that shape.
std::string why_no_grid(const std::string& what, const IntTuple& shape) {
  if (!shape.ok()) return shape.error();
  if (has_underscore(shape)) return what + " leaves a mode open; give each an extent";
  if (!is_static(shape)) return what + " has numbers that are not known yet";
  if (rank(shape) == 0) return what + " has no modes";
  const IntTuple extents = flatten_to_tuple(shape);
  for (const TupleNode& extent : Elements(extents)) {
    if (extent.value.value() < 1) {
      return absl::StrCat(what, " has a mode of ", extent.value.value(),
                          " elements; extents are at least 1");
    }
  }
  if (rank(shape) > 2) {
    return absl::StrCat(what, " has ", rank(shape), " modes; group_modes() makes them two");
  }
  const SymInt count = size(shape);
  if (count.is_constant() && count.value() <= kMostDrawn) return {};
  return absl::StrCat(what, " is too large to draw: at most ", kMostDrawn, " cells");
}

std::string why_no_grid(const Layout& layout) {
  if (!layout.ok()) return layout.error();
  if (!is_static(layout)) return layout.to_string() + " has numbers that are not known yet";
  return why_no_grid(layout.to_string(), layout.shape());
}

// A layout of one mode is one row.
Picture grid_of(const IntTuple& shape) {
  Picture picture;
  const bool one_row = rank(shape) == 1;
  if (!one_row) picture.rows = Axis(get(shape, 0));
  picture.columns = Axis(one_row ? shape : get(shape, 1));
  picture.cells.resize(static_cast<size_t>(picture.rows.count) *
                       static_cast<size_t>(picture.columns.count));
  return picture;
}

// --- Banks ----------------------------------------------------------------------------------

constexpr int kBankBits = 32;
// Indices whose bits can be counted.
constexpr int64_t kFarthest = int64_t{1} << 50;

int64_t word_of(int64_t bit) {
  return bit >= 0 ? bit / kBankBits : -((kBankBits - 1 - bit) / kBankBits);
}
int bank_of(int64_t word) { return static_cast<int>((word % kBanks + kBanks) % kBanks); }

// Of elements that a warp reads at once: those in one word take one turn.
Turns turns_of(const std::vector<int64_t>& indices, int bits) {
  std::map<int, std::set<int64_t>> words;
  for (const int64_t index : indices) {
    for (int64_t word = word_of(index * bits); word <= word_of(index * bits + bits - 1); ++word) {
      words[bank_of(word)].insert(word);
    }
  }
  size_t most = 0, all = 0;
  for (const auto& [bank, in_bank] : words) {
    most = std::max(most, in_bank.size());
    all += in_bank.size();
  }
  return {.taken = static_cast<int>(most), .least = static_cast<int>((all + kBanks - 1) / kBanks)};
}

// --- What pictures show ---------------------------------------------------------------------

Picture picture_of_indices(const Layout& layout, const DrawOptions& options) {
  if (const std::string why = why_no_grid(layout); !why.empty()) return refused(why);
  Picture picture = grid_of(layout.shape());
  picture.caption = layout.to_string();
  picture.banks = options.bank_bits > 0;
  const int rows = picture.rows.count, columns = picture.columns.count;
  std::vector<std::vector<int64_t>> by_row(static_cast<size_t>(rows)),
      by_column(static_cast<size_t>(columns));
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      const IntTuple coord = rank(layout) == 1 ? IntTuple(n) : IntTuple{m, n};
      const IntTuple index = layout(coord);
      Cell& cell = picture.at(m, n);
      cell.text = index.to_string();
      cell.title = absl::StrCat("coordinate ", idx2crd(coord, layout.shape()).to_string(),
                                ", index ", cell.text);
      cell.colour = 0;
      if (!index.is_int() || index.node().is_basis()) continue;
      const int64_t value = index.value().value();
      cell.colour = static_cast<int>((value % kColours + kColours) % kColours);
      if (!picture.banks || value > kFarthest || value < -kFarthest) continue;
      cell.colour = bank_of(word_of(value * options.bank_bits));
      cell.second_line = absl::StrCat("b", cell.colour);
      absl::StrAppend(&cell.title, ", bank ", cell.colour);
      if (n < kBanks) by_row[static_cast<size_t>(m)].push_back(value);
      if (m < kBanks) by_column[static_cast<size_t>(n)].push_back(value);
    }
  }
  if (!picture.banks) return picture;
  for (const auto& row : by_row) picture.row_turns.push_back(turns_of(row, options.bank_bits));
  for (const auto& column : by_column) {
    picture.column_turns.push_back(turns_of(column, options.bank_bits));
  }
  return picture;
}

Picture picture_of_owners(const Layout& tv, const DrawOptions& options) {
  const IntTuple& tile = *options.tile;
  const std::string letter(1, absl::ascii_toupper(static_cast<unsigned char>(options.owner[0])));
  if (const std::string why = why_no_grid(tv); !why.empty()) return refused(why);
  const std::string why = why_no_grid(absl::StrCat("the tile ", tile.to_string()), tile);
  if (!why.empty()) return refused(why);
  Picture picture = grid_of(tile);
  picture.caption =
      absl::StrCat("threads and values ", tv.to_string(), " of a tile ", tile.to_string());
  for (Cell& cell : picture.cells) cell.title = "nobody's";
  const int rows = picture.rows.count;
  const int threads = rank(tv) == 1 ? 1 : static_cast<int>(size(get(tv.shape(), 0)).value());
  const int values = static_cast<int>(size(tv).value()) / threads;
  for (int t = 0; t < threads; ++t) {
    for (int v = 0; v < values; ++v) {
      const IntTuple index = rank(tv) == 1 ? tv(v) : tv({t, v});
      const int64_t value = index.is_int() ? index.value().value() : -1;
      if (value < 0 || value >= rows * picture.columns.count) {
        return refused(absl::StrCat(options.owner, " ", t, "'s value ", v, " is at ",
                                    index.to_string(), ", outside the tile ", tile.to_string()));
      }
      const int m = static_cast<int>(value % rows), n = static_cast<int>(value / rows);
      Cell& cell = picture.at(m, n);
      // Where several have it, the first is shown and the title names all.
      if (cell.colour >= 0) {
        absl::StrAppend(&cell.title, ", ", options.owner, " ", t, " value ", v);
        continue;
      }
      cell.colour = t % kColours;
      cell.text = absl::StrCat(letter, t);
      cell.second_line = absl::StrCat("V", v);
      const IntTuple coord = rank(tile) == 1 ? IntTuple(n) : IntTuple{m, n};
      cell.title = absl::StrCat("coordinate ", idx2crd(coord, tile).to_string(), ", index ", value,
                                ", ", options.owner, " ", t, " value ", v);
    }
  }
  return picture;
}

}  // namespace

std::string Turns::to_string() const { return absl::StrCat(taken, "×"); }

Picture picture_of(const Layout& layout, const DrawOptions& options) {
  if (options.bank_bits < 0 || options.bank_bits > 1024) {
    return refused(absl::StrCat("elements of ", options.bank_bits, " bits"));
  }
  Picture picture =
      options.tile ? picture_of_owners(layout, options) : picture_of_indices(layout, options);
  if (!options.caption.empty()) picture.caption = options.caption;
  return picture;
}

}  // namespace heddle::detail
