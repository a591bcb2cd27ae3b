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

#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

Node emit_map_shared(Node view, int rank, Node block, SourceLoc loc);

}  // namespace detail

// The block's number in its cluster, and how many blocks that has: a host number.
inline Int cluster_rank(SourceLoc loc = SourceLoc::current()) {
  return Int(detail::emit(detail::op::kClusterRank, loc));
}
int cluster_size();

// Every thread of the cluster arrives and waits for the others; accesses before are visible after.
// In two steps, what does not depend on others goes in between.
inline void cluster_arrive(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kClusterArrive, loc);
}
inline void cluster_wait(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kClusterWait, loc);
}
inline void sync_cluster(SourceLoc loc = SourceLoc::current()) {
  cluster_arrive(loc);
  cluster_wait(loc);
}

// The same shared array in the cluster's block of that rank: to read, store and update. Blocks must
// all have started before, and none may end while others reach it.
template <class T, int Rank>
Shared<T, Rank> map_shared(const Shared<T, Rank>& array, detail::Arg<int32_t> block) {
  return Shared<T, Rank>(detail::emit_map_shared(array.view_node(), Rank, block.node, block.loc));
}

}  // namespace heddle
