#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/wording.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/shape.h"
#include "heddle/tools/command/tuning_search.h"

namespace heddle::tools {
namespace {

using runtime::TunedChoice;
using runtime::Tuning;

constexpr int kBarWidth = 24;

// A bar on stderr where a person looks at it.
class Progress {
 public:
  void show(const runtime::TuningProblem& problem, size_t done, double best_us) {
    if (!on_terminal_) return;
    const size_t all = problem.candidates.size();
    const auto full = static_cast<int>(kBarWidth * done / all);
    const std::string bar = std::string(full, '#') + std::string(kBarWidth - full, '.');
    absl::FPrintF(stderr, "\r[%s] %d of %d, fastest %.2f us\x1b[K", bar, done, all, best_us);
    std::fflush(stderr);
  }
  ~Progress() {
    if (on_terminal_) absl::FPrintF(stderr, "\r\x1b[K");
  }

 private:
  bool on_terminal_ = isatty(STDERR_FILENO) == 1;
};

void print(const Tuned& tuned, bool all_times) {
  const TunedChoice& c = tuned.choice;
  const size_t all = tuned.problem.candidates.size();
  absl::PrintF("%s %s: %d of %d candidates measured\n", tuned.problem.operation, c.problem,
               tuned.measured, all);
  if (tuned.tried < all) {
    remark(absl::StrCat("the budget of time left out ",
                        ir::counted(static_cast<int64_t>(all - tuned.tried), "candidate"),
                        "; fix: give more with --budget SECONDS"));
  }
  for (const std::string& failed : tuned.failed) remark(absl::StrCat("left out: ", failed));
  if (c.model_us > 0) {
    absl::PrintF("  model    %10.2f us  %s\n", c.model_us, c.model);
  } else {
    absl::PrintF("  model     cannot run   %s\n", c.model);
  }
  absl::PrintF("  fastest  %10.2f us  %s%s\n", c.us, c.choice,
               c.us > 0 && c.model_us > 0 ? absl::StrFormat("  (%.3fx)", c.model_us / c.us) : "");
  if (!all_times) return;
  for (const CandidateTime& one : tuned.times) absl::PrintF("  %19.2f us  %s\n", one.us, one.name);
}

// What the folder has; of files that it cannot read, notes.
StatusOr<std::vector<Tuning>> all_tunings() {
  std::vector<std::string> warnings;
  StatusOr<std::vector<Tuning>> all = runtime::read_all_tunings(&warnings);
  for (const std::string& warning : warnings) remark(absl::StrCat("left out: ", warning));
  return all;
}

Exit list() {
  const StatusOr<std::vector<Tuning>> all = all_tunings();
  if (!all.ok()) return failed(all.status());
  for (const Tuning& tuning : *all) {
    absl::PrintF("%s on %s\n", tuning.operation, tuning.device);
    for (const TunedChoice& c : tuning.choices) {
      absl::PrintF("  %s: %s, %.2f us (model %.2f us, %s)\n", c.problem, c.choice, c.us, c.model_us,
                   c.date);
    }
  }
  if (all->empty())
    absl::PrintF("nothing is tuned; 'heddle tune gemm --shape 4096x4096x4096' tunes\n");
  return Exit::kDone;
}

Exit export_to(const std::string& path) {
  const StatusOr<std::vector<Tuning>> all = all_tunings();
  if (!all.ok()) return failed(all.status());
  if (Status s = write_file(path, runtime::tunings_to_json(*all)); !s.ok()) return misused(s);
  absl::PrintF("%s to %s\n", ir::counted(static_cast<int64_t>(all->size()), "tuning"), path);
  return Exit::kDone;
}

Exit import_from(const std::string& path) {
  const StatusOr<std::vector<Tuning>> all = runtime::read_tunings(path);
  if (!all.ok()) return misused(all.status());
  for (const Tuning& tuning : *all) {
    if (Status s = runtime::keep_tuning(tuning); !s.ok()) return failed(s);
  }
  absl::PrintF("%s kept in %s\n", ir::counted(static_cast<int64_t>(all->size()), "tuning"),
               *runtime::tuning_folder());
  return Exit::kDone;
}

Exit tune_shape(const ChosenKernel& kernel, const Device& device, const runtime::Sizes& sizes,
                double budget_s, bool all_times, const Timer& timer) {
  const StatusOr<runtime::BoundCall> call =
      runtime::bind(*kernel.operation, kernel.settings, {}, sizes);
  if (!call.ok()) return misused(call.status());
  StatusOr<std::vector<Tuned>> tuned = [&] {
    Progress progress;
    SearchOptions options{.budget_s = budget_s};
    options.on_progress = [&](const auto& problem, size_t done, double best_us) {
      progress.show(problem, done, best_us);
    };
    return search(device, *call, options, timer);
  }();
  if (!tuned.ok()) return failed(tuned.status());
  if (tuned->empty()) {
    return misused(absl::StrCat("kernel '", kernel.operation->name(),
                                "' has nothing to tune: it has one configuration"));
  }
  for (const Tuned& one : *tuned) {
    print(one, all_times);
    if (Status s = runtime::keep_tuning({device.info().name, one.problem.operation, {one.choice}});
        !s.ok()) {
      return failed(s);
    }
  }
  return Exit::kDone;
}

}  // namespace

Exit tune_kernel(const TuneOptions& options, const Timer& timer) {
  const int actions = int{!options.choice.kernel.empty()} + int{options.list} +
                      int{!options.export_file.empty()} + int{!options.import_file.empty()};
  if (actions != 1) {
    return misused(
        "tune takes one of a kernel's name, --list, --export FILE and --import FILE, "
        "such as 'heddle tune gemm --shape 4096x4096x4096'");
  }
  if (options.list) return list();
  if (!options.export_file.empty()) return export_to(options.export_file);
  if (!options.import_file.empty()) return import_from(options.import_file);

  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  std::vector<runtime::Sizes> shapes;
  for (const std::string& text : options.shapes) {
    const StatusOr<runtime::Sizes> sizes = parse_shape("--shape", *kernel, text);
    if (!sizes.ok()) return misused(sizes.status());
    shapes.push_back(*sizes);
  }
  if (shapes.empty()) shapes.push_back(kernel->sizes);
  const StatusOr<Device> device = open_device(options.device);
  if (!device.ok()) {
    return IsInvalidArgument(device.status()) ? misused(device.status()) : failed(device.status());
  }
  if (!timer && device->kind() != runtime::BackendKind::kCuda) {
    return misused(
        absl::StrCat("tune measures on a GPU, and ", device->name(),
                     " is an interpreter, whose times say nothing of one; fix: --device "
                     "cuda:0 on a machine with a GPU, or --import what was tuned there"));
  }
  for (const runtime::Sizes& sizes : shapes) {
    const Exit done =
        tune_shape(*kernel, *device, sizes, options.budget / static_cast<double>(shapes.size()),
                   options.all, timer ? timer : device_timer(*device));
    if (done != Exit::kDone) return done;
  }
  absl::PrintF("kept in %s; launches on %s use it\n", *runtime::tuning_folder(),
               device->info().name);
  return Exit::kDone;
}

}  // namespace heddle::tools
