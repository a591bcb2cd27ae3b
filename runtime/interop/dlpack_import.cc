// Tensors of other libraries for Heddle's launches, and waiting for their streams.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/interop/dlpack.h"
#include "heddle/runtime/interop/dlpack_abi_internal.h"
#include "heddle/runtime/interop/dlpack_types_internal.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::runtime {
namespace {

using dlpack::describe;

constexpr int kMostModes = 5;  // of a kernel's tensor

template <class... Text>
Status refuse(const Text&... text) {
  return InvalidArgumentError(absl::StrCat("the DLPack tensor ", text...));
}

// "kDLCUDA 1"
std::string describe(const DLDevice& device) {
  return absl::StrCat(dlpack::name_of_memory(device.device_type), " ", device.device_id);
}

// Whether a device reads and writes memory of this kind where it is.
bool reaches(const Device& device, const DLDevice& memory) {
  if (device.kind() == BackendKind::kInterp) return memory.device_type == dlpack::kCpu;
  if (device.kind() != BackendKind::kCuda) return false;
  return memory.device_type == dlpack::kCuda
             ? device.name() == absl::StrCat("cuda:", memory.device_id)
             : memory.device_type == dlpack::kCudaHost ||
                   memory.device_type == dlpack::kCudaManaged;
}

Status check_device(const Device& device, const DLDevice& memory) {
  if (reaches(device, memory)) return OkStatus();
  const bool on_gpu = device.kind() == BackendKind::kCuda;
  std::string cure = absl::StrCat("copy it to ", device.name());
  if (on_gpu && memory.device_type == dlpack::kCuda) {
    absl::StrAppend(&cure, ", or launch on cuda:", memory.device_id);
  } else if (on_gpu && memory.device_type == dlpack::kCpu) {
    cure += ", by Device::upload() or its own library";
  } else if (memory.device_type == dlpack::kCuda || memory.device_type == dlpack::kCudaManaged) {
    absl::StrAppend(&cure, ", through the host, or launch on cuda:", memory.device_id);
  }
  return refuse("is in memory of ", describe(memory), ", which ", device.name(),
                " does not reach; fix: ", cure);
}

// The interpreter checks accesses against its own allocations.
Status check_interpreters_memory(const Device& device, const Argument& range) {
  if (device.interp() == nullptr || range.begin == range.end) return OkStatus();
  if (device.interp()->memory().find(range.begin, range.end - range.begin) != nullptr) {
    return OkStatus();
  }
  return refuse(
      "lies in memory of the host that ", device.name(),
      " did not allocate, and an interpreter checks every access against its allocations; "
      "fix: copy it by Device::upload(), and pass as_tensor() of that Buffer");
}

Status read_type(const DLTensor& tensor, uint64_t flags, DType& dtype) {
  dtype = dlpack::scalar_of(tensor.dtype, (flags & dlpack::kPaddedBits) != 0);
  if (dtype != DType::kNone) return OkStatus();
  return refuse("has elements of ", describe(tensor.dtype), ", ",
                dlpack::why_unknown(tensor.dtype));
}

// Extents and strides of a tensor with at least one mode.
Status read_layout(const DLTensor& tensor, DlpackTensor::State& to) {
  if (tensor.ndim < 0) return refuse("has ", tensor.ndim, " modes");
  if (tensor.ndim > kMostModes) {
    return refuse("has ", tensor.ndim, " modes, and Heddle's tensors have ", kMostModes,
                  " at most; fix: reshape it");
  }
  if (tensor.ndim == 0) {
    to.extents = to.strides = {1};
    return OkStatus();
  }
  if (tensor.shape == nullptr) return refuse("has modes, and its shape is null");
  to.extents.assign(tensor.shape, tensor.shape + tensor.ndim);
  for (int mode = 0; mode < tensor.ndim; ++mode) {
    if (tensor.shape[mode] < 0) {
      return refuse("has extent ", tensor.shape[mode], " in mode ", mode);
    }
  }
  if (tensor.strides != nullptr) {
    to.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  } else {
    to.strides = dlpack::row_major(to.extents);
  }
  return OkStatus();
}

// The address, unless there are no elements.
Status read_address(const DLTensor& tensor, DlpackTensor::State& to) {
  for (const int64_t extent : to.extents) {
    if (extent == 0) return OkStatus();
  }
  if (tensor.data == nullptr) {
    return refuse("has elements, ", absl::StrJoin(to.extents, " x "), ", and its data is null");
  }
  if (__builtin_add_overflow(reinterpret_cast<uint64_t>(tensor.data), tensor.byte_offset,
                             &to.address)) {
    return refuse("has byte_offset ", tensor.byte_offset, ", which leads out of memory");
  }
  const int bytes = ir::bytes_of(to.dtype);
  if (to.address % static_cast<uint64_t>(bytes) != 0) {
    return refuse("starts at 0x", absl::Hex(to.address), ", byte_offset ", tensor.byte_offset,
                  " included, and its elements of ", ir::counted(bytes, "byte"),
                  " need a multiple of ", bytes, "; fix: copy it to aligned memory");
  }
  Argument range{.bits = to.address,
                 .extents = to.extents.data(),
                 .strides = to.strides.data(),
                 .rank = static_cast<int>(to.extents.size())};
  measure_tensor(range, bytes);
  if (range.begin == 0 && range.end == UINT64_MAX) {
    return refuse("reaches over more than 64 bits of addresses by its extents ",
                  absl::StrJoin(to.extents, " x "), " and strides ",
                  absl::StrJoin(to.strides, ", "));
  }
  return check_interpreters_memory(to.device, range);
}

Status read(const DLTensor& tensor, uint64_t flags, DlpackTensor::State& to) {
  to.read_only = (flags & dlpack::kReadOnly) != 0;
  if (Status s = check_device(to.device, tensor.device); !s.ok()) return s;
  if (Status s = read_type(tensor, flags, to.dtype); !s.ok()) return s;
  if (Status s = read_layout(tensor, to); !s.ok()) return s;
  return read_address(tensor, to);
}

StatusOr<DlpackTensor> import(std::unique_ptr<DlpackTensor::State> state, const DLTensor& tensor,
                              uint64_t flags) {
  if (Status s = read(tensor, flags, *state); !s.ok()) return s;
  state->tag = tag_memory(state->device.backend().get());
  return DlpackTensor(std::move(state));
}

Status null_pointer() { return InvalidArgumentError("the DLPack tensor is a null pointer"); }

template <class Managed>
void call_deleter(Managed* managed) {
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

}  // namespace

DlpackTensor::State::~State() {
  if (tag != nullptr) untag_memory(tag);
  call_deleter(legacy);
  call_deleter(managed);
}

StatusOr<DlpackTensor> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor) {
  if (tensor == nullptr) return null_pointer();
  auto state = std::make_unique<DlpackTensor::State>(device);
  state->managed = tensor;
  if (tensor->version.major != dlpack::kMajor) {
    return refuse("is of version ", tensor->version.major, ".", tensor->version.minor,
                  " of DLPack, and Heddle reads version ", dlpack::kMajor,
                  "; fix: ask its library for that, by max_version");
  }
  return import(std::move(state), tensor->dl_tensor, tensor->flags);
}

StatusOr<DlpackTensor> from_dlpack(const Device& device, DLManagedTensor* tensor) {
  if (tensor == nullptr) return null_pointer();
  auto state = std::make_unique<DlpackTensor::State>(device);
  state->legacy = tensor;
  return import(std::move(state), tensor->dl_tensor, 0);
}

StatusOr<DlpackTensor> borrow_dltensor(const Device& device, const void* tensor) {
  if (tensor == nullptr) return null_pointer();
  return import(std::make_unique<DlpackTensor::State>(device),
                *static_cast<const DLTensor*>(tensor), 0);
}

Status DlpackTensor::check(DType dtype, int rank, bool writes) const {
  if (state_ == nullptr) return moved_from("a DlpackTensor");
  const bool same =
      dtype == this->dtype() || (dtype == DType::kTF32 && this->dtype() == DType::kF32);
  if (!same) {
    return refuse("has elements of ", name_of(this->dtype()), ", and the parameter takes ",
                  name_of(dtype), "; fix: convert it");
  }
  if (rank != this->rank()) {
    return refuse("has ", ir::counted(this->rank(), "mode"), ", and the parameter takes ", rank,
                  "; fix: reshape it");
  }
  if (writes && read_only()) {
    return refuse(
        "is read-only, and the parameter's elements are not const; fix: make them const, or copy "
        "the "
        "tensor");
  }
  return OkStatus();
}

StatusOr<Argument> DlpackTensor::checked_argument(DType dtype, int rank, bool writes) const {
  if (rank < 0) {
    return refuse(
        "is no argument for a parameter that is a number or a pointer; fix: give the "
        "number, or pointer_argument(address())");
  }
  if (Status s = check(dtype, rank, writes); !s.ok()) return s;
  Argument argument = tensor_argument(address(), state_->extents.data(), state_->strides.data(),
                                      rank, ir::bytes_of(dtype));
  argument.memory = state_->tag;
  argument.allocation = state_->tag->allocation.load();
  return argument;
}

StatusOr<Argument> DlpackTensor::argument(const HostFunction::Parameter& parameter) const {
  return checked_argument(parameter.scalar, parameter.rank, !parameter.read_only);
}

StatusOr<Argument> DlpackTensor::argument(const ir::ParamInfo& parameter) const {
  const bool is_tensor = parameter.type.is_view() && !parameter.unbounded;
  return checked_argument(parameter.type.scalar, is_tensor ? parameter.type.rank : -1,
                          !parameter.type.read_only);
}

namespace {

// A stream by its number in Python's protocol; nothing for -1.
StatusOr<std::optional<Stream>> stream_of(const Device& device, int64_t number) {
  if (number == -1) return std::optional<Stream>();
  if (number <= 0) {
    return InvalidArgumentError(absl::StrCat(
        number, number == 0 ? " is either of CUDA's default streams" : " is no stream",
        "; fix: give 1, the legacy default stream, 2, the thread's, -1, none, or a CUstream"));
  }
  return std::optional<Stream>(device.borrow_stream(StreamHandle(static_cast<uintptr_t>(number))));
}

// Lets further work on `later` wait for what `earlier` has.
Status order(const Stream& earlier, const Stream& later) {
  if (earlier.handle() == later.handle()) return OkStatus();
  StatusOr<Event> event = earlier.device().create_event();
  if (!event.ok()) return event.status();
  if (Status s = event->record(earlier); !s.ok()) return s;
  return later.wait(*event);
}

}  // namespace

Status wait_for_stream(const Stream& stream, int64_t theirs) {
  if (stream.backend() == nullptr) return moved_from("a Stream");
  const StatusOr<std::optional<Stream>> producer = stream_of(stream.device(), theirs);
  if (!producer.ok()) return producer.status();
  return producer->has_value() ? order(**producer, stream) : OkStatus();
}

Status let_stream_wait(int64_t theirs, const Stream& stream) {
  if (stream.backend() == nullptr) return moved_from("a Stream");
  const StatusOr<std::optional<Stream>> consumer = stream_of(stream.device(), theirs);
  if (!consumer.ok()) return consumer.status();
  return consumer->has_value() ? order(stream, **consumer) : OkStatus();
}

}  // namespace heddle::runtime
