#include "heddle/tools/command/statistics.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "heddle/ir/analysis/liveness.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using absl::string_view;
using Json = nlohmann::ordered_json;

// Of those with the most live values.
constexpr size_t kLinesShown = 8;

// PTX as statements: what ends with ';', opens or closes a block, or is a label.
class PtxStatements {
 public:
  explicit PtxStatements(string_view text) : text_(text) {}

  // The next instruction, directives and labels passed over; empty at the end.
  string_view next_instruction() {
    while (true) {
      skip_blank();
      if (at_ == text_.size()) return {};
      const char c = text_[at_];
      if (c == '{' || c == '}' || c == ';') {
        ++at_;
      } else if (c == '.') {
        skip_directive();
      } else if (const string_view word = text_.substr(at_, word_length());
                 !word.empty() && at_ + word.size() < text_.size() &&
                 text_[at_ + word.size()] == ':') {
        at_ += word.size() + 1;
      } else {
        const size_t start = at_;
        at_ = std::min(text_.find(';', at_), text_.size());
        return text_.substr(start, at_ - start);
      }
    }
  }

 private:
  size_t word_length() const {
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[end])) ||
                                  absl::StrContains("_$%", text_.substr(end, 1)))) {
      ++end;
    }
    return end - at_;
  }
  void skip_blank() {
    while (at_ < text_.size()) {
      if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (absl::StartsWith(text_.substr(at_), "//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (absl::StartsWith(text_.substr(at_), "/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }
  // Directives of the file and of source lines end with their line, others with ';' or at a '{'.
  void skip_directive() {
    const string_view rest = text_.substr(at_);
    bool of_line = false;
    for (const string_view word : {".loc", ".file", ".version", ".target", ".address_size"}) {
      of_line = of_line || absl::StartsWith(rest, word);
    }
    at_ = std::min(text_.find_first_of(of_line ? "\n" : ";{", at_), text_.size());
  }

  const string_view text_;
  size_t at_ = 0;
};

Json to_json(const codegen::EntryReport& report) {
  Json json = {{"registers", report.registers},
               {"spill_store_bytes", report.spill_store_bytes},
               {"spill_load_bytes", report.spill_load_bytes},
               {"stack_frame_bytes", report.stack_frame_bytes},
               {"shared_bytes", report.shared_bytes},
               {"constant_bytes", report.constant_bytes},
               {"code_bytes", report.code_bytes}};
  if (report.barriers) json["barriers"] = *report.barriers;
  return json;
}

struct Column {
  string_view name;
  const std::optional<Counts>& counts;
};

std::vector<Column> columns(const Statistics& s) {
  return {{"trace", s.trace}, {"ir", s.ir}, {"ptx", s.ptx}, {"sass", s.sass}};
}

int total(const Counts& counts) {
  int sum = 0;
  for (const auto& [opcode, count] : counts) sum += count;
  return sum;
}

// Most frequent first, then by name.
std::vector<std::pair<std::string, int>> ranked(const Counts& counts) {
  std::vector<std::pair<std::string, int>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

}  // namespace

Counts count_ops(const ir::Kernel& kernel) {
  Counts counts;
  kernel.walk([&](ir::OpId id) { ++counts[std::string(ir::info(kernel.op(id)).mnemonic)]; });
  return counts;
}

Counts count_ptx_instructions(string_view ptx) {
  Counts counts;
  PtxStatements statements(ptx);
  for (string_view text = statements.next_instruction(); !text.empty();
       text = statements.next_instruction()) {
    if (absl::StartsWith(text, "@")) {
      text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
      text = absl::StripLeadingAsciiWhitespace(text);
    }
    const string_view opcode = text.substr(0, text.find_first_of(" \t\n{"));
    if (!opcode.empty()) ++counts[std::string(opcode)];
  }
  return counts;
}

std::string describe(const codegen::Assembly& assembly, string_view entry) {
  const codegen::EntryReport* const report = assembly.find(entry);
  std::string text = absl::StrFormat("ptxas %s: %d bytes of machine code\n",
                                     assembly.ptxas_version.to_string(), assembly.cubin.size());
  if (report != nullptr) {
    absl::StrAppendFormat(&text, "%d registers, %d + %d bytes spilled, %d bytes of shared memory\n",
                          report->registers, report->spill_store_bytes, report->spill_load_bytes,
                          report->shared_bytes);
  }
  for (const codegen::Diagnostic& said : assembly.diagnostics) {
    if (said.severity == codegen::Severity::kInfo && !said.is_performance_note()) continue;
    absl::StrAppendFormat(&text, "PTX line %d: %s: %s\n", said.ptx_line,
                          codegen::severity_name(said.severity), said.text);
  }
  return text;
}

std::vector<Statistics::Pressure> pressures_of(const ir::Kernel& kernel) {
  const ir::Liveness liveness(kernel);
  std::vector<Statistics::Pressure> lines;
  std::map<std::string, size_t> index_of;
  kernel.walk([&](ir::OpId id) {
    const ir::Loc loc = kernel.loc(id);
    std::string place =
        loc.file.empty() ? "a line that is not known" : absl::StrCat(loc.file, ":", loc.line);
    const auto [at, is_new] = index_of.try_emplace(place, lines.size());
    if (is_new) lines.push_back({std::move(place), 0});
    int& registers = lines[at->second].registers;
    registers = std::max(registers, liveness.registers_at(id));
  });
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.registers > b.registers; });
  return lines;
}

std::string to_text(const Statistics& statistics) {
  std::string text = absl::StrCat("kernel ", statistics.kernel, " for ", statistics.target, "\n");
  if (statistics.resources) {
    const codegen::EntryReport& r = *statistics.resources;
    absl::StrAppendFormat(&text,
                          "%d registers a thread; %d bytes spilled by stores, %d by loads; "
                          "%d bytes of stack\n"
                          "%d bytes of shared memory a block; %d bytes of constants, %d of code\n",
                          r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_frame_bytes,
                          r.shared_bytes, r.constant_bytes, r.code_bytes);
  }
  if (statistics.live) {
    absl::StrAppend(&text, "values of 32 bits live at once, by line:\n");
    const auto lines = absl::MakeConstSpan(*statistics.live);
    for (const Statistics::Pressure& line : lines.first(std::min(lines.size(), kLinesShown))) {
      absl::StrAppendFormat(&text, "%7d   %s\n", line.registers, line.place);
    }
  }
  for (const Column& column : columns(statistics)) {
    if (!column.counts) continue;
    absl::StrAppendFormat(&text, "\n%7d %s\n", total(*column.counts), column.name);
    for (const auto& [opcode, count] : ranked(*column.counts)) {
      absl::StrAppendFormat(&text, "%7d   %s\n", count, opcode);
    }
  }
  return text;
}

nlohmann::ordered_json to_json(const Statistics& statistics) {
  Json json = {{"kernel", statistics.kernel}, {"target", statistics.target}};
  for (const Column& column : columns(statistics)) {
    if (!column.counts) continue;
    json[std::string(column.name)] = {{"total", total(*column.counts)},
                                      {"by_opcode", *column.counts}};
  }
  if (statistics.resources) json["resources"] = to_json(*statistics.resources);
  if (statistics.live) {
    json["live"] = Json::array();
    for (const Statistics::Pressure& line : *statistics.live) {
      json["live"].push_back({{"place", line.place}, {"registers", line.registers}});
    }
  }
  return json;
}

}  // namespace heddle::tools
