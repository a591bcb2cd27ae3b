// Asynchronous work: what it touches when it is issued, and what says that it is over.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

// Whether a thread that has closed `commits` groups waits for that one when `groups` may run on.
bool waits_for(uint32_t group, uint32_t commits, uint32_t groups) {
  return uint64_t{group} + groups < commits;
}

// Copies that no thread has waited for, beyond which the oldest are forgotten.
constexpr size_t kMostCopies = 256;
constexpr int kGroupWarps = 4;

}  // namespace

uint32_t Watch::begin(const Instr* instr, const Warp& warp, int lane, AccessKind kind) {
  const uint32_t actor = actor_of(warp);
  return shadow_
      .add({.instr = instr,
            .actor = actor,
            .clock = count_of(actor),
            .kind = kind,
            .lane = static_cast<uint8_t>(lane)})
      .id;
}

bool Watch::touch(uint32_t id, const Block& block, uint64_t address, uint64_t bytes) {
  const Event* const event = shadow_.find(id);
  const Actor& actor = actors_[event->actor];
  if (&block != actor.warp->block &&
      begins_too_early(event->instr, *actor.warp, event->lane, block)) {
    return true;
  }
  fine_ = 0;
  const uint64_t begin = address - block.shared_address();
  for (uint64_t at = begin, end = begin + bytes; at < end;) {
    const uint64_t granule = at / Granule::kBytes * Granule::kBytes;
    const uint64_t next = std::min(granule + Granule::kBytes, end);
    const auto covered =
        static_cast<uint16_t>(((uint32_t{1} << (next - at)) - 1) << (at - granule));
    if (meet(covered, *event, event->lane, actor.view, {&block, at})) return true;
    at = next;
  }
  return false;
}

void Watch::counts_for(uint32_t id, uint64_t barrier) {
  Event* const event = shadow_.find(id);
  BarrierState* const state = state_of(barrier);
  if (event == nullptr || state == nullptr) return;
  event->barrier =
      event->kind == AccessKind::kStoreAsync ? state->component_of_cluster() : state->component;
  state->copy_instr = event->instr;
  state->copy_actor = event->actor;
  state->copy_lane = event->lane;
  state->copy_phase = Event::kUnknownPhase;
  if (event->kind == AccessKind::kBulkRead) state->copy_source = actors_[event->actor].warp->block;
}

void Watch::complete_tx(absl::Span<const uint32_t> events, Mbarrier& barrier, int64_t bytes) {
  if (BarrierState* const state = state_of(reinterpret_cast<uint64_t>(&barrier))) {
    state->copy_phase = state->phases + 1;
    for (const uint32_t id : events) {
      Event* const event = shadow_.find(id);
      if (event != nullptr && event->phase == Event::kUnknownPhase) {
        event->phase = state->phases + 1;
      }
    }
  }
  barrier.bytes -= bytes;
  barrier.complete();
  settle(barrier);
}

// --- Stores from shared memory ---

void Watch::add_store(const Warp& warp, int lane, uint32_t event, Pending::Ticket read,
                      Pending::Ticket write) {
  Actor& actor = of(warp);
  const Event* const known = shadow_.find(event);
  actor.stores.push_back({.event = event,
                          .instr = known->instr,
                          .lane = lane,
                          .group = actor.store_commits[static_cast<size_t>(lane)],
                          .read_ticket = read,
                          .write_ticket = write});
}

void Watch::commit_stores(const Warp& warp) {
  Actor& actor = of(warp);
  for_each_lane(warp.mask, [&](int l) { ++actor.store_commits[static_cast<size_t>(l)]; });
}

void Watch::wait_stores(const Warp& warp, uint32_t groups, bool read_only) {
  Actor& actor = of(warp);
  const uint32_t count = count_of(actor_of(warp));
  const auto is_waited_for = [&](const Store& store) {
    return (warp.mask >> store.lane & 1) != 0 &&
           waits_for(store.group, actor.store_commits[static_cast<size_t>(store.lane)], groups);
  };
  for (Store& store : actor.stores) {
    if (!is_waited_for(store)) continue;
    pending_->finish(store.read_ticket);
    if (!read_only) pending_->finish(store.write_ticket);
    if (store.read) continue;
    store.read = true;
    if (Event* const event = shadow_.find(store.event)) {
      event->lanes_done |= Mask{1} << store.lane;
      event->done[0] = count;
    }
  }
  if (!read_only) std::erase_if(actor.stores, is_waited_for);
}

// --- copy.async ---

void Watch::finish_copies(Copies& copies, Mask lanes, uint32_t clock) {
  pending_->finish(copies.ticket);
  copies.left &= ~lanes;
  if (Event* const event = shadow_.find(copies.event)) {
    event->lanes_done |= lanes;
    if (event->done[0] == 0) event->done[0] = clock;
  }
}

void Watch::add_copies(const Warp& warp, uint32_t event, Mask lanes, Pending::Ticket work) {
  Actor& actor = of(warp);
  if (actor.copies.size() == kMostCopies) {
    Copies& oldest = actor.copies.front();
    pending_->finish(oldest.ticket);
    if (Event* const forgotten = shadow_.find(oldest.event)) forgotten->id = 0;
    actor.copies.erase(actor.copies.begin());
  }
  actor.copies.push_back(
      {.event = event, .left = lanes, .group = actor.copy_commits, .ticket = work});
}

void Watch::commit_copies(const Warp& warp) {
  Actor& actor = of(warp);
  for_each_lane(warp.mask, [&](int l) { ++actor.copy_commits[static_cast<size_t>(l)]; });
}

void Watch::wait_copies(const Warp& warp, uint32_t groups) {
  Actor& actor = of(warp);
  const uint32_t count = count_of(actor_of(warp));
  for (Copies& copies : actor.copies) {
    Mask done = 0;
    for_each_lane(copies.left & warp.mask, [&](int l) {
      const auto lane = static_cast<size_t>(l);
      if (waits_for(copies.group[lane], actor.copy_commits[lane], groups)) done |= Mask{1} << l;
    });
    if (done != 0) finish_copies(copies, done, count);
  }
  std::erase_if(actor.copies, [](const Copies& copies) { return copies.left == 0; });
}

void Watch::arrive_copies(const Instr* instr, const Warp& warp, const uint64_t* barriers) {
  struct Arrival {
    int lane;
    Mbarrier* barrier;
    std::vector<uint32_t> events;
    std::vector<Pending::Ticket> tickets;
  };
  Actor& actor = of(warp);
  std::vector<Arrival> arrivals;
  for_each_lane(warp.mask, [&](int l) {
    Arrival& arrival = arrivals.emplace_back();
    arrival.lane = l;
    arrival.barrier = reinterpret_cast<Mbarrier*>(barriers[l]);
    const BarrierState* const state = state_of(barriers[l]);
    for (Copies& copies : actor.copies) {
      if ((copies.left >> l & 1) == 0) continue;
      arrival.tickets.push_back(copies.ticket);
      // An earlier arrival has told its barrier.
      if ((copies.arrived >> l & 1) != 0) continue;
      copies.arrived |= Mask{1} << l;
      Event* const event = shadow_.find(copies.event);
      if (event == nullptr || state == nullptr) continue;
      // Of lanes that tell several barriers nothing is known.
      if (event->barrier != kNone && event->barrier != state->component) event->id = 0;
      event->barrier = state->component;
      arrival.events.push_back(copies.event);
    }
  });
  pending_->add([this, instr, &warp, arrivals = std::move(arrivals)] {
    for (const Arrival& arrival : arrivals) {
      for (const Pending::Ticket ticket : arrival.tickets) pending_->finish(ticket);
      Mbarrier& barrier = *arrival.barrier;
      if (barrier.pending == 0) {
        stopped_ |=
            machine_->reporter->add(warp, instr, Mask{1} << arrival.lane,
                                    "arrives at an mbarrier more often than its init() says",
                                    "let as many threads arrive in each phase as init() was told");
        continue;
      }
      barrier.pending -= 1;
      complete_tx(arrival.events, barrier, 0);
    }
  });
}

// --- Products ---

uint32_t Watch::begin_product(const Instr* instr, const Warp& first, ProductViews* views) {
  const uint32_t actor = actor_of(first);
  views->all = actors_[actor].view;
  for (uint32_t w = 0; w < kGroupWarps; ++w) {
    views->each[w] = &actors_[actor + w].view;
    if (w > 0) views->all.meet(actors_[actor + w].view);
  }
  fine_ = 0;
  return begin(instr, first, 0, AccessKind::kProductRead);
}

bool Watch::touch_product(uint32_t id, const ProductViews& views, const Block& block,
                          uint64_t address, int warp) {
  const Event* const event = shadow_.find(id);
  const uint64_t at = address - block.shared_address();
  const Knowledge& view = warp < 0 ? views.all : *views.each[static_cast<size_t>(warp)];
  if (fine_for_ != &view) fine_ = 0;
  fine_for_ = &view;
  return meet(0xFFFF, *event, 0, view, {&block, at});
}

void Watch::add_product(const Warp& first, uint32_t event,
                        const std::array<uint32_t, 4>& destinations, ProductWork work) {
  const uint32_t actor = actor_of(first);
  std::vector<Product>& products = actors_[actor].products;
  products.push_back({.event = event,
                      .group = actors_[actor].product_commits,
                      .destinations = destinations,
                      .work = std::move(work)});
  const Pending::Ticket ticket =
      pending_->add([this, actor, event] { run_products(actor, event); });
  products.back().ticket = ticket;
}

void Watch::run_products(uint32_t actor, uint32_t last_event) {
  for (Product& product : actors_[actor].products) {
    if (product.work) product.work(product.destinations);
    product.work = nullptr;
    if (product.event == last_event) return;
  }
}

void Watch::commit_products(const Warp& warp) { ++of(warp).product_commits; }

void Watch::wait_products(const Warp& warp, uint32_t groups) {
  const uint32_t self = actor_of(warp);
  const uint32_t in_group = static_cast<uint32_t>(warp.index % kGroupWarps);
  const uint32_t commits = actors_[self].product_commits;
  std::vector<Product>& products = actors_[self - in_group].products;
  for (Product& product : products) {
    if (!waits_for(product.group, commits, groups)) break;
    pending_->finish(product.ticket);
    product.waited |= 1u << in_group;
    Event* const event = shadow_.find(product.event);
    if (event != nullptr && event->done[in_group] == 0) event->done[in_group] = count_of(self);
  }
  std::erase_if(products,
                [](const Product& product) { return product.waited == (1u << kGroupWarps) - 1; });
}

void Watch::move_accumulator(const Warp& warp, uint32_t from, uint32_t to) {
  const auto in_group = static_cast<size_t>(warp.index % kGroupWarps);
  for (Product& product : actors_[actor_of(warp) - in_group].products) {
    uint32_t& destination = product.destinations[in_group];
    if (destination == from) destination = to;
  }
}

}  // namespace heddle::ir::interp
