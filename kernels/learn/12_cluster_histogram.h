// 12. Histogram of 16-bit values: the blocks of a cluster lend each other shared memory (sm_90).
//
//   bins.fill(stream, 0);
//   cluster_histogram.launch(stream, cluster_histogram_shape(clusters), words, bins);
//   // two values a word, 65536 bins
//
// 65536 counters are 256 KB: more than the shared memory that a block can have. Eight blocks that
// run together as a cluster keep an eighth of them each, and every thread counts in whichever block
// has the value's counter. Nobody may count before all blocks have started and cleared theirs, nor
// read or leave before all have counted: sync_cluster() waits for the cluster's threads.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kValues = 1 << 16, kClusterBlocks = 8;
inline constexpr int kOwnValues = kValues / kClusterBlocks;

inline const auto cluster_histogram =
    define_kernel("cluster_histogram(words, bins)",
                  [](Tensor<const uint32_t, 1> words, Tensor<uint32_t, 1> bins) {
                    const int threads = threads_per_block();
                    Shared<uint32_t> counts(kOwnValues);
                    for (Int i : range(thread_idx.x, kOwnValues, threads)) counts(i) = 0;
                    sync_cluster();
                    Int first = block_idx.x * threads + thread_idx.x;
                    for (Int i : range(first, words.shape(0), grid_dim.x * threads)) {
                      UInt word = words(i);
                      for (int shift = 0; shift < 32; shift += 16) {
                        Int value = bitcast<int32_t>((word >> shift) & 0xFFFF);
                        Shared<uint32_t> theirs = map_shared(counts, value / kOwnValues);
                        atomic_add(theirs(value % kOwnValues), 1);
                      }
                    }
                    sync_cluster();
                    for (Int i : range(thread_idx.x, kOwnValues, threads)) {
                      atomic_add(bins(cluster_rank() * kOwnValues + i), counts(i));
                    }
                  });

constexpr LaunchShape cluster_histogram_shape(int64_t clusters) {
  return {.grid = clusters * kClusterBlocks, .block = 512, .cluster = kClusterBlocks};
}

}  // namespace heddle::learn
