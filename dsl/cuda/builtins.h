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

// thread_idx…: `axis` is 0 to 2.
[[gnu::cold]] Node emit_coordinate(ir::Opcode opcode, int axis, SourceLoc loc);

// thread_idx.x and the like, which read as an Int.
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

// The lanes of the warp that take part, a bit each; all of them where none are named.
struct LaneMask {
  Node node;
  bool given = false;
  LaneMask() = default;
  LaneMask(const Arg<uint32_t>& lanes) : node(lanes.node), given(true) {}
  template <class X>
  requires ReadsAs<X, uint32_t> LaneMask(const X& x, SourceLoc where = SourceLoc::current())
      : node(x.read_node(where)), given(true) {}
  template <class H>
  requires HostConstant<H, uint32_t> LaneMask(H host, SourceLoc where = SourceLoc::current())
      : node(host_constant<uint32_t>(host, where)), given(true) {}
};

[[gnu::cold]] Node emit_shuffle(ir::Opcode opcode, Node value, Node lane, int width,
                                const LaneMask& lanes, SourceLoc loc);
[[gnu::cold]] Node emit_vote(ir::Opcode opcode, const Node& value, const LaneMask& lanes,
                             SourceLoc loc);
[[gnu::cold]] Node emit_for_lanes(ir::Opcode opcode, NodeType type, const LaneMask& lanes,
                                  SourceLoc loc);
// In the order of ir::AtomicOp.
enum class ReduxOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
[[gnu::cold]] Node emit_redux(ReduxOp op, const Node& value, const LaneMask& lanes, SourceLoc loc);

template <Traced T>
T shuffle(ir::Opcode opcode, const T& value, Node lane, int width, const LaneMask& lanes,
          SourceLoc loc) {
  T result = value;
  for_each_leaf(result,
                [&](Node& node) { node = emit_shuffle(opcode, node, lane, width, lanes, loc); });
  return result;
}

// The bits of a 32- or 64-bit value, as match compares them.
template <class T>
Node word_of(const Value<T>& value, SourceLoc loc) {
  static_assert(sizeof(T) >= 4, "match compares 32- and 64-bit values");
  if constexpr (is_word<T>) {
    return value.node();
  } else {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return emit_as(scalar_type<Word>(), op::kBitcast, value.node(), loc);
  }
}

}  // namespace detail

// The thread's coordinates in its block, the block's coordinates in the grid, and the extents of
// block and grid, as Ints: thread_idx.x. block_dim is a constant of the kernel unless it is
// compiled for a dynamic block.
inline constexpr detail::Coordinates thread_idx{detail::op::kThreadIdx};
inline constexpr detail::Coordinates block_idx{detail::op::kBlockIdx};
inline constexpr detail::Coordinates block_dim{detail::op::kBlockDim};
inline constexpr detail::Coordinates grid_dim{detail::op::kGridDim};

// Lanes of a warp.
inline constexpr int kWarpSize = 32;
// Warps of a warpgroup, and its threads.
inline constexpr int kWarpsOfGroup = 4;
inline constexpr int kWarpGroupSize = kWarpsOfGroup * kWarpSize;

// The thread's number in its warp, 0 to 31.
inline Int lane_id(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kLaneId, loc));
}
// The warp's number in its block. The compiler knows that it is uniform: the same in all 32 lanes.
inline Int warp_id(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kWarpId, loc));
}

// The extents of the block that the kernel is compiled for.
struct BlockShape {
  int x, y, z;  // threads in each direction; 0 where the block is dynamic
};
// While tracing, as host numbers: the block's extents, its threads and its warps (rounded up). 0
// where the block is dynamic.
BlockShape block_shape();
int threads_per_block();
int warps_per_block();

// Block barrier, CUDA's __syncthreads(): no thread goes on before all threads of the block have
// arrived. Memory accesses before it are then visible to all of them. An error of the kernel under
// a condition that differs between threads.
inline void sync_threads(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kBarrier, loc);
}
// Warp barrier, CUDA's __syncwarp(): likewise for the lanes of a warp, or those that `lanes` names.
inline void sync_warp(const detail::LaneMask& lanes = {}, SourceLoc loc = SourceLoc::current()) {
  detail::emit_for_lanes(detail::op::kWarpSync, {}, lanes, loc);
}

// Warp shuffles: the value of another lane. That is lane `lane` (shfl), the lane `delta` below
// (shfl_up) or above (shfl_down), or the lane whose number is one's own XOR `mask` (shfl_xor).
// Lanes are counted within segments of `width` lanes, a power of two; where the other lane is
// outside of the segment, the result is one's own value. All lanes of the warp take part, or those
// that `lanes` names, a bit each: code under a condition names the lanes that run it.
template <class X>
auto shfl(const X& value, detail::Arg<int32_t> lane, int width = kWarpSize,
          const detail::LaneMask& lanes = {}) {
  return detail::shuffle(detail::op::kShflIdx, detail::traced_t<X>(value), lane.node, width, lanes,
                         lane.loc);
}
template <class X>
auto shfl_up(const X& value, detail::Arg<int32_t> delta, int width = kWarpSize,
             const detail::LaneMask& lanes = {}) {
  return detail::shuffle(detail::op::kShflUp, detail::traced_t<X>(value), delta.node, width, lanes,
                         delta.loc);
}
template <class X>
auto shfl_down(const X& value, detail::Arg<int32_t> delta, int width = kWarpSize,
               const detail::LaneMask& lanes = {}) {
  return detail::shuffle(detail::op::kShflDown, detail::traced_t<X>(value), delta.node, width,
                         lanes, delta.loc);
}
template <class X>
auto shfl_xor(const X& value, detail::Arg<int32_t> mask, int width = kWarpSize,
              const detail::LaneMask& lanes = {}) {
  return detail::shuffle(detail::op::kShflXor, detail::traced_t<X>(value), mask.node, width, lanes,
                         mask.loc);
}

// Warp votes: whether a condition holds in any lane (vote_any), in all (vote_all), or is the same
// in all (vote_uniform); and the mask of the lanes in which it holds, a bit each (ballot).
inline Bool vote_any(detail::Arg<bool> p, const detail::LaneMask& lanes = {}) {
  return Bool(detail::emit_vote(detail::op::kVoteAny, p.node, lanes, p.loc));
}
inline Bool vote_all(detail::Arg<bool> p, const detail::LaneMask& lanes = {}) {
  return Bool(detail::emit_vote(detail::op::kVoteAll, p.node, lanes, p.loc));
}
inline Bool vote_uniform(detail::Arg<bool> p, const detail::LaneMask& lanes = {}) {
  return Bool(detail::emit_vote(detail::op::kVoteUni, p.node, lanes, p.loc));
}
inline UInt ballot(detail::Arg<bool> p, const detail::LaneMask& lanes = {}) {
  return UInt(detail::emit_vote(detail::op::kBallot, p.node, lanes, p.loc));
}

// match_any: the mask of the lanes whose value has the same bits as one's own. match_all: the mask
// of all lanes that take part if all their values have the same bits, else 0. Values of 32 or 64
// bits.
template <detail::Readable X>
UInt match_any(const X& x, const detail::LaneMask& lanes = {},
               SourceLoc loc = SourceLoc::current()) {
  const Value<typename X::value_type> value(x);
  return UInt(detail::emit_vote(detail::op::kMatchAny, detail::word_of(value, loc), lanes, loc));
}
template <detail::Readable X>
UInt match_all(const X& x, const detail::LaneMask& lanes = {},
               SourceLoc loc = SourceLoc::current()) {
  const Value<typename X::value_type> value(x);
  return UInt(detail::emit_vote(detail::op::kMatchAll, detail::word_of(value, loc), lanes, loc));
}

// Warp reduction of a 32-bit integer in one instruction: sum, minimum, maximum, bitwise and, or,
// exclusive or. Each lane gets the result. warp_reduce() (reduce.h) takes any type and operation.
#define HEDDLE_REDUX(name, kind)                                                              \
  inline Int redux_##name(detail::Arg<int32_t> x, const detail::LaneMask& lanes = {}) {       \
    return Int(detail::emit_redux(detail::ReduxOp::kind, x.node, lanes, x.loc));              \
  }                                                                                           \
  template <detail::Readable X>                                                               \
  requires detail::ReadsAs<X, uint32_t> UInt redux_##name(                                    \
      const X& x, const detail::LaneMask& lanes = {}, SourceLoc loc = SourceLoc::current()) { \
    return UInt(detail::emit_redux(detail::ReduxOp::kind, x.read_node(loc), lanes, loc));     \
  }
HEDDLE_REDUX(add, kAdd)
HEDDLE_REDUX(min, kMin)
HEDDLE_REDUX(max, kMax)
HEDDLE_REDUX(and, kAnd)
HEDDLE_REDUX(or, kOr)
HEDDLE_REDUX(xor, kXor)
#undef HEDDLE_REDUX

// Elects a lane: true in one of the lanes that take part, the same one each time (sm_90).
inline Bool elect_one(const detail::LaneMask& lanes = {}, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_for_lanes(detail::op::kElect, detail::scalar_type<bool>(), lanes, loc));
}
// The mask of the lanes that run this instruction together. That may be fewer lanes than reach this
// line; where a mask of those is needed, take the ballot() of the condition.
inline UInt active_mask(SourceLoc loc = SourceLoc::current()) {
  return UInt(
      detail::emit_for_lanes(detail::op::kActiveMask, detail::scalar_type<uint32_t>(), {}, loc));
}

// Promises that the value is uniform: the same in all threads of the block, where the compiler
// cannot see it. Barriers may then stand under a condition on it. Gives the value. The interpreter
// checks the promise.
template <detail::Readable X>
auto assume_uniform(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Value<typename X::value_type>(
      detail::emit(detail::op::kAssumeUniform, x.read_node(loc), loc));
}

namespace detail {

template <class X>
concept IntegerOperand = Readable<X> && std::is_integral_v<typename X::value_type> &&
    !std::is_same_v<typename X::value_type, bool>;

// What arithmetic makes of an integer: 8 and 16 bits become an int32_t.
template <class X>
using Computable =
    std::conditional_t<is_promoted<typename X::value_type>, int32_t, typename X::value_type>;

template <class X>
Value<Computable<X>> assumed(const X& x, const Promise& promise, SourceLoc loc) {
  return Value<Computable<X>>(emit_assume_range(read_as<Computable<X>>(x, loc), promise, loc));
}

}  // namespace detail

// Promises that an integer lies between `min` and `max`, both included (assume_range), or is a
// multiple of `divisor` (assume_divisible). Gives the integer. Index arithmetic gets cheaper, and
// accesses of several elements are known to be aligned. The interpreter checks the promise.
template <detail::IntegerOperand X>
auto assume_range(const X& x, int64_t min, int64_t max, SourceLoc loc = SourceLoc::current()) {
  return detail::assumed(x, {.min = min, .max = max}, loc);
}
template <detail::IntegerOperand X>
auto assume_divisible(const X& x, int64_t divisor, SourceLoc loc = SourceLoc::current()) {
  return detail::assumed(x, {.divisor = divisor}, loc);
}

// Hoists an integer to the host: it is computed once before each launch, and the kernel reads the
// result. It may be computed from scalar parameters, shapes and strides of parameters, and
// constants, by integer arithmetic; other operands are an error of the kernel. A division by zero
// is unspecified as in a kernel, and the interpreter reports it.
template <detail::IntegerOperand X>
auto at_launch(const X& x, SourceLoc loc = SourceLoc::current()) {
  using T = detail::Computable<X>;
  return Value<T>(detail::emit(detail::op::kAtLaunch, detail::read_as<T>(x, loc), loc));
}

}  // namespace heddle
