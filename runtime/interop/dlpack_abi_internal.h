// The structs of DLPack's ABI, version 1, which libraries exchange tensors in. They have the names and
// places that dlpack.h gives them, so that a program may include that header beside Heddle's; no file
// may include both this one and that.
#pragma once

#include <cstddef>
#include <cstdint>

// An element type: a code (dlpack.cc has their names), bits, and elements of a vector.
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; until version 1.1 null where row-major
  uint64_t byte_offset;
};

// The form before version 1.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);  // may be null
};

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);  // may be null
  uint64_t flags;
  DLTensor dl_tensor;  // of another major version it may lie elsewhere
};

namespace heddle::runtime::dlpack {

inline constexpr uint32_t kMajor = 1, kMinor = 1;  // 1.1 has all types that Heddle has

inline constexpr uint64_t kReadOnly = 1;    // nobody may write it
inline constexpr uint64_t kPaddedBits = 4;  // each element of less than a byte has a byte

// Memory, as DLDevice::device_type says it.
inline constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;

static_assert(sizeof(DLDataType) == 4 && offsetof(DLDataType, lanes) == 2);
static_assert(sizeof(DLDevice) == 8);
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 &&
              offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
              offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48 &&
              offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
              offsetof(DLManagedTensorVersioned, deleter) == 16 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

}  // namespace heddle::runtime::dlpack
