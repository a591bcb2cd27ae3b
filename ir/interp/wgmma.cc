// Tensor-core products of a warp-group: when they run, and how their tiles lie in shared memory.
//
// The first three of the group's warps wait for the last, which computes for all four. Products
// complete at once; the verifier keeps programs from reading a fragment before it is settled.
#include <cstring>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/mma.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

constexpr int kGroupWarps = 4;
constexpr int kRows = 64;         // of the result
constexpr int kDepthBytes = 32;   // of a row of either tile
constexpr int kChunkBytes = 16;   // what swizzling moves about
constexpr int kRowsTogether = 8;  // rows of a core matrix, or of a swizzle pattern

// A tile as its descriptor says. Major are the elements that are contiguous: along k, or with `transposed` along m or n;
// minor those of the other mode.
struct Tile {
  uint64_t address;
  uint64_t leading;
  uint64_t stride;
  uint64_t swizzle;  // bytes of a row of the pattern; 0: none
  bool transposed;

  // Where the chunk number `major` of row `minor` starts.
  uint64_t chunk(int minor, int major) const {
    const auto group = static_cast<uint64_t>(minor / kRowsTogether);
    const auto within = static_cast<uint64_t>(minor % kRowsTogether);
    const auto along = static_cast<uint64_t>(major);
    if (swizzle == 0) {
      // From a core matrix, 8 rows of a chunk, to the next one along k by `leading`, and along m or n by `stride`.
      return address + group * (transposed ? leading : stride) +
             along * (transposed ? stride : leading) + within * kChunkBytes;
    }
    // Eight rows of the pattern's width, and the next eight a stride further on. Tiles whose columns are contiguous go
    // on behind the pattern's width, a leading offset further on.
    const uint64_t chunks = swizzle / kChunkBytes;
    const uint64_t plain = address + group * stride + within * swizzle +
                           (transposed ? along % chunks * kChunkBytes + along / chunks * leading
                                       : along * kChunkBytes);
    // Within a row of 128, 64 or 32 bytes the chunk's number is xored with 3, 2 or 1 bits of the
    // address of the 128-byte line.
    const uint64_t moved = (plain >> 7) & (chunks - 1);
    return plain ^ (moved * kChunkBytes);
  }
};

Tile tile_of(const Warp& warp, uint32_t address, uint32_t format, bool transposed) {
  const uint64_t bits = warp.reg<uint64_t>(format)[0];
  return {.address = warp.reg<uint64_t>(address)[0],
          .leading = bits & 0xFFFFFFu,
          .stride = bits >> 24 & 0xFFFFFFu,
          .swizzle = bits >> 48,
          .transposed = transposed};
}

// Reads a tile; a message where that is not possible, empty otherwise.
std::string read_tile(const Block& block, const Tile& tile, Scalar scalar, bool checked,
                      Matrix* out) {
  const int elements = kChunkBytes / bytes_of(scalar);  // of a chunk
  const int minors = tile.transposed ? out->columns : out->rows;
  const int chunks = (tile.transposed ? out->rows : out->columns) / elements;
  double numbers[kChunkBytes];
  for (int minor = 0; minor < minors; ++minor) {
    for (int index = 0; index < chunks; ++index) {
      const uint64_t address = tile.chunk(minor, index);
      const uint64_t offset = address - block.shared_address();
      if (checked) {
        const auto which = [&] {
          return absl::StrCat(tile.transposed ? "column " : "row ", minor, " of the tile, at byte ",
                              static_cast<int64_t>(offset), " of shared memory");
        };
        if (offset % kChunkBytes != 0) {
          return absl::StrCat(which(), ", does not start at a multiple of 16 bytes");
        }
        if (offset > block.shared_bytes || block.shared_bytes - offset < kChunkBytes) {
          return absl::StrCat(which(), ", lies outside the block's ", block.shared_bytes, " bytes");
        }
        if (std::memchr(block.shared_written + offset, 0, kChunkBytes) != nullptr) {
          return absl::StrCat(which(), ", is read before anybody has written it");
        }
      }
      read_numbers(scalar, reinterpret_cast<const void*>(address), elements, numbers);
      for (int i = 0; i < elements; ++i) {
        const int major = index * elements + i;
        out->at(tile.transposed ? major : minor, tile.transposed ? minor : major) = numbers[i];
      }
    }
  }
  return "";
}

bool unanimous(const Warp& warp, uint32_t reg, uint64_t value) {
  const uint64_t* lanes = warp.reg<uint64_t>(reg);
  for (int l = 0; l < kLanes; ++l) {
    if (lanes[l] != value) return false;
  }
  return true;
}

// Runs the product of the four warps from `first` on, all of which are at the instruction. True
// when the run has to stop.
bool run_product(const Instr* instr, const Warp& warp, const Warp* first) {
  const Machine& machine = *warp.block->machine;
  const Wgmma& wgmma = machine.code->wgmmas[instr->aux];
  const bool checked = machine.code->checked;
  const bool keep = instr->c == kNone || (*first->reg<Bool>(instr->c) & 1u) != 0;
  absl::InlinedVector<uint32_t, 4> descriptors = {instr->b, wgmma.b_format};
  if (wgmma.a_format != kNone) descriptors.insert(descriptors.end(), {instr->a, wgmma.a_format});
  for (int w = 0; w < kGroupWarps && checked; ++w) {
    for (const uint32_t reg : descriptors) {
      if (!unanimous(first[w], reg, first->reg<uint64_t>(reg)[0]) &&
          machine.reporter->add(warp, instr, warp.mask,
                                "the descriptors of this wgmma differ between the threads of the "
                                "warp-group",
                                "compute tile offsets from values that the warp-group shares")) {
        return true;
      }
    }
    if (instr->c != kNone && mask_of(first[w].reg<Bool>(instr->c)) != (keep ? kAllLanes : 0u) &&
        machine.reporter->add(
            warp, instr, warp.mask,
            "the scale of this wgmma differs between the threads of the warp-group",
            "compute it from values that the warp-group shares")) {
      return true;
    }
  }
  if (wgmma.poisoned) {
    const auto size = static_cast<size_t>(bytes_of(wgmma.types.accumulator));
    for (int w = 0; w < kGroupWarps; ++w) {
      uint32_t* words = first[w].poison(instr->dst);
      Mask bad = 0;
      for (uint32_t e = 0; e < instr->count; ++e) {
        bad |= words[e * size];
        words[e * size] = 0;
      }
      if (keep && bad != 0 &&
          machine.reporter->add(first[w], instr, bad,
                                "this wgmma adds to an accumulator that nobody has written",
                                "start from zero, or pass scale = false for the first product")) {
        return true;
      }
    }
  }
  const auto depth_of = [](Scalar scalar) { return kDepthBytes / bytes_of(scalar); };
  Matrix a(kRows, depth_of(wgmma.types.a));
  Matrix b(wgmma.accumulator.columns, depth_of(wgmma.types.b));
  std::string fault;
  absl::string_view which = "a";
  if (wgmma.a_format == kNone) {
    read_fragments(wgmma.a, wgmma.types.a, first, instr->a, &a);
  } else {
    fault = read_tile(*warp.block, tile_of(*first, instr->a, wgmma.a_format, wgmma.transpose_a),
                      wgmma.types.a, checked, &a);
  }
  if (fault.empty()) {
    fault = read_tile(*warp.block, tile_of(*first, instr->b, wgmma.b_format, wgmma.transpose_b),
                      wgmma.types.b, checked, &b);
    which = "b";
  }
  if (!fault.empty()) {
    return machine.reporter->add(
        warp, instr, warp.mask, absl::StrCat("operand ", which, " of this wgmma: ", fault),
        "check the descriptor's offset, leading and stride, and the stores that fill the tile");
  }
  if (wgmma.negates) b.negate();
  multiply(a, b,
           {.places = &wgmma.accumulator,
            .scalar = wgmma.types.accumulator,
            .from = instr->dst,
            .to = instr->dst,
            .keep = keep},
           first);
  return false;
}

const Instr* run_wgmma(const Instr* instr, Warp& warp) {
  Block& block = *warp.block;
  Reporter& reporter = *block.machine->reporter;
  const size_t begin = static_cast<size_t>(warp.index / kGroupWarps) * kGroupWarps;
  if (begin + kGroupWarps > block.warps.size() || warp.exists != kAllLanes) {
    reporter.add_fatal(block, instr,
                       absl::StrCat("wgmma is run by warp ", warp.index,
                                    ", which is not part of a whole warp-group of 128 threads"),
                       "launch blocks of a multiple of 128 threads");
    return warp.suspend(WarpState::kStopped, instr);
  }
  if (const Mask missing = ~warp.mask; missing != 0) {
    reporter.add_fatal(block, instr, "wgmma needs all threads of its warp-group at once",
                       "move it out of the branch or loop, or make its condition the same for the "
                       "warp-group",
                       {where_lane_is(warp, instr, std::countr_zero(missing))});
    return warp.suspend(WarpState::kStopped, instr);
  }
  Warp* first = &block.warps[begin];
  for (int w = 0; w < kGroupWarps; ++w) {
    const bool here =
        &first[w] == &warp || (first[w].state == WarpState::kAtWarpGroup && first[w].pc == instr);
    if (!here) return warp.suspend(WarpState::kAtWarpGroup, instr);
  }
  if (run_product(instr, warp, first)) return warp.suspend(WarpState::kStopped, instr);
  for (int w = 0; w < kGroupWarps; ++w) {
    first[w].state = WarpState::kReady;
    first[w].pc = instr + 1;
  }
  return instr + 1;
}

}  // namespace

Handler wgmma_handler() { return &run_wgmma; }

}  // namespace heddle::ir::interp
