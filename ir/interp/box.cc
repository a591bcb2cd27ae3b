// Copies of boxes between a tensor and shared memory, lane by lane. In programs that are watched they
// are complete when the model says so, else at once.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/byte_range.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

constexpr int64_t kChunkBytes = 16;  // what a swizzle moves about
constexpr uint64_t kBoxAlignment = 128;

// The bits of a quiet NaN, in each element of a chunk.
uint64_t nans(Scalar scalar) {
  switch (bytes_of(scalar)) {
    case 2:
      return 0x7FFF7FFF7FFF7FFF;
    case 4:
      return 0x7FFFFFFF7FFFFFFF;
    default:
      return 0x7FFFFFFFFFFFFFFF;
  }
}

// A part of a row of a box: 16 bytes of shared memory, and which of its elements the tensor has.
struct Chunk {
  uint64_t shared;     // address
  int64_t begin, end;  // bytes of it that the tensor has
  uint64_t global;     // address of the first of these
  uint64_t row;        // the same of its row, and how many the tensor has of that
  int64_t row_bytes;
};

// One lane's copy.
template <bool kChecked>
class BoxRun {
  using Position = std::array<int64_t, kMaxTensorMapRank>;

 public:
  BoxRun(const Instr* instr, Warp& warp, int lane)
      : instr_(instr),
        warp_(warp),
        machine_(*warp.block->machine),
        copy_(machine_.code->boxes[instr->aux]),
        lane_(lane),
        size_(bytes_of(copy_.shape.scalar)),
        address_(warp.reg<uint64_t>(copy_.address)[lane]) {
    for (size_t d = 0; d < rank(); ++d) {
      start_[d] = warp.reg<int32_t>(copy_.coordinates[d])[lane];
      extents_[d] = warp.reg<int64_t>(copy_.extents[d])[lane];
      strides_[d] = warp.reg<int64_t>(copy_.strides[d])[lane] * size_;
    }
    for (size_t d = 1; copy_.shape.im2col && d <= image_rank(); ++d) {
      offsets_[d] = warp.reg<int32_t>(copy_.offsets[d - 1])[lane];
    }
  }

  // Whether the run goes on.
  bool run() {
    if (!check_first_coordinate()) return !stop_;
    if (copy_.kind == BoxCopy::Kind::kPrefetch) return true;
    const uint64_t shared = warp_.reg<uint64_t>(instr_->a)[lane_];
    if (copy_.kind != BoxCopy::Kind::kLoad) {
      store(shared, *warp_.block);
      return !stop_;
    }
    const uint64_t barrier = warp_.reg<uint64_t>(instr_->b)[lane_];
    if (copy_.ranks == kNone) {
      load(shared, barrier, *warp_.block);
      return !stop_;
    }
    const auto& blocks = warp_.block->cluster->blocks;
    const uint32_t ranks = warp_.reg<uint32_t>(copy_.ranks)[lane_];
    if (ranks == 0) wrong("to none of the cluster's blocks", "name some of them");
    for (uint32_t left = ranks; left != 0 && !stop_; left &= left - 1) {
      const auto rank = static_cast<size_t>(std::countr_zero(left));
      if (rank >= blocks.size()) {
        wrong(absl::StrCat("to block ", rank, " of a cluster of ", blocks.size()),
              "ranks count from 0, and the launch says how many blocks a cluster has");
        break;
      }
      const uint64_t away = blocks[rank]->shared_address() - warp_.block->shared_address();
      load(shared + away, barrier + away, *blocks[rank]);
    }
    return !stop_;
  }

 private:
  size_t rank() const { return static_cast<size_t>(copy_.shape.rank); }

  // Reports a mistake.
  bool wrong(absl::string_view what, std::string fix) {
    stop_ |= machine_.reporter->add(
        warp_, instr_, Mask{1} << lane_,
        absl::StrCat("a copy of a box of '", machine_.code->texts[copy_.view_name], "' ", what),
        std::move(fix));
    return false;
  }

  std::string place_of(const Position& at) const {
    std::string text;
    for (size_t d = 0; d < rank(); ++d) absl::StrAppend(&text, d == 0 ? "(" : ", ", at[d]);
    return text + ")";
  }

  // Nothing on a GPU says so before it stops the kernel.
  bool check_first_coordinate() {
    if (!kChecked || start_[0] * size_ % kChunkBytes == 0) return true;
    return wrong(absl::StrCat("at ", place_of(start_), " begins ", start_[0] * size_,
                              " bytes from the start of a row, which is no multiple of 16"),
                 "let the coordinate of the contiguous mode be a multiple of 16 bytes");
  }

  void load(uint64_t shared, uint64_t barrier_address, Block& block) {
    Mbarrier* const barrier = find_mbarrier(instr_, warp_, barrier_address, copy_.mbarrier_array,
                                            /*initialised=*/true, lane_, /*copies=*/true);
    stop_ |= barrier == nullptr;
    if (stop_ || !check(shared, block)) return;
    Watch* const watch = watch_of(warp_);
    if (watch == nullptr) {
      transfer(shared, reinterpret_cast<std::byte*>(shared), block);
      barrier->bytes -= copy_.shape.box_bytes();
      barrier->complete();
      return;
    }
    const uint32_t event = watch->begin(instr_, warp_, lane_, AccessKind::kBulkWrite);
    watch->counts_for(event, reinterpret_cast<uint64_t>(barrier));
    stop_ |= watch->touch(event, block, shared, box_bytes());
    if (stop_) return;
    std::memset(shadow_of(block, shared), kWritten, box_bytes());
    watch->pending().add([=, *this, &block]() mutable {
      transfer(shared, reinterpret_cast<std::byte*>(shared), block);
      watch->complete_tx({event}, *barrier, copy_.shape.box_bytes());
    });
  }

  // The copy engine writes whole chunks, with what the box has behind the end of the row.
  bool check_row_end() {
    const int64_t end = extents_[0];
    if (!kChecked || start_[0] + copy_.shape.box[0] <= end || start_[0] >= end ||
        end * size_ % kChunkBytes == 0) {
      return true;
    }
    return wrong(
        absl::StrCat("at ", place_of(start_), " is stored over what lies behind the rows, ",
                     "which have ", end * size_, " bytes: the copy engine writes whole 16"),
        "let rows end at multiples of 16 bytes, or store them by threads");
  }

  void store(uint64_t shared, Block& block) {
    if (!check(shared, block) || !check_row_end()) return;
    auto* const box = reinterpret_cast<std::byte*>(shared);
    Watch* const watch = watch_of(warp_);
    if (watch == nullptr) {
      transfer(shared, box, block);
      return;
    }
    const uint32_t event = watch->begin(instr_, warp_, lane_, AccessKind::kBulkRead);
    each_chunk(shared, [&](const Chunk& chunk, const Position&) {
      const auto from = static_cast<uint64_t>(chunk.begin), to = static_cast<uint64_t>(chunk.end);
      stop_ |= from < to && watch->touch(event, block, chunk.shared + from, to - from);
      return !stop_;
    });
    if (stop_) return;
    // What has been read may be written elsewhere later.
    const auto held = std::make_shared<std::vector<std::byte>>();
    const Pending::Ticket read =
        watch->pending().add([=, *this] { held->assign(box, box + box_bytes()); });
    const Pending::Ticket write = watch->pending().add([=, *this, &block]() mutable {
      watch->pending().finish(read);
      transfer(shared, held->data(), block);
    });
    watch->add_store(warp_, lane_, event, read, write);
  }

  uint64_t box_bytes() const { return static_cast<uint64_t>(copy_.shape.box_bytes()); }

  // Whether the box at an address of a block's shared memory may be copied.
  bool check(uint64_t shared, Block& block) {
    const auto bytes = static_cast<uint64_t>(copy_.shape.box_bytes());
    const std::string beyond =
        beyond_array(warp_, block_of(warp_, shared, bytes), copy_.shared_array, shared, bytes);
    if (!beyond.empty()) {
      return wrong(absl::StrCat("of ", bytes, " bytes touches ", beyond),
                   "check where the box lies in shared memory");
    }
    if (shared % kBoxAlignment != 0) {
      return wrong("is at a place in shared memory that is no multiple of 128 bytes",
                   "align the array, and each box in it, to 128 bytes");
    }
    if (const size_t d = empty_dimension(); d < rank()) {
      return wrong(absl::StrCat("that has no elements: dimension ", d, " has extent 0"),
                   "copy no box of an empty tensor");
    }
    if (copy_.shape.im2col && !check_pixels()) return false;
    if (!kChecked) return true;
    uint64_t row_end = 0;
    return each_chunk(shared, [&](const Chunk& chunk, const Position& at) {
      if (chunk.row_bytes == 0 || chunk.row == row_end) return check_source(chunk, at, block);
      row_end = chunk.row;
      return check_row(at, chunk.row, chunk.row_bytes) && check_source(chunk, at, block);
    });
  }

  // Of an im2col map: whether the copy engine takes the offsets, and begins at one of the map's pixels.
  bool check_pixels() {
    const size_t image = image_rank();
    const int64_t most = int64_t{1} << (image == 1 ? 16 : image == 2 ? 8 : 5);
    for (size_t d = 1; d <= image; ++d) {
      if (offsets_[d] < 0 || offsets_[d] >= most) {
        return wrong(
            absl::StrCat("has an offset of ", offsets_[d], " along dimension ", d,
                         ", which is not 0 to ", most - 1),
            "let the map's lower bounds begin before the image, and offsets count from there");
      }
      if (start_[d] < first_pixel(d) || start_[d] > last_pixel(d)) {
        return wrong(absl::StrCat("begins at ", place_of(start_),
                                  ", which is none of the map's pixels: ", first_pixel(d), " to ",
                                  last_pixel(d), " along dimension ", d),
                     "begin at one of the pixels between the map's bounds");
      }
    }
    return true;
  }

  // Each chunk of the box in turn, until visit() says no; whether it never did.
  template <class Visit>
  bool each_chunk(uint64_t shared, Visit&& visit) const {
    Position at = start_;
    for (int64_t row = 0;; ++row) {
      Position source = at;  // what the offsets of an im2col map make of it
      for (size_t d = 1; d < rank(); ++d) source[d] += offsets_[d];
      if (!each_chunk_of_row(row, source, shared, visit)) return false;
      if (copy_.shape.im2col ? !next_pixel(row, &at) : !next_row(&at)) return true;
    }
  }

  // The row of a tile behind that one; whether there is one.
  bool next_row(Position* at) const {
    for (size_t d = 1; d < rank(); ++d) {
      if (++(*at)[d] < start_[d] + copy_.shape.box[d]) return true;
      (*at)[d] = start_[d];
    }
    return false;
  }

  // The pixel of an im2col map behind that one, which is `row` of the box; whether the box has it.
  bool next_pixel(int64_t row, Position* at) const {
    if (row + 1 == copy_.shape.box[1]) return false;
    size_t d = 1;
    while (d <= image_rank() && ++(*at)[d] > last_pixel(d)) {
      (*at)[d] = first_pixel(d);
      ++d;
    }
    if (d > image_rank()) ++(*at)[d];
    return true;
  }

  size_t image_rank() const { return static_cast<size_t>(copy_.shape.image_rank()); }
  int64_t first_pixel(size_t d) const { return copy_.shape.lower[d - 1]; }
  int64_t last_pixel(size_t d) const { return extents_[d] - 1 + copy_.shape.upper[d - 1]; }

  size_t empty_dimension() const {
    size_t d = 0;
    while (d < rank() && extents_[d] > 0) ++d;
    return d;
  }

  template <class Visit>
  bool each_chunk_of_row(int64_t row, const Position& at, uint64_t shared, Visit&& visit) const {
    bool inside = true;
    uint64_t global = address_;
    for (size_t d = 1; d < rank(); ++d) {
      inside &= at[d] >= 0 && at[d] < extents_[d];
      global += static_cast<uint64_t>(at[d] * strides_[d]);
    }
    // The bytes of the row that the tensor has.
    const int64_t row_bytes = copy_.shape.box[0] * size_;
    const int64_t first = at[0] * size_;
    const int64_t begin = inside ? std::max<int64_t>(0, -first) : row_bytes;
    const int64_t end =
        std::max(begin, inside ? std::min(row_bytes, extents_[0] * size_ - first) : row_bytes);
    for (int64_t from = 0; from < row_bytes; from += kChunkBytes) {
      const int64_t low = std::clamp<int64_t>(begin - from, 0, kChunkBytes);
      const int64_t high = std::clamp<int64_t>(end - from, low, kChunkBytes);
      const Chunk chunk{.shared = swizzled(shared + static_cast<uint64_t>(row * row_bytes + from)),
                        .begin = low,
                        .end = high,
                        .global = global + static_cast<uint64_t>(first + from + low),
                        .row = global + static_cast<uint64_t>(first + begin),
                        .row_bytes = end - begin};
      if (!visit(chunk, at)) return false;
    }
    return true;
  }

  // A row's bytes in the tensor.
  bool check_row(const Position& at, uint64_t address, int64_t bytes) {
    const Allocation* const allocation =
        machine_.cursors[copy_.access].find(address, static_cast<uint64_t>(bytes));
    if (allocation == nullptr) {
      return wrong(absl::StrCat("leaves the tensor's memory in the row at ", place_of(at)),
                   "check the extents and strides that the launch passes");
    }
    if (copy_.kind == BoxCopy::Kind::kStore ||
        allocation->initialized(address, static_cast<uint64_t>(bytes))) {
      return true;
    }
    return wrong(
        absl::StrCat("reads elements that nobody has written, in the row at ", place_of(at)),
        "write the tensor first");
  }

  uint64_t swizzled(uint64_t address) const {
    if (copy_.shape.swizzle == 0) return address;
    const auto rows = static_cast<uint64_t>(copy_.shape.swizzle / kChunkBytes);
    return address ^ ((address >> 7 & (rows - 1)) * kChunkBytes);
  }

  // A store reads only what was written.
  bool check_source(const Chunk& chunk, const Position& at, Block& block) {
    if (copy_.kind == BoxCopy::Kind::kLoad || chunk.begin == chunk.end) return true;
    const uint8_t* const source = shadow_of(block, chunk.shared);
    return std::memchr(source + chunk.begin, 0, static_cast<size_t>(chunk.end - chunk.begin)) ==
               nullptr ||
           wrong(absl::StrCat("takes shared memory that nobody has written, for the row at ",
                              place_of(at)),
                 "write the tile first, with fence_async() and a barrier behind");
  }

  // Copies the box: its bytes in shared memory are, or were, those at `box`.
  void transfer(uint64_t shared, std::byte* box, Block& block) {
    each_chunk(shared, [&](const Chunk& chunk, const Position&) {
      move(chunk, box + (chunk.shared - shared), block);
      return true;
    });
  }

  void move(const Chunk& chunk, std::byte* inner, Block& block) {
    const auto bytes = static_cast<size_t>(chunk.end - chunk.begin);
    auto* const outer = reinterpret_cast<std::byte*>(chunk.global);
    if (copy_.kind == BoxCopy::Kind::kLoad) {
      const uint64_t fill = copy_.shape.nan_fill ? nans(copy_.shape.scalar) : 0;
      if (bytes < kChunkBytes) {
        std::memcpy(inner, &fill, sizeof(fill));
        std::memcpy(inner + sizeof(fill), &fill, sizeof(fill));
      }
      if (bytes > 0) std::memcpy(inner + chunk.begin, outer, bytes);
      if (kChecked) std::memset(shadow_of(block, chunk.shared), kWritten, kChunkBytes);
      return;
    }
    if (bytes == 0) return;
    if (copy_.step == nullptr) {
      std::memcpy(outer, inner + chunk.begin, bytes);
    } else {
      reduce(outer, inner + chunk.begin, bytes);
    }
    if (!kChecked) return;
    Allocation* const allocation = machine_.cursors[copy_.access].find(chunk.global, bytes);
    if (allocation != nullptr) allocation->mark_initialized(chunk.global, bytes);
  }

  void reduce(std::byte* to, const std::byte* from, size_t bytes) const {
    const auto size = static_cast<size_t>(size_);
    for (size_t i = 0; i < bytes; i += size) {
      uint64_t old = 0, value = 0;
      std::memcpy(&old, to + i, size);
      std::memcpy(&value, from + i, size);
      const uint64_t next = copy_.step(old, value);
      std::memcpy(to + i, &next, size);
    }
  }

  const Instr* const instr_;
  Warp& warp_;
  Machine& machine_;
  const BoxCopy& copy_;
  const int lane_;
  const int64_t size_;
  const uint64_t address_;
  Position start_{}, extents_{}, strides_{};
  Position offsets_{};  // of an im2col map's pixels
  bool stop_ = false;
};

template <bool kChecked>
const Instr* run_box(const Instr* instr, Warp& warp) {
  bool goes_on = true;
  for_each_lane(warp.mask,
                [&](int l) { goes_on = goes_on && BoxRun<kChecked>(instr, warp, l).run(); });
  return goes_on ? instr + 1 : warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler box_handler(bool checked) { return checked ? &run_box<true> : &run_box<false>; }

}  // namespace heddle::ir::interp
