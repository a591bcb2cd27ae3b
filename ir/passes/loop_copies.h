// Copies of loops: what passes that unroll and split loops share.
//
//   LoopCopies copies(kernel, builder);
//   Carried carried = copies.inits(loop);
//   carried = copies.make_loop(loop, start, mid, 4, step, carried);   // each trip does what four did
//   carried = copies.make_loop(loop, mid, stop, 1, step, carried);
//   copies.replace(id, carried);
//   …                                  // other loops
//   copies.finish();
//
// Copies of a body that makes arrays would each have arrays of their own: such a loop is not copied.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/rewrite.h"

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
  Carried make_loop(const Op& loop, ValueId start, ValueId stop, int64_t n, int64_t step,
                    const Carried& init, ValueId from = ValueId::kNone);
  // The same with steps of `by` from one such trip to the next.
  Carried make_loop_by(ValueId by, const Op& loop, ValueId start, ValueId stop, int64_t n,
                       int64_t step, const Carried& init, ValueId from = ValueId::kNone);
  // n trips from index i on, without a loop.
  Carried make_trips(const Op& loop, ValueId i, int64_t n, int64_t step, Carried carried);
  // All trips of a loop whose step is a positive constant: rounds of n, and those that are left over, fewer
  // than n. n steps are a number of the index's type. The builder stands in front of the loop; where the trips left over
  // start is computed in front of the loops around it that do not change that.
  Carried make_rounds(const Op& loop, int64_t n, int64_t step, Carried carried);
  // The number of trips between constant bounds: unsigned, since it may be too large for their type.
  std::optional<uint64_t> known_trips(const Op& loop) const;
  // How far stop lies past start, 0 where it does not, as an unsigned number of the same width, which holds
  // it whatever the bounds are.
  ValueId distance(ValueId start, ValueId stop);

  // Hears of each copy of an op of the body itself that is made from here on.
  void on_copy(std::function<void(OpId original, OpId copy, int64_t trip)> visit) {
    on_copy_ = std::move(visit);
  }

  // Takes a loop out of the kernel, with values for its results. Until finish(), uses of these stay, but for those
  // in copies of loops around it, and the loop itself still says what it computed.
  void replace(OpId loop, const Carried& results);
  // Once behind all: puts the values in the place of the results, in one sweep over the kernel.
  void finish();

 private:
  using Map = absl::flat_hash_map<ValueId, ValueId>;

  ValueId constant(Type type, int64_t value) { return b_.constant_int(type, value); }
  ValueId make(Opcode opcode, ValueId a, ValueId b) { return b_.create(opcode, {a, b}); }
  // The loop itself, or the outermost of the loops right around it in front of which both values exist.
  OpId outermost_that_sees(OpId loop, ValueId start, ValueId stop) const;
  // Where the trips that make no full round of n start; `stop` where there are none.
  ValueId middle(ValueId start, ValueId stop, int64_t n, int64_t step);

  Carried ops(Builder& b, RegionId region, Map& map, int64_t trip);
  void region(RegionId from, OpId owner, Map& map);

  Kernel& kernel_;
  Builder& b_;
  std::function<void(OpId original, OpId copy, int64_t trip)> on_copy_;
  Replacements replaced_;
  std::vector<OpId> taken_out_;
};

}  // namespace heddle::ir
