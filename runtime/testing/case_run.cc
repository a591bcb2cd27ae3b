#include "heddle/runtime/testing/case_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/ptx.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/runtime/testing/execution.h"
#include "heddle/runtime/testing/expression.h"
#include "heddle/runtime/testing/found.h"

namespace heddle::filetest {
namespace {

// The ops of a kernel's text, without its header and its last brace.
std::string body_of(absl::string_view text) {
  constexpr absl::string_view kOpen = " {\n";
  std::string body;
  for (absl::string_view line :
       absl::StrSplit(text.substr(text.find(kOpen) + kOpen.size()), '\n')) {
    if (absl::ConsumePrefix(&line, "  ")) absl::StrAppend(&body, line, "\n");
  }
  return body;
}

class CaseRun {
 public:
  CaseRun(absl::string_view text, absl::string_view name, const Expectations& wanted,
          std::vector<Fault>& faults)
      : text_(text), name_(name), wanted_(wanted), faults_(faults) {}

  std::vector<Renewed> run() {
    const StatusOr<ir::Kernel> kernel = ir::parse(text_, name_, {.text_as_source = true});
    if (!kernel.ok()) {
      compare_errors(found(kernel.status().message()));
      return {};
    }
    if (wanted_.targets.empty()) run_for(*kernel);
    for (const ir::Target* const target : wanted_.targets) {
      ir::Kernel retargeted = *kernel;
      retargeted.target = target;
      const size_t before = faults_.size();
      run_for(std::move(retargeted));
      for (size_t i = before; i < faults_.size(); ++i) {
        absl::StrAppend(&faults_[i].text, " (for ", target->name, ")");
      }
    }
    return std::move(renewed_);
  }

 private:
  void fail(int line, std::string what) { faults_.push_back({line, std::move(what)}); }

  std::vector<Found> found(absl::string_view message) const {
    return found_in(message, name_, wanted_.kernel_line);
  }

  void compare_errors(const std::vector<Found>& errors) {
    const bool notes_are_of_errors = wanted_.reports.empty();
    compare_found("error", errors, wanted_.errors,
                  notes_are_of_errors ? wanted_.notes : std::vector<Wanted>{},
                  notes_are_of_errors ? wanted_.fixes : std::vector<Wanted>{}, faults_);
  }

  // The steps in order; the first that finds errors is the last.
  void run_for(ir::Kernel kernel) {
    std::vector<Found> errors;
    for (const ir::Diagnostic& wrong :
         ir::verify(kernel, wanted_.stage.value_or(ir::Stage::kTraced))) {
      for (Found& one : found(ir::to_string(wrong))) errors.push_back(std::move(one));
    }
    if (!errors.empty()) return compare_errors(errors);
    const ir::Kernel written = kernel;
    if (wanted_.passes) {
      const std::string passes = wanted_.passes->text == "default"
                                     ? std::string(ir::kDefaultPipeline)
                                     : wanted_.passes->text;
      ir::PipelineReport report;
      const Status status =
          ir::run_pipeline(kernel, passes, {.verify_each = true, .report = &report});
      if (!status.ok()) return compare_errors(found(status.message()));
      if (wanted_.unchanged) check_unchanged(report, written, kernel);
    }
    std::string ptx;
    if (wanted_.emits) {
      for (const ir::Diagnostic& wrong : ir::verify(kernel, ir::Stage::kEmittable)) {
        for (Found& one : found(ir::to_string(wrong))) errors.push_back(std::move(one));
      }
      if (!errors.empty()) return compare_errors(errors);
      const StatusOr<codegen::PtxModule> module = codegen::emit_ptx(kernel, {.line_info = false});
      if (!module.ok()) return compare_errors(found(module.status().message()));
      ptx = module->text;
    }
    compare_errors({});
    if (!wanted_.errors.empty()) return;
    const std::string result = ir::print(kernel);
    check_reads_back(result);
    check_output(wanted_.ir, result);
    if (wanted_.guards) check_guards(kernel);
    for (const Wanted& wanted : wanted_.stored) check_stored(kernel, wanted);
    if (wanted_.emits) check_output(wanted_.ptx, ptx);
    for (const Execution& execution : wanted_.executions) execute(execution, written, kernel);
  }

  void check_reads_back(const std::string& result) {
    const StatusOr<ir::Kernel> again = ir::parse(result, "result");
    if (!again.ok()) {
      fail(wanted_.kernel_line,
           absl::StrCat("the result does not read back: ", again.status().message()));
    } else if (ir::print(*again) != result) {
      fail(wanted_.kernel_line, absl::StrCat("the result reads back as:\n", ir::print(*again)));
    }
  }

  void check_unchanged(const ir::PipelineReport& report, const ir::Kernel& written,
                       const ir::Kernel& kernel) {
    const std::string text = ir::print(kernel);
    if (text != ir::print(written)) {
      return fail(wanted_.unchanged->line, absl::StrCat("the kernel is another:\n", text));
    }
    for (const ir::PassRun& pass : report.passes) {
      if (!pass.changed) continue;
      fail(wanted_.unchanged->line,
           absl::StrCat("'", pass.name, "' says that it changed the kernel"));
    }
  }

  void check_guards(const ir::Kernel& kernel) {
    const ir::ValueNames names(kernel);
    const auto append = [&](std::string* out, const ir::Guard& guard) {
      absl::StrAppend(out, ir::print_fact(kernel, guard, names));
    };
    const std::string read = absl::StrJoin(kernel.facts_read(), ", ", append);
    const absl::string_view is = read.empty() ? "none" : absl::string_view(read);
    if (wanted_.guards->text != is) {
      fail(wanted_.guards->line, absl::StrCat("the facts that were read are: ", is));
    }
  }

  void check_stored(const ir::Kernel& kernel, const Wanted& wanted) {
    bool any = false;
    kernel.walk([&](ir::OpId id) {
      if (kernel.op(id).opcode != ir::Opcode::kStore || kernel.loc(id).line != wanted.line) return;
      any = true;
      const std::string is = expression(kernel, kernel.op(id).value());
      if (is != wanted.text) fail(wanted.line, absl::StrCat("stores: ", is));
    });
    if (!any) fail(wanted.line, "no store of this line is left");
  }

  void check_output(const OutputChecks& checks, const std::string& output) {
    const std::vector<absl::string_view> lines = absl::StrSplit(output, '\n');
    size_t at = 0;
    for (const Wanted& wanted : checks.wanted) {
      size_t match = at;
      while (match < lines.size() && !absl::StrContains(lines[match], wanted.text)) ++match;
      if (match == lines.size()) {
        fail(wanted.line, absl::StrCat("no line", at == 0 ? "" : " behind the last match",
                                       " has: ", wanted.text, "\n", output));
        break;
      }
      at = match + 1;
    }
    for (const Wanted& unwanted : checks.unwanted) {
      for (const absl::string_view line : lines) {
        if (!absl::StrContains(line, unwanted.text)) continue;
        fail(unwanted.line, absl::StrCat("unwanted: ", absl::StripAsciiWhitespace(line)));
        break;
      }
    }
    if (!checks.golden) return;
    const Golden& golden = *checks.golden;
    // A text's last newline is not counted: each golden line has one.
    std::string whole = golden.body ? body_of(output) : output;
    renewed_.push_back({golden.line, golden.last_line, whole});
    if (!absl::EndsWith(whole, "\n")) whole += '\n';
    if (golden.text == whole) return;
    fail(golden.line,
         absl::StrCat(golden.text.empty() ? "the golden is missing" : "the golden differs",
                      "; HEDDLE_BLESS=1 writes this one:\n", whole));
  }

  void execute(const Execution& execution, const ir::Kernel& written, const ir::Kernel& optimized) {
    const StatusOr<Launch> plan = read_launch(written, execution.settings);
    if (!plan.ok()) return fail(execution.line, std::string(plan.status().message()));
    std::vector<ExpectedResult> expected;
    for (const Wanted& wanted : execution.results) {
      if (wanted.text == "success") continue;
      StatusOr<ExpectedResult> result = read_expected(written, wanted);
      if (!result.ok()) return fail(wanted.line, std::string(result.status().message()));
      expected.push_back(*std::move(result));
    }
    const LaunchResult first = run_launch(written, *plan);
    const size_t before = faults_.size();
    judge(execution, written, expected, first, "as written");
    if (!wanted_.passes || faults_.size() > before) return;
    const LaunchResult second = run_launch(optimized, *plan);
    judge(execution, written, expected, second, absl::StrCat("after ", wanted_.passes->text));
    if (!execution.results.empty()) compare_runs(execution, written, expected, first, second);
  }

  void judge(const Execution& execution, const ir::Kernel& kernel,
             const std::vector<ExpectedResult>& expected, const LaunchResult& result,
             absl::string_view when) {
    const size_t before = faults_.size();
    if (execution.results.empty()) {
      std::vector<Found> reports;
      if (!result.report.empty()) reports = found(result.report);
      compare_found("report", reports, wanted_.reports, wanted_.notes, wanted_.fixes, faults_);
    } else if (!result.report.empty()) {
      fail(execution.line, absl::StrCat("the launch fails: ", result.report));
    } else {
      for (const ExpectedResult& one : expected) {
        const std::string what = difference(kernel, one, result);
        if (!what.empty()) fail(one.line, what);
      }
    }
    for (size_t i = before; i < faults_.size(); ++i) {
      absl::StrAppend(&faults_[i].text, " (executed ", when, ", by line ", execution.line, ")");
    }
  }

  // Memory of which nothing is expected is the same before and after passes, bit by bit, but where
  // results may be rounded otherwise.
  void compare_runs(const Execution& execution, const ir::Kernel& kernel,
                    const std::vector<ExpectedResult>& expected, const LaunchResult& first,
                    const LaunchResult& second) {
    const bool exact = std::all_of(expected.begin(), expected.end(), [](const ExpectedResult& one) {
      return one.bound.unit == Bound::Unit::kExact;
    });
    for (size_t p = 0; exact && p < first.memory.size() && p < second.memory.size(); ++p) {
      const bool told = std::any_of(expected.begin(), expected.end(),
                                    [&](const ExpectedResult& one) { return one.param == p; });
      if (told || first.memory[p] == second.memory[p]) continue;
      fail(execution.line, absl::StrCat(wanted_.passes->text, " changes what ",
                                        name_of_param(kernel, p), " holds"));
    }
  }

  const absl::string_view text_;
  const absl::string_view name_;
  const Expectations& wanted_;
  std::vector<Fault>& faults_;
  std::vector<Renewed> renewed_;
};

}  // namespace

std::vector<Renewed> run_case(absl::string_view text, absl::string_view name,
                              const Expectations& wanted, std::vector<Fault>& faults) {
  return CaseRun(text, name, wanted, faults).run();
}

}  // namespace heddle::filetest
