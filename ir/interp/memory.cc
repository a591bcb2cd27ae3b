#include "heddle/ir/interp/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"

namespace heddle::ir::interp {
namespace {

// Freed ranges that are remembered, by number and by the address space that they keep.
constexpr size_t kRememberedRanges = 1024;
constexpr uint64_t kRememberedBytes = uint64_t{1} << 38;

// Address space that one allocation may ask for: with its shadow and gaps well inside 47 bits.
constexpr uint64_t kLargestAllocation = uint64_t{1} << 45;
constexpr uint64_t kLargestAlignment = uint64_t{1} << 30;

// Below this an address is a null pointer and an offset.
constexpr uint64_t kNullBytes = 64 * 1024;

// From here on small pages are asked for: who maps that much touches it sparsely, and each touch
// would otherwise fill a huge page, in the data and in the shadow.
constexpr uint64_t kSparseBytes = uint64_t{1} << 30;

// A copy looks at this many bytes at a time for parts that were never written.
constexpr uint64_t kCopyChunk = 64 * 1024;

uint64_t page_bytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The interpreter's addresses are host addresses.
uint8_t* host_pointer(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

bool all_zero(const uint8_t* bytes, uint64_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

std::string count_bytes(uint64_t bytes) {
  return bytes == 1 ? "1 byte" : absl::StrCat(bytes, " bytes");
}

}  // namespace

Allocation::~Allocation() { munmap(mapping_, mapping_bytes_); }

std::string Allocation::describe() const {
  std::string name = label_.empty() ? "" : absl::StrCat(" '", label_, "'");
  return absl::StrCat("allocation #", id_, name, " of ", count_bytes(size_));
}

void Allocation::mark_uninitialized(uint64_t address, uint64_t bytes) {
  if (all_initialized_.load(std::memory_order_acquire)) {
    std::memset(shadow_, 1, size_);
    all_initialized_.store(false, std::memory_order_release);
  }
  std::memset(shadow_ + (address - begin_), 0, bytes);
}

StatusOr<uint64_t> Memory::allocate(uint64_t bytes, uint64_t alignment, absl::string_view label) {
  if (bytes == 0) return InvalidArgumentError("cannot allocate 0 bytes");
  if (!absl::has_single_bit(alignment) || alignment > kLargestAlignment) {
    return InvalidArgumentError(
        absl::StrCat("alignment ", alignment, " is not a power of two up to ", kLargestAlignment));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > kLargestAllocation || bytes > capacity_ - allocated_bytes_) {
    return ResourceExhaustedError(
        absl::StrCat("cannot allocate ", count_bytes(bytes), ": ", allocated_bytes_, " of ",
                     std::min(capacity_, kLargestAllocation), " bytes are in use"));
  }

  // gap, data, gap, shadow, gap. The whole is unreadable at first; data and shadow are opened
  // below.
  const uint64_t page = page_bytes();
  const uint64_t data_bytes = round_up(bytes, page);
  const uint64_t slack = alignment > page ? alignment : 0;
  const uint64_t total = 3 * kGapBytes + 2 * data_bytes + slack;
  void* mapping =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return ResourceExhaustedError(absl::StrCat("cannot allocate ", count_bytes(bytes),
                                               ": the host refused the address space (",
                                               std::strerror(errno), ")"));
  }
  const uint64_t data =
      round_up(reinterpret_cast<uint64_t>(mapping) + kGapBytes, std::max(alignment, page));
  const uint64_t shadow = data + data_bytes + kGapBytes;
  for (uint64_t part : {data, shadow}) {
    if (mprotect(host_pointer(part), data_bytes, PROT_READ | PROT_WRITE) != 0) {
      const int error = errno;
      munmap(mapping, total);
      return ResourceExhaustedError(absl::StrCat("cannot allocate ", count_bytes(bytes),
                                                 ": the host refused the memory (",
                                                 std::strerror(error), ")"));
    }
  }
  if (bytes >= kSparseBytes) madvise(mapping, total, MADV_NOHUGEPAGE);

  std::unique_ptr<Allocation> allocation(new Allocation);
  allocation->begin_ = data;
  allocation->size_ = bytes;
  allocation->id_ = next_id_++;
  allocation->label_ = std::string(label);
  allocation->shadow_ = host_pointer(shadow);
  allocation->mapping_ = mapping;
  allocation->mapping_bytes_ = total;
  allocated_bytes_ += bytes;
  live_.emplace(data, std::move(allocation));
  return data;
}

Status Memory::free(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    if (const auto freed = freed_.find(address); freed != freed_.end()) {
      return InvalidArgumentError(absl::StrCat(freed->second->describe(), " was freed twice"));
    }
    return InvalidArgumentError("no allocation starts at the address that was freed");
  }
  std::unique_ptr<Allocation> allocation = std::move(found->second);
  live_.erase(found);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  allocated_bytes_ -= allocation->size_;

  // The range stays readable: a kernel that runs on another thread meets zeros, not a fault of
  // ours.
  const uint64_t data_bytes = round_up(allocation->size_, page_bytes());
  madvise(host_pointer(allocation->begin_), data_bytes, MADV_DONTNEED);
  madvise(allocation->shadow_, data_bytes, MADV_DONTNEED);
  freed_bytes_ += allocation->mapping_bytes_;
  freed_order_.push_back(address);
  freed_.emplace(address, std::move(allocation));
  while (freed_.size() > kRememberedRanges || freed_bytes_ > kRememberedBytes) {
    forget_oldest_freed();
  }
  return OkStatus();
}

void Memory::forget_oldest_freed() {
  const auto oldest = freed_.find(freed_order_.front());
  freed_order_.pop_front();
  freed_bytes_ -= oldest->second->mapping_bytes_;
  freed_.erase(oldest);
}

Allocation* Memory::find_locked(uint64_t address, uint64_t bytes) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  Allocation* allocation = std::prev(after)->second.get();
  return allocation->contains(address, bytes) ? allocation : nullptr;
}

Allocation* Memory::find(uint64_t address, uint64_t bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return find_locked(address, bytes);
}

std::string Memory::explain(uint64_t address, uint64_t bytes) const {
  const std::string what = count_bytes(bytes);
  if (address < kNullBytes) {
    return address == 0 ? absl::StrCat(what, " at a null pointer")
                        : absl::StrCat(what, " at a null pointer plus ", address);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto place = [&](const Allocation& a) {
    return absl::StrCat(what, " at byte ", address - a.begin(), " of ", a.describe());
  };
  for (const Table* table : {&live_, &freed_}) {
    const absl::string_view freed = table == &freed_ ? ", which was freed" : "";
    const auto after = table->upper_bound(address);
    if (after != table->begin()) {
      const Allocation& before = *std::prev(after)->second;
      if (before.contains(address, bytes)) return absl::StrCat(place(before), freed);
      if (address < before.end()) {
        return absl::StrCat(place(before), freed, ", running ",
                            count_bytes(address + bytes - before.end()), " past its end");
      }
      if (address - before.end() < kGapBytes) {
        return absl::StrCat(what, " starting ", count_bytes(address - before.end()),
                            " past the end of ", before.describe(), freed);
      }
    }
    if (after != table->end() && after->second->begin() - address <= kGapBytes) {
      const Allocation& next = *after->second;
      return absl::StrCat(what, " starting ", count_bytes(next.begin() - address), " before ",
                          next.describe(), freed);
    }
  }
  return absl::StrCat(what, " at 0x", absl::Hex(address),
                      ", which belongs to no allocation of this device");
}

StatusOr<Allocation*> Memory::require(uint64_t address, uint64_t bytes) const {
  if (Allocation* allocation = find(address, bytes)) return allocation;
  return InvalidArgumentError(explain(address, bytes));
}

Status Memory::copy_from_host(uint64_t to, const void* from, uint64_t bytes) {
  if (bytes == 0) return OkStatus();
  const StatusOr<Allocation*> target = require(to, bytes);
  if (!target.ok()) return target.status();
  std::memcpy(host_pointer(to), from, bytes);
  (*target)->mark_initialized(to, bytes);
  return OkStatus();
}

Status Memory::copy_to_host(void* to, uint64_t from, uint64_t bytes) const {
  if (bytes == 0) return OkStatus();
  const StatusOr<Allocation*> source = require(from, bytes);
  if (!source.ok()) return source.status();
  std::memcpy(to, host_pointer(from), bytes);
  return OkStatus();
}

Status Memory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (bytes == 0) return OkStatus();
  const StatusOr<Allocation*> source = require(from, bytes);
  if (!source.ok()) return source.status();
  const StatusOr<Allocation*> target = require(to, bytes);
  if (!target.ok()) return target.status();
  if (to < from + bytes && from < to + bytes) {
    return InvalidArgumentError(absl::StrCat("source and destination of a copy of ",
                                             count_bytes(bytes), " overlap in ",
                                             (*target)->describe()));
  }
  if ((*source)->initialized(from, bytes)) {
    std::memcpy(host_pointer(to), host_pointer(from), bytes);
    (*target)->mark_initialized(to, bytes);
    return OkStatus();
  }
  // Parts that nobody wrote are skipped where the target is untouched too: sparse stays sparse.
  for (uint64_t done = 0; done < bytes; done += kCopyChunk) {
    const uint64_t count = std::min(kCopyChunk, bytes - done);
    const uint8_t* written = (*source)->shadow_ + (from + done - (*source)->begin());
    uint8_t* target_written = (*target)->shadow_ + (to + done - (*target)->begin());
    const bool target_untouched = !(*target)->all_initialized_.load(std::memory_order_acquire) &&
                                  all_zero(target_written, count);
    if (all_zero(written, count) && target_untouched) continue;
    if ((*target)->all_initialized_.load(std::memory_order_acquire)) {
      (*target)->mark_uninitialized(to + done, count);
    }
    std::memcpy(host_pointer(to + done), host_pointer(from + done), count);
    std::memcpy(target_written, written, count);
  }
  return OkStatus();
}

Status Memory::fill(uint64_t to, uint32_t pattern, uint64_t pattern_bytes, uint64_t count) {
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) {
    return InvalidArgumentError(
        absl::StrCat("a fill pattern has 1, 2 or 4 bytes, not ", pattern_bytes));
  }
  if (count == 0) return OkStatus();
  if (to % pattern_bytes != 0) {
    return InvalidArgumentError(absl::StrCat("a fill of ", pattern_bytes,
                                             "-byte values needs an address that is a multiple "
                                             "of ",
                                             pattern_bytes));
  }
  if (count > kLargestAllocation) {
    return InvalidArgumentError(explain(to, count));
  }
  const uint64_t bytes = count * pattern_bytes;
  const StatusOr<Allocation*> target = require(to, bytes);
  if (!target.ok()) return target.status();
  uint8_t* data = host_pointer(to);
  if (pattern == 0 && bytes == (*target)->size()) {
    // Fresh pages are zero: a huge workspace is cleared without touching it.
    const uint64_t mapped = round_up(bytes, page_bytes());
    if (madvise(data, mapped, MADV_DONTNEED) != 0) std::memset(data, 0, bytes);
  } else if (pattern_bytes == 1) {
    std::memset(data, static_cast<int>(pattern), bytes);
  } else {
    for (uint64_t i = 0; i < count; ++i)
      std::memcpy(data + i * pattern_bytes, &pattern, pattern_bytes);
  }
  (*target)->mark_initialized(to, bytes);
  return OkStatus();
}

Status Memory::check_written(uint64_t address, uint64_t bytes, uint64_t element_bytes,
                             bool padded) const {
  if (bytes == 0) return OkStatus();
  const StatusOr<Allocation*> source = require(address, bytes);
  if (!source.ok()) return source.status();
  const Allocation& allocation = **source;
  if (allocation.initialized(address, bytes)) return OkStatus();
  uint64_t first = 0, missing = 0;
  for (uint64_t at = address; at < address + bytes; at += element_bytes) {
    if (padded ? allocation.touched(at, element_bytes)
               : allocation.initialized(at, element_bytes)) {
      continue;
    }
    if (missing++ == 0) first = at;
  }
  if (missing == 0) return OkStatus();
  const bool of_bytes = element_bytes == 1;
  return FailedPreconditionError(absl::StrCat(
      "nobody has written ", missing, " of the ", of_bytes ? count_bytes(bytes) : "",
      of_bytes ? ""
               : absl::StrCat(bytes / element_bytes, " elements of ", count_bytes(element_bytes)),
      "; the first is ",
      of_bytes ? "" : absl::StrCat("element ", (first - address) / element_bytes, ", at "), "byte ",
      first - allocation.begin(), " of ", allocation.describe()));
}

bool Memory::is_initialized(uint64_t address, uint64_t bytes) const {
  const Allocation* allocation = find(address, bytes);
  return allocation != nullptr && allocation->initialized(address, bytes);
}

Status Memory::mark_initialized(uint64_t address, uint64_t bytes) {
  const StatusOr<Allocation*> target = require(address, bytes);
  if (!target.ok()) return target.status();
  (*target)->mark_initialized(address, bytes);
  return OkStatus();
}

Status Memory::mark_uninitialized(uint64_t address, uint64_t bytes) {
  const StatusOr<Allocation*> target = require(address, bytes);
  if (!target.ok()) return target.status();
  (*target)->mark_uninitialized(address, bytes);
  return OkStatus();
}

uint64_t Memory::allocated_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return allocated_bytes_;
}

size_t Memory::allocation_count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return live_.size();
}

Allocation* MemoryCursor::find_slow(uint64_t address, uint64_t bytes) {
  // The generation is read first: a free in between makes the answer look stale, never fresh.
  generation_ = memory_->generation();
  cached_ = memory_->find(address, bytes);
  return cached_;
}

}  // namespace heddle::ir::interp
