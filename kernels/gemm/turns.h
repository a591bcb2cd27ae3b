// Ping-pong: warpgroups that each have tiles of their own, and multiply in turns, so that the results of
// one leave while the tensor cores multiply for another. Internal to the kernels.
//
// A turn is passed on by named barriers when the last product of a tile has been started. All products
// follow each other in the order of the tiles, which is that of the stages.
#pragma once

#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// A warpgroup's turns; of kernels whose warpgroups share each tile there is one, and no barrier.
template <class Schedule>
class Turns {
 public:
  // The turns of warpgroup `group`, of tiles that all have so many blocks along k.
  Turns(const GemmConfig& c, const Schedule& schedule, const Int& group, const Int& blocks)
      : c_(c), schedule_(schedule), group_(group), blocks_(blocks) {}

  // The numbers of the warpgroup's tiles.
  Range<int32_t> mine() const {
    if constexpr (requires { schedule_.step(); }) {
      if (c_.ping_pong) return schedule_.mine(group_, c_.groups);
    }
    return schedule_.mine();
  }
  // Where its first tile's stages begin, and those of its next one, behind the others' tiles.
  PipelineState first(const PipelineState& p) const {
    return c_.ping_pong ? p.ahead(group_ * blocks_, c_.stages) : p;
  }
  PipelineState next(const PipelineState& p) const {
    return c_.ping_pong ? p.ahead((c_.groups - 1) * blocks_, c_.stages) : p;
  }
  // Waits until the products of the tile before have been started.
  void wait(const Int& number) const {
    if (!c_.ping_pong) return;
    If(number != schedule_.first(), [&] { named_barrier_sync(kFirstBarrier + group_, kThreads); });
  }
  // Lets the next tile's products start, where there is one.
  void pass(const Int& number) const {
    if constexpr (requires { schedule_.step(); }) {
      if (!c_.ping_pong) return;
      If(number + schedule_.step() < schedule_.count(),
         [&] { named_barrier_arrive(kFirstBarrier + (group_ + 1) % c_.groups, kThreads); });
    }
  }

 private:
  static constexpr int kFirstBarrier = 2;              // stages.h has used the one in front
  static constexpr int kThreads = 2 * kWarpGroupSize;  // those that wait, and those that pass

  const GemmConfig& c_;
  const Schedule& schedule_;
  Int group_, blocks_;
};

}  // namespace heddle::kernels
