// What ir/ops.def says of its rows in comments, which the compiled table has not: sections, and the
// meaning of each op.
//
//   for (const OpSection& section : parse_op_comments(ops_def())) { … }
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::tools {

struct OpComment {
  std::string mnemonic;
  std::string meaning;  // lines as they are there; empty where nobody wrote any
  bool elementwise = false;
};

struct OpSection {
  std::string title;
  std::vector<OpComment> ops;
};

// The text of ir/ops.def, from when this was built.
const char* ops_def();

// A row's comment is the one right above it; a row that stands below another shares that one's.
// Blank lines part them. What comes before the first `// --- Title ---` is the legend.
std::vector<OpSection> parse_op_comments(absl::string_view text);

}  // namespace heddle::tools
