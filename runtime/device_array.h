// DeviceArray: memory of a device that knows its element type and its extents, so that a launch takes it as it is.
//
//   auto x = DeviceArray<float, 2>::upload(device, {2, 3}, {1, 2, 3, 4, 5, 6}).value();
//   auto y = DeviceArray<float, 1>::allocate(device, {2}).value();
//   Status status = row_sum.launch(stream, {.grid = 2, .block = 128}, x, y);
//   std::vector<float> sums = y.download(stream).value();
//
// An array for a kernel's tensor of another element type or rank does not compile. Views of it, such as its transpose, are
// as_tensor()'s of buffer().
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch.h"

namespace heddle::runtime {

// The elements and bytes of an array of these extents. kInvalidArgument where one is negative, or 64 bits do not hold them.
struct ArraySize {
  int64_t elements = 0;  // all of them
  size_t bytes = 0;      // that they take
};
StatusOr<ArraySize> array_size(absl::Span<const int64_t> extents, size_t element_bytes);
// kInvalidArgument where an array of these extents is to be made of another number of values.
Status check_value_count(absl::Span<const int64_t> extents, int64_t elements, size_t values);

// A row-major array of T with `Rank` extents, in memory of its own. Movable.
template <class T, int Rank>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "the elements of a DeviceArray are plain values; kernels may take it as const");

 public:
  // No memory, and extents of 0.
  DeviceArray() = default;

  // An array whose elements are uninitialised. Errors: array_size()'s and Device::allocate()'s.
  static StatusOr<DeviceArray> allocate(const Device& device, const int64_t (&extents)[Rank]) {
    const StatusOr<ArraySize> size = array_size(extents, sizeof(T));
    if (!size.ok()) return size.status();
    StatusOr<Buffer> buffer = device.allocate(size->bytes);
    if (!buffer.ok()) return buffer.status();
    return DeviceArray(*std::move(buffer), extents, size->elements);
  }
  // An array of these values, row by row; complete on return.
  static StatusOr<DeviceArray> upload(const Device& device, const int64_t (&extents)[Rank],
                                      absl::Span<const T> values) {
    StatusOr<DeviceArray> array = allocate(device, extents);
    if (!array.ok()) return array;
    const Stream stream = device.default_stream();
    if (Status s = array->copy_from_host(stream, values); !s.ok()) return s;
    if (Status s = stream.synchronize(); !s.ok()) return s;
    return array;
  }
  static StatusOr<DeviceArray> upload(const Device& device, const int64_t (&extents)[Rank],
                                      std::initializer_list<T> values) {
    return upload(device, extents, absl::Span<const T>(values.begin(), values.size()));
  }

  // In elements, of a mode from 0 to Rank - 1.
  int64_t shape(int mode) const { return extents_[mode]; }
  // How many elements it has.
  int64_t size() const { return elements_; }
  Buffer& buffer() { return buffer_; }
  const Buffer& buffer() const { return buffer_; }

  // Copies all elements from the host, in stream order: `values` must stay as they are until then.
  Status copy_from_host(const Stream& stream, absl::Span<const T> values) {
    if (Status s = check_value_count(extents_, elements_, values.size()); !s.ok()) return s;
    return buffer_.copy_from_host(stream, values.data(), buffer_.size_bytes());
  }
  // Copies all elements to the host, and waits for the stream. The interpreter gives an error where some are uninitialised, unless kAllow.
  StatusOr<std::vector<T>> download(const Stream& stream,
                                    Unwritten unwritten = Unwritten::kError) const {
    return buffer_.download<T>(stream, unwritten);
  }

  // As an argument of a launch. The array must live until the launch is complete.
  operator TensorRef<T, Rank>() { return as_tensor<T>(buffer_, extents_); }
  operator TensorRef<const T, Rank>() const { return as_tensor<const T>(buffer_, extents_); }

 private:
  DeviceArray(Buffer buffer, const int64_t (&extents)[Rank], int64_t elements)
      : buffer_(std::move(buffer)), elements_(elements) {
    for (int i = 0; i < Rank; ++i) extents_[i] = extents[i];
  }

  Buffer buffer_;
  int64_t extents_[Rank] = {};
  int64_t elements_ = 0;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::DeviceArray;
}  // namespace heddle
