#include "heddle/runtime/testing/case_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/op_info.h"
#include "heddle/runtime/testing/values.h"

namespace heddle::filetest {
namespace {

constexpr absl::string_view kSeparator = "; ---";
constexpr absl::string_view kContinuation = ";    ";
constexpr absl::string_view kGoldenMark = "; |";

// Sets of element types by the names that ops.def gives them.
constexpr std::pair<absl::string_view, ir::DataClass> kClasses[] = {
    {"num", ir::DataClass::kNumber},          {"int", ir::DataClass::kInteger},
    {"float", ir::DataClass::kFloat},         {"bits", ir::DataClass::kIntOrBool},
    {"word", ir::DataClass::kIntFloatOrBool}, {"data", ir::DataClass::kData},
};

// One way to fill in the names of a `for`: name and value, or several.
using Values = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> split(absl::string_view text, char separator) {
  const std::vector<absl::string_view> parts = split_outside(text, separator);
  return {parts.begin(), parts.end()};
}

std::vector<std::string> expand_class(const std::string& word) {
  for (const auto& [name, data_class] : kClasses) {
    if (word != name) continue;
    std::vector<std::string> types;
    for (const ir::ScalarInfo& scalar : ir::kScalars) {
      const std::optional<ir::Scalar> type = ir::scalar_from_name(scalar.name);
      if (type && *type != ir::Scalar::kNone && admits(data_class, *type)) {
        types.emplace_back(scalar.name);
      }
    }
    return types;
  }
  return {word};
}

bool is_name(absl::string_view text) {
  return text.size() > 1 && text[0] == '$' && std::all_of(text.begin() + 1, text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c));
         });
}

// Of a `for`: "$T/$U = …".
std::vector<std::string> names_of(const Directive& directive) {
  return split(directive.rest.substr(0, directive.rest.find('=')), '/');
}

int occurrences(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<Values> read_for(const Directive& directive, std::vector<Fault>& faults) {
  const std::pair<std::string, std::string> sides =
      absl::StrSplit(directive.rest, absl::MaxSplits('=', 1));
  const std::vector<std::string> names = names_of(directive);
  std::vector<Values> all;
  if (!std::all_of(names.begin(), names.end(), is_name)) {
    faults.push_back(
        {directive.line,
         absl::StrCat("'", directive.rest, "' names no variable; write '; for: $T = i32, f32'")});
    return {};
  }
  for (const std::string& item : split(sides.second, ',')) {
    for (const std::string& word : expand_class(item)) {
      const std::vector<std::string> values =
          names.size() == 1 ? std::vector<std::string>{word} : split(word, '/');
      if (values.size() != names.size()) {
        faults.push_back({directive.line, absl::StrCat("'", word, "' is ", values.size(),
                                                       " values for ", names.size(), " names")});
        return {};
      }
      Values& one = all.emplace_back();
      for (size_t i = 0; i < names.size(); ++i) {
        absl::string_view value = values[i];
        if (absl::ConsumePrefix(&value, "`")) absl::ConsumeSuffix(&value, "`");
        one.emplace_back(names[i], value);
      }
    }
  }
  return all;
}

// The comment of a line, without its semicolon; nullopt where there is none.
std::optional<absl::string_view> comment_of(absl::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && quoted) {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ';' && !quoted) {
      return absl::StripAsciiWhitespace(line.substr(i + 1));
    }
  }
  return std::nullopt;
}

// Lower case and dashes: prose that has a colon has a space or a capital in front of it.
bool is_directive_like(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || c == '-';
  });
}

}  // namespace

std::vector<CaseText> split_cases(absl::string_view file) {
  std::vector<CaseText> cases(1);
  size_t start = 0;
  int number = 0;
  for (size_t at = 0; at < file.size();) {
    ++number;
    const size_t end = std::min(file.find('\n', at), file.size());
    const absl::string_view line = file.substr(at, end - at);
    if (absl::StartsWith(line, kSeparator)) {
      cases.back().text = file.substr(start, at - start);
      start = at;
      const size_t title = std::min(line.find_first_not_of("; -"), line.size());
      cases.push_back({std::string(absl::StripAsciiWhitespace(line.substr(title))), number, {}});
    }
    at = end + 1;
  }
  cases.back().text = file.substr(std::min(start, file.size()));
  return cases;
}

std::vector<Instance> instances_of(const CaseText& part, std::vector<Fault>& faults) {
  std::vector<Values> all(1);
  for (const Directive& directive : directives_of(part.text)) {
    if (directive.word != "for") continue;
    Directive placed = directive;
    placed.line += part.first_line - 1;
    std::vector<Values> product;
    const std::vector<Values> choices = read_for(placed, faults);
    for (const Values& more : choices) {
      for (const Values& so_far : all) {
        Values& both = product.emplace_back(so_far);
        both.insert(both.end(), more.begin(), more.end());
      }
    }
    all = std::move(product);
    for (const std::string& name : names_of(directive)) {
      if (choices.empty() || occurrences(part.text, name) > 1) continue;
      faults.push_back({placed.line, absl::StrCat("nothing in this case uses ", name)});
    }
  }
  const std::string in_front(static_cast<size_t>(part.first_line - 1), '\n');
  std::vector<Instance> instances;
  for (Values& values : all) {
    // Long names first: $Tail is not $T with an ending.
    Values by_length = values;
    std::stable_sort(by_length.begin(), by_length.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    const auto say = [](std::string* out, const auto& value) {
      absl::StrAppend(out, value.first, " = ", value.second);
    };
    instances.push_back({absl::StrCat(in_front, absl::StrReplaceAll(part.text, by_length)),
                         absl::StrJoin(values, ", ", say)});
  }
  return instances;
}

std::vector<Directive> directives_of(absl::string_view text) {
  std::vector<Directive> directives;
  bool continues = false;  // the line before is, or continues, a directive of its own line
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::optional<absl::string_view> comment = comment_of(line);
    if (!comment || golden_line(line) || absl::StartsWith(line, kSeparator)) {
      continues = false;
      continue;
    }
    if (continues && absl::StartsWith(line, kContinuation)) {
      absl::StrAppend(&directives.back().rest, " ", *comment);
      continue;
    }
    const size_t colon = comment->find(':');
    continues = colon != comment->npos && is_directive_like(comment->substr(0, colon));
    if (!continues) continue;
    const bool own_line = line[0] == ';';
    directives.push_back({number, std::string(comment->substr(0, colon)),
                          std::string(absl::StripAsciiWhitespace(comment->substr(colon + 1))),
                          own_line});
    continues = own_line;
  }
  return directives;
}

std::optional<absl::string_view> golden_line(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, kGoldenMark)) return std::nullopt;
  return absl::StripPrefix(line, " ");
}

}  // namespace heddle::filetest
