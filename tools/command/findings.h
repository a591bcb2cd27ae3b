// What `heddle dump` is asked to show of a kernel, and what it found.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/observe/kernel_report.h"
#include "heddle/tools/command/kernel_choice.h"
#include "heddle/tools/command/outcome.h"
#include "heddle/tools/command/statistics.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {

// What to show. Machine code that was not asked for by name may be missing.
struct DumpRequest {
  std::set<absl::string_view> stages;
  std::set<absl::string_view> by_name;
  bool stats = false;
  bool report = false;
  bool compares =
      false;  // two of these stand beside each other: IR by the ids of values, without places

  bool has(absl::string_view stage) const { return stages.count(stage) != 0; }
  bool needs_machine_code() const { return stats || report || has("cubin") || has("sass"); }
};

// The result for one of the kernels that an operation launches.
struct Findings {
  struct Part {
    absl::string_view stage;
    std::string suffix;  // of a file that holds it
    std::string text;
    bool binary = false;
  };
  std::string name;  // of the kernel, as files and headings have it
  std::vector<Part> parts;
  Statistics statistics;
  std::optional<runtime::KernelReport> report;  // where it is asked for
  std::shared_ptr<const runtime::Compilation> compilation;
  Status failure;  // what keeps it from being shown
  Status lack;     // what else is not there
};

// The trace alone, of a kernel that cannot be compiled.
void show_trace(const ir::Kernel& traced, const DumpRequest& request, Findings& found);
// Every stage that there is.
void show(const runtime::Compilation& compilation, const DumpRequest& request, Findings& found);

nlohmann::ordered_json to_json(const Findings& found, const ChosenKernel& kernel,
                               const DumpRequest& request);
// As text that is valid UTF-8, whatever the user's was.
std::string to_string(const nlohmann::ordered_json& json);

// Writes a file for each stage into a folder, which is created if it is missing.
Status write_files(const Findings& found, const DumpRequest& request, const std::string& folder);
// One part that is `alone` is printed as it is, so that it can be piped on; others get headings.
void print_parts(const Findings& found, const DumpRequest& request, bool alone);
// The parts of two that are text, beside each other.
void print_beside(absl::string_view left_title, const Findings& left, absl::string_view right_title,
                  const Findings& right);
// Says what failed and, if wanted, what is missing.
Exit report_problems(const Findings& found, bool with_lack);

}  // namespace heddle::tools
