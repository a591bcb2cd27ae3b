// Memory: Buffer on a device, PinnedBuffer on the host.
//
//   Buffer x = device.allocate(rows * sizeof(float)).value();
//   Status status = x.copy_from_host(stream, values.data(), x.size_bytes());
//   std::vector<float> back = x.download<float>(stream).value();
//
// Offsets and sizes are in bytes and are checked against the buffer: kOutOfRange says both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/memory_tag.h"
#include "heddle/runtime/stream.h"

namespace heddle::runtime {

// A range of device memory, freed by the destructor, which waits for kernels that may still use it;
// of Stream::allocate(), in the stream's order. Movable. A buffer of 0 bytes has address 0. The
// interpreter considers its bytes uninitialised until a copy, a fill or a kernel has written them.
class Buffer {
 public:
  // A buffer of 0 bytes that belongs to no device.
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : backend_(std::move(other.backend_)),
        address_(std::exchange(other.address_, 0)),
        size_bytes_(std::exchange(other.size_bytes_, 0)),
        order_(std::exchange(other.order_, std::nullopt)),
        tag_(std::exchange(other.tag_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  size_t size_bytes() const { return size_bytes_; }
  // At least 256-byte aligned.
  DeviceAddress address() const { return address_; }
  // Null for a default-constructed or moved-from buffer.
  const std::shared_ptr<Backend>& backend() const { return backend_; }

  // What a launch knows this memory by (memory_tag.h); nullptr without memory.
  const MemoryTag* tag() const { return tag_; }

  // Copies `bytes` from the host to `offset`: asynchronous, in stream order. The host's memory must
  // stay as it is until the copy is complete.
  Status copy_from_host(const Stream& stream, const void* from, size_t bytes, size_t offset = 0);
  // Copies `bytes` from `offset` to the host, likewise. The interpreter gives an error where some
  // of the bytes are uninitialised, unless kAllow.
  Status copy_to_host(const Stream& stream, void* to, size_t bytes, size_t offset = 0,
                      Unwritten unwritten = Unwritten::kError) const;
  // Copies from another buffer of the same device, or this one. The two ranges must not overlap.
  Status copy_from(const Stream& stream, const Buffer& from, size_t bytes, size_t offset = 0,
                   size_t from_offset = 0);
  // Sets `count` bytes (fill8), or 32-bit words from an offset that is a multiple of 4 (fill32).
  Status fill8(const Stream& stream, uint8_t value, size_t count, size_t offset = 0);
  Status fill32(const Stream& stream, uint32_t value, size_t count, size_t offset = 0);
  // Sets every byte.
  Status fill(const Stream& stream, uint8_t value) { return fill8(stream, value, size_bytes_); }

  // The whole buffer as values of T, of which it must hold a whole number. Waits for the stream.
  // The interpreter gives an error where some of them are uninitialised, unless kAllow; the message
  // says how many, and which is the first. A T with padding counts as written when one of its
  // members was.
  template <class T>
  StatusOr<std::vector<T>> download(const Stream& stream,
                                    Unwritten unwritten = Unwritten::kError) const;

 private:
  friend class Device;
  friend class Stream;
  // The stream in whose order memory is allocated and freed, which lives until then.
  struct FreedIn {
    StreamHandle stream;
    std::shared_ptr<const OwnedStream> owned;
  };
  static StatusOr<Buffer> allocate(const std::shared_ptr<Backend>& backend, size_t bytes,
                                   std::optional<FreedIn> order);

  Status check(const Stream& stream, size_t offset, size_t bytes) const;
  Status check_written(const Stream& stream, size_t element_bytes, bool padded) const;

  std::shared_ptr<Backend> backend_;
  DeviceAddress address_ = 0;
  size_t size_bytes_ = 0;
  std::optional<FreedIn> order_;
  MemoryTag* tag_ = nullptr;
};

// Host memory that the device copies from and to without staging, so that such copies really run
// beside the host. Movable, freed by the destructor.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : backend_(std::move(other.backend_)),
        data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer();

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  friend class Device;
  PinnedBuffer(std::shared_ptr<Backend> backend, void* data, size_t size_bytes)
      : backend_(std::move(backend)), data_(data), size_bytes_(size_bytes) {}

  std::shared_ptr<Backend> backend_;
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
};

namespace detail {
Status no_whole_number(size_t size_bytes, size_t value_bytes);
}  // namespace detail

template <class T>
StatusOr<std::vector<T>> Buffer::download(const Stream& stream, Unwritten unwritten) const {
  static_assert(std::is_trivially_copyable_v<T>, "download needs plain values");
  if (size_bytes_ % sizeof(T) != 0) {
    return detail::no_whole_number(size_bytes_, sizeof(T));
  }
  std::vector<T> values(size_bytes_ / sizeof(T));
  if (unwritten == Unwritten::kError) {
    constexpr bool kPadded =
        !std::has_unique_object_representations_v<T> && !std::is_floating_point_v<T>;
    if (Status s = check_written(stream, sizeof(T), kPadded); !s.ok()) return s;
  }
  if (Status s = copy_to_host(stream, values.data(), size_bytes_, /*offset=*/0, Unwritten::kAllow);
      !s.ok()) {
    return s;
  }
  if (Status s = stream.synchronize(); !s.ok()) return s;
  return values;
}

}  // namespace heddle::runtime

namespace heddle {
using runtime::Buffer;
using runtime::PinnedBuffer;
}  // namespace heddle
