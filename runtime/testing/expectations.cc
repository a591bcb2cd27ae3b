#include "heddle/runtime/testing/expectations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::filetest {
namespace {

constexpr std::pair<absl::string_view, ir::Stage> kStages[] = {
    {"traced", ir::Stage::kTraced},
    {"rewritten", ir::Stage::kRewritten},
    {"pure_ssa", ir::Stage::kPureSsa},
    {"emittable", ir::Stage::kEmittable},
};

constexpr absl::string_view kNoOutput = "a kernel with errors has no output to check";

class Reader {
 public:
  Reader(absl::string_view text, std::vector<Fault>& faults) : text_(text), faults_(faults) {}

  Expectations read() {
    find_kernel();
    for (const Directive& directive : directives_of(text_)) read(directive);
    read_goldens();
    for (const Execution& execution : all_.executions) {
      if (execution.results.empty() && all_.reports.empty()) {
        fail(execution.line,
             "this execution expects nothing; add '; expect: %y = [...]', "
             "'; expect: success' or, on the line that is at fault, '; report: ...'");
      }
    }
    judge();
    return std::move(all_);
  }

 private:
  enum class Place : uint8_t { kOwnLine, kBehindCode };
  struct Row {
    absl::string_view word;
    Place place;
    void (Reader::*read)(const Directive&);
    bool is_bare = false;  // nothing follows its colon
  };
  static const std::array<Row, 18> kRows;

  void fail(int line, std::string what) { faults_.push_back({line, std::move(what)}); }

  void find_kernel() {
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(text_, '\n')) {
      ++number;
      if (!absl::StartsWith(line, "kernel")) continue;
      if (all_.kernel_line == 0) {
        all_.kernel_line = number;
      } else {
        fail(number, "a second kernel; begin a case of its own with a line '; ---'");
      }
    }
  }

  void read(const Directive& directive) {
    for (const Row& row : kRows) {
      if (row.word != directive.word) continue;
      if (row.place == Place::kBehindCode && directive.own_line) {
        return fail(
            directive.line,
            absl::StrCat("'", row.word, "' stands behind the code of the line that it speaks of"));
      }
      if (row.place == Place::kOwnLine && !directive.own_line) {
        return fail(directive.line, absl::StrCat("'", row.word, "' stands at the start of a line"));
      }
      if (directive.rest.empty() && !row.is_bare) {
        return fail(directive.line, absl::StrCat("'", row.word, ":' says nothing"));
      }
      if (!directive.rest.empty() && row.is_bare) {
        return fail(directive.line, absl::StrCat("nothing follows '", row.word,
                                                 ":'; a golden is the lines below, each behind "
                                                 "'; | '"));
      }
      return (this->*row.read)(directive);
    }
    // A misspelt directive would make the test pass for nothing.
    const auto word_of = [](std::string* out, const Row& row) { absl::StrAppend(out, row.word); };
    fail(directive.line, absl::StrCat("unknown directive '", directive.word,
                                      "'; there are: ", absl::StrJoin(kRows, ", ", word_of)));
  }

  void read_nothing(const Directive&) {}

  void read_target(const Directive& d) {
    for (const absl::string_view part : absl::StrSplit(d.rest, ',')) {
      absl::string_view name = absl::StripAsciiWhitespace(part);
      if (name == "all") name = "sm_0+";
      const size_t before = all_.targets.size();
      for (const ir::Target& target : ir::kTargets) {
        int sm = 0;
        absl::string_view digits = name;
        const bool open = absl::ConsumePrefix(&digits, "sm_") &&
                          absl::ConsumeSuffix(&digits, "+") && absl::SimpleAtoi(digits, &sm);
        if (open ? target.sm >= sm : target.name == name) all_.targets.push_back(&target);
      }
      if (all_.targets.size() > before) continue;
      fail(d.line, absl::StrCat("unknown target '", name, "'; there are all, sm_90+ and the like, ",
                                ir::target_names()));
    }
  }

  void read_passes(const Directive& d) {
    if (all_.passes) fail(d.line, "a second 'run'; one names all passes, with commas between them");
    all_.passes = Wanted{d.line, d.rest};
  }

  void read_stage(const Directive& d) {
    for (const auto& [name, stage] : kStages) {
      if (name == d.rest) all_.stage = stage;
    }
    if (!all_.stage) {
      all_.stage = ir::Stage::kTraced;
      fail(d.line, absl::StrCat("unknown stage '", d.rest,
                                "'; there are traced, rewritten, pure_ssa, emittable"));
    }
  }

  void read_emit(const Directive& d) {
    if (d.rest != "ptx") fail(d.line, absl::StrCat("'", d.rest, "' cannot be emitted; ptx can"));
    all_.emits = true;
  }

  // Checks below `emit` are about what it emits.
  OutputChecks& output() { return all_.emits ? all_.ptx : all_.ir; }

  void read_check(const Directive& d) { output().wanted.push_back({d.line, d.rest}); }
  void read_unwanted(const Directive& d) { output().unwanted.push_back({d.line, d.rest}); }
  void read_golden(const Directive& d, bool body) {
    if (output().golden) fail(d.line, "a second golden of the same output");
    output().golden = Golden{d.line, d.line, {}, body};
  }
  void read_exact(const Directive& d) { read_golden(d, false); }
  void read_body(const Directive& d) {
    if (all_.emits) fail(d.line, "PTX has no ops; write '; check-exact:'");
    read_golden(d, true);
  }
  void read_unchanged(const Directive& d) { all_.unchanged = Wanted{d.line, d.rest}; }
  void read_guards(const Directive& d) {
    if (all_.guards) fail(d.line, "a second 'guards'; one names all, with commas between them");
    all_.guards = Wanted{d.line, d.rest};
  }
  void read_stored(const Directive& d) { all_.stored.push_back({d.line, d.rest}); }

  void read_execution(const Directive& d) { all_.executions.push_back({d.line, d.rest, {}}); }
  void read_result(const Directive& d) {
    if (all_.executions.empty()) return fail(d.line, "'expect' belongs below an 'execute'");
    all_.executions.back().results.push_back({d.line, d.rest});
  }

  void read_error(const Directive& d) { all_.errors.push_back({d.line, d.rest}); }
  void read_report(const Directive& d) { all_.reports.push_back({d.line, d.rest}); }
  void read_note(const Directive& d) { all_.notes.push_back({d.line, d.rest}); }
  void read_fix(const Directive& d) { all_.fixes.push_back({d.line, d.rest}); }

  void read_goldens() {
    int number = 0;
    Golden* golden = nullptr;
    for (const absl::string_view line : absl::StrSplit(text_, '\n')) {
      ++number;
      for (OutputChecks* const output : {&all_.ir, &all_.ptx}) {
        if (output->golden && output->golden->line == number) golden = &*output->golden;
      }
      const std::optional<absl::string_view> content = golden_line(line);
      if (content && golden == nullptr) {
        fail(number, "a golden's lines follow '; check-exact:' or '; check-body:'");
      } else if (content) {
        absl::StrAppend(&golden->text, *content, "\n");
        golden->last_line = number;
      } else if (golden != nullptr && number != golden->line) {
        golden = nullptr;
      }
    }
  }

  void judge() {
    const Expectations& all = all_;
    if (all.kernel_line == 0) {
      if (!all.empty() || all.passes) fail(1, "this case has no kernel");
      return;
    }
    if (all.empty()) {
      fail(all.kernel_line,
           "this kernel is expected to do nothing; add '; verify: traced', "
           "'; check: ...', '; execute: ...' or '; error: ...'");
    }
    if (!all.errors.empty()) {
      for (const OutputChecks* const output : {&all.ir, &all.ptx}) {
        if (!output->empty()) fail(output->line(), std::string(kNoOutput));
      }
      for (const Wanted& wanted : all.stored) fail(wanted.line, std::string(kNoOutput));
      for (const std::optional<Wanted>& wanted : {all.unchanged, all.guards}) {
        if (wanted) fail(wanted->line, std::string(kNoOutput));
      }
      for (const Execution& execution : all.executions) {
        fail(execution.line, "a kernel with errors is not executed");
      }
    }
    const auto needs = [&](const std::vector<Wanted>& wanted, bool have, absl::string_view what) {
      if (!wanted.empty() && !have) fail(wanted[0].line, std::string(what));
    };
    if (all.unchanged && !all.passes)
      fail(all.unchanged->line, "what leaves it so? add '; run: ...'");
    const bool reported = !all.reports.empty();
    needs(all.reports,
          std::any_of(all.executions.begin(), all.executions.end(),
                      [](const Execution& e) { return e.results.empty(); }),
          "a report needs an '; execute: ...' that expects no results");
    needs(all.notes, reported || !all.errors.empty(), "a note belongs to an error or a report");
    needs(all.fixes, reported || !all.errors.empty(), "a fix belongs to an error or a report");
  }

  const absl::string_view text_;
  std::vector<Fault>& faults_;
  Expectations all_;
};

const std::array<Reader::Row, 18> Reader::kRows = {{
    {"for", Place::kOwnLine, &Reader::read_nothing},  // case_text.h
    {"target", Place::kOwnLine, &Reader::read_target},
    {"run", Place::kOwnLine, &Reader::read_passes},
    {"verify", Place::kOwnLine, &Reader::read_stage},
    {"emit", Place::kOwnLine, &Reader::read_emit},
    {"check", Place::kOwnLine, &Reader::read_check},
    {"check-not", Place::kOwnLine, &Reader::read_unwanted},
    {"check-exact", Place::kOwnLine, &Reader::read_exact, true},
    {"check-body", Place::kOwnLine, &Reader::read_body, true},
    {"check-unchanged", Place::kOwnLine, &Reader::read_unchanged, true},
    {"guards", Place::kOwnLine, &Reader::read_guards},
    {"stores", Place::kBehindCode, &Reader::read_stored},
    {"execute", Place::kOwnLine, &Reader::read_execution},
    {"expect", Place::kOwnLine, &Reader::read_result},
    {"error", Place::kBehindCode, &Reader::read_error},
    {"report", Place::kBehindCode, &Reader::read_report},
    {"note", Place::kBehindCode, &Reader::read_note},
    {"fix", Place::kOwnLine, &Reader::read_fix},
}};

}  // namespace

int OutputChecks::line() const {
  if (!wanted.empty()) return wanted[0].line;
  if (!unwanted.empty()) return unwanted[0].line;
  return golden ? golden->line : 0;
}

bool Expectations::empty() const {
  return !stage && !emits && ir.empty() && !unchanged && !guards && stored.empty() &&
         executions.empty() && errors.empty() && reports.empty();
}

Expectations read_expectations(absl::string_view text, std::vector<Fault>& faults) {
  return Reader(text, faults).read();
}

}  // namespace heddle::filetest
