// Texts that are almost right.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::fuzz {

// One of the samples with one to four changes: words and numbers dropped, doubled, swapped, taken
// from another sample or put at the edge of a type; lines likewise; single bytes; the end cut off.
std::string mutated(absl::Span<const std::string> samples, std::mt19937_64& random);

}  // namespace heddle::fuzz
