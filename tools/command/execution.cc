#include "heddle/tools/command/execution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/stream.h"
#include "heddle/tools/command/input_check.h"
#include "heddle/tools/command/stopwatch.h"

namespace heddle::tools {
namespace {

using runtime::LaunchPlan;

// A parameter of the plan with its memory on the device.
struct Bound {
  const LaunchPlan::Parameter* parameter = nullptr;
  runtime::TensorShape shape;
  Buffer buffer;
  std::vector<int64_t> strides;
};

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t mode = extents.size(); mode-- > 0;) {
    strides[mode] = stride;
    stride *= std::max<int64_t>(1, extents[mode]);
  }
  return strides;
}

// Allocates every tensor and copies the inputs.
absl::StatusOr<std::vector<Bound>> place_tensors(const Device& device, const Stream& stream,
                                                 const LaunchPlan& plan, const HostArrays& inputs,
                                                 HostArrays& outputs) {
  std::vector<Bound> bound;
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const LaunchPlan::Parameter& parameter = plan.parameters[i];
    Bound& here = bound.emplace_back();
    here.parameter = &parameter;
    if (parameter.is_scalar) continue;
    const auto input = inputs.find(parameter.name);
    here.shape = input != inputs.end() ? input->second.shape : parameter.shape;
    here.strides = row_major_strides(here.shape.extents);
    size_t bytes = input != inputs.end() ? input->second.byte_count : 0;
    if (!plan.source->params()[i].type.read_only) {
      absl::StatusOr<HostArray> output = HostArray::allocate(here.shape);
      if (!output.ok()) {
        return absl::Status(output.status().code(), absl::StrCat("output '", parameter.name, "' ",
                                                                 output.status().message()));
      }
      bytes = output->byte_count;
      outputs[parameter.name] = *std::move(output);
    }
    absl::StatusOr<Buffer> buffer = device.allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    here.buffer = *std::move(buffer);
    if (input == inputs.end()) continue;
    if (absl::Status s = here.buffer.copy_from_host(stream, input->second.data.get(), bytes);
        !s.ok()) {
      return s;
    }
  }
  if (absl::Status s = stream.synchronize(); !s.ok()) return s;
  return bound;
}

absl::Status download(const Stream& stream, const std::vector<Bound>& bound, HostArrays& outputs) {
  for (const Bound& b : bound) {
    const auto output = outputs.find(b.parameter->name);
    if (output == outputs.end()) continue;
    HostArray& array = output->second;
    if (absl::Status s = b.buffer.copy_to_host(stream, array.data.get(), array.byte_count);
        !s.ok()) {
      return s;
    }
  }
  return stream.synchronize();
}

// A start and a stop for each launch: nothing waits between them, so that the device never runs
// dry.
struct EventPair {
  Event start, stop;
};

absl::Status launch_timed(const Device& device, const Stream& stream,
                          const runtime::Executable& executable,
                          const runtime::LaunchConfig& config, runtime::Arguments arguments,
                          int count, std::vector<double>& microseconds) {
  // The device's queue is not endless, and neither should the events be.
  constexpr int kBatch = 128;
  std::vector<EventPair> events;
  for (int i = 0; i < std::min(count, kBatch); ++i) {
    absl::StatusOr<Event> start = device.create_event();
    if (!start.ok()) return start.status();
    absl::StatusOr<Event> stop = device.create_event();
    if (!stop.ok()) return stop.status();
    events.push_back({*std::move(start), *std::move(stop)});
  }
  for (int done = 0; done < count;) {
    const int batch = std::min(count - done, kBatch);
    for (int i = 0; i < batch; ++i) {
      if (absl::Status s = events[i].start.record(stream); !s.ok()) return s;
      if (absl::Status s = executable.launch(config, arguments); !s.ok()) return s;
      if (absl::Status s = events[i].stop.record(stream); !s.ok()) return s;
    }
    if (absl::Status s = stream.synchronize(); !s.ok()) return s;
    for (int i = 0; i < batch; ++i) {
      const absl::StatusOr<double> ms = Event::elapsed_ms(events[i].start, events[i].stop);
      if (!ms.ok()) return ms.status();
      microseconds.push_back(*ms * 1e3);
    }
    done += batch;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Device> open_device(const std::string& name) {
  if (!name.empty()) return Device::open(name);
  const absl::StatusOr<int> count = Device::cuda_device_count();
  return Device::open(count.value_or(0) > 0 ? "cuda:0" : "interp");
}

absl::StatusOr<LaunchPlan> make_plan(const ChosenKernel& kernel, const HostArrays& inputs) {
  InputShapes shapes;
  for (const auto& [name, array] : inputs) shapes[name] = array.shape;
  absl::StatusOr<LaunchPlan> plan = kernel.entry->plan(kernel.settings, shapes);
  if (!plan.ok()) {
    // Kernels word their refusals themselves. What is wrong with any kernel's inputs is said here,
    // since this knows the settings that would help.
    const absl::Status general = check_inputs(kernel, shapes);
    return general.ok() ? plan : general;
  }
  if (plan->source == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel '", kernel.entry->name, "': its launch plan names no kernel (source is null)"));
  }
  if (plan->parameters.size() != plan->source->params().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the launch plan of kernel '", kernel.entry->name,
                     "' does not have an entry for each parameter of the kernel"));
  }
  if (absl::Status s = check_inputs(kernel, *plan, shapes); !s.ok()) return s;
  return plan;
}

absl::StatusOr<Execution> execute(const Device& device, const LaunchPlan& plan,
                                  const HostArrays& inputs, int repeat) {
  Execution execution;
  absl::StatusOr<Stream> stream = device.create_stream();
  if (!stream.ok()) return stream.status();

  Stopwatch stopwatch;
  absl::StatusOr<std::vector<Bound>> bound =
      place_tensors(device, *stream, plan, inputs, execution.outputs);
  if (!bound.ok()) return bound.status();
  execution.upload_us = stopwatch.lap();

  std::vector<runtime::Argument> arguments;
  for (const Bound& b : *bound) {
    execution.tensor_bytes += b.buffer.size_bytes();
    arguments.push_back(
        b.parameter->is_scalar
            ? runtime::scalar_argument(b.parameter->scalar_bits)
            : runtime::tensor_argument(b.buffer.address(), b.shape.extents.data(), b.strides.data(),
                                       static_cast<int>(b.shape.extents.size()),
                                       ir::bytes_of(b.shape.dtype),
                                       static_cast<int64_t>(b.buffer.size_bytes())));
  }
  if (absl::Status s =
          runtime::check_arguments(absl::StrCat("kernel '", plan.source->name(), "'"),
                                   plan.source->params(), arguments, *device.backend());
      !s.ok()) {
    return s;
  }
  runtime::LaunchConfig config = plan.config;
  config.stream = &*stream;
  const absl::StatusOr<const runtime::Executable*> executable =
      runtime::KernelCache::of(*plan.source)
          .find_or_compile(*plan.source, device.backend(), config, arguments);
  if (!executable.ok()) return executable.status();
  execution.compilation = &(*executable)->compilation();
  execution.compile_us = stopwatch.lap();

  const bool empty = config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0;
  std::vector<double> first;
  if (absl::Status s =
          launch_timed(device, *stream, **executable, config, arguments, empty ? 0 : 1, first);
      !s.ok()) {
    return s;
  }
  if (!empty) execution.launch_us = first[0];
  stopwatch.lap();
  if (absl::Status s = download(*stream, *bound, execution.outputs); !s.ok()) return s;
  execution.download_us = stopwatch.lap();
  if (absl::Status s = launch_timed(device, *stream, **executable, config, arguments,
                                    empty ? 0 : repeat, execution.repeats_us);
      !s.ok()) {
    return s;
  }
  return execution;
}

std::string describe_repeats(const Execution& execution) {
  std::vector<double> sorted = execution.repeats_us;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  const auto rate = [&](double us) {
    return us > 0 ? static_cast<double>(execution.tensor_bytes) / us * 1e-3 : 0;
  };
  return absl::StrFormat(
      "%d launches: median %.2f us (%.1f GB/s of inputs and outputs), least %.2f us (%.1f GB/s)",
      sorted.size(), median, rate(median), sorted[0], rate(sorted[0]));
}

std::string describe_times(const Execution& execution) {
  const runtime::StageTimes& times = execution.compilation->times;
  const std::pair<absl::string_view, double> rows[] = {
      {"upload", execution.upload_us},
      {"trace", times.trace},
      {"passes", times.passes},
      {"emit PTX", times.emit},
      {"assemble", times.assemble},
      {"  ptxas alone", times.ptxas},
      {"load", std::max(0.0, execution.compile_us - times.trace - times.passes - times.emit -
                                 times.assemble)},
      {"launch", execution.launch_us},
      {"download", execution.download_us},
  };
  std::string text;
  for (const auto& [stage, us] : rows) absl::StrAppendFormat(&text, "%-14s %12.1f us\n", stage, us);
  return text;
}

}  // namespace heddle::tools
