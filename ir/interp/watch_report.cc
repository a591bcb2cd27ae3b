// What the model found, in words.
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

// How an access is spoken of, in the order of AccessKind.
struct Words {
  const char* does;    // the later one: "reads"
  const char* did;     // the earlier one, when it is over: "has read"
  const char* may_be;  // when it may not be: "a copy may still be reading"
  const char* note;    // "reads it here"
};
constexpr Words kWords[] = {
    {"reads", "reads", "", "reads it here"},
    {"writes", "writes", "", "writes it here"},
    {"updates", "updates", "", "updates it here"},
    {"takes over", "", "", "takes it over here"},
    {"a copy_async writes", "writes by a copy_async", "a copy_async may still be writing",
     "issues the copy here"},
    {"a store_async writes", "writes by a store_async", "a store_async may still be writing",
     "issues the store here"},
    {"a copy writes", "writes by a copy", "a copy may still be writing", "issues the copy here"},
    {"a reduction updates", "updates by a copy", "a reduction may still be updating",
     "issues the reduction here"},
    {"a copy reads", "reads by a copy", "a copy may still be reading", "issues the copy here"},
    {"this wgmma reads", "reads by a wgmma", "a wgmma may still be reading",
     "issues the wgmma here"},
};
const Words& words_of(AccessKind kind) { return kWords[static_cast<size_t>(kind)]; }

std::string phase_name(uint32_t phase) {
  return absl::StrCat("phase ", phase, " (parity ", phase % 2, ")");
}

}  // namespace

std::string Watch::thread_of(uint32_t actor, uint32_t lane) const {
  const Warp& warp = *actors_[actor].warp;
  const std::string thread = thread_name(warp, static_cast<int>(lane));
  if (cluster_->blocks.size() == 1) return thread;
  return absl::StrCat(thread, " of block ", warp.block->rank);
}

std::string Watch::describe_place(const Place& place, const Block& from) const {
  const Code& code = *machine_->code;
  std::string where = absl::StrCat("byte ", place.offset, " of shared memory");
  for (const SharedArray& array : code.shared_arrays) {
    if (place.offset < array.offset || place.offset - array.offset >= array.bytes) continue;
    where =
        absl::StrCat("byte ", place.offset - array.offset, " of '", code.texts[array.name], "'");
    break;
  }
  if (place.block != &from) absl::StrAppend(&where, " in block ", place.block->rank);
  return where;
}

std::string Watch::describe_phase(uint64_t address, const Block& from) const {
  const auto found = barriers_.find(address);
  return absl::StrCat(phase_name(found == barriers_.end() ? 0 : found->second->phases),
                      " of the mbarrier at ", describe_place(place_of(address), from));
}

std::string Watch::why_unfinished(const Event& earlier, uint32_t lane,
                                  const Knowledge& view) const {
  const Actor& actor = actors_[earlier.actor];
  if (earlier.barrier != kNone) {
    uint32_t current = earlier.phase - 1;
    std::string which = "its mbarrier";
    for (const auto& [address, state] : barriers_) {
      if (state->component != earlier.barrier && state->component_of_cluster() != earlier.barrier) {
        continue;
      }
      const Place place = place_of(address);
      which = absl::StrCat("the mbarrier at ", describe_place(place, *actor.warp->block));
      if (earlier.phase == Event::kUnknownPhase) current = state->phases;
    }
    const uint32_t known = view.reached.at(earlier.barrier);
    return absl::StrCat(
        "it counts for ", phase_name(current), " of ", which, ", and ",
        known == 0
            ? "no wait for it, or only one for the parity before its first phase,"
            : absl::StrCat("the latest wait that is known here, for ", phase_name(known - 1), ","),
        known == 0 ? " comes before this" : " does not cover it");
  }
  const bool waited = earlier.kind == AccessKind::kProductRead
                          ? earlier.done != std::array<uint32_t, 4>{}
                          : (earlier.lanes_done >> lane & 1) != 0;
  if (waited) return "the wait for it is not ordered before this";
  switch (earlier.kind) {
    case AccessKind::kProductRead:
      for (const Product& product : actor.products) {
        if (product.event == earlier.id && product.group >= actor.product_commits) {
          return "no wgmma_commit() has closed its group";
        }
      }
      return "no wait for its group comes before this";
    case AccessKind::kBulkRead:
      for (const Store& store : actor.stores) {
        if (store.event == earlier.id && store.group >= actor.store_commits[lane]) {
          return "no bulk_commit() has closed its group";
        }
      }
      return "no bulk_wait_read() or bulk_wait() for its group comes before this";
    default:
      for (const Copies& copies : actor.copies) {
        if (copies.event == earlier.id && copies.group[lane] >= actor.copy_commits[lane]) {
          return "no copy_async_commit() has closed its group";
        }
      }
      return "no copy_async_wait() for its group comes before this";
  }
}

namespace {

const char* fix_of(Conflict why, AccessKind earlier, AccessKind later) {
  switch (why) {
    case Conflict::kFine:
      break;
    case Conflict::kUnfenced:
      return earlier == AccessKind::kRead
                 ? "call fence_async() in each thread that read, before the barrier or arrival"
                 : "call fence_async() in each thread that wrote, before the barrier or arrival";
    case Conflict::kUnordered:
      return "put a barrier, or an arrival and a wait for it, between the two";
    case Conflict::kNarrow:
      return "arrive with MemoryOrder::release, wait with MemoryOrder::acquire, and both at a "
             "scope "
             "that has the two threads: MemoryScope::cluster between blocks";
    case Conflict::kUnfinished:
      break;
  }
  switch (earlier) {
    case AccessKind::kStoreAsync:
    case AccessKind::kBulkWrite:
    case AccessKind::kBulkReduce:
      return "announce the bytes of all copies of a phase by expect_tx(), and wait for the phase "
             "that counts them, in this "
             "thread or in one that a barrier orders before it";
    case AccessKind::kBulkRead:
      return "call bulk_commit() and bulk_wait_read() in the thread that issues the copy, with a "
             "barrier behind it; for a copy to another block, wait for its mbarrier";
    case AccessKind::kProductRead:
      return later == AccessKind::kBulkWrite
                 ? "arrive at the stage's mbarrier only behind the wgmma_wait_groups() that covers "
                   "the product, and wait for all arrivals before the copy"
                 : "wait for the product first, with a barrier behind it";
    default:
      return "call copy_async_commit() and copy_async_wait() in the threads that issue the copies, "
             "with a barrier behind them";
  }
}

}  // namespace

bool Watch::report(Conflict why, const Event& earlier, uint32_t earlier_lane, const Event& later,
                   uint32_t lane, const Place& place, const Knowledge& view) {
  const Warp& warp = *actors_[later.actor].warp;
  const std::string other = thread_of(earlier.actor, earlier_lane);
  const Words& before = words_of(earlier.kind);
  std::string what =
      absl::StrCat(words_of(later.kind).does, " ", describe_place(place, *warp.block));
  const uint32_t owner = later.kind == AccessKind::kTakeOver ? owner_of(place).array : kNone;
  if (owner != kNone) absl::StrAppend(&what, " from '", array_name(owner), "'");
  absl::StrAppend(&what, ", which ");
  switch (why) {
    case Conflict::kUnfinished:
      absl::StrAppend(&what, before.may_be, ": ", why_unfinished(earlier, earlier_lane, view));
      break;
    case Conflict::kUnordered:
      absl::StrAppend(&what, other, " ", before.did, " with nothing that orders the two");
      break;
    case Conflict::kUnfenced:
      absl::StrAppend(&what, other, " ", before.did,
                      " in the generic proxy, with no fence_async() between the two");
      break;
    case Conflict::kNarrow:
      absl::StrAppend(&what, other, " ", before.did,
                      ", and what orders the two makes nothing visible: it is relaxed, or of scope "
                      "block between blocks");
      break;
    case Conflict::kFine:
      return false;
  }
  return machine_->reporter->add(
      warp, later.instr, Mask{1} << lane, std::move(what), fix_of(why, earlier.kind, later.kind),
      {{machine_->reporter->place_of(earlier.instr), absl::StrCat(other, " ", before.note)}});
}

const std::string& Watch::array_name(uint32_t array) const {
  return machine_->code->texts[machine_->code->shared_arrays[array].name];
}

bool Watch::report_owner(const Arenas::Owner& owner, const Event& event, uint32_t lane,
                         const Place& place, const Knowledge& view) {
  const Warp& warp = *actors_[event.actor].warp;
  const uint32_t array = arenas_.array_at(place.offset);
  std::string what =
      absl::StrCat(words_of(event.kind).does, " ", describe_place(place, *warp.block), ", ");
  std::vector<Note> notes;
  const auto* const begins =
      arenas_.begins(static_cast<size_t>(place.block->rank), owner.array, owner.since);
  const Arenas::Begin* taken = nullptr;
  for (size_t i = 0; begins != nullptr && i < begins->size(); ++i) {
    if ((*begins)[i].event == owner.since) taken = &(*begins)[i];
  }
  if (taken != nullptr) {
    notes.push_back({machine_->reporter->place_of(taken->instr),
                     absl::StrCat(thread_of(taken->actor, taken->lane), " begins '",
                                  array_name(owner.array), "' here")});
  }
  if (owner.array == array) {
    absl::StrAppend(&what, "which begins with nothing that orders the two");
    return machine_->reporter->add(
        warp, event.instr, Mask{1} << lane, std::move(what),
        "let this thread call begin() too, behind the same barrier, or put a barrier between "
        "begin() and the access",
        std::move(notes));
  }
  const bool is_unordered = taken != nullptr && view.reached.at(taken->actor) < taken->clock;
  absl::StrAppend(&what, "whose bytes are those of '", array_name(owner.array), "'",
                  owner.since == 0
                      ? absl::StrCat(": no begin() of '", array_name(array), "' comes before this")
                      : absl::StrCat(" from its begin() on"));
  return machine_->reporter->add(
      warp, event.instr, Mask{1} << lane, std::move(what),
      is_unordered ? absl::StrCat("put a barrier between this use of '", array_name(array),
                                  "' and begin(); or let the two share no bytes")
                   : absl::StrCat("call begin() of the region of '", array_name(array),
                                  "' first, behind a barrier behind the last use of '",
                                  array_name(owner.array), "'; or let the two share no bytes"),
      std::move(notes));
}

bool Watch::report_exits() {
  Reporter& reporter = *machine_->reporter;
  for (const Actor& actor : actors_) {
    for (const Store& store : actor.stores) {
      if (store.read) continue;
      const bool is_open = store.group >= actor.store_commits[static_cast<size_t>(store.lane)];
      if (reporter.add(
              *actor.warp, store.instr, Mask{1} << store.lane,
              absl::StrCat("the block ends while a copy may still be reading its shared memory: ",
                           is_open ? "no bulk_commit() has closed its group"
                                   : "no bulk_wait_read() or bulk_wait() for its group follows"),
              is_open ? "call bulk_commit() behind the copy, in the thread that issues it, and "
                        "bulk_wait_read() or "
                        "bulk_wait() before it ends"
                      : "call bulk_wait_read(), or bulk_wait(), in the thread that issues the "
                        "copy, before it ends")) {
        return true;
      }
    }
  }
  for (const Block* const block : cluster_->blocks) {
    // What any of the block's threads knows when it ends is before the end of the last.
    Clock end;
    for (const Warp& warp : block->warps) end.join(of(warp).view.reached);
    for (const auto& [address, state] : barriers_) {
      const Block* const target = place_of(address).block;
      const bool concerned = target == block || state->copy_source == block;
      if (!concerned || state->copy_instr == nullptr) continue;
      if (end.at(state->component) >= state->copy_phase) continue;
      if (reporter.add(
              *actors_[state->copy_actor].warp, state->copy_instr, Mask{1} << state->copy_lane,
              absl::StrCat(
                  "block ", block->rank, " may end before this copy ",
                  target == block ? "has written its shared memory" : "has read its shared memory",
                  ": nothing that it waits for says that ", phase_name(state->copy_phase - 1),
                  " of the mbarrier at ", describe_place(place_of(address), *block), " has ended"),
              "wait for each copy from and to a block's shared memory, or for a thread "
              "that did, before the block ends")) {
        return true;
      }
    }
    const auto& touches = remote_[static_cast<size_t>(block->rank)];
    for (uint32_t actor = 0; actor < touches.size(); ++actor) {
      const RemoteTouch& touch = touches[actor];
      if (touch.instr == nullptr || end.at(actor) >= touch.clock) continue;
      if (reporter.add(*actors_[actor].warp, touch.instr, Mask{1} << touch.lane,
                       absl::StrCat("reaches the shared memory of block ", block->rank,
                                    ", which may have ended: nothing that this block waits for "
                                    "comes after"),
                       "put sync_cluster() at the end of the kernel, or let the other block wait "
                       "for what this one does")) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace heddle::ir::interp
