// 8. Prefix sum in one pass (decoupled look-back, Merrill and Garland 2016): blocks wait for
// blocks.
//
//   progress.fill(stream, 0);                              // uint64_t, scan_tiles(n) + 1 of them
//   scan.launch(stream, scan_shape(n), x, y, progress);    // y(i) = x(0) + … + x(i); n: 4, 8, 12 …
//
// A tile needs the sum of all before it. Each block publishes its own sum at once and, when it
// knows it, the sum up to its end. A warp looks back over 32 predecessors at a time and adds up
// their sums until it meets one up to an end: so each element is read once and written once. Tiles
// are handed out by a ticket, so that whoever is waited for has begun. Sum and state share a word
// of 64 bits: one relaxed atomic passes both, and no fence is needed.
//
// The library's own (kernels/scan/scan.h) scans rows, of floats too, with the same bits each time.
#pragma once

#include <vector>

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

// Elements that a warp takes with one access, with all of them, and a block's.
inline constexpr int kScanWarps = 8, kRound = 4 * 32, kWarpPart = 4 * kRound, kScanTile = 4096;
inline constexpr uint64_t kOwnSum = 1ull << 32, kSumToEnd = 2ull << 32;  // beside the sum
using Progress = Tensor<uint64_t, 1>;  // ticket, tile 0, tile 1 …

// The sum of all tiles before one; a warp together.
inline UInt sum_before(const Progress& progress, const Int& tile) {
  Var<uint32_t> sum(0);
  Var<int32_t> nearest(tile - 1);  // of the tiles that are missing from the sum
  const auto missing = [&] { return nearest >= 0; };
  While(missing, [&] {
    Int at = nearest - lane_id();  // before tile 0 the sum is known: 0
    UInt64 word = select(at >= 0, atomic_load(progress(1 + max(at, 0))), kSumToEnd);
    // The lanes up to the nearest sum to an end count, once all of them have published.
    UInt ends = ballot(word >= kSumToEnd), counting = ends ^ (ends - 1);
    Bool ready = (ballot(word < kOwnSum) & counting) == 0;
    Bool counts = ready && (counting >> lane_id() & 1) != 0;
    sum += warp_reduce(select(counts, cast<uint32_t>(word), 0), plus());
    nearest = select(ready, select(ends != 0, -1, nearest - kWarpSize), nearest);
  });
  return sum;
}

inline void scan_body(Tensor<const uint32_t, 1> x, Tensor<uint32_t, 1> y, Progress progress) {
  Shared<uint32_t> ticket(1), before_tile(1), warp_sums(kScanWarps);
  If(thread_idx.x == 0, [&] { ticket(0) = cast<uint32_t>(atomic_add(progress(0), 1)); });
  sync_threads();
  Int tile = bitcast<int32_t>(UInt(ticket(0))), n = x.shape(0), warp = lane_id() % kScanWarps;
  Int first = tile * kScanTile + warp_id() * kWarpPart + lane_id() * 4;
  Var<uint32_t> warp_sum(0);
  std::vector<Vec<uint32_t, 4>> sums;
  for (int i = 0; i < kWarpPart; i += kRound) {
    const auto none = [] { return Vec<uint32_t, 4>(UInt(0)); };
    Vec<uint32_t, 4> v = If(
        first + i < n, [&] { return x.vec<4>(first + i); }, none);
    UInt two = v[0] + v[1], three = two + v[2], four = three + v[3];
    UInt to_lane = warp_scan(four, plus());
    sums.push_back(Vec<uint32_t, 4>(v[0], two, three, four) + (warp_sum + to_lane - four));
    warp_sum += shfl(to_lane, kWarpSize - 1);
  }
  If(lane_id() == 0, [&] { warp_sums(warp_id()) = warp_sum; });
  sync_threads();
  UInt before_warp = warp_reduce(select(warp < warp_id(), warp_sums(warp), 0), plus(), kScanWarps);
  UInt tile_sum = warp_reduce(warp_sums(warp), plus(), kScanWarps);
  If(warp_id() == 0, [&] {
    Bool leads = lane_id() == 0;
    If(leads, [&] { atomic_store(progress(1 + tile), kOwnSum | cast<uint64_t>(tile_sum)); });
    UInt before = sum_before(progress, tile), to_end = before + tile_sum;
    If(leads, [&] { atomic_store(progress(1 + tile), kSumToEnd | cast<uint64_t>(to_end)); });
    If(leads, [&] { before_tile(0) = before; });
  });
  sync_threads();
  for (int i = 0; i < kWarpPart; i += kRound) {
    If(first + i < n,
       [&] { y.vec<4>(first + i) = sums[i / kRound] + (before_tile(0) + before_warp); });
  }
}
inline const auto scan = define_kernel("scan(x, y, progress)", scan_body);

constexpr int64_t scan_tiles(int64_t n) { return (n + kScanTile - 1) / kScanTile; }
constexpr LaunchShape scan_shape(int64_t n) { return {scan_tiles(n), kScanWarps * kWarpSize}; }

}  // namespace heddle::learn
