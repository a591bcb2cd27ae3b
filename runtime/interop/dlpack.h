// DLPack: tensors of other libraries as arguments of launches, and Heddle's memory for other libraries,
// without a copy. https://dmlc.github.io/dlpack/latest
//
//   StatusOr<DlpackTensor> x = from_dlpack(device, managed);          // owns it from here on
//   StatusOr<TensorRef<const float, 2>> rows = x->as_tensor<const float, 2>();
//   Status status = row_sum.launch(stream, {.grid = 2, .block = 128}, *rows, y);
//   status = stream.synchronize();                                    // before x goes
//
//   StatusOr<DLManagedTensorVersioned*> out =                         // the buffer lives until its deleter is called
//       to_dlpack(std::move(buffer), {.dtype = DType::kF32, .extents = {2, 3}});
//
// Arguments of an operation by name (operation/bound_call.h), or of a kernel as data:
//
//   StatusOr<BoundCall> call = bind(operation, settings, {{"x", x->shape()}});
//   StatusOr<Argument> argument = x->argument(call->function->parameters()[0]);
//
// Which memory. A GPU takes kDLCUDA with its own number, kDLCUDAManaged, and kDLCUDAHost, which it reads through the bus. The
// interpreter takes kDLCPU where the memory is its own, such as a buffer that to_dlpack() exported; it checks every
// access against its allocations, and so other memory of the host has to be copied: Device::upload().
//
// Streams. The structs say nothing of them: who passes a tensor on says on which stream it is written, and who takes it waits.
// wait_for_stream() and let_stream_wait() do that, of streams as Python's __dlpack__(stream=…) numbers them. What a deleter frees may be
// used again at once: a DlpackTensor must stay until the work that uses it is complete, unless it runs on the stream on
// which its library frees. The other way round, a Buffer of Device::allocate() is freed when work
// on all streams is complete, and one of Stream::allocate() in the order of that stream alone.
//
// dlpack.h may be included beside this header, before or behind it. Deleters are called on the thread that ends the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/dtype.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/operation/operation.h"

// dlpack.h's own. DLTensor cannot be declared without it: there it is a typedef.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace heddle::runtime {

// A struct with the members and the size of DLTensor, as dlpack.h defines it.
template <class T>
concept LikeDLTensor = sizeof(T) == 48 && requires(const T& t) {
  t.data;
  t.device.device_type;
  t.device.device_id;
  t.ndim;
  t.dtype.code;
  t.dtype.lanes;
  t.shape;
  t.strides;
  t.byte_offset;
};

// A tensor of another library, for launches on one device: from_dlpack() and borrow_dlpack() make one. Movable. The destructor calls the
// deleter of one that is owned; launches of what was made of it are refused from then on.
class DlpackTensor {
 public:
  // What is known of it, and who frees it. For from_dlpack().
  struct State {
    // On this device.
    explicit State(Device on) : device(std::move(on)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    // Calls the deleter.
    ~State();

    Device device;                                // whose launches take it
    DType dtype = DType::kNone;                   // its element type
    std::vector<int64_t> extents = {};            // in elements
    std::vector<int64_t> strides = {};            // in elements
    DeviceAddress address = 0;                    // of the element at all zeros
    bool read_only = false;                       // what a kernel may not write
    MemoryTag* tag = nullptr;                     // by which launches know that it is alive
    DLManagedTensor* legacy = nullptr;            // owned
    DLManagedTensorVersioned* managed = nullptr;  // owned
  };
  explicit DlpackTensor(std::unique_ptr<State> state) : state_(std::move(state)) {}

  // Its element type. float4_e2m1fn of two lanes is DType::kE2M1X2.
  DType dtype() const { return state_->dtype; }
  // Its number of modes, from 1 to 5: a tensor without modes has got one of extent 1.
  int rank() const { return static_cast<int>(state_->extents.size()); }
  // In elements. A tensor without strides is row-major.
  absl::Span<const int64_t> extents() const { return state_->extents; }
  absl::Span<const int64_t> strides() const { return state_->strides; }
  // Where the element at all zeros is, byte_offset included; 0 where there are no elements.
  DeviceAddress address() const { return state_->address; }
  // Whether its library said that nobody may write it. The form before version 1 cannot say so.
  bool read_only() const { return state_->read_only; }
  // Element type and extents, as bind() of operation/bound_call.h takes them.
  TensorShape shape() const { return {state_->dtype, state_->extents}; }

  // As an argument of a typed launch. kInvalidArgument where it has another element type or number of modes, or is read-only and T is
  // not const. A kernel of tfloat32 takes float32.
  template <class T, int Rank>
  StatusOr<TensorRef<T, Rank>> as_tensor() const;

  // As an argument that is data, for a parameter of an operation's function or of a kernel (KernelSource::params()), which is checked likewise;
  // a kernel's type does not say whether it is written, unless its elements are const. Its arrays live as long as this tensor, also where that is moved.
  StatusOr<Argument> argument(const HostFunction::Parameter& parameter) const;
  StatusOr<Argument> argument(const ir::ParamInfo& parameter) const;

 private:
  Status check(DType dtype, int rank, bool writes) const;
  StatusOr<Argument> checked_argument(DType dtype, int rank, bool writes) const;

  std::unique_ptr<State> state_;
};

// Takes a tensor over, for launches on this device. The deleter, unless it is null, is called exactly once: by the DlpackTensor's
// destructor, or before an error is returned. kInvalidArgument, with a cure: memory that the device does not reach; element types that Heddle
// has not, such as complex numbers, vectors and sub-byte types; an address that is null or not aligned to the elements; extents below 0; more
// than 5 modes; another major version than 1, of which nothing but the deleter is touched.
StatusOr<DlpackTensor> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor);
StatusOr<DlpackTensor> from_dlpack(const Device& device, DLManagedTensor* tensor);

// What borrow_dlpack() calls, with a DLTensor.
StatusOr<DlpackTensor> borrow_dltensor(const Device& device, const void* tensor);
// A DLTensor that somebody else owns and keeps until the launches are complete. Errors are those of from_dlpack().
template <LikeDLTensor T>
StatusOr<DlpackTensor> borrow_dlpack(const Device& device, const T* tensor) {
  return borrow_dltensor(device, tensor);
}

// A tensor in a buffer, for to_dlpack().
struct DlpackLayout {
  DType dtype = DType::kNone;         // element type; kTF32 goes out as float32
  std::vector<int64_t> extents = {};  // in elements; none: one element without modes
  std::vector<int64_t> strides = {};  // in elements; none: row-major
  size_t byte_offset = 0;             // in the buffer, of the element at all zeros
  bool read_only = false;             // whether the other library is told not to write it
};

// A buffer for another library, which calls the deleter when it needs it no more; the buffer lives until then and until its other owners are
// gone. A GPU's memory is kDLCUDA, an interpreter's kDLCPU: of that all bytes must have been written, as the interpreter does not see what
// others write. Errors leave the buffer with its owner: kOutOfRange where the tensor does not lie in it, kInvalidArgument for a
// layout that is none, kFailedPrecondition for bytes that were never written. Work that writes the buffer has to be waited for: see above.
StatusOr<DLManagedTensorVersioned*> to_dlpack(std::shared_ptr<Buffer> buffer,
                                              const DlpackLayout& layout);
// The same of a buffer with one owner, which is moved from where there is no error.
StatusOr<DLManagedTensorVersioned*> to_dlpack(Buffer&& buffer, const DlpackLayout& layout);
// The same for libraries that know the form before version 1 only, which cannot say that a tensor is read-only: that is kInvalidArgument.
StatusOr<DLManagedTensor*> to_legacy_dlpack(std::shared_ptr<Buffer> buffer,
                                            const DlpackLayout& layout);
StatusOr<DLManagedTensor*> to_legacy_dlpack(Buffer&& buffer, const DlpackLayout& layout);

// Lets further work on `stream` wait for what is enqueued on another library's stream, as its consumer; or work on that stream wait for `stream`, as the producer
// of what it takes. Streams are numbered as in Python's __dlpack__(stream=…): a CUstream of the device; 1, the legacy default stream; 2, the calling
// thread's default stream; -1, none: nothing waits. kInvalidArgument for 0, which could be both default streams, and other negative numbers.
Status wait_for_stream(const Stream& stream, int64_t theirs);
Status let_stream_wait(int64_t theirs, const Stream& stream);

template <class T, int Rank>
StatusOr<TensorRef<T, Rank>> DlpackTensor::as_tensor() const {
  static_assert(!TensorRef<T, Rank>::kOfStructs,
                "a tensor of DLPack has elements of one scalar type");
  const Status status =
      check(dtype_of<std::remove_const_t<T>>(), Rank, /*writes=*/!std::is_const_v<T>);
  if (!status.ok()) return status;
  TensorRef<T, Rank> ref;
  ref.data = reinterpret_cast<T*>(state_->address);
  for (size_t mode = 0; mode < Rank; ++mode) {
    ref.extents[mode] = state_->extents[mode];
    ref.strides[mode] = state_->strides[mode];
  }
  ref.memory = state_->tag;
  ref.allocation = state_->tag->allocation.load();
  return ref;
}

}  // namespace heddle::runtime

namespace heddle {
using runtime::borrow_dlpack;
using runtime::DlpackLayout;
using runtime::DlpackTensor;
using runtime::from_dlpack;
using runtime::let_stream_wait;
using runtime::to_dlpack;
using runtime::to_legacy_dlpack;
using runtime::wait_for_stream;
}  // namespace heddle
