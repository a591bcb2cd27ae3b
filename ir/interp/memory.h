// Device memory of the interpreter: sparse, guarded, and aware of which bytes were ever written.
//
// Addresses are host addresses, so the interpreter reads and writes through them directly once a
// cursor has vouched for the range. Pages cost nothing until they are touched: an allocation of
// many GiB is as cheap as one of a few bytes. Unreadable gaps on either side keep neighbours apart,
// so an address that runs off an allocation is attributed to that allocation and not to the next
// one.
//
//   Memory memory;
//   const uint64_t x = memory.allocate(1024, 256, "x").value();
//   MemoryCursor cursor(memory);
//   Allocation* a = cursor.find(x + 16, 4);
//   if (a == nullptr) return error(memory.explain(x + 16, 4));
//   if (!a->initialized(x + 16, 4)) return error("nobody wrote these bytes");
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::ir::interp {

// One range that allocate() handed out. The shadow holds a byte for each byte: 1 once it was
// written. Safe to use from several threads as the bytes themselves are: distinct ranges freely.
class Allocation {
 public:
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  // Unmaps the range.
  ~Allocation();

  uint64_t begin() const { return begin_; }
  uint64_t size() const { return size_; }
  uint64_t end() const { return begin_ + size_; }
  // 1, 2, 3 … in the order of allocation; never used twice by one Memory.
  uint64_t id() const { return id_; }
  const std::string& label() const { return label_; }
  // "allocation #3 'x' of 1024 bytes"
  std::string describe() const;

  bool contains(uint64_t address, uint64_t bytes) const {
    const uint64_t offset = address - begin_;  // Wraps to something huge below begin_.
    return offset <= size_ && bytes <= size_ - offset;
  }

  // Whether every byte of a range that this allocation contains was written.
  bool initialized(uint64_t address, uint64_t bytes) const {
    if (all_initialized_.load(std::memory_order_acquire)) return true;
    const uint8_t* shadow = shadow_ + (address - begin_);
    switch (bytes) {
      case 1:
        return *shadow != 0;
      case 2:
        return load<uint16_t>(shadow) == 0x0101u;
      case 4:
        return load<uint32_t>(shadow) == 0x01010101u;
      case 8:
        return load<uint64_t>(shadow) == 0x0101010101010101u;
      default:
        return std::memchr(shadow, 0, bytes) == nullptr;
    }
  }

  // Records that a range which this allocation contains was written.
  void mark_initialized(uint64_t address, uint64_t bytes) {
    if (all_initialized_.load(std::memory_order_acquire)) return;
    uint8_t* shadow = shadow_ + (address - begin_);
    switch (bytes) {
      case 4:
        std::memset(shadow, 1, 4);
        return;
      case 8:
        std::memset(shadow, 1, 8);
        return;
      default:
        break;
    }
    // Input tensors are written whole by one copy: after that the shadow need not be looked at.
    if (bytes == size_) {
      all_initialized_.store(true, std::memory_order_release);
    } else {
      std::memset(shadow, 1, bytes);
    }
  }

 private:
  friend class Memory;
  Allocation() = default;

  template <class T>
  static T load(const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  // Of a range that this allocation contains: whether any byte was written.
  bool touched(uint64_t address, uint64_t bytes) const {
    return all_initialized_.load(std::memory_order_acquire) ||
           std::memchr(shadow_ + (address - begin_), 1, bytes) != nullptr;
  }
  // Forgets that a range was written.
  void mark_uninitialized(uint64_t address, uint64_t bytes);

  uint64_t begin_ = 0;
  uint64_t size_ = 0;
  uint64_t id_ = 0;
  std::string label_;
  uint8_t* shadow_ = nullptr;
  std::atomic<bool> all_initialized_{false};
  void* mapping_ = nullptr;
  uint64_t mapping_bytes_ = 0;
};

// The allocations of one device. Thread-safe.
class Memory {
 public:
  static constexpr uint64_t kNoLimit = ~uint64_t{0};
  // Distance over which an address outside every allocation is still attributed to its neighbour.
  static constexpr uint64_t kGapBytes = 64 * 1024;

  // `capacity` bounds the bytes that are allocated at one time.
  explicit Memory(uint64_t capacity = kNoLimit) : capacity_(capacity) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // A range of `bytes` > 0 zero bytes, none of them initialised, whose address is a multiple of
  // `alignment` (a power of two). `label` names it in messages. kResourceExhausted when it does not
  // fit, kInvalidArgument for a bad size or alignment.
  StatusOr<uint64_t> allocate(uint64_t bytes, uint64_t alignment = 256,
                              absl::string_view label = "");

  // Gives back the range that starts at `address`. It is remembered for a while, so that a later
  // use is explained as such. kInvalidArgument when no live range starts there.
  Status free(uint64_t address);

  // The live allocation that holds all of [address, address + bytes), or null. O(log n); valid
  // until that allocation is freed.
  Allocation* find(uint64_t address, uint64_t bytes) const;

  // What is wrong with [address, address + bytes): "4 bytes at byte 1022 of allocation #3 'x' of
  // 1024 bytes, running 2 bytes past its end". For a range that is fine: where it lies.
  std::string explain(uint64_t address, uint64_t bytes) const;

  // Copies and fills by address; the ranges must each lie in one live allocation, else
  // kInvalidArgument with explain()'s text. Bytes that come from the host are initialised, a copy
  // within the device carries over which bytes were, and reading uninitialised bytes back gives
  // zeros.
  Status copy_from_host(uint64_t to, const void* from, uint64_t bytes);
  Status copy_to_host(void* to, uint64_t from, uint64_t bytes) const;
  Status copy(uint64_t to, uint64_t from, uint64_t bytes);
  // `count` repetitions of a pattern of 1, 2 or 4 bytes.
  Status fill(uint64_t to, uint32_t pattern, uint64_t pattern_bytes, uint64_t count);

  // OK where every element of [address, address + bytes), a live range of elements of a size, was
  // written; else kFailedPrecondition with how many were not, and the first of them. Elements with
  // padding (`padded`) count as written where any byte was.
  Status check_written(uint64_t address, uint64_t bytes, uint64_t element_bytes = 1,
                       bool padded = false) const;
  // Whether [address, address + bytes) is live and every byte of it was written.
  bool is_initialized(uint64_t address, uint64_t bytes) const;
  // Records that a live range was written; kInvalidArgument when it is not live.
  Status mark_initialized(uint64_t address, uint64_t bytes);
  // Forgets that a live range was written; kInvalidArgument when it is not live.
  Status mark_uninitialized(uint64_t address, uint64_t bytes);

  uint64_t capacity() const { return capacity_; }
  uint64_t allocated_bytes() const;
  // Live allocations.
  size_t allocation_count() const;
  // Changes whenever a range is freed: what find() gave before may be gone.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  using Table = std::map<uint64_t, std::unique_ptr<Allocation>>;

  StatusOr<Allocation*> require(uint64_t address, uint64_t bytes) const;
  Allocation* find_locked(uint64_t address, uint64_t bytes) const;
  void forget_oldest_freed();

  const uint64_t capacity_;
  std::atomic<uint64_t> generation_{0};
  mutable std::mutex mutex_;
  Table live_;
  // Freed ranges stay mapped (and empty), so that nothing else is put where they were.
  Table freed_;
  std::deque<uint64_t> freed_order_;
  uint64_t freed_bytes_ = 0;
  uint64_t allocated_bytes_ = 0;
  uint64_t next_id_ = 1;
};

// A look-up that remembers its last answer, for the interpreter's inner loop. Each thread uses its
// own; the Memory must outlive it.
class MemoryCursor {
 public:
  explicit MemoryCursor(const Memory& memory) : memory_(&memory) {}

  // As Memory::find.
  Allocation* find(uint64_t address, uint64_t bytes) {
    if (cached_ != nullptr && generation_ == memory_->generation() &&
        cached_->contains(address, bytes)) {
      return cached_;
    }
    return find_slow(address, bytes);
  }

 private:
  Allocation* find_slow(uint64_t address, uint64_t bytes);

  const Memory* memory_;
  Allocation* cached_ = nullptr;
  uint64_t generation_ = 0;
};

}  // namespace heddle::ir::interp
