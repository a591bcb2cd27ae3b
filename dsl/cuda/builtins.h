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
// The same for the lanes of a warp, or those of them that `lanes` names.
inline void sync_warp(const detail::LaneMask& lanes = {}, SourceLoc loc = SourceLoc::current()) {
  detail::emit_for_lanes(detail::op::kWarpSync, {}, lanes, loc);
}

// The value that another lane of the warp passes: lane `lane`, or `delta` below, above, or that
// number XOR `mask`, within segments of `width` lanes (a power of two). A lane outside the segment
// gives one's own value. All lanes of the warp take part, or those that `lanes` names, a bit each:
// code under a condition names the lanes that run it.
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

// Whether a condition holds in any lane of the warp, in all, or the same way in all; and the mask
// of the lanes in which it holds.
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

// The lanes whose value has the same bits as one's own; and the mask of all lanes that take part if
// theirs are all the same, 0 if not. Of 32 or 64 bits.
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

// A 32-bit integer's sum, least, greatest, and so on over the lanes, in one instruction; each lane
// gets it. warp_reduce() (reduce.h) does so for any type and operation.
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

// True in one lane of those that take part, the same one each time (sm_90).
inline Bool elect_one(const detail::LaneMask& lanes = {}, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_for_lanes(detail::op::kElect, detail::scalar_type<bool>(), lanes, loc));
}
// The lanes that run this together: perhaps fewer than the program has there. Where a mask is
// needed, the ballot of the condition is the sure one.
inline UInt active_mask(SourceLoc loc = SourceLoc::current()) {
  return UInt(
      detail::emit_for_lanes(detail::op::kActiveMask, detail::scalar_type<uint32_t>(), {}, loc));
}

// A value that the author promises to be the same in all threads of the block, where the compiler
// cannot see it: barriers may then stand under a condition on it. The interpreter checks the
// promise.
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

// An integer that the author promises to lie between two numbers, both included, or to be a
// multiple of one: index arithmetic gets by with less, and accesses of several elements are known
// to be aligned. The interpreter checks the promise.
template <detail::IntegerOperand X>
auto assume_range(const X& x, int64_t min, int64_t max, SourceLoc loc = SourceLoc::current()) {
  return detail::assumed(x, {.min = min, .max = max}, loc);
}
template <detail::IntegerOperand X>
auto assume_divisible(const X& x, int64_t divisor, SourceLoc loc = SourceLoc::current()) {
  return detail::assumed(x, {.divisor = divisor}, loc);
}

// An integer that the host computes before each launch, so that the kernel only reads it. It has to
// follow from scalar parameters, shapes and strides of parameters and constants, by arithmetic of
// integers; what is unspecified in a kernel (a division by zero) is so here, and the interpreter
// reports it.
template <detail::IntegerOperand X>
auto at_launch(const X& x, SourceLoc loc = SourceLoc::current()) {
  using T = detail::Computable<X>;
  return Value<T>(detail::emit(detail::op::kAtLaunch, detail::read_as<T>(x, loc), loc));
}

// Stops the kernel with `message` and the thread's coordinates where the condition does not hold.
inline void device_assert(detail::Arg<bool> condition, const char* message = "assertion failed") {
  detail::emit_assert(condition.node, message, condition.loc);
}

}  // namespace heddle
