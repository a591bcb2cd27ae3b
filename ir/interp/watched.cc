// Instructions that only programs with asynchronous work have (watch.h).
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

const Instr* stopped_or_next(bool stop, const Instr* instr, Warp& warp) {
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

// Behind the access itself, which has checked the addresses.
const Instr* run_watched_access(const Instr* instr, Warp& warp) {
  const Access& access = warp.block->machine->code->accesses[instr->aux];
  const uint64_t* base = warp.reg<uint64_t>(instr->a);
  const uint64_t* addresses = base;
  uint64_t computed[kLanes];
  if (instr->b != kNone) {
    const auto bytes = static_cast<uint64_t>(bytes_of(access.scalar));
    const IndexReg offset{instr->b, access.offset.wide};
    for (int l = 0; l < kLanes; ++l) {
      computed[l] = base[l] + static_cast<uint64_t>(index_at(warp, offset, l)) * bytes;
    }
    addresses = computed;
  }
  const Mask lanes = instr->count == 0 ? warp.mask : kAllLanes >> (kLanes - instr->count);
  const AccessKind kind = !access.ordinary ? AccessKind::kAtomic
                          : access.store   ? AccessKind::kWrite
                                           : AccessKind::kRead;
  return stopped_or_next(watch_of(warp)->access(instr, warp, kind, lanes, addresses, access.bytes),
                         instr, warp);
}

const Instr* run_watched_move(const Instr* instr, Warp& warp) {
  watch_of(warp)->move_accumulator(warp, instr->a, instr->dst);
  return instr + 1;
}

const Instr* run_memory_order(const Instr* instr, Warp& warp) {
  watch_of(warp)->memory_order(warp);
  return instr + 1;
}

const Instr* run_shared_begin(const Instr* instr, Warp& warp) {
  return stopped_or_next(watch_of(warp)->begin_array(instr, warp, instr->aux), instr, warp);
}

const Instr* run_copy_arrive(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    stop |= !stop && find_mbarrier(instr, warp, addresses[l], /*array=*/instr->aux,
                                   /*initialised=*/true, l) == nullptr;
  });
  if (!stop) watch_of(warp)->arrive_copies(instr, warp, addresses);
  return stopped_or_next(stop, instr, warp);
}

// What the model is told of an op that has no operands but a number of groups.
using Tell = void (*)(Watch& watch, const Warp& warp, uint32_t groups);
template <Tell kTell>
const Instr* run_tell(const Instr* instr, Warp& warp) {
  kTell(*watch_of(warp), warp, instr->aux);
  return instr + 1;
}

struct Row {
  Opcode opcode;
  Handler handler;
};
constexpr Row kRows[] = {
    {Opcode::kFenceAsync,
     &run_tell<[](Watch& watch, const Warp& warp, uint32_t) { watch.fence_async(warp); }>},
    {Opcode::kFenceMbarrierInit,
     &run_tell<[](Watch& watch, const Warp& warp, uint32_t) { watch.publish_inits(warp); }>},
    {Opcode::kBulkCommit,
     &run_tell<[](Watch& watch, const Warp& warp, uint32_t) { watch.commit_stores(warp); }>},
    {Opcode::kBulkWait, &run_tell<[](Watch& watch, const Warp& warp, uint32_t groups) {
       watch.wait_stores(warp, groups, /*read_only=*/false);
     }>},
    {Opcode::kBulkWaitRead, &run_tell<[](Watch& watch, const Warp& warp, uint32_t groups) {
       watch.wait_stores(warp, groups, /*read_only=*/true);
     }>},
    {Opcode::kCopyCommit,
     &run_tell<[](Watch& watch, const Warp& warp, uint32_t) { watch.commit_copies(warp); }>},
    {Opcode::kCopyWait, &run_tell<[](Watch& watch, const Warp& warp, uint32_t groups) {
       watch.wait_copies(warp, groups);
     }>},
    {Opcode::kCopyArrive, &run_copy_arrive},
    {Opcode::kSharedBegin, &run_shared_begin},
    {Opcode::kWgmmaCommit,
     &run_tell<[](Watch& watch, const Warp& warp, uint32_t) { watch.commit_products(warp); }>},
    {Opcode::kWgmmaWait, &run_tell<[](Watch& watch, const Warp& warp, uint32_t groups) {
       watch.wait_products(warp, groups);
     }>},
};

}  // namespace

Handler watched_access_handler() { return &run_watched_access; }
Handler watched_move_handler() { return &run_watched_move; }
Handler memory_order_handler() { return &run_memory_order; }
Handler watched_handler(Opcode opcode) {
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return row.handler;
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
