// Pipelines of stages in shared memory that threads fill by asynchronous copies (cp.async), with the
// words of a TmaPipeline (tma_pipeline.h). There are two kinds.
//
// The threads of the block copy and use the stages themselves, from sm_80 on:
//
//   const AsyncPipeline pipe({.stages = 4});
//   const auto load = [&](Int k, PipelineState p) {
//     pipe.produce(p, [&](const AsyncStage& stage) {         // all threads
//       If(k < blocks, [&] { copy(stage.load(copies), gA(_, _, k), sA(_, _, p.index)); });
//     });                                                    // copies: a TiledCopy
//   };
//   for (int k = 0; k < pipe.lead(); ++k) load(k, pipe.producer(k));
//   For(range(blocks), pipe.consumer(), [&](Int k, PipelineState p) {
//     pipe.wait(p);                                          // the stage is full, that of ahead(p) free
//     load(k + pipe.lead(), pipe.ahead(p));
//     …                                                      // reads sA(_, _, p.index)
//     pipe.release(p);
//     return pipe.next(p);
//   });
//
// Or some warps copy, and others use the stages (sm_90, by mbarriers), as with a TmaPipeline:
//
//   const AsyncPipeline pipe({.stages = 4, .producers = 4, .consumers = 2});
//   pipe.start();                                            // all threads
//   For(range(blocks), pipe.producer(), …  pipe.produce(p, …); return pipe.next(p); …     in 4 warps
//   For(range(blocks), pipe.consumer(), …  pipe.wait(p); … pipe.release(p); return pipe.next(p); …
//
// Copies are in the generic proxy, and wgmma reads in the asynchronous one: with `.wgmma` the stages
// are fenced between the two (dsl/SYNCHRONISATION.md says where, and why). wgmma's reads are over
// behind its wait, and ldmatrix's and loads' when it returns: then the stage may be released.
#pragma once

#include <optional>

#include "heddle/dsl/cuda/async.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/mbarrier.h"
#include "heddle/dsl/pipeline/pipeline_state.h"
#include "heddle/dsl/tensor/tiled_copy.h"

namespace heddle {

// A copy of a tile by all threads that fill a stage; AsyncStage::load() makes it.
struct AsyncLoad {
  // The copy, and the thread's number among those that take part.
  const TiledCopy& copies;
  Int thread;
};

// Copies a tile by the threads of a TiledCopy, each its part. Elements that lie outside of the
// source's view become zeros.
template <detail::TensorLike From, detail::Writable To>
void copy(const AsyncLoad& load, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  const ThrCopy mine = load.copies.get_slice(load.thread, loc);
  const auto source = mine.partition_S(from, loc);
  copy_if(load.copies, within(source, loc), source, mine.partition_D(to, loc), loc);
}

// A stage that is being filled by copies of these threads.
struct AsyncStage {
  // The thread's number among those that copy.
  Int thread;

  // A copy of a tile by all of them.
  AsyncLoad load(const TiledCopy& copies) const { return {copies, thread}; }
};

// What an AsyncPipeline consists of.
struct AsyncPipelineOptions {
  // Stages in shared memory, 2 to 9.
  int stages = 2;
  // Warps that copy, from `first_producer` on; 0: all threads of the block copy, and use the stages too.
  int producers = 0;
  int first_producer = 0;
  int consumers = 1;   // warpgroups that use the stages, where other warps copy
  bool wgmma = false;  // wgmma reads the stages
  // Products of wgmma that read earlier stages while one is waited for, where the same threads copy and
  // use them: 0 to stages - 2.
  int under_way = 0;
};

// A pipeline whose stages threads fill by asynchronous copies.
class AsyncPipeline : public PipelineStages {
 public:
  // Where there are producers, two mbarriers a stage in shared memory of their own.
  explicit AsyncPipeline(const AsyncPipelineOptions& options, SourceLoc loc = SourceLoc::current());

  // Initialises the barriers, where there are producers. All threads of the block call it, before any of
  // them uses the pipeline.
  void start(SourceLoc loc = SourceLoc::current()) const;

  // Producer, all threads that copy: waits until the stage is free, then `loads(stage)` starts the
  // copies. All of the thread's copies since the last stage belong to this one, and there may be none.
  template <class Loads>
  void produce(const PipelineState& p, Loads&& loads, SourceLoc loc = SourceLoc::current()) const {
    acquire(p, loc);
    loads(AsyncStage{thread_idx.x - options_.first_producer * kWarpSize});
    commit(p, loc);
  }
  // Consumer, all threads: waits until the stage is full. Where the same threads copy and use the stages,
  // all of the block call it; the stage that ahead() says is then free.
  void wait(const PipelineState& p, SourceLoc loc = SourceLoc::current()) const;
  // Consumer: gives a stage back, by its number. All threads of a warp call it, when none of them reads
  // the stage any more. Where the same threads copy and use the stages it does nothing.
  void release(const Int& index, SourceLoc loc = SourceLoc::current()) const;
  void release(const PipelineState& p, SourceLoc loc = SourceLoc::current()) const {
    release(p.index, loc);
  }

 private:
  void acquire(const PipelineState& p, SourceLoc loc) const;
  void commit(const PipelineState& p, SourceLoc loc) const;

  AsyncPipelineOptions options_;
  std::optional<Mbarrier> full_, empty_;  // where there are producers
};

}  // namespace heddle
