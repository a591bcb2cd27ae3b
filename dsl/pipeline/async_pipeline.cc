#include "heddle/dsl/pipeline/async_pipeline.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle {
namespace {

constexpr int kMostStages = 9;  // of which a wait leaves seven groups under way

}  // namespace

AsyncPipeline::AsyncPipeline(const AsyncPipelineOptions& options, SourceLoc loc)
    : PipelineStages(options.stages, options.under_way, loc), options_(options) {
  if (options.stages < 2 || options.stages > kMostStages || options.producers < 0 ||
      options.consumers < 1) {
    detail::fail(
        loc,
        absl::StrCat("an AsyncPipeline of ", options.stages, " stages, ", options.producers,
                     " producers and ", options.consumers, " consumers"),
        absl::StrCat("take 2 to ", kMostStages,
                     " stages, a number of warps that copy or 0, and at least one "
                     "warpgroup that uses the stages"));
    *this = AsyncPipeline({}, loc);
  } else if (options.producers > 0 && options.under_way > 0) {
    detail::fail(loc, "an AsyncPipeline with producers, and products under way",
                 "leave under_way out: consumers release stages when products have read them");
  }
  if (options_.producers == 0) return;
  full_.emplace(options_.stages, loc);
  empty_.emplace(options_.stages, loc);
}

// Copies are of the generic proxy, so that nothing but the barrier of the block need publish the inits.
void AsyncPipeline::start(SourceLoc loc) const {
  if (!full_) return;
  If({thread_idx.x == 0, loc}, [&] {
    const auto copies = static_cast<uint32_t>(options_.producers * kWarpSize);
    const auto releases = static_cast<uint32_t>(options_.consumers * kWarpsOfGroup);
    for (int stage = 0; stage < options_.stages; ++stage) {
      full_->init({stage, loc}, copies);
      empty_->init({stage, loc}, releases);
    }
  });
  sync_threads(loc);
}

void AsyncPipeline::acquire(const PipelineState& p, SourceLoc loc) const {
  if (empty_) empty_->wait({p.index, loc}, p.phase, MemoryOrder::acquire, MemoryScope::block);
}

// The barrier is told by the copies themselves, so that the thread goes on.
void AsyncPipeline::commit(const PipelineState& p, SourceLoc loc) const {
  if (full_) {
    copy_async_arrive(*full_, {p.index, loc});
  } else {
    copy_async_commit(loc);
  }
}

void AsyncPipeline::wait(const PipelineState& p, SourceLoc loc) const {
  if (full_) {
    full_->wait({p.index, loc}, p.phase, MemoryOrder::acquire, MemoryScope::block);
    // Who copied goes on before the copies are complete, and cannot fence them.
    if (options_.wgmma) fence_async(FenceSpace::shared, loc);
    return;
  }
  copy_async_wait(lead() - 1, loc);
  if (options_.wgmma) fence_async(FenceSpace::shared, loc);
  sync_threads(loc);
}

void AsyncPipeline::release(const Int& index, SourceLoc loc) const {
  if (!empty_) return;
  sync_warp({}, loc);
  If({lane_id(loc) == 0, loc}, [&] {
    empty_->arrive({index, loc}, MemoryOrder::release, MemoryScope::block);
  });
}

}  // namespace heddle
