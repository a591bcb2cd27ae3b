// Reductions over the lanes of a warp, the threads of a block, and the blocks of a cluster.
//
//   Float total = block_reduce(sum, plus());                    // in every thread
//   Float peak = warp_reduce(value, maximum());
//   MaxAt best = block_reduce(mine, [](MaxAt a, MaxAt b) {      // any associative, commutative
//     return select(b.value > a.value, b, a); });               // function of anything Traced
//
// A functor may say how the values of a whole group of threads are combined at once, where that costs less than
// pair by pair:
//
//   struct Scaled { Float exponent, sum; };
//   struct Merge {
//     Scaled operator()(const Scaled& a, const Scaled& b) const;      // of two, as above
//     template <class Group>
//     Scaled together(const Scaled& mine, const Group& group) const { // of a group: group(x, combine)
//       const Float e = group(mine.exponent, maximum());              // reduces any value over it
//       return {e, group(mine.sum * exp2(mine.exponent - e), plus())};
//     }
//   };
//
// What it returns is computed from what group() gives, which all have alike, and from nothing that a thread has of its
// own. The result is the same in every thread that takes part. Sums of floats are taken in a tree, whose
// order is fixed by the block's shape: the same launch gives the same bits.
#pragma once

#include <optional>

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/bulk.h"
#include "heddle/dsl/cuda/cluster.h"
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

// Whether a functor combines the values of a group in a way of its own: together(), above.
template <class Combine, class T, class Group>
concept CombinesTogether = requires(const Combine& combine, const T& mine, const Group& group) {
  combine.together(mine, group);
};

// Whether a warp has segments of so many lanes.
constexpr bool is_width(int width) {
  return width >= 1 && width <= kWarpSize && (width & (width - 1)) == 0;
}

// warp_reduce(), where the first lane alone is sure to have the result.
template <class X, class Combine>
auto combine_lanes(const X& value, Combine combine, int width, SourceLoc loc) {
  detail::traced_t<X> result(value);
  const auto group = [&](const auto& x, auto by) { return warp_reduce(x, by, width, loc); };
  if constexpr (CombinesTogether<Combine, detail::traced_t<X>, decltype(group)>) {
    return combine.together(result, group);
  }
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
  if (!detail::is_width(width)) {
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
  const auto group = [&](const auto& x, auto by) { return warp_reduce_first(x, count, by, loc); };
  if constexpr (detail::CombinesTogether<Combine, T, decltype(group)>) {
    return combine.together(value, group);
  }
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
  // The slots of another block of the cluster.
  WarpSlots in_block(const Int& rank, SourceLoc loc) const {
    WarpSlots there(*this);
    for (int i = 0; i < count_; ++i) {
      there.arrays_[i] = emit_map_shared(arrays_[i], rank.node(), loc);
    }
    return there;
  }
  void store(const T& value, const Int& slot) const {
    int i = 0;
    for_each_leaf(value, [&](const Node& node) {
      const Access to = access(i++, slot);
      emit_store(to, node, to.loc);
    });
  }
  // Tells a barrier of the block that gets it.
  void store_async(const T& value, const Int& slot, const Mbarrier& told) const {
    int i = 0;
    const Int first = 0;
    for_each_leaf(value, [&](const Node& node) {
      const Access to = access(i++, slot);
      emit_store_async(to, node, {told.words().view_node(), first.node()}, to.loc);
    });
  }
  // Whether such stores take all leaves.
  static bool is_of_words(const T& prototype) {
    bool all = true;
    for_each_leaf(prototype, [&](const Node& node) { all = all && bytes_of(node) >= 4; });
    return all;
  }
  // Of one value.
  static int64_t bytes(const T& prototype) {
    int64_t sum = 0;
    for_each_leaf(prototype, [&](const Node& node) { sum += bytes_of(node); });
    return sum;
  }
  T load(const T& prototype, const Int& slot) const {
    T value(prototype);
    int i = 0;
    for_each_leaf(value, [&](Node& node) {
      const Access from = access(i++, slot);
      node = emit_load(from, node.type, from.loc);
    });
    return value;
  }

 private:
  Access access(int i, const Int& slot) const {
    return {
        .view = arrays_[i], .coordinates = {slot.node()}, .rank = 1, .loc = SourceLoc::current()};
  }
  Node arrays_[NodeList::kMax];
  int count_ = 0;
};

// What the threads of a warp have, combined; the first lane is sure to have it. The last warp may have fewer lanes.
template <class T, class Combine>
T combine_warp(const T& value, Combine combine, int threads, int warps, SourceLoc loc) {
  if (threads % kWarpSize == 0) return combine_lanes(value, combine, kWarpSize, loc);
  if (warps == 1) return warp_reduce_first(value, Int(threads), combine);
  return warp_reduce_first(value, min(Int(threads) - warp_id() * kWarpSize, kWarpSize), combine);
}

// The values of `count` slots, combined by every warp of the block, which saves a second barrier to hand the
// result round.
template <class T, class Combine>
T combine_slots(const WarpSlots<T>& slots, const T& prototype, int count, Combine combine,
                int threads) {
  const int in_last_warp = threads % kWarpSize == 0 ? kWarpSize : threads % kWarpSize;
  // The slots repeat over the lanes where their number is a power of two, so that no lane idles.
  if (in_last_warp == kWarpSize && count <= kWarpSize && (count & (count - 1)) == 0) {
    return warp_reduce(slots.load(prototype, lane_id() & (count - 1)), combine, count);
  }
  // More slots than the last warp has lanes: lanes take several.
  const int lanes = in_last_warp < count ? in_last_warp : count;
  const Int first = min(lane_id(), lanes - 1);
  T result = slots.load(prototype, first);
  for (int passed = lanes; passed < count; passed += lanes) {
    const T next = slots.load(prototype, min(first + passed, count - 1));
    const T both = combine(result, next);
    replace_leaves(result, passed + lanes <= count
                               ? both
                               : stays<T>(select(first + passed < count, both, result)));
  }
  if (lanes == kWarpSize) return warp_reduce(result, combine);
  return warp_reduce_first(result, Int(lanes), combine);
}

// What all threads of the block have alike, known to be so.
template <class T>
T all_alike(T value, SourceLoc loc) {
  for_each_leaf(value, [&](Node& node) { node = emit(op::kAssumeUniform, node, loc); });
  return value;
}

// The thread's number in its block, as warps count them.
inline Int thread_number() { return warp_id() * kWarpSize + lane_id(); }

// Whether the block's shape is known; else reports what cannot be done.
inline bool has_fixed_block(const char* message, SourceLoc loc) {
  if (threads_per_block() != 0) return true;
  report(loc, message,
         "give the launch, or CompileOptions::block, a fixed block, or reduce with warp_reduce()");
  return false;
}

}  // namespace detail

// Block reduction: combines one value of each thread over the whole block; every thread gets the
// result. All threads of the block take part. The block's shape must be known when the kernel is
// compiled (not dynamic), else it is an error of the kernel. Structs may be combined, of scalars
// alone. Costs one barrier (two inside a loop) and shared memory for one value of each warp.
template <class X, class Combine>
auto block_reduce(const X& x, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("block_reduce() in a kernel whose block is dynamic", loc))
    return value;
  const int threads = threads_per_block(), warps = warps_per_block();
  if (threads == kWarpSize) return warp_reduce(value, combine);
  const T of_warp = detail::combine_warp(value, combine, threads, warps, loc);
  if (warps == 1) return of_warp;

  const detail::WarpSlots<T> slots(of_warp, warps);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slots
  If(lane_id() == 0, [&] { slots.store(of_warp, warp_id()); });
  sync_threads();
  return detail::combine_slots(slots, of_warp, warps, combine, threads);
}

namespace detail {

// How the blocks of a cluster learn that what the others store has come: by a barrier of their own that counts the
// bytes, which asynchronous stores tell; where a leaf is too small for these, by a barrier of the cluster.
template <class T>
class ClusterSlots {
 public:
  // Before arrive(), which is before cluster_wait(); for so many values.
  ClusterSlots(const T& prototype, int count)
      : slots_(prototype, count),
        bytes_(static_cast<uint32_t>(count * WarpSlots<T>::bytes(prototype))) {
    if (!WarpSlots<T>::is_of_words(prototype)) return;
    told_.emplace(1);
    If(is_first(), [&] {
      told_->init(0, 1u);
      fence_mbarrier_init();
    });
  }
  // Tells the cluster that this block runs and can be told, and in a loop is done with the slots of a trip before.
  void arrive() const {
    cluster_arrive(in_loop() || !told_ ? MemoryOrder::release : MemoryOrder::relaxed);
  }
  // Stores a value in a block's slots, behind cluster_wait().
  void store(const T& value, const Int& slot, const Int& block, SourceLoc loc) const {
    const WarpSlots<T> there = slots_.in_block(block, loc);
    if (told_) {
      there.store_async(value, slot, Mbarrier(map_shared(told_->words(), block)));
    } else {
      there.store(value, slot);
    }
  }
  // What has come.
  const WarpSlots<T>& wait() const {
    if (told_) {
      // Bytes may have come before; the phase lacks this arrival.
      If(is_first(), [&] { told_->expect_tx(0, bytes_); });
      told_->wait(0, 0u);
      if (in_loop()) {
        sync_threads();  // all have seen it; the next trip has a barrier anew
        If(is_first(), [&] { told_->inval(0); });
      }
    } else {
      sync_cluster();
    }
    return slots_;
  }

 private:
  static Bool is_first() { return warp_id() == 0 && lane_id() == 0; }
  const WarpSlots<T> slots_;
  const uint32_t bytes_;
  std::optional<Mbarrier> told_;
};

}  // namespace detail

// Cluster reduction: combines one value of each thread over all blocks of the cluster, as block_reduce() does over
// one; every thread of the cluster gets the result, with the same bits. All of its threads take part. Each warp
// stores what it has to every block's shared memory, asynchronously where T's scalars have 4 or 8 bytes. Costs a cluster
// barrier that overlaps with the work of the warps, and the way to another block's memory. In a cluster of one block
// it is block_reduce().
template <class X, class Combine>
auto cluster_reduce(const X& x, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  const int blocks = cluster_size();
  if (blocks == 1) return block_reduce(value, combine, loc);
  if (!detail::has_fixed_block("cluster_reduce() in a kernel whose block is dynamic", loc))
    return value;
  const int threads = threads_per_block(), warps = warps_per_block();

  const detail::ClusterSlots<T> slots(value, blocks * warps);
  slots.arrive();
  const T of_warp = detail::combine_warp(value, combine, threads, warps, loc);
  const Int slot = cluster_rank() * warps + warp_id();
  cluster_wait();
  // A lane for each block; fewer lanes than that a last warp may have.
  const T first = shfl(of_warp, 0);
  const int lanes = threads % kWarpSize == 0 ? kWarpSize : threads % kWarpSize;
  for (int passed = 0; passed < blocks; passed += lanes) {
    const Int block = lane_id() + passed;
    If(lane_id() < lanes && block < blocks, [&] { slots.store(first, slot, block, loc); });
  }
  // All warps combine the same slots in the same way.
  return detail::all_alike(
      detail::combine_slots(slots.wait(), of_warp, blocks * warps, combine, threads), loc);
}

}  // namespace heddle
