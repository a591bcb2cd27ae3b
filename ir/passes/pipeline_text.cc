#include "heddle/ir/passes/pipeline_text.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// One element of a pipeline's text.
struct Element {
  absl::string_view name;
  bool braces = false;
  absl::string_view options{};  // between them
};

class Parser {
 public:
  Parser(const PassRegistry& registry, absl::string_view text) : registry_(registry), text_(text) {}

  StatusOr<std::vector<PipelineStep>> parse() {
    if (Status wrong = append(text_); !wrong.ok()) return wrong;
    return std::move(steps_);
  }

 private:
  template <class... Text>
  Status wrong(Text... text) const {
    return InvalidArgumentError(absl::StrCat(text..., " in pipeline '", text_, "'"));
  }

  Status append(absl::string_view passes) {
    for (const absl::string_view text : split_pipeline(passes)) {
      Element element{.name = text};
      const size_t brace = text.find('{');
      if (brace != absl::string_view::npos) {
        if (!absl::EndsWith(text, "}")) return wrong("'", text, "' lacks a '}' at its end");
        element = {absl::StripAsciiWhitespace(text.substr(0, brace)), true,
                   text.substr(brace + 1, text.size() - brace - 2)};
      }
      if (Status status = append(element); !status.ok()) return status;
    }
    return OkStatus();
  }

  Status append(const Element& element) {
    if (absl::StartsWith(element.name, "-")) return leave_out(element);
    const auto levels = pipeline_levels();
    const auto level =
        absl::c_find_if(levels, [&](const PipelineLevel& l) { return l.name == element.name; });
    if (level != levels.end()) {
      if (element.braces) return wrong("the level ", level->name, " takes no options");
      return append_level(*level);
    }
    if (element.name.size() > 1 && element.name[0] == 'O' &&
        absl::c_all_of(element.name.substr(1), absl::ascii_isdigit)) {
      return wrong("level ", element.name, " is none of ",
                   absl::StrJoin(levels, ", ", [](std::string* out, const PipelineLevel& l) {
                     absl::StrAppend(out, l.name);
                   }));
    }
    const auto pass = find_pass(registry_, element.name, absl::StrCat("pipeline '", text_, "'"));
    if (!pass.ok()) return pass.status();
    PipelineStep step = plain(**pass);
    if (Status status = set_options(element.options, step); !status.ok()) return status;
    steps_.push_back(std::move(step));
    return OkStatus();
  }

  Status leave_out(const Element& element) {
    const absl::string_view name = absl::StripAsciiWhitespace(element.name.substr(1));
    if (element.braces) return wrong("'-", name, "' takes no options");
    const auto pass = find_pass(registry_, name, absl::StrCat("pipeline '", text_, "'"));
    if (!pass.ok()) return pass.status();
    const size_t before = steps_.size();
    std::erase_if(steps_, [&](const PipelineStep& step) { return step.pass == *pass; });
    if (steps_.size() < before) return OkStatus();
    return wrong("nothing in front of '-", name, "' runs pass '", name, "'");
  }

  static PipelineStep plain(const Pass& pass) {
    PipelineStep step{.pass = &pass};
    for (const PassOption& option : pass.options) step.values.push_back(option.otherwise);
    return step;
  }

  // A level's own passes, and then those that find their place among them.
  Status append_level(const PipelineLevel& level) {
    std::vector<PipelineStep> before = std::exchange(steps_, {});
    if (Status status = append(level.passes); !status.ok()) return status;
    for (const Pass& pass : registry_.passes()) {
      const bool behind = !pass.after.empty();
      const absl::string_view anchor = behind ? pass.after : pass.before;
      const auto is_anchor = [&](const PipelineStep& step) { return step.pass->name == anchor; };
      if (behind) {
        const auto last = std::find_if(steps_.rbegin(), steps_.rend(), is_anchor);
        if (last == steps_.rend()) continue;
        // Behind those that stand there already: in the order of registration.
        auto place = last.base();
        while (place != steps_.end() && place->pass->after == anchor) ++place;
        steps_.insert(place, plain(pass));
      } else if (!anchor.empty()) {
        const auto first = absl::c_find_if(steps_, is_anchor);
        if (first != steps_.end()) steps_.insert(first, plain(pass));
      }
    }
    before.insert(before.end(), steps_.begin(), steps_.end());
    steps_ = std::move(before);
    return OkStatus();
  }

  // "factor=4, most=8".
  Status set_options(absl::string_view text, PipelineStep& step) {
    const Pass& pass = *step.pass;
    if (absl::StripAsciiWhitespace(text).empty()) return OkStatus();
    for (const absl::string_view one : absl::StrSplit(text, ',')) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(one, absl::MaxSplits('=', 1));
      const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
      const auto option =
          absl::c_find_if(pass.options, [&](const PassOption& o) { return o.name == name; });
      if (option == pass.options.end()) return no_option(pass, name);
      int64_t value = 0;
      if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(parts.second), &value) ||
          value < option->least || value > option->most) {
        return wrong("option '", name, "' of pass '", pass.name, "' takes a number from ",
                     option->least, " to ", option->most, ", and '", one, "' has none");
      }
      step.values[static_cast<size_t>(option - pass.options.begin())] = value;
    }
    return OkStatus();
  }

  Status no_option(const Pass& pass, absl::string_view name) const {
    if (pass.options.empty()) return wrong("pass '", pass.name, "' takes no options");
    std::vector<absl::string_view> known;
    for (const PassOption& option : pass.options) known.push_back(option.name);
    const std::string hint = suggest(name, known);
    return wrong("pass '", pass.name, "' has no option '", name, "'",
                 hint.empty() ? absl::StrCat("; it has ", absl::StrJoin(known, ", ")) : hint);
  }

  const PassRegistry& registry_;
  absl::string_view text_;
  std::vector<PipelineStep> steps_;
};

}  // namespace

absl::Span<const PipelineLevel> pipeline_levels() {
  static constexpr PipelineLevel kLevels[] = {
      {"O0", "promote-vars", "as written: what code generation needs, and no more"},
      {"O1", "promote-vars,unroll,fold,dce,cse,dce", "quick: no loop or access changes its shape"},
      {"O2", kExactPipeline, "every result rounded as the program is written"},
      {"O3", kDefaultPipeline, "what runs where nothing else is asked for"},
  };
  return kLevels;
}

std::vector<absl::string_view> split_pipeline(absl::string_view text) {
  std::vector<absl::string_view> parts;
  if (absl::StripAsciiWhitespace(text).empty()) return parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(absl::StripAsciiWhitespace(text.substr(start, i - start)));
    start = i + 1;
  }
  return parts;
}

StatusOr<const Pass*> find_pass(const PassRegistry& registry, absl::string_view name,
                                absl::string_view where) {
  if (const Pass* const pass = registry.find(name)) return pass;
  std::vector<absl::string_view> known;
  for (const Pass& pass : registry.passes()) known.push_back(pass.name);
  const std::string hint = suggest(name, known);
  return InvalidArgumentError(
      absl::StrCat("unknown pass '", name, "' in ", where,
                   hint.empty() ? absl::StrCat("; there are ", absl::StrJoin(known, ", ")) : hint));
}

StatusOr<std::vector<PipelineStep>> parse_pipeline(const PassRegistry& registry,
                                                   absl::string_view text) {
  return Parser(registry, text).parse();
}

}  // namespace heddle::ir
