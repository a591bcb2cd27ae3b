// Pipelines of stages in shared memory: a producer fills them by TMA copies, consumers use them and
// give them back, while both run ahead of each other.
//
//   const TmaPipeline pipe({.stages = 4, .bytes = load_a.bytes() + load_b.bytes(), .consumers = 2});
//   …                                                       // all threads: pipe.start()
//   PipelineState p = pipe.producer();                      // in the producer's warp
//   p = For(range(blocks), p, [&](Int k, PipelineState p) {
//     pipe.produce(p, [&](const FullStage& full) {          // one lane
//       copy(full.load(load_a), gA(_, _, k), sA(_, _, p.index));
//       copy(full.load(load_b), gB(_, _, k), sB(_, _, p.index));
//     });
//     return pipe.next(p);
//   });
//
//   p = For(range(blocks), pipe.consumer(), [&](Int k, PipelineState p) {   // in each consumer
//     pipe.wait(p);
//     …                                                     // reads sA(_, _, p.index)
//     pipe.release(p);                                      // all its threads
//     return pipe.next(p);
//   });
//
// In a cluster of m x n blocks, blocks with the same row may share tiles and so may blocks with the
// same column: each loads a slice and multicasts it. A stage is then free once the consumers of all
// blocks that it is shared with have released it. Waits and arrivals are of scope block: what they
// order are copies and reads that are complete (dsl/SYNCHRONISATION.md). Consumers that read stages by
// ldmatrix or loads, and not by wgmma, say so by `.by_warps`: their reads are fenced, and each warp
// releases a stage when it is done.
//
// The same threads may fill and use the stages, with the words of an AsyncPipeline: a warp fills the
// stage ahead(p) when all have released it.
#pragma once

#include "heddle/dsl/contract.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/cluster.h"
#include "heddle/dsl/cuda/mbarrier.h"
#include "heddle/dsl/pipeline/pipeline_state.h"
#include "heddle/dsl/tensor/tma_atom.h"

namespace heddle {

// The blocks of a cluster as rows and columns: block (row, column) has the rank row + rows * column.
// Blocks of one column share what depends on the column alone, and blocks of one row likewise.
struct ClusterGrid {
  // Blocks below each other, and beside each other.
  int rows = 1, columns = 1;

  // Blocks in all.
  int size() const { return rows * columns; }
  // This block's row and column.
  Int row() const;
  Int column() const;
  // The blocks of this block's row, and of its column, as masks of ranks.
  UInt row_mask() const;
  UInt column_mask() const;
};

// A stage that is being filled: loads into it by these copies.
struct FullStage {
  // The barriers of all stages, this stage's number, and the blocks that may share its loads.
  const Mbarrier& barriers;
  Int index;
  const ClusterGrid& cluster;

  // A load of this block alone.
  TmaLoadTo load(const TmaAtom& atom) const { return atom.with(barriers, index); }
  // A load that all blocks of the cluster's row, or column, share: each loads a slice.
  TmaLoadTo load_for_row(const TmaAtom& atom) const {
    if (cluster.columns == 1) return load(atom);
    return atom.with(barriers, index, Multicast(cluster.row_mask()), cluster.column());
  }
  TmaLoadTo load_for_column(const TmaAtom& atom) const {
    if (cluster.rows == 1) return load(atom);
    return atom.with(barriers, index, Multicast(cluster.column_mask()), cluster.row());
  }
};

// What a TmaPipeline consists of.
struct TmaPipelineOptions {
  // Stages in shared memory.
  int stages = 2;
  uint32_t bytes = 0;  // that the copies of a stage bring to a block
  int consumers = 1;   // warpgroups of a block, each of which releases every stage
  // The blocks that share stages.
  ClusterGrid cluster = {};
  // The warps of a consumer release each stage on their own: they read it by ldmatrix or loads.
  bool by_warps = false;
  // Products of wgmma that read earlier stages while one is waited for, where the same threads fill and
  // use them: 0 to stages - 2.
  int under_way = 0;
};

// A pipeline whose stages TMA copies fill.
class TmaPipeline : public PipelineStages {
 public:
  // Two mbarriers a stage, in shared memory of their own.
  explicit TmaPipeline(const TmaPipelineOptions& options, SourceLoc loc = SourceLoc::current())
      : PipelineStages(options.stages, options.under_way, loc),
        options_(options),
        full_(options.stages, loc),
        empty_(options.stages, loc) {}

  // Initialises the barriers. All threads of the block (of the cluster, where it has more blocks)
  // call it, before any of them uses the pipeline.
  void start(SourceLoc loc = SourceLoc::current()) const;

  // Producer, a whole warp: waits until the stage is free, then one lane runs `loads(full)`, which
  // starts the copies.
  template <class Loads>
  void produce(const PipelineState& p, Loads&& loads, SourceLoc loc = SourceLoc::current()) const {
    empty_.wait({p.index, loc}, p.phase, MemoryOrder::acquire, MemoryScope::block);
    If({elect_one({}, loc), loc}, [&] {
      full_.expect_tx({p.index, loc}, options_.bytes);
      loads(FullStage{full_, p.index, options_.cluster});
    });
  }
  // Consumer: waits until the stage is full.
  void wait(const PipelineState& p, SourceLoc loc = SourceLoc::current()) const {
    full_.wait({p.index, loc}, p.phase, MemoryOrder::acquire, MemoryScope::block);
  }
  // Consumer: gives a stage back, by its number. All threads of the warpgroup call it, when none of
  // them reads the stage any more; or all of a warp, with by_warps, when none of the warp does.
  void release(const Int& index, SourceLoc loc = SourceLoc::current()) const;
  void release(const PipelineState& p, SourceLoc loc = SourceLoc::current()) const {
    release(p.index, loc);
  }

 private:
  TmaPipelineOptions options_;
  Mbarrier full_, empty_;
};

}  // namespace heddle
