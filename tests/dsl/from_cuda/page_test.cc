// dsl/FROM_CUDA.md shows code that compiles: each span of code in the second column of its tables,
// and each block of C++, stands between the marks `// <page>` and `// </page>` of a
// from_cuda_*_test.cc.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What differs between a line of a table and clang-format's lines does not count.
std::string without_spaces(std::string text) {
  std::erase_if(text, absl::ascii_isspace);
  return text;
}

std::vector<std::string> lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

std::string marked(const std::string& source) {
  std::string text;
  bool inside = false;
  for (const std::string& line : lines(source)) {
    if (absl::StrContains(line, "// </page>")) inside = false;
    if (inside) absl::StrAppend(&text, line, "\n");
    if (absl::StrContains(line, "// <page>")) inside = true;
  }
  return without_spaces(text);
}

// The second cell of a row of a table; empty for headings and other lines.
std::string second_cell(const std::string& line) {
  if (!absl::StartsWith(line, "|") || absl::StartsWith(line, "|---")) return "";
  const std::string bar = "\x01";
  const std::vector<std::string> cells =
      absl::StrSplit(absl::StrReplaceAll(line, {{"\\|", bar}}), '|');
  return cells.size() < 3 ? "" : absl::StrReplaceAll(cells[2], {{bar, "|"}});
}

struct Page {
  std::vector<std::string> snippets;
  std::vector<std::string> rows_without;  // that neither show code nor say that there is none
};

Page read_page(const std::string& text) {
  Page page;
  std::string block;
  bool in_block = false;
  for (const std::string& line : lines(text)) {
    if (absl::StartsWith(line, "```")) {
      if (in_block) page.snippets.push_back(block);
      block.clear();
      in_block = line == "```cpp";
      continue;
    }
    if (in_block) absl::StrAppend(&block, line, "\n");
    const std::string cell(absl::StripAsciiWhitespace(second_cell(line)));
    if (cell.empty() || cell == "Heddle") continue;
    const std::vector<std::string> parts = absl::StrSplit(cell, '`');
    for (size_t i = 1; i < parts.size(); i += 2) page.snippets.push_back(parts[i]);
    if (parts.size() < 3 && !absl::StartsWith(cell, "not yet") &&
        !absl::StartsWith(cell, "nothing")) {
      page.rows_without.push_back(line);
    }
  }
  return page;
}

// `…` stands for anything.
bool contains(const std::string& code, const std::string& snippet) {
  size_t from = 0;
  const std::vector<std::string> parts = absl::StrSplit(without_spaces(snippet), "…");
  for (const std::string& part : parts) {
    from = code.find(part, from);
    if (from == std::string::npos) return false;
    from += part.size();
  }
  return true;
}

std::vector<std::string> missing(const Page& page, const std::string& code) {
  std::vector<std::string> result;
  for (const std::string& snippet : page.snippets) {
    if (!contains(code, snippet)) result.push_back(snippet);
  }
  return result;
}

std::string read(const std::string& path) {
  std::ifstream file(absl::StrCat(HEDDLE_TEST_DATA_DIR, "/", path));
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(FromCudaPage, ShowsCodeThatCompiles) {
  std::string code;
  for (const char* part : {"device", "arithmetic", "intrinsics", "groups", "layouts", "host"}) {
    absl::StrAppend(&code, marked(read(absl::StrCat("dsl/from_cuda/", part, "_test.cc"))));
  }
  const Page page = read_page(read("../dsl/FROM_CUDA.md"));
  EXPECT_GT(page.snippets.size(), 100u);
  EXPECT_THAT(missing(page, code), IsEmpty());
  EXPECT_THAT(page.rows_without, IsEmpty());
}

TEST(FromCudaPage, FindsWhatDoesNot) {
  const std::string code = marked("a();\n// <page>\nuse(b(1, 2));\nc | d;\n// </page>\ne();\n");
  const Page page = read_page(
      "| CUDA C++ | Heddle |\n|---|---|\n| x | `b(1,  2)` or `a()` |\n| y | `c \\| d` |\n"
      "| z | soon |\n| w | not yet |\n| v | `use(… c` `c … b` |\n```cpp\ne();\n```\n");
  EXPECT_THAT(missing(page, code), ElementsAre("a()", "c … b", "e();\n"));
  EXPECT_THAT(page.rows_without, ElementsAre("| z | soon |"));
}

}  // namespace
}  // namespace heddle
