#include "heddle/ir/passes/pipeline.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

struct PropertyName {
  Property property;
  absl::string_view name;
};
constexpr PropertyName kProperties[] = {
    {kPureSsa, "a kernel without variables"},
};

std::vector<absl::string_view> split_names(absl::string_view list) {
  std::vector<absl::string_view> names;
  if (absl::StripAsciiWhitespace(list).empty()) return names;
  for (const absl::string_view name : absl::StrSplit(list, ',')) {
    names.push_back(absl::StripAsciiWhitespace(name));
  }
  return names;
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

// Names in an option: "all" is everything.
class NameFilter {
 public:
  static StatusOr<NameFilter> make(const PassRegistry& registry, absl::string_view list,
                                   absl::string_view option) {
    NameFilter filter;
    for (const absl::string_view name : split_names(list)) {
      if (name == "all") {
        filter.all_ = true;
        continue;
      }
      const auto pass = find_pass(registry, name, option);
      if (!pass.ok()) return pass.status();
      filter.names_.push_back(name);
    }
    return filter;
  }
  bool matches(absl::string_view name) const {
    for (const absl::string_view wanted : names_) {
      if (wanted == name) return true;
    }
    return all_;
  }

 private:
  bool all_ = false;
  std::vector<absl::string_view> names_;
};

// Why a need is unmet, and what to do about it.
Status unmet_need(const PassRegistry& registry, absl::Span<const Pass* const> plan, size_t index,
                  const PropertyName& need, absl::string_view pipeline) {
  const Pass* breaker = nullptr;
  for (const Pass* const pass : plan.subspan(0, index)) {
    if ((pass->breaks & need.property) != 0) breaker = pass;
    if ((pass->gives & need.property) != 0) breaker = nullptr;
  }
  std::string message = absl::StrCat("pass '", plan[index]->name, "' needs ", need.name);
  if (breaker != nullptr) {
    absl::StrAppend(&message, ", which '", breaker->name, "' before it undoes");
  } else {
    absl::StrAppend(&message, ", which no pass before it gives");
  }
  for (const Pass& pass : registry.passes()) {
    if ((pass.gives & need.property) == 0) continue;
    absl::StrAppend(&message, "; put '", pass.name, "' before it");
    break;
  }
  return InvalidArgumentError(absl::StrCat(message, " in pipeline '", pipeline, "'"));
}

StatusOr<std::vector<const Pass*>> plan_pipeline(const PassRegistry& registry,
                                                 absl::string_view pipeline, uint32_t properties) {
  std::vector<const Pass*> plan;
  for (const absl::string_view name : split_names(pipeline)) {
    const auto pass = find_pass(registry, name, absl::StrCat("pipeline '", pipeline, "'"));
    if (!pass.ok()) return pass.status();
    plan.push_back(*pass);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    for (const PropertyName& need : kProperties) {
      if ((plan[i]->needs & ~properties & need.property) == 0) continue;
      return unmet_need(registry, plan, i, need, pipeline);
    }
    properties = (properties & ~plan[i]->breaks) | plan[i]->gives;
  }
  return plan;
}

int count_ops(const Kernel& kernel) {
  int count = 0;
  kernel.walk([&](OpId id) { count += kernel.op(id).opcode == Opcode::kYield ? 0 : 1; });
  return count;
}

Status check(const Kernel& kernel, uint32_t properties, absl::string_view when) {
  const Stage stage = (properties & kPureSsa) != 0 ? Stage::kPureSsa : Stage::kRewritten;
  const Diagnostics wrong = verify(kernel, stage);
  return to_status(absl::StrCat("kernel '", kernel.name(), "' ", when), wrong);
}

}  // namespace

uint32_t properties_of(const Kernel& kernel) {
  bool slots = false;
  kernel.walk([&](OpId id) { slots |= kernel.op(id).opcode == Opcode::kVar; });
  return slots ? kNoProperties : kPureSsa;
}

Status run_pipeline(Kernel& kernel, absl::string_view passes, const PipelineOptions& options) {
  static const auto* const builtin = new PassRegistry();
  const PassRegistry& registry = options.registry != nullptr ? *options.registry : *builtin;
  uint32_t properties = properties_of(kernel);
  auto plan = plan_pipeline(registry, passes, properties);
  if (!plan.ok()) return plan.status();
  const auto before = NameFilter::make(registry, options.print_before, "print_before");
  if (!before.ok()) return before.status();
  const auto after = NameFilter::make(registry, options.print_after, "print_after");
  if (!after.ok()) return after.status();
  if (!options.stop_after.empty()) {
    const auto pass = find_pass(registry, options.stop_after, "stop_after");
    if (!pass.ok()) return pass.status();
  }
  const auto print_text = [&](absl::string_view text) {
    if (options.print) {
      options.print(text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stderr);
    }
  };

  if (options.verify_each) {
    const Status status = check(kernel, properties, "before the first pass");
    if (!status.ok()) return status;
  }
  const auto limit =
      options.pass_limit < 0 ? plan->size() : static_cast<size_t>(options.pass_limit);
  for (size_t i = 0; i < plan->size() && i < limit; ++i) {
    const Pass& pass = *(*plan)[i];
    if (before->matches(pass.name)) {
      print_text(absl::StrCat("; before ", pass.name, "\n", print(kernel)));
    }
    PassRun run{.name = std::string(pass.name)};
    if (options.report != nullptr) run.ops_before = count_ops(kernel);
    const auto start = std::chrono::steady_clock::now();
    const StatusOr<bool> changed = pass.run(kernel);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (!changed.ok()) return changed.status();
    properties = (properties & ~pass.breaks) | pass.gives;
    if (options.report != nullptr) {
      run.microseconds = took.count();
      run.changed = *changed;
      run.ops_after = count_ops(kernel);
      options.report->passes.push_back(std::move(run));
    }
    if (after->matches(pass.name)) {
      print_text(*changed ? absl::StrCat("; after ", pass.name, "\n", print(kernel))
                          : absl::StrCat("; after ", pass.name, ": unchanged\n"));
    }
    if (options.verify_each) {
      const Status status = check(kernel, properties, absl::StrCat("after '", pass.name, "'"));
      if (!status.ok()) return InternalError(status.message());
    }
    if (pass.name == options.stop_after) break;
  }
  return OkStatus();
}

}  // namespace heddle::ir
