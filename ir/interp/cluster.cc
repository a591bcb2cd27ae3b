// Barriers of a part of a block, and of a cluster; and the shared memory of its other blocks.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

// --- Named barriers ---

size_t number_of(const Instr* instr, const Warp& warp) {
  return static_cast<size_t>(warp.reg<int32_t>(instr->a)[std::countr_zero(warp.mask)]);
}

// The barrier that the warp names; nullptr, and a report, where there is none.
NamedBarrier* named(const Instr* instr, const Warp& warp) {
  const int32_t id = warp.reg<int32_t>(instr->a)[std::countr_zero(warp.mask)];
  if (id > 0 && id < kNamedBarriers) return &warp.block->barriers[static_cast<size_t>(id)];
  warp.block->machine->reporter->add(warp, instr, warp.mask,
                                     absl::StrCat("there is no barrier ", id),
                                     "a block's named barriers are 1 to 15");
  return nullptr;
}

// Counts the warp in; lets everybody go when all have come.
void arrive(NamedBarrier* barrier, uint32_t threads, Block& block) {
  barrier->arrived += kLanes;
  if (barrier->arrived < threads) return;
  block.machine->races.order(block);
  barrier->arrived = 0;
  ++barrier->generation;
}

const Instr* run_named_arrive(const Instr* instr, Warp& warp) {
  NamedBarrier* const barrier = named(instr, warp);
  if (barrier == nullptr) return warp.suspend(WarpState::kStopped, instr);
  if (Watch* const watch = watch_of(warp)) watch->named_arrive(warp, number_of(instr, warp));
  arrive(barrier, instr->aux, *warp.block);
  return instr + 1;
}

bool barrier_let_go(const Warp& warp) {
  const int32_t id = warp.reg<int32_t>(warp.pc->a)[std::countr_zero(warp.mask)];
  return warp.block->barriers[static_cast<size_t>(id)].generation != warp.generation;
}

std::string what_a_named_barrier_lacks(const Warp& warp) {
  const int32_t id = warp.reg<int32_t>(warp.pc->a)[std::countr_zero(warp.mask)];
  const uint32_t arrived = warp.block->barriers[static_cast<size_t>(id)].arrived;
  return absl::StrCat("barrier ", id, ", at which ", arrived, " of ", warp.pc->aux,
                      " threads have arrived");
}

constexpr Wait kNamedBarrier = {
    &barrier_let_go, &what_a_named_barrier_lacks,
    "let as many threads call named_barrier_sync() or named_barrier_arrive() as the calls say"};

const Instr* run_named_sync(const Instr* instr, Warp& warp) {
  Watch* const watch = watch_of(warp);
  const auto pass = [&] {
    if (watch != nullptr) watch->named_pass(warp, number_of(instr, warp));
    return instr + 1;
  };
  if (warp.wait == &kNamedBarrier) {
    warp.wait = nullptr;
    return pass();
  }
  NamedBarrier* const barrier = named(instr, warp);
  if (barrier == nullptr) return warp.suspend(WarpState::kStopped, instr);
  warp.generation = barrier->generation;
  if (watch != nullptr) watch->named_arrive(warp, number_of(instr, warp));
  arrive(barrier, instr->aux, *warp.block);
  if (barrier->generation != warp.generation) return pass();
  return warp.wait_for(kNamedBarrier, instr);
}

// --- Clusters ---

const Instr* run_cluster_arrive(const Instr* instr, Warp& warp) {
  warp.arrived_relaxed = instr->aux != 0;
  if (Watch* const watch = watch_of(warp)) watch->cluster_arrive(warp, warp.arrived_relaxed);
  ++warp.arrivals;
  return instr + 1;
}

// Warps that have ended count as having arrived.
bool cluster_arrived(const Warp& warp) {
  const auto& blocks = warp.block->cluster->blocks;
  return std::all_of(blocks.begin(), blocks.end(), [&](const Block* block) {
    return std::all_of(block->warps.begin(), block->warps.end(), [&](const Warp& other) {
      return other.state == WarpState::kDone || other.arrivals > warp.waits;
    });
  });
}

std::string what_a_cluster_lacks(const Warp&) {
  return "the cluster, some thread of which does not arrive";
}

constexpr Wait kCluster = {&cluster_arrived, &what_a_cluster_lacks,
                           "let every thread of every block arrive as often as others wait"};

const Instr* run_cluster_wait(const Instr* instr, Warp& warp) {
  if (warp.arrivals == warp.waits) {
    warp.block->machine->reporter->add(warp, instr, warp.mask,
                                       "this waits for the cluster without having arrived",
                                       "call cluster_arrive() before cluster_wait()");
    return warp.suspend(WarpState::kStopped, instr);
  }
  if (!cluster_arrived(warp)) return warp.wait_for(kCluster, instr);
  if (Watch* const watch = watch_of(warp)) watch->cluster_pass(warp);
  ++warp.waits;
  warp.wait = nullptr;
  if (!warp.arrived_relaxed) warp.block->machine->races.order(*warp.block);
  return instr + 1;
}

const Instr* run_map_shared(const Instr* instr, Warp& warp) {
  const Block& own = *warp.block;
  const auto& blocks = own.cluster->blocks;
  const uint64_t* a = warp.reg<uint64_t>(instr->a);
  const int32_t* rank = warp.reg<int32_t>(instr->b);
  uint64_t* d = warp.reg<uint64_t>(instr->dst);
  Mask bad = 0;
  for (int l = 0; l < kLanes; ++l) {
    const bool exists = rank[l] >= 0 && static_cast<size_t>(rank[l]) < blocks.size();
    if (!exists) bad |= Mask{1} << l;
    d[l] = a[l] - own.shared_address() +
           (exists ? blocks[static_cast<size_t>(rank[l])]->shared_address() : 0);
  }
  bad &= warp.mask;
  if (bad != 0 &&
      own.machine->reporter->add(
          warp, instr, bad,
          absl::StrCat("block ", rank[std::countr_zero(bad)], " of a cluster of ", blocks.size()),
          "ranks count from 0, and the launch says how many blocks a cluster has")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  return instr + 1;
}

}  // namespace

Handler named_sync_handler() { return &run_named_sync; }
Handler named_arrive_handler() { return &run_named_arrive; }
Handler cluster_arrive_handler() { return &run_cluster_arrive; }
Handler cluster_wait_handler() { return &run_cluster_wait; }
Handler map_shared_handler() { return &run_map_shared; }

}  // namespace heddle::ir::interp
