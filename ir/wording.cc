#include "heddle/ir/wording.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace heddle::ir {
namespace {

// Nobody mistypes longer words, and the distance costs their product.
constexpr size_t kMaxLength = 64;

// How many letters must be inserted, removed, replaced or swapped with their neighbour to turn one
// word into the other.
size_t edit_distance(absl::string_view a, absl::string_view b) {
  // Rows of the distances between prefixes: of a's prefix, of the one before it and of that before.
  std::vector<size_t> row(b.size() + 1), above(b.size() + 1), second_above(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    second_above.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, row[j - 1] + 1, above[j] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], second_above[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

absl::string_view nearest(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  if (word.size() > kMaxLength) return {};
  absl::string_view best;
  // A third of the letters may differ, and one at least.
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const absl::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // A candidate that shares no letter is no hint.
    if (distance >= best_distance || distance >= word.size()) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string suggest(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  const absl::string_view meant = nearest(word, candidates);
  return meant.empty() ? std::string() : absl::StrCat("; did you mean '", meant, "'?");
}

std::string counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

bool is_identifier(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

std::string to_string(const Dim3& extents) {
  return absl::StrCat(extents.x, "x", extents.y, "x", extents.z);
}

}  // namespace heddle::ir
