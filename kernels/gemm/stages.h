// The stages of a and b in shared memory, as the warpgroups that multiply them see them. Internal to the
// kernels.
#pragma once

#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// What a warpgroup multiplies: stages of tiles that a pipeline fills, one for each block along k.
template <class T>
struct GemmStages {
  const GemmConfig& c;      // the kernel's configuration
  const TmaPipeline& pipe;  // which says when a stage is full, and free
  ThrMma mine;              // the thread's part of a product
  Tensor<T> a, b;           // the tiles of all stages, (m,k,stage) and (n,k,stage)
  Int first, blocks;        // the first block along k, and how many

  // The same of another part of k.
  GemmStages of(const Depth& depth) const {
    return {c, pipe, mine, a, b, depth.first, depth.behind - depth.first};
  }

  // An accumulator without a content. Where sums are added up in other registers (stream_k.h) it is cleared,
  // so that the sums of the tile before do not count as what is in it, and keep their registers.
  AccumulatorTile<float> none() const {
    if (c.stream_k) {
      const auto zeros = make_tensor<float>(partition_shape_C(mine.tiled_mma(), {c.m, c.n}));
      clear(zeros);
      return make_accumulator(mine.tiled_mma(), zeros);
    }
    return make_accumulator<float>(mine.tiled_mma(), {c.m, c.n});
  }
  // Waits for a stage, and starts its product.
  AccumulatorTile<float> product(const AccumulatorTile<float>& sums, const PipelineState& p,
                                 const Bool& adds) const {
    pipe.wait(p);
    return gemm(mine, a(_, _, p.index), b(_, _, p.index), sums, adds);
  }
};

// Clears the rows of all stages from `first` on, which products read and whose results nobody stores.
template <class T>
void clear_rows(const GemmConfig& c, const Tensor<T>& stages, int first, const Int& thread) {
  const int width = 16 / int{sizeof(T)}, chunks = c.k / width;
  const int threads = c.groups * kWarpGroupSize, together = threads / chunks;
  const Int row = thread / chunks, column = thread % chunks;
  for (int stage = 0; stage < c.stages; ++stage) {
    for (int above = first; above < c.m; above += together) {
      If(above + row < c.m, [&] {
        store(local_tile(stages(_, _, stage), {1, width}, {above + row, column}),
              Fragment<T>(width, Value<T>(T(0.0f))));
      });
    }
  }
  fence_async();
  named_barrier_sync(1, threads);
}

}  // namespace heddle::kernels
