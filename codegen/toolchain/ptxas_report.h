// What ptxas prints, as data.
//
//   PtxasReport report = parse_ptxas_output(run.standard_error);
//   for (const Diagnostic& said : report.diagnostics) {
//     if (said.is_performance_note()) warn(said.code, said.text);
//   }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::codegen {

enum class Severity { kInfo, kWarning, kError, kFatal };

// "info", "warning", "error", "fatal"
absl::string_view severity_name(Severity severity);

struct Diagnostic {
  Severity severity = Severity::kInfo;
  int ptx_line = 0;  // 1-based; 0 = none given
  std::string code;  // "C7508"; empty = none given
  std::string text;  // without all of the above

  // ptxas gave up something that costs speed: it serialised wgmma, put waits or fences of its own
  // between them, or dropped setmaxnreg. It says so in info lines, ends with exit code 0 and is not
  // moved by --warning-as-error. The numbers change their meaning between versions, so the text
  // decides as well.
  bool is_performance_note() const;
  bool is_error() const { return severity >= Severity::kError; }

  bool operator==(const Diagnostic&) const = default;
};

// What a kernel takes. Registers, spills, stack: per thread; shared memory: per block.
struct EntryReport {
  std::string name;
  int registers = 0;
  int stack_frame_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int shared_bytes = 0;         // static shared memory
  std::optional<int> barriers;  // ptxas says them from 12.5 on
  int constant_bytes = 0;       // of its own banks: parameters, literals
  int code_bytes = 0;

  bool operator==(const EntryReport&) const = default;
};

struct PtxasReport {
  std::vector<Diagnostic> diagnostics;  // in the order printed; statistics are not among them
  // From --verbose; in the order compiled. ptxas leaves out the constant banks from sm_90 on, so
  // constant_bytes and code_bytes stay 0 here; `assemble` fills them in from the cubin.
  std::vector<EntryReport> entries;
  std::string other;  // lines that ptxas did not print as its own, such as the system's

  // nullptr: not reported.
  EntryReport* find(absl::string_view entry);
};

PtxasReport parse_ptxas_output(absl::string_view printed);

}  // namespace heddle::codegen
