#include "heddle/ir/diagnostic.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heddle::ir {
namespace {

std::string place_prefix(const SourceLine& place) {
  return place.file.empty() ? std::string() : absl::StrCat(place.file, ":", place.line, ": ");
}

// A table's data can make an op as long as a book.
constexpr size_t kShownOfOp = 300;

std::string shortened(const std::string& op) {
  if (op.size() <= kShownOfOp) return op;
  return absl::StrCat(op.substr(0, kShownOfOp), " … (", op.size() - kShownOfOp,
                      " more characters)");
}

// What a user reads of a diagnostic; not the op, which is one of several that a line has become.
std::string said(const Diagnostic& diagnostic) {
  Diagnostic text = diagnostic;
  text.op.clear();
  return to_string(text);
}

// The first few lines of others, without the one that is told.
constexpr size_t kPlacesListed = 4;

std::string more_like_it(const Diagnostics& others, const SourceLine& told) {
  std::vector<std::string> places;
  for (const Diagnostic& other : others) {
    std::string place = absl::StrCat(other.place.file, ":", other.place.line);
    const bool listed = absl::c_linear_search(places, place);
    const bool here = other.place.file == told.file && other.place.line == told.line;
    if (!listed && !here && !other.place.file.empty()) places.push_back(std::move(place));
  }
  const bool cut = places.size() > kPlacesListed;
  if (cut) places.resize(kPlacesListed);
  return absl::StrCat("and ", others.size(), " more like it", places.empty() ? "" : ", at ",
                      absl::StrJoin(places, ", "), cut ? ", …" : "");
}

}  // namespace

Diagnostics by_mistake(const Diagnostics& diagnostics) {
  Diagnostics told;
  std::vector<Diagnostics> others;
  absl::flat_hash_map<std::string, size_t> known;
  for (const Diagnostic& diagnostic : diagnostics) {
    const bool alone = diagnostic.mistake.empty();
    const auto [entry, is_new] =
        known.try_emplace(alone ? said(diagnostic) : diagnostic.mistake, told.size());
    if (is_new) {
      told.push_back(diagnostic);
      others.emplace_back();
    } else if (!alone) {
      others[entry->second].push_back(diagnostic);
    }
  }
  for (size_t i = 0; i < told.size(); ++i) {
    if (others[i].empty()) continue;
    told[i].notes.push_back({{}, more_like_it(others[i], told[i].place)});
  }
  return told;
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text =
      absl::StrCat(place_prefix(diagnostic.place), "error: ", diagnostic.message, "\n");
  if (!diagnostic.op.empty()) absl::StrAppend(&text, "  in: ", shortened(diagnostic.op), "\n");
  for (const Note& note : diagnostic.notes) {
    absl::StrAppend(&text, "  ", place_prefix(note.place), note.message, "\n");
  }
  if (!diagnostic.fix.empty()) absl::StrAppend(&text, "  fix: ", diagnostic.fix, "\n");
  return text;
}

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& one : by_mistake(diagnostics)) absl::StrAppend(&text, to_string(one));
  return text;
}

Status to_status(absl::string_view what, const Diagnostics& diagnostics) {
  if (diagnostics.empty()) return OkStatus();
  const size_t mistakes = by_mistake(diagnostics).size();
  return InvalidArgumentError(
      absl::StrCat(what, " has ", mistakes, mistakes == 1 ? " error:\n" : " errors:\n",
                   absl::StripTrailingAsciiWhitespace(to_string(diagnostics))));
}

}  // namespace heddle::ir
