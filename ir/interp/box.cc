// Copies of boxes between a tensor and shared memory. Each active lane's is complete at once.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/byte_range.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"

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
};

// One lane's copy.
template <bool kChecked>
class BoxRun {
 public:
  BoxRun(const Instr* instr, Warp& warp, int lane)
      : instr_(instr),
        warp_(warp),
        machine_(*warp.block->machine),
        copy_(machine_.code->boxes[instr->aux]),
        lane_(lane),
        size_(bytes_of(copy_.shape.scalar)) {
    for (size_t d = 0; d < rank(); ++d) {
      start_[d] = warp.reg<int32_t>(copy_.coordinates[d])[lane];
      extents_[d] = warp.reg<int64_t>(copy_.extents[d])[lane];
      strides_[d] = warp.reg<int64_t>(copy_.strides[d])[lane] * size_;
    }
  }

  // Whether the run goes on.
  bool run() {
    if (!check_first_coordinate()) return !stop_;
    if (copy_.kind == BoxCopy::Kind::kPrefetch) return true;
    const uint64_t shared = warp_.reg<uint64_t>(instr_->a)[lane_];
    if (copy_.kind != BoxCopy::Kind::kLoad) {
      run_at(shared, *warp_.block);
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

  std::string place_of(const std::array<int64_t, kMaxTensorMapRank>& at) const {
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
                                            /*initialised=*/true, lane_);
    stop_ |= barrier == nullptr;
    if (stop_ || !run_at(shared, block)) return;
    barrier->bytes -= copy_.shape.box_bytes();
    barrier->complete();
  }

  // The box at an address of a block's shared memory.
  bool run_at(uint64_t shared, Block& block) {
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
    if (copy_.shape.im2col) return run_pixels(shared, block);
    std::array<int64_t, kMaxTensorMapRank> at = start_;
    for (int64_t row = 0; !stop_; ++row) {
      if (!run_row(row, at, shared, block)) return false;
      size_t d = 1;
      for (; d < rank(); ++d) {
        if (++at[d] < start_[d] + copy_.shape.box[d]) break;
        at[d] = start_[d];
      }
      if (d == rank() || rank() == 1) return true;
    }
    return false;
  }

  // The pixels of an im2col map from the first one on, each read as far away as the offsets say.
  bool run_pixels(uint64_t shared, Block& block) {
    const auto image = static_cast<size_t>(copy_.shape.image_rank());
    const int64_t most = int64_t{1} << (image == 1 ? 16 : image == 2 ? 8 : 5);
    std::array<int64_t, kMaxTensorMapRank> offsets{}, pixel = start_;
    const auto last = [&](size_t d) { return extents_[d] - 1 + copy_.shape.upper[d - 1]; };
    for (size_t d = 1; d <= image; ++d) {
      offsets[d] = warp_.reg<int32_t>(copy_.offsets[d - 1])[lane_];
      if (offsets[d] < 0 || offsets[d] >= most) {
        return wrong(
            absl::StrCat("has an offset of ", offsets[d], " along dimension ", d,
                         ", which is not 0 to ", most - 1),
            "let the map's lower bounds begin before the image, and offsets count from there");
      }
      if (pixel[d] < copy_.shape.lower[d - 1] || pixel[d] > last(d)) {
        return wrong(absl::StrCat("begins at ", place_of(start_),
                                  ", which is none of the map's pixels: ", copy_.shape.lower[d - 1],
                                  " to ", last(d), " along dimension ", d),
                     "begin at one of the pixels between the map's bounds");
      }
    }
    for (int64_t row = 0; row < copy_.shape.box[1]; ++row) {
      std::array<int64_t, kMaxTensorMapRank> at = pixel;
      for (size_t d = 1; d <= image; ++d) at[d] += offsets[d];
      if (!run_row(row, at, shared, block)) return false;
      size_t d = 1;
      while (d <= image && ++pixel[d] > last(d)) {
        pixel[d] = copy_.shape.lower[d - 1];
        ++d;
      }
      if (d > image) ++pixel[image + 1];
    }
    return true;
  }

  size_t empty_dimension() const {
    size_t d = 0;
    while (d < rank() && extents_[d] > 0) ++d;
    return d;
  }

  bool run_row(int64_t row, const std::array<int64_t, kMaxTensorMapRank>& at, uint64_t shared,
               Block& block) {
    bool inside = true;
    uint64_t global = warp_.reg<uint64_t>(copy_.address)[lane_];
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
    if (!check_row(at, global + static_cast<uint64_t>(first + begin), end - begin)) return false;
    for (int64_t from = 0; from < row_bytes; from += kChunkBytes) {
      const int64_t low = std::clamp<int64_t>(begin - from, 0, kChunkBytes);
      const int64_t high = std::clamp<int64_t>(end - from, low, kChunkBytes);
      const Chunk chunk{.shared = swizzled(shared + static_cast<uint64_t>(row * row_bytes + from)),
                        .begin = low,
                        .end = high,
                        .global = global + static_cast<uint64_t>(first + from + low)};
      if (!move(chunk, at, block)) return false;
    }
    return true;
  }

  // A row's bytes in the tensor.
  bool check_row(const std::array<int64_t, kMaxTensorMapRank>& at, uint64_t address,
                 int64_t bytes) {
    if (!kChecked || bytes <= 0) return true;
    allocation_ = machine_.cursors[copy_.access].find(address, static_cast<uint64_t>(bytes));
    if (allocation_ == nullptr) {
      return wrong(absl::StrCat("leaves the tensor's memory in the row at ", place_of(at)),
                   "check the extents and strides that the launch passes");
    }
    if (copy_.kind == BoxCopy::Kind::kStore ||
        allocation_->initialized(address, static_cast<uint64_t>(bytes))) {
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

  bool move(const Chunk& chunk, const std::array<int64_t, kMaxTensorMapRank>& at, Block& block) {
    const auto bytes = static_cast<size_t>(chunk.end - chunk.begin);
    auto* const inner = reinterpret_cast<std::byte*>(chunk.shared);
    auto* const outer = reinterpret_cast<std::byte*>(chunk.global);
    const ByteRange shared{.address = chunk.shared, .bytes = kChunkBytes, .block = &block};
    if (copy_.kind == BoxCopy::Kind::kLoad) {
      const uint64_t fill = copy_.shape.nan_fill ? nans(copy_.shape.scalar) : 0;
      if (bytes < kChunkBytes) {
        std::memcpy(inner, &fill, sizeof(fill));
        std::memcpy(inner + sizeof(fill), &fill, sizeof(fill));
      }
      if (bytes > 0) std::memcpy(inner + chunk.begin, outer, bytes);
      if (kChecked) shared.mark_written();
      return true;
    }
    if (bytes == 0) return true;
    const ByteRange source{.address = chunk.shared + static_cast<uint64_t>(chunk.begin),
                           .bytes = bytes,
                           .block = &block};
    if (kChecked && !source.written()) {
      return wrong(absl::StrCat("takes shared memory that nobody has written, for the row at ",
                                place_of(at)),
                   "write the tile first, with fence_async() and a barrier behind");
    }
    if (copy_.step == nullptr) {
      std::memcpy(outer, inner + chunk.begin, bytes);
    } else {
      reduce(outer, inner + chunk.begin, bytes);
    }
    if (kChecked) allocation_->mark_initialized(chunk.global, bytes);
    return true;
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
  std::array<int64_t, kMaxTensorMapRank> start_{}, extents_{}, strides_{};
  Allocation* allocation_ = nullptr;  // of the row at hand
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
