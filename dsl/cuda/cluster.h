// Clusters: blocks that run at the same time on neighbouring multiprocessors and reach each other's
// shared memory (sm_90).
//
//   Shared<int32_t> bins(256);
//   sync_cluster();                                          // all run and have cleared their bins
//   atomic_add(map_shared(bins, cluster_rank() ^ 1)(i), 1);  // in the other block's bins
//   sync_cluster();                                          // before anybody reads, or ends
//
// The launch says how many blocks a cluster has: {.grid = 64, .block = 256, .cluster = 2}.
#pragma once

#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

Node emit_map_shared(Node view, Node block, SourceLoc loc);

}  // namespace detail

// The block's number in its cluster.
inline Int cluster_rank(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kClusterRank, loc));
}
// Blocks of the cluster, a host number.
int cluster_size();

// Cluster barrier: sync_cluster() waits until every thread of the cluster has arrived; accesses
// before it are visible to all of them after it. cluster_arrive() and cluster_wait() are its two
// halves, with room between them for work that does not depend on other blocks. An arrival that is relaxed makes no
// access visible and waits for none: it says that the block runs, and, behind fence_mbarrier_init(), has barriers that
// others may use.
inline void cluster_arrive(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kClusterArrive, loc);
}
// With an order, MemoryOrder::release or MemoryOrder::relaxed.
void cluster_arrive(MemoryOrder order, SourceLoc loc = SourceLoc::current());
inline void cluster_wait(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kClusterWait, loc);
}
inline void sync_cluster(SourceLoc loc = SourceLoc::current()) {
  cluster_arrive(loc);
  cluster_wait(loc);
}

// Distributed shared memory: the same shared array in the block of rank `block` of the cluster, to
// read, store and update. That block must have started, and may not end while others use its
// memory: a sync_cluster() before and after.
template <class T, int Rank>
Shared<T, Rank> map_shared(const Shared<T, Rank>& array, detail::Arg<int32_t> block) {
  return Shared<T, Rank>(detail::emit_map_shared(array.view_node(), block.node, block.loc));
}

}  // namespace heddle
