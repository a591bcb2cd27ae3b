// How much of a block is sure to agree on something, in two ways at once.
//
// A scope says that all of its threads agree. It cannot say that lane 3 of every warp has read the
// same slot, nor that lanes 0 and 1 of a warp have exchanged what they have. *Moves* do: each is a
// way from a thread to another one of its block that finds the same there. Moves go together: what
// stays the same under every move of the lanes is the same throughout the warp, and under all moves
// throughout the block.
//
//   lane_id                                          the same lane of another warp
//   load %slots, lane_id & 3, of shared memory       that, and to lanes whose bits 2, 3 or 4 differ
//   r = add v, shfl.xor(v, 1); s = add r, shfl.xor(r, 2)       all moves: the block agrees on s
#pragma once

#include <algorithm>
#include <cstdint>

#include "heddle/ir/kernel.h"

namespace heddle::ir {

// A set of moves: bit b < 5 to the lane whose number differs in bit b alone.
using Moves = uint8_t;
inline constexpr Moves kNoMoves = 0;
inline constexpr Moves kLaneMoves = 0b11111;
inline constexpr Moves kWarpMove = 0b100000;  // to the same lane of another warp
inline constexpr Moves kAllMoves = kLaneMoves | kWarpMove;

struct Agreement {
  constexpr Agreement() = default;
  // What the scope says of moves is added, and what the moves say of the scope.
  constexpr Agreement(Scope s, Moves m = kNoMoves) : scope(s), moves(m) {  // NOLINT: a scope is one
    if (scope >= Scope::kWarp) moves |= kLaneMoves;
    if (scope >= Scope::kBlock) moves |= kWarpMove;
    if (scope < Scope::kBlock && moves == kAllMoves) scope = Scope::kBlock;
    if (scope < Scope::kWarp && (moves & kLaneMoves) == kLaneMoves) scope = Scope::kWarp;
  }
  bool operator==(const Agreement&) const = default;

  Scope scope = Scope::kGrid;
  Moves moves = kAllMoves;
};

// What holds of two things taken together, and what follows from two truths about one.
constexpr Agreement both(Agreement a, Agreement b) {
  return {std::min(a.scope, b.scope), static_cast<Moves>(a.moves & b.moves)};
}
constexpr Agreement either(Agreement a, Agreement b) {
  return {std::max(a.scope, b.scope), static_cast<Moves>(a.moves | b.moves)};
}

// The moves of the result of an op whose operands have at least `operands` in common, by the form
// of the op: a bit of lane_id that is masked away, or a commutative op on a value and its exchange
// with another lane. (Which NaN a sum of two NaNs is counts for nothing: no comparison tells them
// apart.)
Moves moves_by_form(const Kernel& kernel, const Op& op);

// The moves of a shuffle's result: of the value that is exchanged, and the lane, delta or mask of
// lanes that says with whom. `in_warp`: the second is surely a number of a lane, 0 to 31.
Moves moves_of_shuffle(const Kernel& kernel, const Op& op, Moves value, Moves with, bool in_warp);

}  // namespace heddle::ir
