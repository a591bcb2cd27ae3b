#include "heddle/tools/command/text_diff.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dtl/dtl.hpp"

namespace heddle::tools {
namespace {

std::vector<std::string> lines_of(absl::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

template <class Line>
dtl::Diff<Line> difference(const std::vector<Line>& before, const std::vector<Line>& after) {
  dtl::Diff<Line> diff(before, after);
  diff.onHuge();
  diff.compose();
  return diff;
}

// Whether a name ends here that is a register's but for its number: "%r", "%rd", "R", "UP".
bool is_register(absl::string_view name) {
  if (absl::StartsWith(name, "%")) return name != "%v";  // a value by its id keeps its name
  return name == "R" || name == "UR" || name == "P" || name == "UP";
}

// A line without the numbers of its registers, and without its address: /*0a40*/.
std::string without_numbers(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::ConsumePrefix(&line, "/*")) line.remove_prefix(std::min(line.find("*/"), line.size()));
  std::string text;
  size_t word = 0;  // where the name began that is being read
  for (size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    const bool number =
        absl::ascii_isdigit(c) && i > word && is_register(line.substr(word, i - word));
    if (number) {
      while (i + 1 < line.size() && absl::ascii_isdigit(static_cast<unsigned char>(line[i + 1])))
        ++i;
      word = i + 1;
      continue;
    }
    text += line[i];
    if (!absl::ascii_isalnum(c)) word = c == '%' ? i : i + 1;
  }
  return text;
}

struct CodeLine {
  std::string text, key;
  bool operator==(const CodeLine& other) const { return key == other.key; }
};
std::vector<CodeLine> code_lines_of(absl::string_view text) {
  std::vector<CodeLine> lines;
  for (std::string& line : lines_of(text)) {
    std::string key = without_numbers(line);
    lines.push_back({std::move(line), std::move(key)});
  }
  return lines;
}

// With blanks up to every fourth column in their place.
std::string without_tabs(absl::string_view line) {
  std::string text;
  for (const char c : line) {
    text += c == '\t' ? ' ' : c;
    while (c == '\t' && text.size() % 4 != 0) text += ' ';
  }
  return text;
}

std::string cut(const std::string& line, size_t width) {
  if (line.find('\t') != std::string::npos) return cut(without_tabs(line), width);
  return line.size() <= width ? line : absl::StrCat(line.substr(0, width - 1), "~");
}

}  // namespace

std::string unified_diff(absl::string_view before, absl::string_view after) {
  dtl::Diff<std::string> diff = difference(lines_of(before), lines_of(after));
  diff.composeUnifiedHunks();
  std::ostringstream text;
  diff.printUnifiedFormat(text);
  return text.str();
}

std::string side_by_side(absl::string_view left, absl::string_view right, int column_width) {
  const auto width = static_cast<size_t>(std::max(column_width, 8));
  std::string text;
  const auto row = [&](const std::string& a, char mark, const std::string& b) {
    const std::string first = cut(a, width);
    std::string line = absl::StrCat(first, std::string(width - first.size(), ' '), " ",
                                    std::string(1, mark), " ", cut(b, width));
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  };
  // Lines that are gone and lines that are new, one after the other, stand beside each other.
  std::vector<std::string> gone, come;
  const auto flush = [&] {
    const size_t both = std::min(gone.size(), come.size());
    for (size_t i = 0; i < both; ++i) row(gone[i], '|', come[i]);
    for (size_t i = both; i < gone.size(); ++i) row(gone[i], '<', "");
    for (size_t i = both; i < come.size(); ++i) row("", '>', come[i]);
    gone.clear();
    come.clear();
  };
  const std::vector<CodeLine> lefts = code_lines_of(left), rights = code_lines_of(right);
  for (const auto& [line, edit] : difference(lefts, rights).getSes().getSequence()) {
    if (edit.type == dtl::SES_DELETE) {
      gone.push_back(line.text);
    } else if (edit.type == dtl::SES_ADD) {
      come.push_back(line.text);
    } else {
      flush();
      row(lefts[static_cast<size_t>(edit.beforeIdx - 1)].text, ' ',
          rights[static_cast<size_t>(edit.afterIdx - 1)].text);
    }
  }
  flush();
  return text;
}

}  // namespace heddle::tools
