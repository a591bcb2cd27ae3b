// What one case of a filetest asks for: its directives, read and sorted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/target.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/runtime/testing/case_text.h"

namespace heddle::filetest {

// A text that should be somewhere; the fault's line is that of the directive.
using Wanted = Fault;

// The whole of an output, as the lines below `check-exact` have it, or its ops, below `check-body`.
struct Golden {
  int line = 0;       // of the directive
  int last_line = 0;  // of the directive's lines
  std::string text;
  bool body = false;
};

// What is expected of an output: the kernel's text, or its PTX.
struct OutputChecks {
  std::vector<Wanted> wanted;    // in this order
  std::vector<Wanted> unwanted;  // nowhere
  std::optional<Golden> golden;

  bool empty() const { return wanted.empty() && unwanted.empty() && !golden; }
  // The first line that asks for something.
  int line() const;
};

struct Execution {
  int line = 0;
  std::string settings;         // "%x = [1, 2], grid = 2"
  std::vector<Wanted> results;  // "%y = [2, 4] within 2 ulp", "grid = 4", "success"; none: a report
};

struct Expectations {
  int kernel_line = 0;                     // 0: the case has no kernel
  std::vector<const ir::Target*> targets;  // none: the kernel's own
  std::optional<Wanted> passes;
  std::optional<ir::Stage> stage;  // asked for by `verify`
  bool emits = false;
  OutputChecks ir, ptx;
  std::optional<Wanted> unchanged;  // the passes leave the kernel as it is
  std::optional<Wanted> guards;     // the facts that were read
  std::vector<Wanted> stored;       // what the stores on their lines store
  std::vector<Execution> executions;
  std::vector<Wanted> errors;   // on their lines
  std::vector<Wanted> reports;  // on their lines
  std::vector<Wanted> notes;    // of errors or reports, on their lines
  std::vector<Wanted> fixes;    // of errors or reports

  bool empty() const;
};

// Of an instance of a case. Misuse of directives is added to the faults.
Expectations read_expectations(absl::string_view text, std::vector<Fault>& faults);

}  // namespace heddle::filetest
