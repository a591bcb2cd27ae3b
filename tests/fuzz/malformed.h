// Input that is almost right, given to what reads it: kernels as text, NumPy's files, lines of the
// layout calculator. Each either works, all the way down, or is refused by a message that says
// where.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::fuzz {

struct Format {
  absl::string_view name;
  // Texts that are right; `folder` is that of the tests, which has samples.
  std::vector<std::string> (*samples)(const std::string& folder);
  // Reads a text and uses what it says; what is wrong with that, empty where nothing is. `accepted`
  // says whether it was taken for right.
  std::string (*complaint)(const std::string& text, bool& accepted);
};
// .ir, .npy and layout lines.
absl::Span<const Format> formats();

}  // namespace heddle::fuzz
