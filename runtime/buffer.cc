#include "heddle/runtime/buffer.h"

#include "absl/strings/str_cat.h"

namespace heddle::runtime {

StatusOr<Buffer> Buffer::allocate(const std::shared_ptr<Backend>& backend, size_t bytes,
                                  std::optional<FreedIn> order) {
  if (Status s = backend->health(); !s.ok()) return s;
  Buffer made;
  made.backend_ = backend;
  if (bytes == 0) return made;
  const StatusOr<DeviceAddress> address =
      order ? backend->allocate_in(order->stream, bytes) : backend->allocate(bytes);
  if (!address.ok()) return address.status();
  made.address_ = *address;
  made.size_bytes_ = bytes;
  made.order_ = std::move(order);
  made.tag_ = tag_memory(backend.get());
  return made;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer old(std::move(*this));
  backend_ = std::move(other.backend_);
  address_ = std::exchange(other.address_, 0);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  order_ = std::exchange(other.order_, std::nullopt);
  tag_ = std::exchange(other.tag_, nullptr);
  return *this;
}

Buffer::~Buffer() {
  if (tag_ != nullptr) untag_memory(tag_);
  if (address_ == 0) return;
  if (order_) {
    backend_->deallocate_in(order_->stream, address_);
  } else {
    backend_->deallocate(address_);
  }
}

Status Buffer::check(const Stream& stream, size_t offset, size_t bytes) const {
  if (offset > size_bytes_ || bytes > size_bytes_ - offset) {
    return OutOfRangeError(absl::StrCat("bytes ", offset, " to ", offset, " + ", bytes,
                                        " do not lie in a buffer of ", size_bytes_, " bytes"));
  }
  // Nothing is done with an empty range, so it does not matter where it is.
  if (bytes != 0 && backend_ != stream.backend()) {
    return InvalidArgumentError(absl::StrCat("the buffer belongs to ", backend_->name(),
                                             ", the stream to ", stream.backend()->name()));
  }
  return OkStatus();
}

Status Buffer::copy_from_host(const Stream& stream, const void* from, size_t bytes, size_t offset) {
  if (Status s = check(stream, offset, bytes); !s.ok()) return s;
  return stream.copy_to_device(address_ + offset, from, bytes);
}

Status Buffer::check_written(const Stream& stream, size_t element_bytes, bool padded) const {
  if (Status s = check(stream, 0, size_bytes_); !s.ok()) return s;
  if (size_bytes_ == 0) return OkStatus();
  return backend_->check_written(address_, size_bytes_, element_bytes, padded);
}

Status Buffer::copy_to_host(const Stream& stream, void* to, size_t bytes, size_t offset,
                            Unwritten unwritten) const {
  if (Status s = check(stream, offset, bytes); !s.ok()) return s;
  return stream.copy_to_host(to, address_ + offset, bytes, unwritten);
}

Status Buffer::copy_from(const Stream& stream, const Buffer& from, size_t bytes, size_t offset,
                         size_t from_offset) {
  if (Status s = check(stream, offset, bytes); !s.ok()) return s;
  if (Status s = from.check(stream, from_offset, bytes); !s.ok()) return s;
  return stream.copy_on_device(address_ + offset, from.address_ + from_offset, bytes);
}

Status Buffer::fill8(const Stream& stream, uint8_t value, size_t count, size_t offset) {
  if (Status s = check(stream, offset, count); !s.ok()) return s;
  return stream.fill8(address_ + offset, value, count);
}

Status Buffer::fill32(const Stream& stream, uint32_t value, size_t count, size_t offset) {
  // Counted in words first: the product could wrap.
  if (count > size_bytes_ / sizeof(value)) {
    return OutOfRangeError(
        absl::StrCat(count, " words of 4 bytes do not lie in a buffer of ", size_bytes_, " bytes"));
  }
  if (Status s = check(stream, offset, count * sizeof(value)); !s.ok()) return s;
  if (offset % sizeof(value) != 0) {
    return InvalidArgumentError(
        absl::StrCat("a fill with words of 4 bytes cannot start at byte ", offset));
  }
  return stream.fill32(address_ + offset, value, count);
}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  PinnedBuffer old(std::move(*this));
  backend_ = std::move(other.backend_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) backend_->deallocate_host(data_);
}

namespace detail {

Status no_whole_number(size_t size_bytes, size_t value_bytes) {
  return InvalidArgumentError(absl::StrCat(
      "a buffer of ", size_bytes, " bytes is no whole number of ", value_bytes, "-byte values"));
}

}  // namespace detail
}  // namespace heddle::runtime
