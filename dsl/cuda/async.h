// Asynchronous copies from global to shared memory, which the thread waits for later, and barriers
// of a part of the block: for software pipelines.
//
//   copy_async<4>(tile.at(i), x.at(4 * i));      // 16 bytes of floats
//   copy_async_commit();                         // a group: all copies since the last one
//   copy_async_wait(1);                          // until at most one group is under way
//   sync_threads();                              // now the others' copies are there too
//
//   copy_async_if<4>(row < rows, tile.at(i), x.at(row, 4 * i));      // zeros below the last row
//   copy_async<4>(tile.at(i), x.with(L2Evict::first).at(4 * i));     // what L2 need not keep
#pragma once

#include <vector>

#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

// `condition`: nullptr where there is none.
void emit_copy_async(const Access& to, const Access& from, ir::Scalar scalar, int width,
                     const Node* condition = nullptr);
void emit_copy_wait(int groups, SourceLoc loc);
void emit_named_barrier(ir::Opcode opcode, Node id, int threads, SourceLoc loc);

// What a pin lists: the leaves of anything Traced, or of several such in braces.
class Pinned {
 public:
  template <class... X>
  requires(Traced<traced_t<X>>&&...) Pinned(const X&... values) {
    (for_each_leaf(static_cast<const traced_t<X>&>(values),
                   [&](const Node& node) { nodes_.push_back(node); }),
     ...);
  }
  // The leaves, in order of declaration.
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_;
};

void emit_pin(const Pinned& values, bool early_loads, SourceLoc loc);

}  // namespace detail

// Asynchronous copy (cp.async) of N elements from global to shared memory. They have 4, 8 or 16
// bytes together, and both places are aligned to that.
template <int N = 1, class T>
void copy_async(const detail::ElementAddress<T>& to, const detail::ElementAddress<const T>& from) {
  detail::emit_copy_async(to.access, from.access, detail::scalar_of<T>(), N);
}
template <int N = 1, class T>
void copy_async(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from) {
  detail::emit_copy_async(to.access, from.access, detail::scalar_of<T>(), N);
}
// Likewise where the condition holds. Where it does not, zeros are written to shared memory and
// global memory is not read, so its index need not be in range.
template <int N = 1, class T>
void copy_async_if(const detail::Arg<bool>& condition, const detail::ElementAddress<T>& to,
                   const detail::ElementAddress<const T>& from) {
  detail::emit_copy_async(to.access, from.access, detail::scalar_of<T>(), N, &condition.node);
}
template <int N = 1, class T>
void copy_async_if(const detail::Arg<bool>& condition, const detail::ElementAddress<T>& to,
                   const detail::ElementAddress<T>& from) {
  detail::emit_copy_async(to.access, from.access, detail::scalar_of<T>(), N, &condition.node);
}
// Closes a group: all copies of the thread since the last commit.
inline void copy_async_commit(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kCopyCommit, loc);
}
// Waits until at most `groups` of the thread's latest groups, a host number, are still under way.
inline void copy_async_wait(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_copy_wait(groups, loc);
}

// Pins the work that computes the values, pin(a) or pin({a, b}), in front of the next wait, so that
// it runs while the copies and products that are waited for do: assemblers move it behind the wait
// where nothing before it needs the results. No instruction moves past a pin, which costs one.
inline void pin(const detail::Pinned& values, SourceLoc loc = SourceLoc::current()) {
  detail::emit_pin(values, /*early_loads=*/false, loc);
}
// The same, but loads behind the pin, up to the next one, start in front of it: what comes next is on its way while
// the pinned work runs. As many as 16 registers hold move, with what their addresses take; none moves past a
// barrier, a loop, what may end the kernel, or a write of its memory. Without values it stands in front of a
// settle(), so that loads run while the last products do.
inline void pin_with_early_loads(const detail::Pinned& values = {},
                                 SourceLoc loc = SourceLoc::current()) {
  detail::emit_pin(values, /*early_loads=*/true, loc);
}

// Named barriers: `id` is 1 to 15, `threads` is how many threads of the block take part, in whole
// warps. Threads that sync wait until as many have arrived; threads that arrive go on at once.
inline void named_barrier_sync(detail::Arg<int32_t> id, int threads) {
  detail::emit_named_barrier(detail::op::kBarrierSync, id.node, threads, id.loc);
}
inline void named_barrier_arrive(detail::Arg<int32_t> id, int threads) {
  detail::emit_named_barrier(detail::op::kBarrierArrive, id.node, threads, id.loc);
}

}  // namespace heddle
