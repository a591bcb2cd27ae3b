// Reductions over the lanes of a warp and the threads of a block.
//
//   Float total = block_reduce(sum, plus());                    // in every thread
//   Float peak = warp_reduce(value, maximum());
//   MaxAt best = block_reduce(mine, [](MaxAt a, MaxAt b) {      // any associative, commutative
//     return select(b.value > a.value, b, a); });               // function of anything Traced
//
// The result is the same in every thread that takes part. Sums of floats are taken in a tree, whose
// order is fixed by the block's shape: the same launch gives the same bits.
#pragma once

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/view.h"

namespace heddle {

namespace detail {

// Operators promote small integers to int; what combines two of them stays as small, as in C++.
template <class T, class R>
T stays(const R& result) {
  if constexpr (std::is_same_v<R, T>) {
    return result;
  } else {
    return cast<typename T::value_type>(result);
  }
}

}  // namespace detail

// The sum, for the reductions and scans below.
struct plus {
  // a + b, in the operands' type.
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(a + b);
  }
};
// The smaller of two; of floats with one NaN, the other one.
struct minimum {
  // min(a, b).
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(min(a, b));
  }
};
// The larger of two; of floats with one NaN, the other one.
struct maximum {
  // max(a, b).
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(max(a, b));
  }
};

// Bitwise and, of integers and bools.
struct bitwise_and {
  // a & b.
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(a & b);
  }
};
// Bitwise or, of integers and bools.
struct bitwise_or {
  // a | b.
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(a | b);
  }
};
// Bitwise exclusive or, of integers and bools.
struct bitwise_xor {
  // a ^ b.
  template <class T>
  T operator()(const T& a, const T& b) const {
    return detail::stays<T>(a ^ b);
  }
};

namespace detail {

// What one instruction combines over a warp, 32-bit integers alone.
template <class Combine>
inline constexpr int kReduxOf = -1;
template <>
inline constexpr int kReduxOf<plus> = static_cast<int>(ReduxOp::kAdd);
template <>
inline constexpr int kReduxOf<minimum> = static_cast<int>(ReduxOp::kMin);
template <>
inline constexpr int kReduxOf<maximum> = static_cast<int>(ReduxOp::kMax);
template <>
inline constexpr int kReduxOf<bitwise_and> = static_cast<int>(ReduxOp::kAnd);
template <>
inline constexpr int kReduxOf<bitwise_or> = static_cast<int>(ReduxOp::kOr);
template <>
inline constexpr int kReduxOf<bitwise_xor> = static_cast<int>(ReduxOp::kXor);
template <class T, class Combine>
inline constexpr bool kHasRedux = (std::is_same_v<T, Int> ||
                                   std::is_same_v<T, UInt>)&&kReduxOf<Combine> >= 0;

// Whether combine(a, b) and combine(b, a) have the same bits, so that lanes that exchange what they
// have all end with the same. Of an author's function or operator nobody knows: which of two equals
// it prefers, how it rounds.
template <class T, class Combine>
inline constexpr bool kLanesAgree = false;
template <class E, class Combine>
inline constexpr bool kLanesAgree<Value<E>, Combine> = kReduxOf<Combine> >= 0;

// The same thing with the leaves of another: what `result = next` would say if values could change.
template <class T>
void replace_leaves(T& result, const T& next) {
  NodeList leaves;
  leaves.append(next);
  leaves.write_to(result);
}

// warp_reduce(), where the first lane alone is sure to have the result.
template <class X, class Combine>
auto combine_lanes(const X& value, Combine combine, int width, SourceLoc loc) {
  detail::traced_t<X> result(value);
  if constexpr (detail::kHasRedux<detail::traced_t<X>, Combine>) {
    if (width == kWarpSize) {
      const auto kind = static_cast<detail::ReduxOp>(detail::kReduxOf<Combine>);
      return detail::traced_t<X>(detail::emit_redux(kind, result.node(), {}, loc));
    }
  }
  for (int mask = width / 2; mask > 0; mask /= 2) {
    detail::replace_leaves(result, combine(result, shfl_xor(result, mask, width)));
  }
  return result;
}

}  // namespace detail

// Warp reduction: combines one value of each lane over segments of `width` lanes (1, 2, 4, 8, 16 or
// 32). Every lane of a segment gets the same result. All 32 lanes of the warp take part. Over whole
// warps, sums, minima, maxima and the bitwise_ functions of Int and UInt are one instruction,
// redux.
template <class X, class Combine>
auto warp_reduce(const X& value, Combine combine, int width = kWarpSize,
                 SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  if (width < 1 || width > kWarpSize || (width & (width - 1)) != 0) {
    detail::report(loc, "warp_reduce() over a width that is no power of two from 1 to 32",
                   "reduce over 1, 2, 4, 8, 16 or 32 lanes");
    return T(value);
  }
  T result = detail::combine_lanes(value, combine, width, loc);
  if constexpr (!detail::kLanesAgree<T, Combine>) {
    if (width > 1) detail::replace_leaves(result, shfl(result, 0, width));
  }
  return result;
}

// Warp reduction over the first `count` lanes: 1 to 32, the same number in all lanes. Every lane of
// the warp takes part and gets the result.
template <Traced T, class Combine>
T warp_reduce_first(const T& value, const Int& count, Combine combine,
                    SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Int lane = lane_id();
  T result = value;
  for (int delta = kWarpSize / 2; delta > 0; delta /= 2) {
    // Lanes past the last value may not exist, so none reads them.
    const T other = shfl(result, min(lane + delta, count - 1));
    detail::replace_leaves(
        result, detail::stays<T>(select(lane + delta < count, combine(result, other), result)));
  }
  return shfl(result, 0);
}

namespace detail {

// Shared memory for one value a warp: an array for each leaf.
template <class T>
class WarpSlots {
 public:
  WarpSlots(const T& prototype, int warps) {
    for_each_leaf(prototype, [&](const Node& node) {
      const int64_t extent = warps;
      arrays_[count_++] = new_shared(node.type.scalar, &extent, 1, SourceLoc::current());
    });
  }
  void store(const T& value, const Int& slot) const {
    int i = 0;
    for_each_leaf(value, [&](const Node& node) {
      const Access to = access(i++, slot);
      emit_store(to, node, to.loc);
    });
  }
  void load(T& value, const Int& slot) const {
    int i = 0;
    for_each_leaf(value, [&](Node& node) {
      const Access from = access(i++, slot);
      node = emit_load(from, node.type, from.loc);
    });
  }

 private:
  Access access(int i, const Int& slot) const {
    return {
        .view = arrays_[i], .coordinates = {slot.node()}, .rank = 1, .loc = SourceLoc::current()};
  }
  Node arrays_[NodeList::kMax];
  int count_ = 0;
};

}  // namespace detail

// Block reduction: combines one value of each thread over the whole block; every thread gets the
// result. All threads of the block take part. The block's shape must be known when the kernel is
// compiled (not dynamic), else it is an error of the kernel. Structs may be combined, of scalars
// alone. Costs one barrier (two inside a loop) and shared memory for one value of each warp.
template <class X, class Combine>
auto block_reduce(const X& x, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  T result(x);
  const int threads = threads_per_block();
  if (threads == 0) {
    detail::report(
        loc, "block_reduce() in a kernel whose block is dynamic",
        "give the launch, or CompileOptions::block, a fixed block, or reduce with warp_reduce()");
    return result;
  }
  const int warps = warps_per_block();
  const auto in_warp = [&] {
    if (threads % kWarpSize == 0 && warps == 1) return warp_reduce(result, combine);
    if (threads % kWarpSize == 0) return detail::combine_lanes(result, combine, kWarpSize, loc);
    if (warps == 1) return warp_reduce_first(result, Int(threads), combine);
    return warp_reduce_first(result, min(Int(threads) - warp_id() * kWarpSize, kWarpSize), combine);
  };
  const T warp_result = in_warp();
  if (warps == 1) return warp_result;

  const detail::WarpSlots<T> slots(warp_result, warps);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slots
  If(lane_id() == 0, [&] { slots.store(warp_result, warp_id()); });
  sync_threads();
  // Every warp combines all slots, which saves a second barrier to hand the result round. The slots
  // repeat over the lanes where their number is a power of two, so that no lane idles.
  const int in_last_warp = threads % kWarpSize == 0 ? kWarpSize : threads % kWarpSize;
  if (in_last_warp == kWarpSize && (warps & (warps - 1)) == 0) {
    slots.load(result, lane_id() & (warps - 1));
    return warp_reduce(result, combine, warps);
  }
  // A last warp of fewer lanes than there are slots: lanes take several.
  const int lanes = in_last_warp < warps ? in_last_warp : warps;
  const Int first = min(lane_id(), lanes - 1);
  slots.load(result, first);
  for (int passed = lanes; passed < warps; passed += lanes) {
    T next = result;
    slots.load(next, min(first + passed, warps - 1));
    detail::replace_leaves(
        result, detail::stays<T>(select(first + passed < warps, combine(result, next), result)));
  }
  return warp_reduce_first(result, Int(lanes), combine);
}

}  // namespace heddle
