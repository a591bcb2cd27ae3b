// `heddle passes`: what can stand in a pipeline.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/passes/pipeline_text.h"
#include "heddle/tools/command/commands.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

// "after vectorize, on sm_90a alone"; empty for a pass that only pipelines of its name run.
std::string place_of(const ir::Pass& pass) {
  std::vector<std::string> parts;
  if (!pass.after.empty()) parts.push_back(absl::StrCat("after ", pass.after));
  if (!pass.before.empty()) parts.push_back(absl::StrCat("before ", pass.before));
  if (!pass.targets.empty()) {
    parts.push_back(absl::StrCat("on ", absl::StrJoin(pass.targets, ", "), " alone"));
  }
  return absl::StrJoin(parts, ", ");
}

Json to_json(const ir::Pass& pass) {
  Json options = Json::array();
  for (const ir::PassOption& option : pass.options) {
    options.push_back({{"name", option.name},
                       {"default", option.otherwise},
                       {"least", option.least},
                       {"most", option.most},
                       {"help", option.says}});
  }
  return {{"name", pass.name},      {"summary", pass.summary}, {"options", options},
          {"needs", pass.needs},    {"gives", pass.gives},     {"breaks", pass.breaks},
          {"keeps", pass.keeps},    {"after", pass.after},     {"before", pass.before},
          {"targets", pass.targets}};
}

void print(const ir::Pass& pass) {
  const std::string place = place_of(pass);
  absl::PrintF("%-16s %s%s\n", pass.name, pass.summary,
               place.empty() ? "" : absl::StrCat(" (", place, ")"));
  for (const ir::PassOption& option : pass.options) {
    absl::PrintF("  {%s=%d}  %s (%d to %d)\n", option.name, option.otherwise, option.says,
                 option.least, option.most);
  }
}

// What a level runs, with the passes of programs and plug-ins that have a place in it.
StatusOr<std::string> passes_of(const ir::PipelineLevel& level, const ir::PassRegistry& registry) {
  if (registry.passes().size() == ir::builtin_passes().size()) return std::string(level.passes);
  const auto steps = ir::parse_pipeline(registry, level.name);
  if (!steps.ok()) return steps.status();
  return absl::StrJoin(*steps, ",", [](std::string* out, const ir::PipelineStep& step) {
    std::vector<std::string> set;
    for (size_t i = 0; i < step.values.size(); ++i) {
      const ir::PassOption& option = step.pass->options[i];
      if (step.values[i] != option.otherwise) {
        set.push_back(absl::StrCat(option.name, "=", step.values[i]));
      }
    }
    absl::StrAppend(out, step.pass->name,
                    set.empty() ? "" : absl::StrCat("{", absl::StrJoin(set, ","), "}"));
  });
}

}  // namespace

Exit list_passes(const PassesOptions& options) {
  const auto registry = ir::process_passes();
  if (!registry.ok()) return failed(registry.status());
  if (options.json) {
    Json passes = Json::array(), levels = Json::array();
    for (const ir::Pass& pass : (*registry)->passes()) passes.push_back(to_json(pass));
    for (const ir::PipelineLevel& level : ir::pipeline_levels()) {
      const auto text = passes_of(level, **registry);
      if (!text.ok()) return failed(text.status());
      levels.push_back({{"name", level.name}, {"passes", *text}, {"summary", level.says}});
    }
    absl::PrintF("%s\n", Json{{"passes", passes}, {"levels", levels}}.dump(2));
    return Exit::kDone;
  }
  for (const ir::Pass& pass : (*registry)->passes()) print(pass);
  absl::PrintF("\n");
  for (const ir::PipelineLevel& level : ir::pipeline_levels()) {
    const auto text = passes_of(level, **registry);
    if (!text.ok()) return failed(text.status());
    absl::PrintF("%s: %s\n  %s\n", level.name, level.says, *text);
  }
  return Exit::kDone;
}

}  // namespace heddle::tools
