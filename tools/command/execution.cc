#include "heddle/tools/command/execution.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/operation/compile_call.h"
#include "heddle/runtime/stopwatch_internal.h"
#include "heddle/runtime/stream.h"

namespace heddle::tools {
namespace {

using runtime::BoundCall;
using runtime::OperationArgument;

// Neither more nor less than the kernel reads.
Status check_inputs(const ChosenKernel& kernel, const runtime::Shapes& inputs) {
  const std::string called = absl::StrCat("kernel '", kernel.operation->name(), "'");
  for (const OperationArgument* const chosen : kernel.operation->arguments(kernel.settings)) {
    const OperationArgument& argument = *chosen;
    const bool given = inputs.count(argument.name) != 0;
    if (given && !argument.is_read()) {
      return InvalidArgumentError(
          absl::StrCat("'", argument.name, "' is an output of ", called, ", not an input"));
    }
    if (given || !argument.is_read()) continue;
    const bool optional =
        absl::c_any_of(kernel.operation->declared(), [&](const OperationArgument& other) {
          return other.place == argument.place && other.role == runtime::Role::kAbsent;
        });
    return InvalidArgumentError(
        absl::StrCat(called, " needs the input '", argument.name, "'",
                     optional ? absl::StrCat(" if ", runtime::describe(argument.condition)) : "",
                     "; fix: --in ", argument.name, "=FILE"));
  }
  return OkStatus();
}

// How a tensor lies in memory, row-major and without gaps.
struct Placement {
  std::vector<int64_t> strides;
  int64_t bytes = 0;
};

// kInvalidArgument says which size makes it too large. Modes without elements count as one: strides
// are multiplied from the others all the same.
StatusOr<Placement> measure(const BoundCall::Value& value) {
  const std::vector<int64_t>& extents = value.shape.extents;
  Placement placed{.strides = std::vector<int64_t>(extents.size())};
  const int64_t element_bytes = ir::bytes_of(value.shape.dtype);
  int64_t bytes = element_bytes;
  for (size_t mode = extents.size(); mode-- > 0;) {
    placed.strides[mode] = bytes / element_bytes;
    if (!__builtin_mul_overflow(bytes, std::max<int64_t>(1, extents[mode]), &bytes)) continue;
    const size_t largest = absl::c_max_element(extents) - extents.begin();
    const std::string& size = value.argument->dimensions[largest].name;
    return InvalidArgumentError(
        absl::StrCat("'", value.argument->name, "' of ", describe(value.shape),
                     " has too many bytes: ", size.empty() ? "an extent" : size, " is ",
                     extents[largest], "; fix: choose a smaller size"));
  }
  placed.bytes = absl::c_linear_search(extents, 0) ? 0 : bytes;
  return placed;
}

// Host memory for what the call writes: it also says whether the shape has so many bytes.
Status allocate_outputs(const BoundCall& call, HostArrays& outputs) {
  for (const BoundCall::Value& value : call.values) {
    if (!value.argument->is_written()) continue;
    StatusOr<HostArray> output = HostArray::allocate(value.shape);
    if (!output.ok()) {
      return Status(output.status().code(), absl::StrCat("output '", value.argument->name, "' ",
                                                         output.status().message()));
    }
    outputs[value.argument->name] = *std::move(output);
  }
  return OkStatus();
}

Status upload(const Stream& stream, const BoundCall& call, const HostArrays& inputs,
              DeviceArguments& on_device) {
  for (size_t i = 0; i < call.values.size(); ++i) {
    const auto input = inputs.find(call.values[i].argument->name);
    if (input == inputs.end()) continue;
    const HostArray& array = input->second;
    if (Status s =
            on_device.buffers()[i].copy_from_host(stream, array.data.get(), array.byte_count);
        !s.ok()) {
      return s;
    }
  }
  return stream.synchronize();
}

Status download(const Stream& stream, const BoundCall& call, DeviceArguments& on_device,
                HostArrays& outputs) {
  for (size_t i = 0; i < call.values.size(); ++i) {
    const auto output = outputs.find(call.values[i].argument->name);
    if (output == outputs.end()) continue;
    HostArray& array = output->second;
    if (Status s = on_device.buffers()[i].copy_to_host(stream, array.data.get(), array.byte_count);
        !s.ok()) {
      return s;
    }
  }
  return stream.synchronize();
}

// A start and a stop event for each call. Nothing waits between calls, so that the device stays
// busy.
struct EventPair {
  Event start, stop;
};

Status call_timed(const Device& device, const Stream& stream, const runtime::HostFunction& function,
                  runtime::Arguments arguments, int count, std::vector<double>& microseconds) {
  // The device's queue is finite, and so is the number of events.
  constexpr int kBatch = 128;
  std::vector<EventPair> events;
  for (int i = 0; i < std::min(count, kBatch); ++i) {
    StatusOr<Event> start = device.create_event();
    if (!start.ok()) return start.status();
    StatusOr<Event> stop = device.create_event();
    if (!stop.ok()) return stop.status();
    events.push_back({*std::move(start), *std::move(stop)});
  }
  for (int done = 0; done < count;) {
    const int batch = std::min(count - done, kBatch);
    for (int i = 0; i < batch; ++i) {
      if (Status s = events[i].start.record(stream); !s.ok()) return s;
      if (Status s = function.call(stream, arguments); !s.ok()) return s;
      if (Status s = events[i].stop.record(stream); !s.ok()) return s;
    }
    if (Status s = stream.synchronize(); !s.ok()) return s;
    for (int i = 0; i < batch; ++i) {
      const StatusOr<double> ms = Event::elapsed_ms(events[i].start, events[i].stop);
      if (!ms.ok()) return ms.status();
      microseconds.push_back(*ms * 1e3);
    }
    done += batch;
  }
  return OkStatus();
}

}  // namespace

StatusOr<Device> open_device(const std::string& name) {
  if (!name.empty()) return Device::open(name);
  const StatusOr<int> count = Device::cuda_device_count();
  return Device::open(count.value_or(0) > 0 ? "cuda:0" : "interp");
}

StatusOr<BoundCall> bind_inputs(const ChosenKernel& kernel, const HostArrays& inputs) {
  runtime::Shapes shapes;
  for (const auto& [name, array] : inputs) shapes[name] = array.shape;
  StatusOr<BoundCall> call =
      runtime::bind(*kernel.operation, kernel.settings, shapes, kernel.sizes);
  if (!call.ok()) return call;
  if (Status s = check_inputs(kernel, shapes); !s.ok()) return s;
  return call;
}

StatusOr<DeviceArguments> DeviceArguments::allocate(const Device& device, const BoundCall& call) {
  DeviceArguments on_device;
  for (const BoundCall::Value& value : call.values) {
    Buffer& buffer = on_device.buffers_.emplace_back();
    std::vector<int64_t>& strides = on_device.strides_.emplace_back();
    if (!value.argument->is_tensor()) {  // of an absent one the bits are 0
      on_device.arguments_.push_back(runtime::scalar_argument(value.bits));
      continue;
    }
    StatusOr<Placement> placed = measure(value);
    if (!placed.ok()) return placed.status();
    StatusOr<Buffer> allocated = device.allocate(static_cast<size_t>(placed->bytes));
    if (!allocated.ok()) return allocated.status();
    buffer = *std::move(allocated);
    strides = std::move(placed->strides);
    on_device.arguments_.push_back(runtime::tensor_argument(
        buffer.address(), value.shape.extents.data(), strides.data(),
        static_cast<int>(strides.size()), ir::bytes_of(value.shape.dtype), placed->bytes));
  }
  return on_device;
}

uint64_t DeviceArguments::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.size_bytes();
  return bytes;
}

StatusOr<Execution> execute(const Device& device, const BoundCall& call, const HostArrays& inputs,
                            int repeat) {
  Execution execution;
  StatusOr<Stream> stream = device.create_stream();
  if (!stream.ok()) return stream.status();

  runtime::Stopwatch stopwatch;
  if (Status s = allocate_outputs(call, execution.outputs); !s.ok()) return s;
  StatusOr<DeviceArguments> on_device = DeviceArguments::allocate(device, call);
  if (!on_device.ok()) return on_device.status();
  if (Status s = upload(*stream, call, inputs, *on_device); !s.ok()) return s;
  execution.tensor_bytes = on_device->tensor_bytes();
  execution.upload_us = stopwatch.lap();

  const runtime::Arguments arguments = on_device->arguments();
  StatusOr<runtime::CompiledCall> compiled = runtime::compile_call(device, call, arguments);
  if (!compiled.ok()) return compiled.status();
  execution.compilations = std::move(compiled->compilations);
  execution.launches = compiled->launches;
  execution.compile_us = stopwatch.lap();

  std::vector<double> first;
  if (Status s = call_timed(device, *stream, *call.function, arguments, 1, first); !s.ok()) {
    return s;
  }
  execution.launch_us = first[0];
  stopwatch.lap();
  if (Status s = download(*stream, call, *on_device, execution.outputs); !s.ok()) return s;
  execution.download_us = stopwatch.lap();
  if (Status s =
          call_timed(device, *stream, *call.function, arguments, repeat, execution.repeats_us);
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
      "%d %s: median %.2f us (%.1f GB/s of inputs and outputs), least %.2f us (%.1f GB/s)",
      sorted.size(), execution.launches == 1 ? "launches" : "calls", median, rate(median),
      sorted[0], rate(sorted[0]));
}

std::string describe_times(const Execution& execution) {
  runtime::StageTimes times;
  for (const auto& compilation : execution.compilations) times += compilation->times;
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
