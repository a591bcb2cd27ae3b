// Where a thread is, and what the threads of a warp or block do together.
//
//   Int i = block_idx.x * block_dim.x + thread_idx.x;
//   sync_threads();                                  // the whole block arrives
//   Float other = shfl_xor(sum, 16);                 // from the lane whose number differs in bit 4
//   If(lane_id() == 0, [&] { … });
#pragma once

#include "heddle/dsl/traced.h"

namespace heddle {
namespace detail {

// thread_idx.x and its kin: read as an Int.
template <int kAxis>
struct Coordinate : Operators<int32_t> {
  using value_type = int32_t;
  const ir::Opcode& opcode;
  constexpr explicit Coordinate(const ir::Opcode& op) : opcode(op) {}
  Node read_node(SourceLoc loc) const { return emit_coordinate(opcode, kAxis, loc); }
};

struct Coordinates {
  Coordinate<0> x;
  Coordinate<1> y;
  Coordinate<2> z;
  constexpr explicit Coordinates(const ir::Opcode& op) : x(op), y(op), z(op) {}
};

template <Traced T>
T shuffle(ir::Opcode opcode, const T& value, Node lane, int width, SourceLoc loc) {
  T result = value;
  for_each_leaf(result, [&](Node& node) { node = emit_shuffle(opcode, node, lane, width, loc); });
  return result;
}

}  // namespace detail

// The thread's coordinates in its block, the block's in the grid, and the extents of block and
// grid. block_dim is a constant of the kernel unless the kernel asks for a dynamic block.
inline constexpr detail::Coordinates thread_idx{detail::op::kThreadIdx};
inline constexpr detail::Coordinates block_idx{detail::op::kBlockIdx};
inline constexpr detail::Coordinates block_dim{detail::op::kBlockDim};
inline constexpr detail::Coordinates grid_dim{detail::op::kGridDim};

inline constexpr int kWarpSize = 32;

// The thread's number in its warp, and the warp's in its block: the same in all 32 lanes, and known
// to the compiler to be.
inline Int lane_id(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kLaneId, loc));
}
inline Int warp_id(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kWarpId, loc));
}

// The block's shape while tracing, as host numbers: 0 where the block is dynamic.
struct BlockShape {
  int x, y, z;
};
BlockShape block_shape();
int threads_per_block();
int warps_per_block();

// Every thread of the block arrives before any goes on; their memory accesses are then visible to
// each other. Not under a condition that differs between threads.
inline void sync_threads(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kBarrier, loc);
}
// The same for the lanes of a warp.
inline void sync_warp(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kWarpSync, loc);
}

// The value that another lane of the warp passes: lane `lane`, or `delta` below, above, or that
// number XOR `mask`, within segments of `width` lanes (a power of two). A lane outside the segment
// gives one's own value. All lanes of the warp take part.
template <class X>
auto shfl(const X& value, detail::Arg<int32_t> lane, int width = kWarpSize) {
  return detail::shuffle(detail::op::kShflIdx, detail::traced_t<X>(value), lane.node, width,
                         lane.loc);
}
template <class X>
auto shfl_up(const X& value, detail::Arg<int32_t> delta, int width = kWarpSize) {
  return detail::shuffle(detail::op::kShflUp, detail::traced_t<X>(value), delta.node, width,
                         delta.loc);
}
template <class X>
auto shfl_down(const X& value, detail::Arg<int32_t> delta, int width = kWarpSize) {
  return detail::shuffle(detail::op::kShflDown, detail::traced_t<X>(value), delta.node, width,
                         delta.loc);
}
template <class X>
auto shfl_xor(const X& value, detail::Arg<int32_t> mask, int width = kWarpSize) {
  return detail::shuffle(detail::op::kShflXor, detail::traced_t<X>(value), mask.node, width,
                         mask.loc);
}

// Whether a condition holds in any lane of the warp, in all, or the same way in all; and the mask
// of the lanes in which it holds.
inline Bool vote_any(detail::Arg<bool> p) {
  return Bool(detail::emit(detail::op::kVoteAny, p.node, p.loc));
}
inline Bool vote_all(detail::Arg<bool> p) {
  return Bool(detail::emit(detail::op::kVoteAll, p.node, p.loc));
}
inline Bool vote_uniform(detail::Arg<bool> p) {
  return Bool(detail::emit(detail::op::kVoteUni, p.node, p.loc));
}
inline UInt ballot(detail::Arg<bool> p) {
  return UInt(detail::emit(detail::op::kBallot, p.node, p.loc));
}

// Stops the kernel with `message` and the thread's coordinates where the condition does not hold.
inline void device_assert(detail::Arg<bool> condition, const char* message = "assertion failed") {
  detail::emit_assert(condition.node, message, condition.loc);
}

}  // namespace heddle
