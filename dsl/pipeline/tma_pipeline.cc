#include "heddle/dsl/pipeline/tma_pipeline.h"

namespace heddle {
Int ClusterGrid::row() const {
  if (rows == 1) return 0;
  return columns == 1 ? cluster_rank() : cluster_rank() % rows;
}

Int ClusterGrid::column() const {
  if (columns == 1) return 0;
  return rows == 1 ? cluster_rank() : cluster_rank() / rows;
}

UInt ClusterGrid::row_mask() const {
  uint32_t first_row = 0;
  for (int column = 0; column < columns; ++column) first_row |= 1u << column * rows;
  return UInt(first_row) << row();
}

UInt ClusterGrid::column_mask() const { return UInt((1u << rows) - 1) << (column() * rows); }

void TmaPipeline::start(SourceLoc loc) const {
  const ClusterGrid& cluster = options_.cluster;
  const int releases = options_.consumers * (options_.by_warps ? kWarpsOfGroup : 1);
  If({thread_idx.x == 0, loc}, [&] {
    for (int stage = 0; stage < options_.stages; ++stage) {
      full_.init({stage, loc}, 1u);
      empty_.init({stage, loc}, releases * (cluster.rows + cluster.columns - 1));
    }
    fence_mbarrier_init(loc);
  });
  if (cluster.size() == 1) {
    sync_threads(loc);
  } else {
    sync_cluster(loc);
  }
}

// One thread for each block that the stage is shared with: those of this block's row and column.
void TmaPipeline::release(const Int& index, SourceLoc loc) const {
  const ClusterGrid& cluster = options_.cluster;
  const Int thread = thread_idx.x % (options_.by_warps ? kWarpSize : kWarpGroupSize);
  if (options_.by_warps) {
    // What the copy engine writes next comes behind the reads of all lanes.
    fence_async(FenceSpace::shared, loc);
    sync_warp({}, loc);
  }
  if (cluster.size() == 1) {
    If({thread == 0, loc}, [&] {
      empty_.arrive({index, loc}, MemoryOrder::release, MemoryScope::block);
    });
    return;
  }
  const auto arrive_at = [&](const Int& rank) {
    Mbarrier(map_shared(empty_.words(), rank))
        .arrive({index, loc}, MemoryOrder::release, MemoryScope::block);
  };
  if (cluster.rows == 1 || cluster.columns == 1) {
    If({thread < cluster.size(), loc}, [&] { arrive_at(thread); });
    return;
  }
  const Bool same_row = thread % cluster.rows == cluster.row();
  const Bool same_column = thread / cluster.rows == cluster.column();
  If({thread < cluster.size() && (same_row || same_column), loc}, [&] { arrive_at(thread); });
}

}  // namespace heddle
