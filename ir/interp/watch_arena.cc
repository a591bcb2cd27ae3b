// Arrays of arenas: who has the bytes that several share.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {

bool Watch::begin_array(const Instr* instr, const Warp& warp, uint32_t array) {
  if (warp.mask == 0) return false;
  const uint32_t actor = actor_of(warp);
  const auto lane = static_cast<uint32_t>(std::countr_zero(warp.mask));
  const Event event = shadow_.add({.instr = instr,
                                   .actor = actor,
                                   .clock = count_of(actor),
                                   .kind = AccessKind::kTakeOver,
                                   .lane = static_cast<uint8_t>(lane)});
  const Knowledge& view = actors_[actor].view;
  const SharedArray& known = machine_->code->shared_arrays[array];
  const uint64_t end = known.offset + known.bytes;
  bool takes_all = true, takes_some = false;
  for (Place place{warp.block, known.offset}; place.offset < end; place.offset += Granule::kBytes) {
    Arenas::Owner& owner = owner_of(place);
    const bool has = owner.array == array;
    // What was done through this array is no concern of it.
    const uint32_t until = has ? owner.since : event.id;
    Granule& granule = granule_at(place);
    for (const auto* const slots : {&granule.writers, &granule.readers}) {
      for (const Slot& slot : *slots) {
        const Event* const earlier = slot.bytes == 0 ? nullptr : shadow_.find(slot.event);
        if (earlier == nullptr || earlier->id >= until) continue;
        const Conflict why = conflict(*earlier, slot.lane(), event.kind, actor, view);
        if (why == Conflict::kFine) continue;
        if (report(why, *earlier, slot.lane(), event, lane, place, view)) return true;
        break;
      }
    }
    takes_all &= !has;
    takes_some |= !has;
    if (has) continue;
    owner = {array, event.id};
    std::memset(warp.block->shared_written + place.offset, 0,
                std::min(Granule::kBytes, end - place.offset));
  }
  arenas_.note(
      static_cast<size_t>(warp.block->rank), array,
      {.event = event.id, .actor = actor, .clock = event.clock, .instr = instr, .lane = lane},
      takes_all, takes_some);
  return false;
}

bool Watch::check_owner(const Event& event, uint32_t lane, const Knowledge& view,
                        const Place& place) {
  const uint32_t array = arenas_.array_at(place.offset);
  if (array == kNone) return false;
  const Arenas::Owner owner = owner_of(place);
  if (owner.array == array) {
    if (owner.since == 0) return false;
    const auto* const begins =
        arenas_.begins(static_cast<size_t>(place.block->rank), array, owner.since);
    if (begins == nullptr) return false;
    for (const Arenas::Begin& begin : *begins) {
      if (begin.event >= owner.since && view.reached.at(begin.actor) >= begin.clock) return false;
    }
  }
  return report_owner(owner, event, lane, place, view);
}

}  // namespace heddle::ir::interp
