#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/device.h"
#include "heddle/tools/command/check.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/inputs.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/npy.h"

namespace heddle::tools {
namespace {

// Checks before a long run that every --out names an output, and that its file can be written.
Status check_outputs(const ChosenKernel& kernel, const Assignments& files) {
  std::vector<absl::string_view> written;
  for (const runtime::OperationArgument* argument : kernel.operation->arguments(kernel.settings)) {
    if (argument->is_written()) written.push_back(argument->name);
  }
  for (const auto& [name, path] : files) {
    if (std::find(written.begin(), written.end(), name) == written.end()) {
      return InvalidArgumentError(absl::StrCat("kernel '", kernel.operation->name(),
                                               "' has no output '", name, "'; it writes ",
                                               absl::StrJoin(written, ", ")));
    }
    if (Status s = check_writable(path); !s.ok()) return s;
  }
  return OkStatus();
}

}  // namespace

Exit run_kernel(const RunOptions& options) {
  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  const std::string& name = kernel->operation->name();
  if (options.check && kernel->operation->spec().reference == nullptr) {
    return misused(absl::StrCat("kernel '", name, "' has no reference to check against"));
  }
  const StatusOr<Assignments> input_files = parse_files("--in", options.inputs);
  if (!input_files.ok()) return misused(input_files.status());
  const StatusOr<Assignments> output_files = parse_files("--out", options.outputs);
  if (!output_files.ok()) return misused(output_files.status());
  const StatusOr<Device> device = open_device(options.device);
  if (!device.ok()) {
    return IsInvalidArgument(device.status()) ? misused(device.status()) : failed(device.status());
  }
  if (options.max_instructions >= 0) device->set_max_instructions(options.max_instructions);
  if (!options.completion.empty()) {
    if (Status s = device->set_completion(options.completion); !s.ok()) return misused(s);
  }
  const StatusOr<HostArrays> inputs = read_inputs(*kernel, *input_files);
  if (!inputs.ok()) return misused(inputs.status());
  const StatusOr<runtime::BoundCall> call = bind_inputs(*kernel, *inputs);
  if (!call.ok()) return misused(call.status());
  if (Status s = check_outputs(*kernel, *output_files); !s.ok()) {
    return misused(s);
  }

  const StatusOr<Execution> done = execute(*device, *call, *inputs, options.repeat);
  if (!done.ok()) return failed(done.status());
  absl::PrintF("%-14s %s (%s)\n", "device", device->name(), device->info().name);
  absl::PrintF("%s", describe_times(*done));
  if (!done->repeats_us.empty()) absl::PrintF("%s\n", describe_repeats(*done));

  for (const auto& [output, path] : *output_files) {
    const HostArray& array = done->outputs.at(output);
    if (Status s = write_npy(path, array); !s.ok()) return misused(s);
    absl::PrintF("%-14s %s to %s\n", output, describe(array.shape), path);
  }
  if (!options.check) return Exit::kDone;
  const StatusOr<Verdict> verdict = check_results(*kernel, *inputs, done->outputs);
  if (!verdict.ok()) return failed(verdict.status());
  absl::PrintF("%s", verdict->text);
  return verdict->right ? Exit::kDone
                        : failed(absl::StrCat("kernel '", name, "' computed a wrong result"));
}

}  // namespace heddle::tools
