// 3. Histogram of bytes: count where it is cheap, combine once.
//
//   bins.fill(stream, 0);
//   histogram.launch(stream, histogram_shape(blocks), words, bins);   // 4 bytes a word, 256 bins
//
// Many threads add to few counters. Atomics keep the sums right but queue up where they meet, so
// every warp counts in a copy of its own in shared memory, and a block adds up its copies and adds
// one number a bin to the result. Blocks stride over the data, whatever its length.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kBins = 256;

inline const auto histogram = define_kernel(
    "histogram(words, bins)", [](Tensor<const uint32_t, 1> words, Tensor<uint32_t, 1> bins) {
      const int warps = warps_per_block(), threads = threads_per_block();
      Shared<uint32_t, 2> counts({warps, kBins});
      for (int warp = 0; warp < warps; ++warp) {
        for (Int bin : range(thread_idx.x, kBins, threads)) counts(warp, bin) = 0;
      }
      sync_threads();
      Int first = block_idx.x * threads + thread_idx.x;
      for (Int i : range(first, words.shape(0), grid_dim.x * threads)) {
        UInt word = words(i);
        for (int shift = 0; shift < 32; shift += 8) {
          atomic_add(counts(warp_id(), (word >> shift) & 0xFF), 1);
        }
      }
      sync_threads();
      for (Int bin : range(thread_idx.x, kBins, threads)) {
        Var<uint32_t> sum(0);
        for (int warp = 0; warp < warps; ++warp) sum += counts(warp, bin);
        atomic_add(bins(bin), sum);
      }
    });

constexpr LaunchShape histogram_shape(int64_t blocks) { return {.grid = blocks, .block = 256}; }

}  // namespace heddle::learn
