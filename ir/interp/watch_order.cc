// What orders a cluster's warps, and what its mbarriers know.
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {

void Watch::advance(uint32_t actor) {
  Knowledge& view = actors_[actor].view;
  const uint32_t next = view.reached.at(actor) + 1;
  view.reached.raise(actor, next);
  view.seen.raise(actor, next);
}

void Watch::release(const Warp& warp, Knowledge* to) {
  to->join(of(warp).view);
  advance(actor_of(warp));
}

void Watch::warp_sync(const Warp& warp) {
  Actor& actor = of(warp);
  actor.synced = count_of(actor_of(warp));
  advance(actor_of(warp));
}

void Watch::block_barrier(const Block& block) {
  Knowledge all;
  for (const Warp& warp : block.warps) {
    warp_sync(warp);
    all.join(of(warp).view);
  }
  for (const Warp& warp : block.warps) {
    of(warp).view.join(all);
    advance(actor_of(warp));
  }
}

void Watch::memory_order(const Warp& warp) {
  of(warp).view.join(memory_);
  release(warp, &memory_);
}

void Watch::fence_async(const Warp& warp) {
  Actor& actor = of(warp);
  const uint32_t self = actor_of(warp);
  const uint32_t count = count_of(self);
  // A lane speaks for the others up to where they were ordered last.
  Clock before = actor.view.reached;
  if (warp.mask != warp.exists) before.set(self, actor.synced);
  actor.view.fenced.join(before);
  for_each_lane(warp.mask, [&](int l) { actor.lane_fenced[static_cast<size_t>(l)] = count; });
  advance(self);
}

void Watch::named_arrive(const Warp& warp, size_t barrier) {
  warp_sync(warp);
  release(warp, &named_[static_cast<size_t>(warp.block->rank)][barrier]);
}

void Watch::named_pass(const Warp& warp, size_t barrier) {
  of(warp).view.join(named_[static_cast<size_t>(warp.block->rank)][barrier]);
}

// Who arrives for the next round has passed this one.
void Watch::cluster_arrive(const Warp& warp, bool relaxed) {
  Knowledge& round = cluster_rounds_[warp.arrivals % 2];
  warp_sync(warp);
  if (!relaxed) return release(warp, &round);
  const Knowledge& view = of(warp).view;
  round.reached.join(view.reached);
  round.fenced.join(view.fenced);
  advance(actor_of(warp));
}

void Watch::cluster_pass(const Warp& warp) {
  Knowledge& view = of(warp).view;
  view.join(cluster_rounds_[warp.waits % 2]);
  // Who has ended without arriving counts as having arrived.
  for (const Actor& actor : actors_) {
    const Warp& other = *actor.warp;
    if (other.state == WarpState::kDone && other.arrivals <= warp.waits) view.join(actor.view);
  }
}

// --- Mbarriers ---

Watch::BarrierState* Watch::state_of(uint64_t address) {
  const auto found = barriers_.find(address);
  return found == barriers_.end() ? nullptr : found->second.get();
}

void Watch::init(const Instr* instr, const Warp& warp, int lane, uint64_t address) {
  std::unique_ptr<BarrierState>& state = barriers_[address];
  // Of a barrier that is initialised again, the phases go on counting.
  if (state == nullptr) {
    state = std::make_unique<BarrierState>();
    state->component = components_;
    components_ += 2;
  }
  state->phases += state->phases % 2;
  state->init_instr = instr;
  state->initialiser = actor_of(warp);
  state->init_clock = count_of(state->initialiser);
  state->init_lane = lane;
  state->published = false;
}

void Watch::publish_inits(const Warp& warp) {
  const uint32_t actor = actor_of(warp);
  for (auto& [address, state] : barriers_) state->published |= state->initialiser == actor;
}

bool Watch::check_init(const Instr* instr, const Warp& warp, int lane, uint64_t address,
                       bool copies) {
  BarrierState* const state = state_of(address);
  if (state == nullptr) return false;
  const Place place = place_of(address);
  if (place.block != warp.block && begins_too_early(instr, warp, lane, *place.block)) return true;
  const Knowledge& view = of(warp).view;
  const Note initialised{
      machine_->reporter->place_of(state->init_instr),
      absl::StrCat(thread_of(state->initialiser, static_cast<uint32_t>(state->init_lane)),
                   " initialises it here")};
  // A fence of inits is enough for what is ordered without being seen.
  const Clock& known = state->published ? view.reached : view.seen;
  if (known.at(state->initialiser) < state->init_clock) {
    return machine_->reporter->add(
        warp, instr, Mask{1} << lane,
        absl::StrCat("an mbarrier at ", describe_place(place, *warp.block),
                     " whose init nothing orders before this"),
        "put sync_threads(), or sync_cluster() where another block uses it, behind the init",
        {initialised});
  }
  const bool fenced =
      state->published || view.fenced.at(state->initialiser) >= state->init_clock ||
      actors_[state->initialiser].lane_fenced[static_cast<size_t>(state->init_lane)] >=
          state->init_clock;
  if (!copies || fenced) return false;
  return machine_->reporter->add(
      warp, instr, Mask{1} << lane,
      absl::StrCat("the copy tells an mbarrier at ", describe_place(place, *warp.block),
                   " whose init it may not see: no fence_mbarrier_init() is behind it"),
      "call fence_mbarrier_init() in the thread that initialises, before the barrier of the block",
      {initialised});
}

void Watch::arrive(const Instr* instr, const Warp& warp, int lane, uint64_t address,
                   uint32_t order) {
  BarrierState* const state = state_of(address);
  if (state == nullptr) return;
  const Knowledge& view = of(warp).view;
  const Block* const owner = place_of(address).block;
  state->now.reached.join(view.reached);
  state->now.fenced.join(view.fenced);
  if ((order & kRelaxedOrder) == 0) {
    if (owner == warp.block) {
      state->now.seen.join(view.seen);
    } else if ((order & kBlockScope) == 0) {
      state->now_remote.join(view.seen);
    }
  }
  if (owner != warp.block) {
    RemoteTouch& touch = remote_[static_cast<size_t>(owner->rank)][actor_of(warp)];
    touch = {.instr = instr, .clock = count_of(actor_of(warp)), .lane = lane};
  }
  advance(actor_of(warp));
}

void Watch::settle(const Mbarrier& barrier) {
  BarrierState* const state = state_of(reinterpret_cast<uint64_t>(&barrier));
  if (state == nullptr || state->phases % 2 == barrier.phase) return;
  ++state->phases;
  state->ended.join(state->now);
  state->ended_remote.join(state->now_remote);
}

void Watch::polled() {
  constexpr uint32_t kPatience = 16;
  if (++polls_ % kPatience == 0) pending_->advance();
}

void Watch::observe(const Warp& warp, uint64_t address, uint32_t order) {
  BarrierState* const state = state_of(address);
  if (state == nullptr) return;
  Knowledge& view = of(warp).view;
  view.reached.join(state->ended.reached);
  view.fenced.join(state->ended.fenced);
  view.reached.raise(state->component, state->phases);
  view.reached.raise(state->component_of_cluster(), state->phases);
  if ((order & kRelaxedOrder) != 0) return;
  view.seen.join(state->ended.seen);
  view.seen.raise(state->component, state->phases);
  if ((order & kBlockScope) != 0) return;
  view.seen.join(state->ended_remote);
  view.seen.raise(state->component_of_cluster(), state->phases);
}

bool Watch::begins_too_early(const Instr* instr, const Warp& warp, int lane, const Block& block) {
  const Clock& reached = of(warp).view.reached;
  const uint32_t first = static_cast<uint32_t>(block.rank) * warps_;
  for (uint32_t other = first; other < first + warps_; ++other) {
    if (reached.at(other) != 0) return false;
  }
  return machine_->reporter->add(
      warp, instr, Mask{1} << lane,
      absl::StrCat("accesses the shared memory of block ", block.rank,
                   " of the cluster before anything says that this block has begun"),
      "put sync_cluster() before the first access to another block's shared memory");
}

bool Watch::touch_remote(const Instr* instr, const Warp& warp, int lane, const Block& block) {
  const uint32_t actor = actor_of(warp);
  remote_[static_cast<size_t>(block.rank)][actor] = {
      .instr = instr, .clock = count_of(actor), .lane = lane};
  return begins_too_early(instr, warp, lane, block);
}

}  // namespace heddle::ir::interp
