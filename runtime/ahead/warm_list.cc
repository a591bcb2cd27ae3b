#include "heddle/runtime/ahead/warm_list.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/wording.h"

namespace heddle::runtime {
namespace {

using absl::string_view;

constexpr char kUnknownValues[] = "?";
constexpr char kBlockOfKernelWord[] = "kernel";

// --- Printing ---

bool is_plain(char c) { return absl::ascii_isgraph(c) && c != '"' && c != '\\'; }

// A text as one word: in quotes where it has blanks, quotes or nothing.
std::string quote_text(string_view text) {
  if (!text.empty() && absl::c_all_of(text, is_plain)) return std::string(text);
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

std::string block_text(const Dim3& block) {
  return block.x == ir::kBlockOfKernel ? kBlockOfKernelWord : ir::to_string(block);
}

// "x: const f32[m, 128, ?]", "p: f32*", "n: i32"
std::string describe_parameter(const ir::ParamInfo& param) {
  std::string text = absl::StrCat(param.name, ": ");
  if (param.type.is_view() && param.type.read_only) text += "const ";
  absl::StrAppend(&text, ir::info(param.type.scalar).name);
  if (!param.type.is_view()) return text;
  if (param.unbounded) return text + "*";
  std::vector<std::string> extents;
  for (size_t mode = 0; mode < param.type.rank; ++mode) {
    const ir::DeclaredExtent extent =
        mode < param.extents.size() ? param.extents[mode] : ir::DeclaredExtent();
    extents.push_back(extent.number != ir::kDynamic ? absl::StrCat(extent.number)
                      : extent.name.empty()         ? "?"
                                                    : extent.name);
  }
  return absl::StrCat(text, "[", absl::StrJoin(extents, ", "), "]");
}

// --- Parsing ---

Status damaged(string_view what) { return InvalidArgumentError(what); }

// The words of a line. A quote may stand anywhere in a word, and blanks within quotes are the word's.
StatusOr<std::vector<string_view>> words_of(string_view line) {
  std::vector<string_view> words;
  size_t begin = string_view::npos;
  bool in_quotes = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    const bool ends = i == line.size() || (!in_quotes && absl::ascii_isspace(line[i]));
    if (ends) {
      if (begin != string_view::npos) words.push_back(line.substr(begin, i - begin));
      begin = string_view::npos;
      continue;
    }
    if (begin == string_view::npos) begin = i;
    if (line[i] == '"') in_quotes = !in_quotes;
    if (in_quotes && line[i] == '\\') ++i;
  }
  if (in_quotes) return damaged("a quote is not closed");
  return words;
}

// What quote_text() was given.
StatusOr<std::string> unquoted(string_view word) {
  const string_view whole = word;
  if (!absl::ConsumePrefix(&word, "\"")) {
    if (!word.empty() && absl::c_all_of(word, is_plain)) return std::string(word);
  } else if (std::string text; absl::ConsumeSuffix(&word, "\"") && absl::CUnescape(word, &text)) {
    return text;
  }
  return damaged(absl::StrCat("'", absl::CHexEscape(whole), "' is no text"));
}

// "128x1x1"
std::optional<Dim3> read_dim3(string_view text) {
  const std::vector<string_view> parts = absl::StrSplit(text, 'x');
  Dim3 dims;
  if (parts.size() != 3) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (!absl::SimpleAtoi(parts[i], &dims[i]) || dims[i] < 1) return std::nullopt;
  }
  return dims;
}

// "align(0)=16"
std::optional<ir::Guard> read_fact(string_view text) {
  const std::pair<string_view, string_view> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::pair<string_view, string_view> call = absl::StrSplit(sides.first, absl::MaxSplits('(', 1));
  const auto row =
      absl::c_find_if(ir::kFacts, [&](const ir::FactInfo& r) { return r.name == call.first; });
  if (row == ir::kFacts.end() || !absl::ConsumeSuffix(&call.second, ")")) return std::nullopt;
  const std::vector<string_view> places = absl::StrSplit(call.second, ',');
  int param = 0, dim = 0;
  ir::Guard guard{{static_cast<ir::FactKind>(row - ir::kFacts.begin())}, 0};
  const bool read =
      places.size() == (row->per_dim ? 2u : 1u) && absl::SimpleAtoi(places[0], &param) &&
      param >= 0 && param <= std::numeric_limits<uint16_t>::max() &&
      (!row->per_dim || absl::SimpleAtoi(places[1], &dim)) && dim >= 0 &&
      dim <= std::numeric_limits<uint8_t>::max() && absl::SimpleAtoi(sides.second, &guard.value);
  if (!read) return std::nullopt;
  guard.fact.param = static_cast<uint16_t>(param);
  guard.fact.dim = static_cast<uint8_t>(dim);
  return guard;
}

Status read_facts(string_view text, std::vector<ir::Guard>& facts) {
  for (const string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::optional<ir::Guard> fact = read_fact(word);
    if (!fact) return damaged(absl::StrCat("'", word, "' is no fact, such as align(0)=16"));
    facts.push_back(*fact);
  }
  return OkStatus();
}

Status read_values(string_view text) {
  const bool is_hex = text.size() % 2 == 0 && absl::c_all_of(text, [](char c) {
                        return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                      });
  if (text == kUnknownValues || is_hex) return OkStatus();
  return damaged("values are hexadecimal, or '?'");
}

// What stands behind a name in a kernel's line.
struct KernelField {
  string_view name;
  std::string (*print)(const KernelLine& line);
  Status (*read)(const std::string& text, KernelLine& line);
};

Status read_shape(string_view text, string_view what, Dim3& dims) {
  const std::optional<Dim3> read = read_dim3(text);
  if (!read) return damaged(absl::StrCat("'", text, "' is no ", what, ", such as 2x1x1"));
  dims = *read;
  return OkStatus();
}

using K = KernelLine;
template <std::string K::*kMember>
Status read_member(const std::string& text, K& line) {
  line.*kMember = text;
  return OkStatus();
}
constexpr KernelField kFields[] = {
    {"at", [](const K& line) { return line.kernel.place; },
     [](const std::string& text, K& line) {
       line.kernel.place = text;
       return OkStatus();
     }},
    {"takes", [](const K& line) { return line.kernel.takes; },
     [](const std::string& text, K& line) {
       line.kernel.takes = text;
       return OkStatus();
     }},
    {"values", [](const K& line) { return line.kernel.values; },
     [](const std::string& text, K& line) {
       line.kernel.values = text;
       return read_values(text);
     }},
    {"target", [](const K& line) { return line.target; }, &read_member<&K::target>},
    {"block", [](const K& line) { return block_text(line.block); },
     [](const std::string& text, K& line) {
       if (text != kBlockOfKernelWord) return read_shape(text, "block", line.block);
       line.block = ir::kBlockOfKernel;
       return OkStatus();
     }},
    {"cluster", [](const K& line) { return ir::to_string(line.cluster); },
     [](const std::string& text, K& line) { return read_shape(text, "cluster", line.cluster); }},
    {"options", [](const K& line) { return line.options; }, &read_member<&K::options>},
    {"facts", [](const K& line) { return print_facts(line.facts); },
     [](const std::string& text, K& line) { return read_facts(text, line.facts); }},
};

// The text behind "name=".
StatusOr<std::string> value_of(string_view word, string_view& name) {
  const std::pair<string_view, string_view> sides = absl::StrSplit(word, absl::MaxSplits('=', 1));
  name = sides.first;
  if (!ir::is_identifier(name) || name.size() == word.size()) {
    return damaged(absl::StrCat("'", absl::CHexEscape(word), "' is not of the form name=value"));
  }
  return unquoted(sides.second);
}

StatusOr<KernelLine> parse_kernel(absl::Span<const string_view> words) {
  KernelLine line;
  const StatusOr<std::string> name = unquoted(words[0]);
  if (!name.ok()) return name.status();
  line.kernel.name = *name;
  std::set<string_view> seen;
  for (const string_view word : words.subspan(1)) {
    string_view field_name;
    const StatusOr<std::string> value = value_of(word, field_name);
    if (!value.ok()) return value.status();
    const auto field =
        absl::c_find_if(kFields, [&](const KernelField& f) { return f.name == field_name; });
    if (field == std::end(kFields)) {
      return damaged(absl::StrCat("a kernel's line has no '", field_name, "'"));
    }
    if (!seen.insert(field->name).second) {
      return damaged(absl::StrCat("'", field_name, "' is given twice"));
    }
    if (Status s = field->read(*value, line); !s.ok()) return s;
  }
  for (const KernelField& field : kFields) {
    if (seen.count(field.name) == 0) return damaged(absl::StrCat("it has no '", field.name, "'"));
  }
  return line;
}

std::optional<std::vector<int64_t>> read_numbers(string_view text) {
  std::vector<int64_t> numbers;
  for (const string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(word, &numbers.emplace_back())) return std::nullopt;
  }
  return numbers;
}

// "x:bf16[8192,4096]{4096,1}"
StatusOr<CallTensor> read_tensor(string_view word) {
  const auto refuse = [&] {
    return damaged(absl::StrCat("'", absl::CHexEscape(word),
                                "' is no tensor, such as x:f32[8,4]{4,1}, and no setting"));
  };
  const std::pair<string_view, string_view> named = absl::StrSplit(word, absl::MaxSplits(':', 1));
  const std::pair<string_view, string_view> typed =
      absl::StrSplit(named.second, absl::MaxSplits('[', 1));
  std::pair<string_view, string_view> sides =
      absl::StrSplit(typed.second, absl::MaxSplits("]{", 1));
  const auto dtype = ir::scalar_from_name(typed.first);
  if (!ir::is_identifier(named.first) || !dtype || !absl::ConsumeSuffix(&sides.second, "}")) {
    return refuse();
  }
  const auto extents = read_numbers(sides.first), strides = read_numbers(sides.second);
  if (!extents || !strides || extents->size() != strides->size()) return refuse();
  return CallTensor{std::string(named.first), {*dtype, *extents}, *strides};
}

StatusOr<CallLine> parse_call(absl::Span<const string_view> words) {
  CallLine line;
  const StatusOr<std::string> name = unquoted(words[0]);
  if (!name.ok()) return name.status();
  line.operation = *name;
  std::set<std::string> seen;
  for (const string_view word : words.subspan(1)) {
    std::string taken;
    if (const size_t at = word.find_first_of("=:"); at == string_view::npos || word[at] == ':') {
      StatusOr<CallTensor> tensor = read_tensor(word);
      if (!tensor.ok()) return tensor.status();
      taken = tensor->name;
      line.tensors.push_back(*std::move(tensor));
    } else {
      string_view setting;
      StatusOr<std::string> value = value_of(word, setting);
      if (!value.ok()) return value.status();
      taken = absl::StrCat(setting, "=");
      line.settings.emplace(setting, *std::move(value));
    }
    if (!seen.insert(taken).second) return damaged(absl::StrCat("'", taken, "' is given twice"));
  }
  return line;
}

StatusOr<WarmListEntry> parse_line(int number, string_view text) {
  const StatusOr<std::vector<string_view>> words = words_of(text);
  if (!words.ok()) return words.status();
  const string_view kind = (*words)[0];
  if (!ir::is_identifier(kind)) {
    return damaged(absl::StrCat("it starts with '", absl::CHexEscape(kind.substr(0, 40)),
                                "', not with 'kernel' or 'call'"));
  }
  const auto entry = [&](auto parsed) -> StatusOr<WarmListEntry> {
    if (!parsed.ok()) return parsed.status();
    return WarmListEntry{number, *std::move(parsed)};
  };
  if (kind != "kernel" && kind != "call") return WarmListEntry{number, std::string(kind)};
  if (words->size() < 2) return damaged(absl::StrCat("the ", kind, "'s name is missing"));
  const auto behind = absl::MakeConstSpan(*words).subspan(1);
  return kind == "kernel" ? entry(parse_kernel(behind)) : entry(parse_call(behind));
}

}  // namespace

KernelIdentity identity_of(const ir::KernelSource& source) {
  const ir::SourceLine place = source.place();
  const std::optional<ir::KernelSource::Origin> origin = source.origin();
  return {.name = source.name(),
          .place = place.file.empty() ? "" : absl::StrCat(place.file, ":", place.line),
          .takes = absl::StrJoin(source.params(), ", ",
                                 [](std::string* out, const ir::ParamInfo& param) {
                                   out->append(describe_parameter(param));
                                 }),
          .values = origin ? absl::BytesToHexString(origin->values) : kUnknownValues};
}

std::string print_facts(absl::Span<const ir::Guard> facts) {
  return absl::StrJoin(facts, " ", [](std::string* out, const ir::Guard& guard) {
    const ir::FactInfo& row = ir::info(guard.fact.kind);
    absl::StrAppend(out, row.name, "(", guard.fact.param);
    if (row.per_dim) absl::StrAppend(out, ",", guard.fact.dim);
    absl::StrAppend(out, ")=", guard.value);
  });
}

std::string print(const KernelLine& line) {
  std::string text = absl::StrCat("kernel ", quote_text(line.kernel.name));
  for (const KernelField& field : kFields) {
    absl::StrAppend(&text, " ", field.name, "=", quote_text(field.print(line)));
  }
  return text;
}

std::string print(const CallLine& line) {
  std::string text = absl::StrCat("call ", quote_text(line.operation));
  for (const auto& [name, value] : line.settings) {
    absl::StrAppend(&text, " ", name, "=", quote_text(value));
  }
  for (const CallTensor& tensor : line.tensors) {
    absl::StrAppend(&text, " ", tensor.name, ":", ir::info(tensor.shape.dtype).name, "[",
                    absl::StrJoin(tensor.shape.extents, ","), "]{",
                    absl::StrJoin(tensor.strides, ","), "}");
  }
  return text;
}

StatusOr<std::vector<WarmListEntry>> parse_warm_list(string_view text) {
  std::vector<WarmListEntry> entries;
  std::set<string_view> seen;
  int number = 0;
  for (const string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#' || !seen.insert(line).second) continue;
    StatusOr<WarmListEntry> entry = parse_line(number, line);
    if (!entry.ok()) {
      return InvalidArgumentError(absl::StrCat("line ", number,
                                               " is damaged: ", entry.status().message(),
                                               "; fix: delete that line, or record the list anew"));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

StatusOr<std::vector<WarmListEntry>> read_warm_list(const std::string& path) {
  std::string text;
  int error = 0;
  if (std::FILE* const file = std::fopen(path.c_str(), "rb")) {
    char bytes[1 << 14];
    errno = 0;
    while (const size_t count = std::fread(bytes, 1, sizeof(bytes), file))
      text.append(bytes, count);
    if (std::ferror(file) != 0) error = errno;
    std::fclose(file);
  } else {
    error = errno;
  }
  if (error != 0) {
    const std::string why =
        absl::StrCat("the list '", path, "' cannot be read: ", std::strerror(error));
    return error == ENOENT ? NotFoundError(why) : FailedPreconditionError(why);
  }
  StatusOr<std::vector<WarmListEntry>> entries = parse_warm_list(text);
  if (entries.ok()) return entries;
  return InvalidArgumentError(absl::StrCat(path, ": ", entries.status().message()));
}

}  // namespace heddle::runtime
