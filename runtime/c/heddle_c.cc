#include "heddle/runtime/c/heddle_c.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/prepared_call.h"
#include "heddle/runtime/ahead/warm_up.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/interop/dlpack.h"
#include "heddle/runtime/observe/observed_launch.h"
#include "heddle/runtime/observe/ranges.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/catalogue.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/reachable_memory.h"
#include "nlohmann/json.hpp"

using heddle::Buffer;
using heddle::Device;
using heddle::InvalidArgumentError;
using heddle::NotFoundError;
using heddle::OkStatus;
using heddle::Status;
using heddle::StatusOr;
using heddle::runtime::Argument;
using heddle::runtime::BoundCall;
using heddle::runtime::Operation;

struct HeddleDevice {
  Device device;
  std::mutex mutex = {};
  std::map<void*, std::shared_ptr<Buffer>> buffers = {};  // by address; guarded by the mutex
};

struct HeddleCall {
  Device device;
  heddle::PreparedCall prepared;
  // Whether it was launched: its first launch is asked whether it reaches its memory, for the code was compiled without any.
  std::unique_ptr<std::atomic<bool>> launched = std::make_unique<std::atomic<bool>>(false);
};

namespace {

// What the thread's last call said.
std::string& said() {
  thread_local std::string text;
  return text;
}

// Runs a function that returns a Status, and has its text: nullptr where it is OK. Nothing is thrown into C.
template <class Body>
const char* answer(Body&& body) noexcept {
  try {
    const Status status = body();
    if (status.ok()) return nullptr;
    said() = std::string(status.message());
    return said().c_str();
  } catch (const std::bad_alloc&) {
    return "there is not enough memory";
  } catch (...) {
    return "something was thrown that is no error of Heddle";
  }
}

Status missing(absl::string_view what) {
  return InvalidArgumentError(absl::StrCat(what, " is NULL"));
}
// Of arguments that all have to be there.
Status check(absl::string_view function, std::initializer_list<const void*> arguments) {
  if (!absl::c_linear_search(arguments, nullptr)) return OkStatus();
  return missing(absl::StrCat("an argument of ", function, "()"));
}
// Of an array, which may be NULL where it has nothing.
Status check_array(absl::string_view what, const void* array, int count) {
  if (count < 0) {
    return InvalidArgumentError(
        absl::StrCat("the number of ", what, " is ", count, "; fix: pass how many the array has"));
  }
  return array == nullptr && count > 0 ? missing(what) : OkStatus();
}

StatusOr<const Operation*> find(const char* name) {
  if (name == nullptr) return missing("the operation's name");
  if (const Operation* const operation = heddle::runtime::find_operation(name)) return operation;
  std::vector<absl::string_view> names;
  for (const Operation* known : heddle::runtime::registered_operations()) {
    names.push_back(known->name());
  }
  return NotFoundError(absl::StrCat("unknown kernel '", name, "'", heddle::ir::suggest(name, names),
                                    " (heddle_operations() has all)"));
}

// "name=value" texts.
StatusOr<std::map<std::string, std::string>> assignments(const char* what, const char* const* texts,
                                                         int count) {
  if (Status s = check_array(absl::StrCat(what, "s"), texts, count); !s.ok()) return s;
  std::map<std::string, std::string> all;
  for (int i = 0; i < count; ++i) {
    if (texts[i] == nullptr) return missing(what);
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(texts[i], absl::MaxSplits('=', 1));
    if (parts.first.empty() || !absl::StrContains(texts[i], '=')) {
      return InvalidArgumentError(
          absl::StrCat(what, " '", texts[i], "' is not of the form name=value"));
    }
    if (!all.insert(parts).second) {
      return InvalidArgumentError(absl::StrCat(what, " '", parts.first, "' is given twice"));
    }
  }
  return all;
}

StatusOr<heddle::Settings> settings_of(const Operation& operation, const char* const* texts,
                                       int count) {
  const auto given = assignments("setting", texts, count);
  if (!given.ok()) return given.status();
  return operation.resolve(*given);
}

StatusOr<heddle::runtime::Sizes> sizes_of(const char* const* texts, int count) {
  const auto given = assignments("size", texts, count);
  if (!given.ok()) return given.status();
  heddle::runtime::Sizes sizes;
  for (const auto& [name, text] : *given) {
    if (!absl::SimpleAtoi(text, &sizes[name])) {
      return InvalidArgumentError(absl::StrCat("size '", name, "=", text, "' is no whole number"));
    }
  }
  return sizes;
}

// "bool, i8, …"
std::string element_types() {
  std::vector<absl::string_view> names;
  for (const heddle::ir::ScalarInfo& scalar : heddle::ir::kScalars) {
    if (heddle::ir::scalar_from_name(scalar.name)) names.push_back(scalar.name);
  }
  return absl::StrJoin(names, ", ");
}

// What a caller says of a tensor, but for its strides.
StatusOr<heddle::TensorShape> shape_of(const HeddleTensor& tensor) {
  if (tensor.name == nullptr) return missing("a tensor's name");
  if (tensor.dtype == nullptr) return missing("a tensor's element type");
  const auto dtype = heddle::ir::scalar_from_name(tensor.dtype);
  if (!dtype) {
    return InvalidArgumentError(
        absl::StrCat("'", tensor.name, "' has elements of type '", tensor.dtype,
                     "', which there is not; fix: name one of ", element_types()));
  }
  if (tensor.rank < 0) {
    return InvalidArgumentError(absl::StrCat("'", tensor.name, "' has rank ", tensor.rank,
                                             "; fix: pass how many extents it has"));
  }
  if (tensor.rank > 0 && (tensor.extents == nullptr || tensor.strides == nullptr)) {
    return missing("a tensor's extents or strides");
  }
  return heddle::TensorShape{*dtype, {tensor.extents, tensor.extents + tensor.rank}};
}

StatusOr<heddle::runtime::Shapes> shapes_of(absl::Span<const HeddleTensor> tensors) {
  heddle::runtime::Shapes shapes;
  for (const HeddleTensor& tensor : tensors) {
    StatusOr<heddle::TensorShape> shape = shape_of(tensor);
    if (!shape.ok()) return shape.status();
    if (!shapes.emplace(tensor.name, *std::move(shape)).second) {
      return InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is given twice"));
    }
  }
  return shapes;
}

// A call of an operation on these tensors.
StatusOr<heddle::PreparedCall> prepare(const Operation& operation, const heddle::Settings& settings,
                                       absl::Span<const HeddleTensor> tensors) {
  std::vector<heddle::runtime::CallTensor> given;
  for (const HeddleTensor& tensor : tensors) {
    StatusOr<heddle::TensorShape> shape = shape_of(tensor);
    if (!shape.ok()) return shape.status();
    given.push_back(
        {tensor.name, *std::move(shape), {tensor.strides, tensor.strides + tensor.rank}});
  }
  return heddle::PreparedCall::bind(operation, settings, given);
}

// Whether the device reaches the memory of the arguments.
Status check_reach(const HeddleCall& call, absl::Span<const Argument> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const BoundCall& bound = call.prepared.bound();
    const std::string what = absl::StrCat("'", bound.values[i].argument->name, "' of kernel '",
                                          bound.operation->name(), "'");
    const Status status = heddle::runtime::check_reach(arguments[i], what, *call.device.backend());
    if (!status.ok()) return status;
  }
  return OkStatus();
}

// The tensors and sizes of a call that shapes or sizes are given of, as JSON.
Status describe_call(const char* operation, const char* const* settings, int setting_count,
                     const heddle::runtime::Shapes& shapes, const heddle::runtime::Sizes& sizes,
                     const char** json) {
  const StatusOr<const Operation*> found = find(operation);
  if (!found.ok()) return found.status();
  const StatusOr<heddle::Settings> chosen = settings_of(**found, settings, setting_count);
  if (!chosen.ok()) return chosen.status();
  const StatusOr<BoundCall> bound = heddle::runtime::bind(**found, *chosen, shapes, sizes);
  if (!bound.ok()) return bound.status();
  *json = (said() = heddle::runtime::to_json(*bound)).c_str();
  return OkStatus();
}

}  // namespace

int heddle_c_abi(void) { return HEDDLE_C_ABI; }

const char* heddle_open(const char* name, HeddleDevice** device) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_open", {name, device}); !s.ok()) return s;
    StatusOr<Device> opened = Device::open(name);
    if (!opened.ok()) return opened.status();
    *device = new HeddleDevice{*std::move(opened)};
    return OkStatus();
  });
}

void heddle_close(HeddleDevice* device) { delete device; }

const char* heddle_device_info(HeddleDevice* device, const char** json) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_device_info", {device, json}); !s.ok()) return s;
    const heddle::DeviceInfo& info = device->device.info();
    const nlohmann::ordered_json all = {
        {"name", info.name},
        {"compute_capability", info.compute_major * 10 + info.compute_minor},
        {"sm_count", info.sm_count},
        {"l2_bytes", info.l2_bytes},
        {"driver_version", info.driver_version}};
    *json = (said() = all.dump()).c_str();
    return OkStatus();
  });
}

const char* heddle_operations(const char** json) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_operations", {json}); !s.ok()) return s;
    *json = (said() = heddle::runtime::to_json(heddle::runtime::registered_operations())).c_str();
    return OkStatus();
  });
}

const char* heddle_tensors(const char* operation, const char* const* settings, int setting_count,
                           const char* const* sizes, int size_count, const char** json) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_tensors", {json}); !s.ok()) return s;
    const StatusOr<heddle::runtime::Sizes> given = sizes_of(sizes, size_count);
    if (!given.ok()) return given.status();
    return describe_call(operation, settings, setting_count, {}, *given, json);
  });
}

const char* heddle_bind(const char* operation, const char* const* settings, int setting_count,
                        const HeddleTensor* tensors, int tensor_count, const char** json) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_bind", {json}); !s.ok()) return s;
    if (Status s = check_array("tensors", tensors, tensor_count); !s.ok()) return s;
    const StatusOr<heddle::runtime::Shapes> shapes =
        shapes_of({tensors, static_cast<size_t>(tensor_count)});
    if (!shapes.ok()) return shapes.status();
    return describe_call(operation, settings, setting_count, *shapes, {}, json);
  });
}

const char* heddle_compile(HeddleDevice* device, const char* operation, const char* const* settings,
                           int setting_count, const HeddleTensor* tensors, int tensor_count,
                           HeddleCall** call) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_compile", {device, call}); !s.ok()) return s;
    if (Status s = check_array("tensors", tensors, tensor_count); !s.ok()) return s;
    const StatusOr<const Operation*> found = find(operation);
    if (!found.ok()) return found.status();
    const StatusOr<heddle::Settings> chosen = settings_of(**found, settings, setting_count);
    if (!chosen.ok()) return chosen.status();
    StatusOr<heddle::PreparedCall> prepared =
        prepare(**found, *chosen, {tensors, static_cast<size_t>(tensor_count)});
    if (!prepared.ok()) return prepared.status();
    if (Status s = prepared->compile(device->device); !s.ok()) return s;
    *call = new HeddleCall{device->device, *std::move(prepared)};
    return OkStatus();
  });
}

void heddle_release(HeddleCall* call) { delete call; }

const char* heddle_launch(HeddleCall* call, void* const* pointers, void* stream) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_launch", {call, pointers}); !s.ok()) return s;
    const Device& device = call->device;
    const heddle::Stream on =
        stream == nullptr ? device.default_stream()
                          : device.borrow_stream(
                                heddle::runtime::StreamHandle(reinterpret_cast<uintptr_t>(stream)));
    const heddle::PreparedCall& prepared = call->prepared;
    return prepared.with_arguments(
        [&](size_t tensor) { return reinterpret_cast<uint64_t>(pointers[tensor]); },
        [&](absl::Span<const Argument> arguments) {
          const auto launch = [&]() -> Status {
            if (call->launched->load(std::memory_order_relaxed)) {
              return prepared.bound().function->call(on, arguments);
            }
            if (Status s = check_reach(*call, arguments); !s.ok()) return s;
            Status status = prepared.bound().function->call(on, arguments);
            if (status.ok()) call->launched->store(true, std::memory_order_relaxed);
            return status;
          };
          if (!heddle::runtime::launches_may_be_observed()) return launch();
          const heddle::runtime::ProfilerRange range(prepared.bound().operation->name());
          return launch();
        });
  });
}

const char* heddle_warm_up(HeddleDevice* device, const char* path, int32_t threads,
                           HeddleProgress progress, void* context, const char** json) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_warm_up", {device, path}); !s.ok()) return s;
    heddle::CompileAllOptions options{.threads = threads};
    if (progress != nullptr) {
      options.on_done = [&](const heddle::CompileProgress& p) {
        const std::string error(p.status.message());
        progress(context, p.done, p.total, p.job.c_str(), p.status.ok() ? nullptr : error.c_str());
      };
    }
    const StatusOr<heddle::WarmUpReport> report =
        heddle::warm_up(device->device, {}, path, options);
    if (!report.ok()) return report.status();
    if (json != nullptr) *json = (said() = heddle::runtime::to_json(*report)).c_str();
    return OkStatus();
  });
}

const char* heddle_allocate(HeddleDevice* device, size_t bytes, void** memory) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_allocate", {device, memory}); !s.ok()) return s;
    // A buffer of no bytes has no address, which would be everybody's.
    StatusOr<Buffer> buffer = device->device.allocate(std::max<size_t>(bytes, 1));
    if (!buffer.ok()) return buffer.status();
    void* const address = reinterpret_cast<void*>(buffer->address());
    auto owned = std::make_shared<Buffer>(*std::move(buffer));
    const std::lock_guard lock(device->mutex);
    device->buffers[address] = std::move(owned);
    *memory = address;
    return OkStatus();
  });
}

void heddle_free(HeddleDevice* device, void* memory) {
  if (device == nullptr) return;
  std::shared_ptr<Buffer> freed;  // behind the lock, for it may wait
  const std::lock_guard lock(device->mutex);
  if (const auto found = device->buffers.find(memory); found != device->buffers.end()) {
    freed = std::move(found->second);
    device->buffers.erase(found);
  }
}

const char* heddle_to_dlpack(HeddleDevice* device, void* memory, const HeddleTensor* tensor,
                             int versioned, void** managed) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_to_dlpack", {device, memory, tensor, managed}); !s.ok()) return s;
    StatusOr<heddle::TensorShape> shape = shape_of(*tensor);
    if (!shape.ok()) return shape.status();
    const heddle::DlpackLayout layout{.dtype = shape->dtype,
                                      .extents = std::move(shape->extents),
                                      .strides = {tensor->strides, tensor->strides + tensor->rank}};
    std::shared_ptr<Buffer> buffer;
    {
      const std::lock_guard lock(device->mutex);
      const auto found = device->buffers.find(memory);
      if (found == device->buffers.end()) {
        return InvalidArgumentError(
            "heddle_to_dlpack() was given memory that does not start at what heddle_allocate() "
            "gave, or "
            "that was freed");
      }
      buffer = found->second;
    }
    const auto give = [&](const auto& made) {
      if (made.ok()) *managed = *made;
      return made.status();
    };
    return versioned != 0 ? give(heddle::to_dlpack(std::move(buffer), layout))
                          : give(heddle::to_legacy_dlpack(std::move(buffer), layout));
  });
}

const char* heddle_upload(HeddleDevice* device, void* to, const void* from, size_t bytes) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_upload", {device, to, from}); !s.ok()) return s;
    const heddle::Stream stream = device->device.default_stream();
    if (Status s = stream.copy_to_device(reinterpret_cast<uint64_t>(to), from, bytes); !s.ok()) {
      return s;
    }
    return stream.synchronize();
  });
}

const char* heddle_download(HeddleDevice* device, void* to, const void* from, size_t bytes) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_download", {device, to, from}); !s.ok()) return s;
    const heddle::Stream stream = device->device.default_stream();
    if (Status s = stream.copy_to_host(to, reinterpret_cast<uint64_t>(from), bytes); !s.ok()) {
      return s;
    }
    return stream.synchronize();
  });
}

const char* heddle_synchronize(HeddleDevice* device) {
  return answer([&]() -> Status {
    if (Status s = check("heddle_synchronize", {device}); !s.ok()) return s;
    return device->device.synchronize();
  });
}
