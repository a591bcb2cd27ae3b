// Explanations as text, JSON and a page.
#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/wording.h"
#include "heddle/tools/command/explain/explanation.h"
#include "heddle/tools/command/explain/page.h"
#include "heddle/tools/command/findings.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string describe(const Explanation::Access& access) {
  std::string text =
      absl::StrCat(access.count > 1 ? absl::StrCat(access.count, " × ") : "", access.op);
  if (!access.warp) return absl::StrCat(text, ": places that are not known");
  const ir::WarpAccess& warp = *access.warp;
  const bool is_global = warp.space == ir::Space::kGlobal;
  absl::StrAppend(&text, ": ", ir::counted(warp.lane_bytes, "byte"), " a lane, ",
                  ir::counted(warp.transactions, is_global ? "sector" : "bank round"));
  if (warp.transactions > warp.fewest) absl::StrAppend(&text, " where ", warp.fewest, " would do");
  return text;
}

std::string describe(const Explanation::Change& change) {
  return absl::StrCat(change.pass, change.removed > 0 ? absl::StrCat(" -", change.removed) : "",
                      change.added > 0 ? absl::StrCat(" +", change.added) : "");
}

// "integers 12, floats 8", the most first.
std::string describe(const std::map<std::string, int>& mix) {
  std::vector<std::pair<std::string, int>> kinds(mix.begin(), mix.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return absl::StrJoin(kinds, ", ", [](std::string* out, const auto& kind) {
    absl::StrAppend(out, kind.first, " ", kind.second);
  });
}

std::string heading(const Explanation& explanation) {
  std::string text = absl::StrCat("kernel ", explanation.kernel, " for ", explanation.target);
  if (explanation.resources) {
    const codegen::EntryReport& r = *explanation.resources;
    const int spills = r.spill_store_bytes + r.spill_load_bytes;
    absl::StrAppend(&text, ": ", ir::counted(r.registers, "register"), ", ",
                    spills == 0 ? "no spills" : absl::StrCat(spills, " bytes spilled"), ", ",
                    ir::counted(r.shared_bytes, "byte"), " of shared memory");
  }
  absl::StrAppend(
      &text, "\nvalues live at once: ", ir::counted(explanation.peak_registers, "register"), "\n");
  if (!explanation.mix.empty()) {
    absl::StrAppend(&text, "instructions: ", describe(explanation.mix), "\n");
  }
  return text;
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  std::string text = heading(explanation);
  const std::string* file = nullptr;
  for (const Explanation::Line& line : explanation.lines) {
    if (line.ir + line.ptx + line.sass == 0 && line.changes.empty()) continue;
    if (file == nullptr || *file != line.file) {
      file = &line.file;
      absl::StrAppend(&text, "\n", line.file, "\n", "  line    IR   PTX  SASS  live\n");
    }
    absl::StrAppendFormat(&text, "%6d %5d %5d %5s %5d  %s\n", line.number, line.ir, line.ptx,
                          explanation.sass.empty() ? "-" : absl::StrCat(line.sass), line.registers,
                          absl::StripTrailingAsciiWhitespace(line.source));
    const auto note = [&](absl::string_view what) {
      absl::StrAppend(&text, std::string(31, ' '), what, "\n");
    };
    for (const Explanation::Access& access : line.accesses) note(describe(access));
    if (!line.changes.empty()) {
      note(absl::StrJoin(line.changes, ", ", [](std::string* out, const auto& change) {
        absl::StrAppend(out, describe(change));
      }));
    }
  }
  return text;
}

Json to_json(const Explanation& explanation) {
  Json json{{"kernel", explanation.kernel}, {"target", explanation.target}};
  if (explanation.resources) {
    const codegen::EntryReport& r = *explanation.resources;
    json["registers"] = r.registers;
    json["spill_store_bytes"] = r.spill_store_bytes;
    json["spill_load_bytes"] = r.spill_load_bytes;
    json["stack_bytes"] = r.stack_frame_bytes;
    json["shared_bytes"] = r.shared_bytes;
  }
  json["live_registers"] = explanation.peak_registers;
  json["mix"] = explanation.mix;
  json["lines"] = Json::array();
  for (const Explanation::Line& line : explanation.lines) {
    Json one{{"file", line.file},      {"line", line.number}, {"source", line.source},
             {"ir", line.ir},          {"ptx", line.ptx},     {"sass", line.sass},
             {"live", line.registers}, {"loops", line.loops}, {"cost", line.cost()},
             {"mix", line.mix}};
    one["accesses"] = Json::array();
    for (const Explanation::Access& access : line.accesses) {
      Json place{{"op", access.op}, {"count", access.count}, {"says", describe(access)}};
      if (access.warp) {
        place["lane_bytes"] = access.warp->lane_bytes;
        place["transactions"] = access.warp->transactions;
        place["fewest"] = access.warp->fewest;
      }
      one["accesses"].push_back(std::move(place));
    }
    one["changes"] = Json::array();
    for (const Explanation::Change& change : line.changes) {
      one["changes"].push_back(
          {{"pass", change.pass}, {"added", change.added}, {"removed", change.removed}});
    }
    json["lines"].push_back(std::move(one));
  }
  const auto rows = [](const std::vector<Explanation::Row>& all) {
    Json list = Json::array();
    for (const Explanation::Row& row : all) {
      Json one{{"text", row.text}, {"line", row.line}};
      if (row.indent > 0) one["indent"] = row.indent;
      if (row.registers > 0) one["live"] = row.registers;
      if (!row.kind.empty()) one["kind"] = row.kind;
      list.push_back(std::move(one));
    }
    return list;
  };
  json["rows"] = {{"ir", rows(explanation.ir)},
                  {"ptx", rows(explanation.ptx)},
                  {"sass", rows(explanation.sass)}};
  return json;
}

std::string to_html(const Explanation& explanation) {
  Json data = to_json(explanation);
  data["heading"] = heading(explanation);
  // Nothing in it may end the script that holds it.
  const std::string text = absl::StrReplaceAll(to_string(data), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kExplainPage, {{"HEDDLE_DATA", text}});
}

}  // namespace heddle::tools
