// Tensor-core products of a warp-group: when they run, and how their tiles lie in shared memory.
//
// The first three of the group's warps wait for the last, which computes for all four: when the model
// says so (watch.h), or at once where there is none. The verifier keeps programs from reading a
// fragment before it is settled.
#include <cstring>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/mma.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"
#include "heddle/ir/interp/watch.h"

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

// A tile as a matrix.
struct Operand {
  Tile tile;
  Scalar scalar;
  int rows, columns;

  int elements() const { return kChunkBytes / bytes_of(scalar); }  // of a chunk
  int minors() const { return tile.transposed ? columns : rows; }
  int chunks() const { return (tile.transposed ? rows : columns) / elements(); }
};

// What is wrong with reading an operand; empty if nothing is.
std::string check_tile(const Block& block, const Operand& operand) {
  for (int minor = 0; minor < operand.minors(); ++minor) {
    for (int index = 0; index < operand.chunks(); ++index) {
      const uint64_t offset = operand.tile.chunk(minor, index) - block.shared_address();
      const auto which = [&] {
        return absl::StrCat(operand.tile.transposed ? "column " : "row ", minor,
                            " of the tile, at byte ", static_cast<int64_t>(offset),
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
  }
  return "";
}

Matrix read_tile(const Operand& operand) {
  Matrix matrix(operand.rows, operand.columns);
  const int elements = operand.elements();
  double numbers[kChunkBytes];
  for (int minor = 0; minor < operand.minors(); ++minor) {
    for (int index = 0; index < operand.chunks(); ++index) {
      const uint64_t address = operand.tile.chunk(minor, index);
      read_numbers(operand.scalar, reinterpret_cast<const void*>(address), elements, numbers);
      for (int i = 0; i < elements; ++i) {
        const int major = index * elements + i;
        matrix.at(operand.tile.transposed ? major : minor,
                  operand.tile.transposed ? minor : major) = numbers[i];
      }
    }
  }
  return matrix;
}

// Tells the model of each chunk that a product reads; true when the run has to stop. Each warp
// multiplies 16 rows of a by all of b.
bool touch_tile(Watch& watch, uint32_t event, const Watch::ProductViews& views, const Block& block,
                const Operand& operand, bool is_a) {
  for (int minor = 0; minor < operand.minors(); ++minor) {
    for (int index = 0; index < operand.chunks(); ++index) {
      const int row = operand.tile.transposed ? index * operand.elements() : minor;
      if (watch.touch_product(event, views, block, operand.tile.chunk(minor, index),
                              is_a ? row / (kRows / kGroupWarps) : -1)) {
        return true;
      }
    }
  }
  return false;
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
          machine.reporter->add(
              first[w], instr, bad, "this wgmma adds to an accumulator that nobody has written",
              "start from zero, or pass adds = false to gemm() for the first product")) {
        return true;
      }
    }
  }
  const auto depth_of = [](Scalar scalar) { return kDepthBytes / bytes_of(scalar); };
  const Block& block = *warp.block;
  const MmaTypes& types = wgmma.types;
  const bool a_is_tile = wgmma.a_format != kNone;
  const Operand b{tile_of(*first, instr->b, wgmma.b_format, wgmma.transpose_b), types.b,
                  wgmma.accumulator.columns, depth_of(types.b)};
  Operand a{{}, types.a, kRows, depth_of(types.a)};
  // A fragment may be written again once the product is issued.
  std::shared_ptr<Matrix> fragment;
  if (a_is_tile) {
    a.tile = tile_of(*first, instr->a, wgmma.a_format, wgmma.transpose_a);
  } else {
    fragment = std::make_shared<Matrix>(a.rows, a.columns);
    read_fragments(wgmma.a, types.a, first, instr->a, fragment.get());
  }
  for (const Operand* const operand : std::initializer_list<const Operand*>{&a, &b}) {
    if (!checked || (operand == &a && !a_is_tile)) continue;
    const std::string fault = check_tile(block, *operand);
    if (fault.empty()) continue;
    return machine.reporter->add(
        warp, instr, warp.mask,
        absl::StrCat("operand ", operand == &a ? "a" : "b", " of this wgmma: ", fault),
        "check the descriptor's offset, leading and stride, and the stores that fill the tile");
  }
  const auto compute = [=, &wgmma](const std::array<uint32_t, 4>& destinations) {
    Matrix b_matrix = read_tile(b);
    if (wgmma.negates) b_matrix.negate();
    multiply(fragment != nullptr ? *fragment : read_tile(a), b_matrix,
             {.places = &wgmma.accumulator,
              .scalar = wgmma.types.accumulator,
              .from = destinations,
              .to = destinations,
              .keep = keep},
             first);
  };
  std::array<uint32_t, 4> destinations;
  destinations.fill(instr->dst);
  Watch* const watch = watch_of(warp);
  if (watch == nullptr) {
    compute(destinations);
    return false;
  }
  Watch::ProductViews views;
  const uint32_t event = watch->begin_product(instr, *first, &views);
  if (a_is_tile && touch_tile(*watch, event, views, block, a, /*is_a=*/true)) return true;
  if (touch_tile(*watch, event, views, block, b, /*is_a=*/false)) return true;
  watch->add_product(*first, event, destinations, compute);
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
