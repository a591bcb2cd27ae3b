// Tensor-core products of a warp-group: m64nNk16, f32 += bf16 or f16, both tiles K-major in shared
// memory.
//
// The first three of the group's warps wait for the last, which computes for all four. Products
// complete at once; the verifier keeps programs from reading a fragment before it is settled.
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

constexpr int kGroupWarps = 4;
constexpr int kRows = 64;        // of the result
constexpr int kDepth = 16;       // elements of a row of either tile
constexpr int kChunkBytes = 16;  // what swizzling moves about
constexpr int kChunkElements = 8;
constexpr int kRowsTogether = 8;  // rows of a core matrix, or of a swizzle pattern

struct Tile {
  uint64_t address;
  uint64_t leading;  // no swizzle: bytes from a core matrix to the next one along K
  uint64_t stride;   // bytes from eight rows to the next eight
  uint64_t swizzle;  // bytes of a row of the pattern; 0: none

  // Where a row's chunk of 8 elements starts.
  uint64_t chunk(int row, int index) const {
    const uint64_t base = address + static_cast<uint64_t>(row / kRowsTogether) * stride;
    const uint64_t within = static_cast<uint64_t>(row % kRowsTogether);
    if (swizzle == 0) return base + static_cast<uint64_t>(index) * leading + within * kChunkBytes;
    const uint64_t plain = base + within * swizzle + static_cast<uint64_t>(index) * kChunkBytes;
    // Within a row of 128, 64 or 32 bytes the chunk's number is xored with 3, 2 or 1 bits of the
    // address of the 128-byte line.
    const uint64_t moved = (plain >> 7) & (swizzle / kChunkBytes - 1);
    return plain ^ (moved * kChunkBytes);
  }
};

Tile tile_of(const Warp& warp, uint32_t address, uint32_t format) {
  const uint64_t bits = warp.reg<uint64_t>(format)[0];
  return {.address = warp.reg<uint64_t>(address)[0],
          .leading = bits & 0xFFFFFFu,
          .stride = bits >> 24 & 0xFFFFFFu,
          .swizzle = bits >> 48};
}

// Reads `rows` rows of a tile; a message where that is not possible, empty otherwise.
std::string read_tile(const Block& block, const Tile& tile, int rows, Scalar scalar, bool checked,
                      std::vector<float>* out) {
  out->resize(static_cast<size_t>(rows) * kDepth);
  for (int row = 0; row < rows; ++row) {
    for (int index = 0; index < kDepth / kChunkElements; ++index) {
      const uint64_t address = tile.chunk(row, index);
      const uint64_t offset = address - block.shared_address();
      if (checked) {
        const auto which = [&] {
          return absl::StrCat("row ", row, " of the tile, at byte ", static_cast<int64_t>(offset),
                              " of shared memory");
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
      uint16_t bits[kChunkElements];
      std::memcpy(bits, reinterpret_cast<const void*>(address), kChunkBytes);
      float* to = out->data() + row * kDepth + index * kChunkElements;
      for (int i = 0; i < kChunkElements; ++i) {
        to[i] = scalar == Scalar::kF16 ? to_float(F16{bits[i]}) : to_float(BF16{bits[i]});
      }
    }
  }
  return "";
}

// d += a * b^T for the part of the result that one warp holds.
void accumulate(const Instr* instr, const Warp& warp, int quarter, const std::vector<float>& a,
                const std::vector<float>& b, bool keep) {
  float* d = warp.reg<float>(instr->dst);
  for (int e = 0; e < static_cast<int>(instr->count); ++e) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = 16 * quarter + lane / 4 + 8 * (e / 2 % 2);
      const int column = 8 * (e / 4) + 2 * (lane % 4) + e % 2;
      const float* a_row = a.data() + row * kDepth;
      const float* b_row = b.data() + column * kDepth;
      float& element = d[e * kLanes + lane];
      // A product of two halves is exact in f64, and so nearly is the sum of sixteen.
      double sum = keep ? double{element} : 0.0;
      for (int k = 0; k < kDepth; ++k) sum += double{a_row[k]} * double{b_row[k]};
      element = static_cast<float>(sum);
    }
  }
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
bool multiply(const Instr* instr, const Warp& warp, const Warp* first) {
  const Machine& machine = *warp.block->machine;
  const Wgmma& wgmma = machine.code->wgmmas[instr->aux];
  const bool checked = machine.code->checked;
  const bool keep = instr->c == kNone || (*first->reg<Bool>(instr->c) & 1u) != 0;
  for (int w = 0; w < kGroupWarps && checked; ++w) {
    for (const uint32_t reg : {instr->a, instr->b, wgmma.a_format, wgmma.b_format}) {
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
    for (int w = 0; w < kGroupWarps; ++w) {
      uint32_t* words = first[w].poison(instr->dst);
      Mask bad = 0;
      for (uint32_t e = 0; e < instr->count; ++e) {
        bad |= words[e * sizeof(float)];
        words[e * sizeof(float)] = 0;
      }
      if (keep && bad != 0 &&
          machine.reporter->add(first[w], instr, bad,
                                "this wgmma adds to an accumulator that nobody has written",
                                "start from zero, or pass scale = false for the first product")) {
        return true;
      }
    }
  }
  const int columns = 2 * static_cast<int>(instr->count);
  std::vector<float> a;
  std::vector<float> b;
  std::string fault = read_tile(*warp.block, tile_of(*first, instr->a, wgmma.a_format), kRows,
                                wgmma.scalar, checked, &a);
  absl::string_view which = "a";
  if (fault.empty()) {
    fault = read_tile(*warp.block, tile_of(*first, instr->b, wgmma.b_format), columns, wgmma.scalar,
                      checked, &b);
    which = "b";
  }
  if (!fault.empty()) {
    return machine.reporter->add(
        warp, instr, warp.mask, absl::StrCat("operand ", which, " of this wgmma: ", fault),
        "check the descriptor's offset, leading and stride, and the stores that fill the tile");
  }
  for (int w = 0; w < kGroupWarps; ++w) accumulate(instr, first[w], w, a, b, keep);
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
  if (multiply(instr, warp, first)) return warp.suspend(WarpState::kStopped, instr);
  for (int w = 0; w < kGroupWarps; ++w) {
    first[w].state = WarpState::kReady;
    first[w].pc = instr + 1;
  }
  return instr + 1;
}

}  // namespace

Handler wgmma_handler() { return &run_wgmma; }

}  // namespace heddle::ir::interp
