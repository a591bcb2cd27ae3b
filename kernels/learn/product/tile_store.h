// How results leave in rungs 9 and 10: by way of shared memory, and from there by the copy engine.
//
//   const TileStore store(d, kGroups);
//   store(results, tile, thread);               // warpgroups that multiply; results are a thread's
//   store.finish(thread);                       // before the block ends
//
// A warpgroup has 64 rows of a tile. 64 columns at a time go to one of two buffers by stmatrix,
// four matrices of 8 x 8 an instruction, into swizzled rows: no bank conflicts. One thread then
// starts their copy to d, in whole lines of 128 bytes, while the next columns go to the other
// buffer. A thread that stores its own sums writes pieces of 4 bytes, and computes an address for
// each.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

// Stores tiles of d, whose results are in the registers of warpgroups.
class TileStore {
 public:
  // For tiles of d with 64 rows for each of so many warpgroups.
  TileStore(const ProductOut& d, int groups)
      : groups_(groups),
        d_(d),
        buffers_(make_smem_tensor<bfloat16>(
            make_smem_layout<bfloat16>({groups * kRows, kColumns, kBuffers}))),
        atom_(make_tma_atom(TmaStore{}, d_,
                            local_tile(buffers_(_, _, 0), {kRows, kColumns}, {0, 0}))) {}

  // Stores what the threads have of a tile. d has it once finish() has returned.
  void operator()(const Tensor<bfloat16>& results, const Tile& tile, const Int& thread) const {
    const Int group = thread / kWarpGroupSize;
    const TiledCopy puts = make_tiled_copy_C(
        make_copy_atom<bfloat16>(StMatrix{4}),
        make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kColumns}), {groups_, 1, 1}));
    const ThrCopy mine = puts.get_slice(thread);
    constexpr int kPart = kRows * kColumns / kWarpGroupSize;  // elements of a thread
    const int parts = static_cast<int>(size(results).value()) / kPart;
    for (int part = 0; part < parts; ++part) {
      const auto buffer = buffers_(_, _, part % kBuffers);
      // The copy before the last one has read this buffer.
      If(leads(thread), [&] { bulk_wait_read(kBuffers - 1); });
      named_barrier_sync(group + 1, kWarpGroupSize);
      copy(puts, mine.retile(local_tile(results, {kPart, 1, 1}, {part, 0, 0})),
           mine.partition_D(buffer));
      fence_async();
      named_barrier_sync(group + 1, kWarpGroupSize);
      If(leads(thread), [&] {
        copy(atom_, local_tile(buffer, {kRows, kColumns}, {group, 0}),
             local_tile(d_, {kRows, kColumns},
                        {tile.row * groups_ + group, tile.column * parts + part}));
        bulk_commit();
      });
    }
  }
  // Waits until everything is stored.
  void finish(const Int& thread) const {
    If(leads(thread), [&] { bulk_wait(); });
  }

 private:
  static constexpr int kRows = 64, kColumns = 64, kBuffers = 2;
  static Bool leads(const Int& thread) { return thread % kWarpGroupSize == 0; }

  int groups_;
  Tensor<bfloat16> d_, buffers_;
  TmaAtom atom_;
};

}  // namespace heddle::learn
