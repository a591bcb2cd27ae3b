#include "heddle/ir/interp/watch.h"

#include <algorithm>
#include <bit>

namespace heddle::ir::interp {
namespace {

constexpr uint32_t kFirstCount = 1;

bool is_asynchronous(AccessKind kind) { return kind >= AccessKind::kCopyWrite; }
// In the asynchronous proxy.
bool is_other_proxy(AccessKind kind) { return kind >= AccessKind::kBulkWrite; }
bool writes(AccessKind kind) {
  return kind == AccessKind::kWrite || kind == AccessKind::kAtomic ||
         kind == AccessKind::kTakeOver || kind == AccessKind::kCopyWrite ||
         kind == AccessKind::kStoreAsync || kind == AccessKind::kBulkWrite ||
         kind == AccessKind::kBulkReduce;
}

}  // namespace

Cluster::Cluster() = default;
Cluster::~Cluster() = default;

void Watch::enter(const Cluster& cluster) {
  cluster_ = &cluster;
  machine_ = cluster.blocks.front()->machine;
  warps_ = static_cast<uint32_t>(cluster.blocks.front()->warps.size());
  const size_t blocks = cluster.blocks.size();
  pending_ = std::make_unique<Pending>(completion_, blocks * warps_);
  arenas_.resize(*machine_->code, blocks, cluster.blocks.front()->shared_bytes);
  shadow_.resize(blocks, arenas_.shadow_bytes());
  actors_.resize(blocks * warps_);
  components_ = static_cast<uint32_t>(actors_.size());
  named_.resize(blocks);
  remote_.assign(blocks, std::vector<RemoteTouch>(actors_.size()));
  for (const Block* const block : cluster.blocks) {
    for (const Warp& warp : block->warps) {
      const uint32_t actor = actor_of(warp);
      actors_[actor].warp = &warp;
      actors_[actor].view.seen.raise(actor, kFirstCount);
      actors_[actor].view.reached.raise(actor, kFirstCount);
    }
  }
}

bool Watch::leave() {
  while (pending_->advance()) {
  }
  return stopped_ || report_exits();
}

Watch::Place Watch::place_of(uint64_t address) const {
  for (const Block* const block : cluster_->blocks) {
    const uint64_t offset = address - block->shared_address();
    if (offset < block->shared_bytes) return {block, offset};
  }
  return {};
}

bool Watch::is_over(const Event& event, uint32_t lane, const Clock& clock) const {
  if (event.barrier != kNone && event.phase != Event::kUnknownPhase &&
      clock.at(event.barrier) >= event.phase) {
    return true;
  }
  if (event.kind == AccessKind::kProductRead) {
    for (uint32_t w = 0; w < event.done.size(); ++w) {
      if (event.done[w] != 0 && clock.at(event.actor + w) >= event.done[w]) return true;
    }
    return false;
  }
  return (event.lanes_done >> lane & 1) != 0 && clock.at(event.actor) >= event.done[0];
}

bool Watch::is_fenced(const Event& event, uint32_t lane, const Knowledge& view) const {
  if (event.barrier != kNone && view.fenced.at(event.barrier) >= event.phase) return true;
  const uint32_t clock = is_asynchronous(event.kind) ? event.done[0] : event.clock;
  return clock != 0 &&
         (view.fenced.at(event.actor) >= clock || actors_[event.actor].lane_fenced[lane] >= clock);
}

Conflict Watch::conflict(const Event& earlier, uint32_t lane, AccessKind later, uint32_t actor,
                         const Knowledge& view) const {
  if (earlier.kind == AccessKind::kBulkReduce && later == earlier.kind) return Conflict::kFine;
  const bool data = !writes(later) && writes(earlier.kind);
  const auto after_fence = [&] {
    const bool crosses = is_other_proxy(later) && !is_other_proxy(earlier.kind);
    return crosses && !is_fenced(earlier, lane, view) ? Conflict::kUnfenced : Conflict::kFine;
  };
  if (is_asynchronous(earlier.kind)) {
    if (is_over(earlier, lane, data ? view.seen : view.reached)) return after_fence();
    return data && is_over(earlier, lane, view.reached) ? Conflict::kNarrow : Conflict::kUnfinished;
  }
  if (!is_asynchronous(later) && later != AccessKind::kTakeOver) {
    const bool plain = earlier.kind == AccessKind::kWrite && later == AccessKind::kRead;
    if (!plain || earlier.actor == actor) return Conflict::kFine;
  }
  const Clock& clock = data ? view.seen : view.reached;
  if (clock.at(earlier.actor) >= earlier.clock) return after_fence();
  const bool narrow = data && view.reached.at(earlier.actor) >= earlier.clock;
  return narrow ? Conflict::kNarrow : Conflict::kUnordered;
}

bool Watch::meet(uint16_t bytes, const Event& event, uint32_t lane, const Knowledge& view,
                 const Place& place) {
  if (check_owner(event, lane, view, place)) return true;
  Granule& granule = granule_at(place);
  const bool changes = writes(event.kind);
  for (auto* slots : {&granule.writers, &granule.readers}) {
    if (slots == &granule.readers && !changes) break;
    for (Slot& slot : *slots) {
      if ((slot.bytes & bytes) == 0 || slot.event == fine_) continue;
      const Event* const earlier = shadow_.find(slot.event);
      if (earlier == nullptr) continue;
      const Conflict why = conflict(*earlier, slot.lane(), event.kind, event.actor, view);
      if (why != Conflict::kFine) {
        const int byte = std::countr_zero(static_cast<uint16_t>(slot.bytes & bytes));
        Place where = place;
        where.offset =
            place.offset / Granule::kBytes * Granule::kBytes + static_cast<uint64_t>(byte);
        if (report(why, *earlier, slot.lane(), event, lane, where, view)) return true;
        continue;
      }
      // Copies of a tile are met granule by granule.
      if (earlier->kind == AccessKind::kBulkWrite) fine_ = slot.event;
    }
  }
  if (changes) {
    shadow_.record_write(granule, event, bytes, lane);
  } else {
    shadow_.record_read(granule, event, bytes, lane);
  }
  return false;
}

bool Watch::access(const Instr* instr, const Warp& warp, AccessKind kind, Mask lanes,
                   const uint64_t* addresses, uint32_t bytes, uint32_t* id) {
  if (lanes == 0) return false;
  const uint32_t actor = actor_of(warp);
  Event& event = shadow_.add({.instr = instr,
                              .actor = actor,
                              .clock = count_of(actor),
                              .kind = kind,
                              .lane = static_cast<uint8_t>(std::countr_zero(lanes))});
  if (id != nullptr) *id = event.id;
  const Knowledge& view = actors_[actor].view;
  fine_ = 0;
  bool stop = false;
  // Lanes whose bytes lie in one granule count as one.
  uint64_t run = ~uint64_t{0};
  uint16_t run_bytes = 0;
  int run_lane = 0;
  const auto flush = [&] {
    if (run_bytes == 0 || stop) return;
    const Place known = place_of(run);
    if (known.block == nullptr) return;  // reported as such
    if (known.block != warp.block) {
      stop = touch_remote(instr, warp, run_lane, *known.block);
    }
    stop = stop || meet(run_bytes, event, static_cast<uint32_t>(run_lane), view, known);
  };
  for_each_lane(lanes, [&](int lane) {
    for (uint64_t at = addresses[lane], end = at + bytes; at < end;) {
      const uint64_t granule = at / Granule::kBytes * Granule::kBytes;
      const uint64_t next = std::min(granule + Granule::kBytes, end);
      const auto covered =
          static_cast<uint16_t>(((uint32_t{1} << (next - at)) - 1) << (at - granule));
      if (granule != run) {
        flush();
        run = granule;
        run_bytes = 0;
        run_lane = lane;
      }
      run_bytes |= covered;
      at = next;
    }
  });
  flush();
  return stop;
}

}  // namespace heddle::ir::interp
