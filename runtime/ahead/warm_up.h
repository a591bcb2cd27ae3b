// Compiles what a warm-up list has (warm_list.h), which an earlier process recorded (launch_recorder.h), on all cores: a server does so
// before its first request, and its launches then find their kernels.
//
//   const ir::KernelSource* const kernels[] = {&row_sum.source(), &scale.source()};
//   StatusOr<WarmUpReport> report = warm_up(device, kernels, "warm.list", {.on_done = [](const CompileProgress& p) {
//     std::printf("%d of %d: %s\n", p.done, p.total, p.job.c_str());
//   }});
//   std::puts(to_string(*report).c_str());   // "12 lines: 9 warmed (14 kernels, 3 of them from the disk), 2 were there, 1 skipped, …"
//
// Calls of operations are found by their operations' names; variants of kernels among the kernels that are given, by name, parameters
// and values. What a program has no more, or has in another version, is skipped; what cannot be compiled fails; neither
// stops the rest.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/ahead/compile_all.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/device.h"

namespace heddle::runtime {

// What became of a list.
struct WarmUpReport {
  // A line that is not warm.
  struct Line {
    int number = 0;    // in the list, from 1 up
    std::string what;  // "kernel row_sum", "call softmax"
    std::string why;   // what is wrong, and how to mend it
  };
  int lines = 0;              // all: those below together
  int warmed = 0;             // for which something was compiled or loaded
  int there = 0;              // for which there was nothing to do
  std::vector<Line> skipped;  // of which this program or device has none; in the list's order
  std::vector<Line> failed;   // that do not compile; likewise

  int kernels = 0;     // variants that were compiled or loaded
  int from_disk = 0;   // of them, those whose machine code lay on the disk
  double seconds = 0;  // all of it took
};
// One line of figures, and below it what is wrong with each line that was skipped or has failed; of several errors the first.
std::string to_string(const WarmUpReport& report);
// {"lines": 12, "warmed": 9, "there": 2, "skipped": [{"line": 3, "what": …, "why": …}], "failed": […], "kernels": 14, "from_disk": 3,
// "seconds": 0.4}
std::string to_json(const WarmUpReport& report);

// Compiles and loads what launches on the device will need, as they compile it: by the options of the device and the environment. The
// kernels must live until it returns. Errors are those of read_warm_list(); what a kernel's lambda or on_done throws is thrown here.
StatusOr<WarmUpReport> warm_up(const Device& device,
                               absl::Span<const ir::KernelSource* const> kernels,
                               const std::string& list, const CompileAllOptions& options = {});

// Without a device: fills the user's cache on disk with machine code for a target, which launches of other processes then find.
// kFailedPrecondition where there is no such cache; else as above.
StatusOr<WarmUpReport> warm_up_disk(const ir::Target& target,
                                    absl::Span<const ir::KernelSource* const> kernels,
                                    const std::string& list, const CompileAllOptions& options = {});

}  // namespace heddle::runtime

namespace heddle {
using runtime::warm_up;
using runtime::warm_up_disk;
using runtime::WarmUpReport;
}  // namespace heddle
