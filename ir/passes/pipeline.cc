#include "heddle/ir/passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/passes/pipeline_text.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::ir {
namespace {

// Names in an option: "all" is everything.
class NameFilter {
 public:
  static StatusOr<NameFilter> make(const PassRegistry& registry, absl::string_view list,
                                   absl::string_view option) {
    NameFilter filter;
    for (const absl::string_view name : split_pipeline(list)) {
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

bool contains(const Pass::Names& names, absl::string_view name) {
  return absl::c_linear_search(names, name);
}

// Whether a pass is for the architecture of a kernel.
bool is_for(const Pass& pass, const Kernel& kernel) {
  return pass.targets.empty() || contains(pass.targets, kernel.target->name);
}

// The properties that hold as a pipeline runs.
class HeldProperties {
 public:
  // Of those that the steps need, those that the kernel has.
  HeldProperties(const Kernel& kernel, const PassRegistry& registry,
                 absl::Span<const PipelineStep> steps) {
    for (const Property& property : registry.properties()) {
      const bool needed = absl::c_any_of(steps, [&](const PipelineStep& step) {
        return contains(step.pass->needs, property.name);
      });
      if (needed && property.check(kernel).empty()) held_.insert(property.name);
    }
  }

  bool has(absl::string_view name) const { return held_.count(name) > 0; }
  void pass(const Pass& pass) {
    for (const absl::string_view name : pass.breaks) held_.erase(name);
    held_.insert(pass.gives.begin(), pass.gives.end());
  }

  // Leaves out those that do not hold of the kernel: what speaks against them.
  Diagnostics keep_true(const Kernel& kernel, const PassRegistry& registry) {
    Diagnostics all;
    std::erase_if(held_, [&](absl::string_view name) {
      const Diagnostics wrong = registry.find_property(name)->check(kernel);
      all.insert(all.end(), wrong.begin(), wrong.end());
      return !wrong.empty();
    });
    return all;
  }

  // What speaks against them.
  Diagnostics check(const Kernel& kernel, const PassRegistry& registry) const {
    Diagnostics all;
    for (const absl::string_view name : held_) {
      for (Diagnostic& wrong : registry.find_property(name)->check(kernel)) {
        all.push_back(std::move(wrong));
      }
    }
    return all;
  }

 private:
  std::set<absl::string_view> held_;
};

// Why a need is unmet, and what to do about it.
Status unmet_need(const PassRegistry& registry, absl::Span<const PipelineStep> steps, size_t index,
                  absl::string_view need, absl::string_view pipeline) {
  const Pass* breaker = nullptr;
  for (const PipelineStep& step : steps.subspan(0, index)) {
    if (contains(step.pass->breaks, need)) breaker = step.pass;
    if (contains(step.pass->gives, need)) breaker = nullptr;
  }
  std::string message = absl::StrCat("pass '", steps[index].pass->name, "' needs ",
                                     registry.find_property(need)->says);
  if (breaker != nullptr) {
    absl::StrAppend(&message, ", which '", breaker->name, "' before it undoes");
  } else {
    absl::StrAppend(&message, ", which no pass before it gives");
  }
  for (const Pass& pass : registry.passes()) {
    if (!contains(pass.gives, need)) continue;
    absl::StrAppend(&message, "; put '", pass.name, "' before it");
    break;
  }
  return InvalidArgumentError(absl::StrCat(message, " in pipeline '", pipeline, "'"));
}

Status check_needs(const PassRegistry& registry, absl::Span<const PipelineStep> steps,
                   HeldProperties held, absl::string_view pipeline) {
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const absl::string_view need : steps[i].pass->needs) {
      if (!held.has(need)) return unmet_need(registry, steps, i, need, pipeline);
    }
    held.pass(*steps[i].pass);
  }
  return OkStatus();
}

int count_ops(const Kernel& kernel) {
  int count = 0;
  kernel.walk([&](OpId id) { count += kernel.op(id).opcode == Opcode::kYield ? 0 : 1; });
  return count;
}

// Runs the steps and watches them.
class PipelineRun {
 public:
  PipelineRun(Kernel& kernel, const PassRegistry& registry, const PipelineOptions& options,
              HeldProperties held)
      : kernel_(kernel),
        registry_(registry),
        options_(options),
        held_(std::move(held)),
        own_analyses_(kernel),
        analyses_(options.analyses != nullptr ? *options.analyses : own_analyses_) {
    HEDDLE_CHECK(&analyses_.kernel() == &kernel, "the analyses are of another kernel");
  }

  Status prepare() {
    auto before = NameFilter::make(registry_, options_.print_before, "--print-before");
    if (!before.ok()) return before.status();
    before_ = *std::move(before);
    auto after = NameFilter::make(registry_, options_.print_after, "--print-after");
    if (!after.ok()) return after.status();
    after_ = *std::move(after);
    if (!options_.stop_after.empty()) {
      const auto pass = find_pass(registry_, options_.stop_after, "--stop-after");
      if (!pass.ok()) return pass.status();
    }
    return OkStatus();
  }

  Status run(absl::Span<const PipelineStep> steps) {
    if (options_.verify_each) {
      if (Status wrong = check("before the first pass"); !wrong.ok()) return wrong;
    }
    if (options_.pass_limit >= 0)
      steps = steps.first(std::min(steps.size(), size_t(options_.pass_limit)));
    const auto last = absl::c_find_if(
        steps, [&](const PipelineStep& step) { return step.pass->name == options_.stop_after; });
    if (last != steps.end()) steps = steps.first(static_cast<size_t>(last - steps.begin()) + 1);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (Status wrong = run(steps[i], steps.subspan(i + 1)); !wrong.ok()) return wrong;
    }
    return OkStatus();
  }

 private:
  void print_text(absl::string_view text) const {
    if (options_.print) {
      options_.print(text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stderr);
    }
  }

  // Runs a step; `next` come behind it.
  Status run(const PipelineStep& step, absl::Span<const PipelineStep> next) {
    const Pass& pass = *step.pass;
    PassRun run{.name = std::string(pass.name)};
    if (!is_for(pass, kernel_)) {
      run.skipped = true;
      run.ops_before = run.ops_after = ops();
      report(std::move(run));
      return OkStatus();
    }
    if (before_.matches(pass.name)) {
      print_text(absl::StrCat("; before ", pass.name, "\n", print(kernel_)));
    }
    const bool compares = options_.verify_each || options_.on_change != nullptr;
    const std::string text = compares ? print(kernel_, {.by_id = true}) : "";
    run.ops_before = ops();
    PassContext context(kernel_, analyses_, pass.options, step.values);
    const auto start = std::chrono::steady_clock::now();
    const bool foreign = !registry_.is_builtin(pass);
    const auto values = kernel_.value_count();
    StatusOr<bool> changed = foreign ? run_foreign(pass, context) : pass.run(context);
    if (changed.ok() && !context.failure().ok()) changed = in_pass(pass, context.failure());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (!changed.ok()) {
      analyses_.keep({});
      return changed.status();
    }
    held_.pass(pass);
    if (*changed) {
      analyses_.keep(pass.keeps);
      ops_.reset();
    }
    if (foreign && !options_.verify_each) {
      // Whatever it says of changes: what comes behind takes the kernel at its word, and tables of its values.
      if (!*changed && kernel_.value_count() != values) return hidden_change(pass);
      if (Status wrong = check_legal(pass); !wrong.ok()) return wrong;
    }
    run.microseconds = took.count();
    run.changed = *changed;
    if (*changed && options_.on_change != nullptr) {
      options_.on_change(run, text, print(kernel_, {.by_id = true}));
    }
    run.ops_after = ops();
    report(std::move(run));
    if (after_.matches(pass.name)) {
      print_text(*changed ? absl::StrCat("; after ", pass.name, "\n", print(kernel_))
                          : absl::StrCat("; after ", pass.name, ": unchanged\n"));
    }
    if (options_.verify_each) return check_pass(pass, *changed, text);
    return foreign ? check_needed(pass, next) : OkStatus();
  }

  static Status in_pass(const Pass& pass, const Status& wrong) {
    return Status(wrong.code(), absl::StrCat("pass '", pass.name, "': ", wrong.message()));
  }
  // Of a program or plug-in: its mistakes are told by its name.
  static StatusOr<bool> run_foreign(const Pass& pass, PassContext& context) {
    try {
      const StatusOr<bool> changed = pass.run(context);
      return changed.ok() ? changed : StatusOr<bool>(in_pass(pass, changed.status()));
    } catch (const std::exception& thrown) {
      return in_pass(pass,
                     InternalError(absl::StrCat("it has thrown an exception, '", thrown.what(),
                                                "'; return a Status from Pass::run")));
    } catch (...) {
      return in_pass(pass,
                     InternalError("it has thrown an exception; return a Status from Pass::run"));
    }
  }

  void report(PassRun run) {
    if (options_.report != nullptr) options_.report->passes.push_back(std::move(run));
  }
  // How many ops there are, for the report.
  int ops() {
    if (options_.report == nullptr) return 0;
    if (!ops_) ops_ = count_ops(kernel_);
    return *ops_;
  }

  Status check(absl::string_view when) const {
    Diagnostics wrong = verify(kernel_, Stage::kRewritten);
    if (wrong.empty()) wrong = held_.check(kernel_, registry_);
    return to_status(absl::StrCat("kernel '", kernel_.name(), "' ", when), wrong);
  }

  Status hidden_change(const Pass& pass) const {
    return InternalError(absl::StrCat("pass '", pass.name, "' changed kernel '", kernel_.name(),
                                      "' and says that it did not; return true from Pass::run"));
  }
  // Of a pass of a program or plug-in: whether the kernel is legal, and whether the next ones can do without what no longer holds.
  Status check_legal(const Pass& pass) const {
    return internal(pass, verify(kernel_, Stage::kRewritten), "");
  }
  Status check_needed(const Pass& pass, absl::Span<const PipelineStep> next) {
    const Diagnostics wrong = held_.keep_true(kernel_, registry_);
    if (wrong.empty()) return OkStatus();
    std::vector<PipelineStep> used;
    absl::c_copy_if(next, std::back_inserter(used),
                    [&](const PipelineStep& step) { return is_for(*step.pass, kernel_); });
    const Status needed = check_needs(registry_, used, held_, "");
    const bool gives =
        absl::c_all_of(pass.gives, [&](absl::string_view property) { return held_.has(property); });
    if (needed.ok() && gives) return OkStatus();
    return internal(pass, wrong,
                    needed.ok()
                        ? "\n  and Pass::gives says that this holds"
                        : "\n  and a later pass needs what the pass has not said that it breaks; "
                          "set Pass::breaks, or run a pass that gives it again");
  }
  Status internal(const Pass& pass, const Diagnostics& wrong, absl::string_view more) const {
    if (wrong.empty()) return OkStatus();
    return InternalError(absl::StrCat(
        to_status(absl::StrCat("kernel '", kernel_.name(), "' after '", pass.name, "'"), wrong)
            .message(),
        more));
  }
  // What the pass has declared and done.
  Status check_pass(const Pass& pass, bool changed, absl::string_view before) const {
    const std::string when = absl::StrCat("after '", pass.name, "'");
    if (Status wrong = check(when); !wrong.ok()) return InternalError(wrong.message());
    if (!changed && print(kernel_, {.by_id = true}) != before) {
      return hidden_change(pass);
    }
    if (const std::string what = analyses_.disagreement(); !what.empty()) {
      return InternalError(absl::StrCat("pass '", pass.name, "' keeps an analysis of kernel '",
                                        kernel_.name(), "' that no longer holds: ", what,
                                        "; leave it out of Pass::keeps"));
    }
    return OkStatus();
  }

  Kernel& kernel_;
  const PassRegistry& registry_;
  const PipelineOptions& options_;
  HeldProperties held_;
  NameFilter before_, after_;
  std::optional<int> ops_;  // where they are counted
  Analyses own_analyses_;
  Analyses& analyses_;
};

}  // namespace

Status run_pipeline(Kernel& kernel, absl::string_view passes, const PipelineOptions& options) {
  std::shared_ptr<const PassRegistry> shared;
  if (options.registry == nullptr) {
    auto known = process_passes();
    if (!known.ok()) return known.status();
    shared = *std::move(known);
  }
  const PassRegistry& registry = options.registry != nullptr ? *options.registry : *shared;
  const auto steps = parse_pipeline(registry, passes);
  if (!steps.ok()) return steps.status();
  std::vector<PipelineStep> used;
  absl::c_copy_if(*steps, std::back_inserter(used),
                  [&](const PipelineStep& step) { return is_for(*step.pass, kernel); });
  HeldProperties held(kernel, registry, used);
  if (Status unmet = check_needs(registry, used, held, passes); !unmet.ok()) return unmet;
  PipelineRun run(kernel, registry, options, std::move(held));
  if (Status wrong = run.prepare(); !wrong.ok()) return wrong;
  return run.run(*steps);
}

}  // namespace heddle::ir
