// Pieces of messages.
//
//   suggest("lod", {"load", "store"}) == "; did you mean 'load'?"
//   counted(2, "operand") == "2 operands"
//   to_string(Dim3{32, 8}) == "32x8x1"
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/dim3.h"

namespace heddle::ir {

// The candidate that the fewest edits turn `word` into: the name that was probably meant. Empty
// where none is near.
absl::string_view nearest(absl::string_view word, absl::Span<const absl::string_view> candidates);

// "; did you mean '<nearest>'?", or nothing.
std::string suggest(absl::string_view word, absl::Span<const absl::string_view> candidates);

// A number with its noun, which takes an s unless the number is 1.
std::string counted(int64_t count, absl::string_view noun);

// A letter or _, and letters, digits and _ behind it: what PTX, C, files and messages can carry.
bool is_identifier(absl::string_view text);

std::string to_string(const Dim3& extents);

}  // namespace heddle::ir
