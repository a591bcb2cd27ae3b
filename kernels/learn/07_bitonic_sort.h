// 7. Bitonic sort: a network of comparisons, traced for what is known and launched for what is not.
//
//   Status s = bitonic_sort(stream, keys);     // uint32_t, ascending; a power of two of them
//
// Runs of `size` keys, alternately up and down, merge into runs of twice the size by comparing keys
// at halving distances. As long as a run fits into a tile of shared memory, the distances are host
// numbers and a whole cascade is one kernel; larger distances take a launch each.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::learn {

inline constexpr int kSortTile = 1024;  // keys; a thread owns a pair
inline constexpr int kSortThreads = kSortTile / 2;

// The first key of the pair, `stride` apart, that comparison `i` orders.
inline Int pair_at(const Int& i, const Int& stride) { return 2 * i - (i & (stride - 1)); }

template <class View>
void compare_exchange(const View& keys, const Int& at, const Int& stride, const Bool& down) {
  UInt a = keys(at), b = keys(at + stride);
  Bool swap = (a > b) != down;
  keys(at) = select(swap, b, a);
  keys(at + stride) = select(swap, a, b);
}

// Merges runs of `first_size` to `last_size` keys within each tile; down(size) says which way.
template <class Down>
void merge_tile(const Tensor<uint32_t, 1>& keys, int first_size, int last_size, Down down) {
  Shared<uint32_t> tile(kSortTile);
  Int i = thread_idx.x, base = block_idx.x * kSortTile;
  for (int k = 0; k < kSortTile; k += kSortThreads) tile(i + k) = keys(base + i + k);
  for (int size = first_size; size <= last_size; size *= 2) {
    Bool is_down = down(size);
    for (int stride = size / 2; stride > 0; stride /= 2) {
      sync_threads();
      compare_exchange(tile, pair_at(i, stride), stride, is_down);
    }
  }
  sync_threads();
  for (int k = 0; k < kSortTile; k += kSortThreads) keys(base + i + k) = tile(i + k);
}

inline Int pair_number() { return block_idx.x * kSortThreads + thread_idx.x; }

inline const auto sort_tiles = define_kernel("sort_tiles(keys)", [](Tensor<uint32_t, 1> keys) {
  merge_tile(keys, 2, kSortTile, [](int size) { return (pair_number() & (size / 2)) != 0; });
});
inline const auto merge_far = define_kernel(
    "merge_far(keys, size, stride)", [](Tensor<uint32_t, 1> keys, Int size, Int stride) {
      Int i = pair_number();
      compare_exchange(keys, pair_at(i, stride), stride, (i & (size / 2)) != 0);
    });
inline const auto merge_near = define_kernel("merge_near(keys, size)", [](Tensor<uint32_t, 1> keys,
                                                                          Int size) {
  merge_tile(keys, kSortTile, kSortTile, [&](int) { return (pair_number() & (size / 2)) != 0; });
});

inline Status bitonic_sort(const Stream& stream, const TensorRef<uint32_t, 1>& keys) {
  const int64_t n = keys.extents[0];
  if (n < kSortTile || (n & (n - 1)) != 0 || n > int64_t{1} << 30) {
    return InvalidArgumentError("the number of keys is a power of two, from 1024 to 2^30");
  }
  const LaunchShape shape{.grid = n / kSortTile, .block = kSortThreads};
  Status status = sort_tiles.launch(stream, shape, keys);
  for (int64_t size = 2 * kSortTile; size <= n; size *= 2) {
    for (int stride = size / 2; stride >= kSortTile; stride /= 2) {
      status.Update(merge_far.launch(stream, shape, keys, size, stride));
    }
    status.Update(merge_near.launch(stream, shape, keys, size));
  }
  return status;
}

}  // namespace heddle::learn
