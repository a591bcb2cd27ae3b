// Sums that the blocks of a cluster have each of a part of k, added up: each block gets the sums of some
// columns of the tile from all others. Internal to the kernels.
//
// The order of the additions is fixed, so results are the same bits each time. Nothing passes through
// global memory: blocks store into each other's shared memory.
#pragma once

#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// The exchange of sums between the blocks of a cluster.
class SplitSums {
 public:
  // With memory for what comes from the other blocks, and two mbarriers for each warpgroup.
  explicit SplitSums(const GemmConfig& c)
      : c_(c),
        came_({(c.split - 1) * quads(c), c.groups * kWarpGroupSize, kQuad}),
        full_(c.groups),
        free_(c.groups) {}

  // Initialises the barriers. The cluster meets before the first sum.
  void start() const {
    If(thread_idx.x == 0, [&] {
      for (int group = 0; group < c_.groups; ++group) {
        full_.init(group, 1u);
        free_.init(group, static_cast<uint32_t>((c_.split - 1) * kWarps));
      }
      fence_mbarrier_init();
    });
  }

  // The sums of this block's columns, (values,products), of a warpgroup's sums (values,products,1) of
  // its part of k. `phase` is 0 for the block's first tile, 1 for the second, and so on by turns.
  Tensor<float> operator()(const Tensor<float>& sums, const UInt& phase, const Int& thread) const {
    const Int group = thread / kWarpGroupSize;
    const int products = c_.rows_of_group() / kProductRows, values = c_.columns() / 2;
    const Int me = cluster_rank();
    If(thread % kWarpGroupSize == 0, [&] {
      full_.expect_tx(group, static_cast<uint32_t>((c_.split - 1) * kProductRows * products *
                                                   c_.columns() * int{sizeof(float)}));
    });
    // The other blocks have read what came for the tile before.
    free_.wait(group, phase ^ 1u);
    for (int block = 0; block < c_.split; ++block) {
      If(me != block, [&] {
        const auto there = map_shared(came_, block);
        const Mbarrier told(map_shared(full_.words(), block));
        for (int i = 0; i < products; ++i) {
          const auto part = load(sums(_, i, 0)).slice(block * values, values);
          for (int v = 0; v < values; v += kQuad) {
            store_async(
                there.at(place_of(me, block) * quads(c_) + (i * values + v) / kQuad, thread, 0),
                Vec<float, kQuad>(part.slice(v, kQuad)), told, group);
          }
        }
      });
    }

    const Tensor<float> all = make_tensor<float>({values, products});
    for (int i = 0; i < products; ++i) {
      const auto every = load(sums(_, i, 0));
      Var<Fragment<float>> mine(every.slice(0, values));
      for (int block = 1; block < c_.split; ++block) {
        mine = select(me == block, every.slice(block * values, values), Fragment<float>(mine));
      }
      store(all(_, i), Fragment<float>(mine));
    }
    full_.wait(group, phase);
    for (int other = 0; other < c_.split - 1; ++other) {
      for (int i = 0; i < products; ++i) {
        for (int v = 0; v < values; v += kQuad) {
          const Vec<float, kQuad> quad =
              came_.vec<kQuad>(other * quads(c_) + (i * values + v) / kQuad, thread, 0);
          for (int e = 0; e < kQuad; ++e) all(v + e, i) = Float(all(v + e, i)) + quad[e];
        }
      }
    }
    sync_warp();
    If(lane_id() < c_.split && lane_id() != me,
       [&] { Mbarrier(map_shared(free_.words(), lane_id())).arrive(group); });
    return all;
  }

 private:
  static constexpr int kQuad = 4;   // floats that are stored at once
  static constexpr int kWarps = 4;  // of a warpgroup

  // Stores of four floats that a thread gets from another block.
  static int quads(const GemmConfig& c) {
    return c.rows_of_group() / kProductRows * c.columns() / 2 / kQuad;
  }
  // Where a block puts what comes from another.
  static Int place_of(const Int& from, int to) { return from - select(from > to, 1, 0); }

  GemmConfig c_;
  Shared<float, 3> came_;
  Mbarrier full_, free_;
};

}  // namespace heddle::kernels
