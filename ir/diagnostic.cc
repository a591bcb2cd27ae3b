#include "heddle/ir/diagnostic.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace heddle::ir {
namespace {

std::string place_prefix(const Place& place) {
  return place.file.empty() ? std::string() : absl::StrCat(place.file, ":", place.line, ": ");
}

// A table's data can make an op as long as a book.
constexpr size_t kShownOfOp = 300;

std::string shortened(const std::string& op) {
  if (op.size() <= kShownOfOp) return op;
  return absl::StrCat(op.substr(0, kShownOfOp), " … (", op.size() - kShownOfOp,
                      " more characters)");
}

}  // namespace

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
  for (const Diagnostic& diagnostic : diagnostics) absl::StrAppend(&text, to_string(diagnostic));
  return text;
}

absl::Status to_status(absl::string_view what, const Diagnostics& diagnostics) {
  if (diagnostics.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has ", diagnostics.size(), diagnostics.size() == 1 ? " error:\n" : " errors:\n",
      absl::StripTrailingAsciiWhitespace(to_string(diagnostics))));
}

}  // namespace heddle::ir
