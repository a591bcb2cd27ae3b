#include "heddle/tools/command/reference/op_comments.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::tools {

std::vector<OpSection> parse_op_comments(absl::string_view text) {
  std::vector<OpSection> sections;
  std::string meaning;
  bool in_comment = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "// --- ")) {
      const absl::string_view title = line.substr(0, line.find(" ---"));
      sections.push_back({std::string(title), {}});
      meaning.clear();
      in_comment = false;
    } else if (absl::ConsumePrefix(&line, "//")) {
      if (!in_comment) meaning.clear();
      in_comment = true;
      absl::ConsumePrefix(&line, " ");
      absl::StrAppend(&meaning, meaning.empty() ? "" : "\n", line);
    } else if (line.empty()) {
      meaning.clear();
      in_comment = false;
    } else {
      in_comment = false;
      const bool elementwise = absl::StartsWith(line, "HEDDLE_ELEMENTWISE(");
      if (sections.empty() || (!elementwise && !absl::StartsWith(line, "HEDDLE_OP("))) continue;
      const std::vector<absl::string_view> quoted = absl::StrSplit(line, absl::MaxSplits('"', 2));
      sections.back().ops.push_back({std::string(quoted[1]), meaning, elementwise});
    }
  }
  return sections;
}

}  // namespace heddle::tools
