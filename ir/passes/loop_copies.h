// Copies of loops: what passes that unroll and split loops share.
//
//   LoopCopies copies(kernel, builder);
//   Carried carried = copies.inits(loop);
//   carried = copies.loop(loop, start, mid, 4, step, carried);   // each trip does what four did
//   carried = copies.loop(loop, mid, stop, 1, step, carried);
//   copies.replace(id, carried);
//
// Copies of a body that makes arrays would each have arrays of their own: such a loop is not copied.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class LoopCopies {
 public:
  // What a loop carries, at some point.
  using Carried = absl::InlinedVector<ValueId, 4>;

  // Inserts where the builder stands, which outlives it.
  LoopCopies(Kernel& kernel, Builder& builder) : kernel_(kernel), b_(builder) {}

  // The ops of a loop's body, with those in the regions of these.
  int64_t body_ops(OpId loop) const;
  bool makes_arrays(OpId loop) const;

  static Carried inits(const Op& loop) { return {loop.inits().begin(), loop.inits().end()}; }

  // A loop over [start, stop) each of whose trips does what n trips of a `for` do, `step` apart. Gives what
  // it leaves behind. Where `from` is given, a trip's index is that much more than the loop's own.
  Carried loop(const Op& loop, ValueId start, ValueId stop, int64_t n, int64_t step,
               const Carried& init, ValueId from = ValueId::kNone);
  // n trips from index i on, without a loop.
  Carried trips(const Op& loop, ValueId i, int64_t n, int64_t step, Carried carried);
  // Hears of each copy of an op of the body itself that is made from here on.
  void on_copy(std::function<void(OpId original, OpId copy, int64_t trip)> visit) {
    on_copy_ = std::move(visit);
  }

  // Puts values in the place of a loop's results, and removes it.
  void replace(OpId loop, const Carried& results);

 private:
  using Map = absl::flat_hash_map<ValueId, ValueId>;

  Carried ops(Builder& b, RegionId region, Map& map, int64_t trip);
  void region(RegionId from, OpId owner, Map& map);

  Kernel& kernel_;
  Builder& b_;
  std::function<void(OpId original, OpId copy, int64_t trip)> on_copy_;
};

}  // namespace heddle::ir
