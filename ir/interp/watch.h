// What a cluster's warps have done to its shared memory, what orders it, and what asynchronous work
// is under way: finds accesses that meet a copy or a product that may not be over. Internal.
//
// Warps that share no order are unordered however they happened to run, so that a mistake is found
// whenever the work is done. An access is checked against the granules' latest ones (shadow.h):
//   - of an asynchronous one: is it over for this warp, by a wait that orders it (pending.h)?
//   - of a generic one, by an asynchronous one: is it ordered, with a proxy fence on the way?
//   - of a store, by a load: is it ordered?
// Lanes of a warp count as ordered, except for fences and for waits of single lanes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "heddle/ir/interp/arenas.h"
#include "heddle/ir/interp/clock.h"
#include "heddle/ir/interp/machine.h"
#include "heddle/ir/interp/pending.h"
#include "heddle/ir/interp/shadow.h"

namespace heddle::ir::interp {

struct Mbarrier;

// How an op on an mbarrier orders: `count` of its instruction.
inline constexpr uint32_t kRelaxedOrder = 1;
inline constexpr uint32_t kBlockScope = 2;

// Why an access must not meet an earlier one.
enum class Conflict : uint8_t {
  kFine,
  kUnfinished,  // the earlier one is asynchronous and may not be over
  kUnordered,   // nothing orders the two
  kUnfenced,    // ordered, without a proxy fence
  kNarrow,      // ordered, by something that makes nothing visible here
};

class Watch {
 public:
  // What the four warps of a product have to know.
  struct ProductViews {
    std::array<const Knowledge*, 4> each{};
    Knowledge all;
  };
  using ProductWork = std::function<void(const std::array<uint32_t, 4>& destinations)>;

  explicit Watch(const Completion& completion) : completion_(completion) {}
  // The blocks of the cluster are those of `cluster`, from here to leave().
  void enter(const Cluster& cluster);
  // All warps have ended: does the work that is left, and reports what outlives a block. True when
  // the run has to stop.
  bool leave();

  Pending& pending() { return *pending_; }
  // A mistake was found by work that was done late.
  bool stopped() const { return stopped_; }

  // --- What orders: watch_order.cc ---
  void block_barrier(const Block& block);
  void warp_sync(const Warp& warp);
  // A memory fence, or an atomic that orders.
  void memory_order(const Warp& warp);
  void fence_async(const Warp& warp);
  void named_arrive(const Warp& warp, size_t barrier);
  void named_pass(const Warp& warp, size_t barrier);
  void cluster_arrive(const Warp& warp, bool relaxed);
  void cluster_pass(const Warp& warp);

  // --- Mbarriers: watch_order.cc ---
  void init(const Instr* instr, const Warp& warp, int lane, uint64_t address);
  void publish_inits(const Warp& warp);
  // Whether the barrier's init is there for the lane, and for its copies; reports what is not. True
  // when the run has to stop.
  bool check_init(const Instr* instr, const Warp& warp, int lane, uint64_t address, bool copies);
  void arrive(const Instr* instr, const Warp& warp, int lane, uint64_t address, uint32_t order);
  // After each change of a barrier: its phase may have ended.
  void settle(const Mbarrier& barrier);
  // A phase of the barrier was seen to have ended.
  void observe(const Warp& warp, uint64_t address, uint32_t order);
  // A test found that a phase goes on: whoever asks again and again is told in the end.
  void polled();
  // "phase 2 (parity 0) of the mbarrier at byte 8 of 'full'": the current one, seen from a block.
  std::string describe_phase(uint64_t address, const Block& from) const;

  // --- Accesses by lanes: watch.cc; true when the run has to stop. *event: the access's id ---
  bool access(const Instr* instr, const Warp& warp, AccessKind kind, Mask lanes,
              const uint64_t* addresses, uint32_t bytes, uint32_t* event = nullptr);

  // --- Arrays that share bytes: watch_arena.cc ---
  // From here on an array of an arena has its bytes. True when the run has to stop.
  bool begin_array(const Instr* instr, const Warp& warp, uint32_t array);

  // --- Asynchronous work: watch_async.cc ---
  // A new access by a lane; its id.
  uint32_t begin(const Instr* instr, const Warp& warp, int lane, AccessKind kind);
  // Bytes of it; true when the run has to stop.
  bool touch(uint32_t event, const Block& block, uint64_t address, uint64_t bytes);
  // The mbarrier that ends it.
  void counts_for(uint32_t event, uint64_t barrier);
  // Its bytes have come.
  void complete_tx(absl::Span<const uint32_t> events, Mbarrier& barrier, int64_t bytes);

  // A store from shared memory: reading its source and writing its destination.
  void add_store(const Warp& warp, int lane, uint32_t event, Pending::Ticket read,
                 Pending::Ticket write);
  void commit_stores(const Warp& warp);
  void wait_stores(const Warp& warp, uint32_t groups, bool read_only);

  void add_copies(const Warp& warp, uint32_t event, Mask lanes, Pending::Ticket work);
  void commit_copies(const Warp& warp);
  void wait_copies(const Warp& warp, uint32_t groups);
  // The lanes' earlier copies arrive at these barriers when they are complete.
  void arrive_copies(const Instr* instr, const Warp& warp, const uint64_t* barriers);

  // A product of a warp-group, by its first warp; `work` comes after that of earlier ones.
  uint32_t begin_product(const Instr* instr, const Warp& first, ProductViews* views);
  // A tile's chunk of 16 bytes, which the warp of that number reads, or all four do (-1).
  bool touch_product(uint32_t event, const ProductViews& views, const Block& block,
                     uint64_t address, int warp);
  void add_product(const Warp& first, uint32_t event, const std::array<uint32_t, 4>& destinations,
                   ProductWork work);
  void commit_products(const Warp& warp);
  void wait_products(const Warp& warp, uint32_t groups);
  // A warp has moved a pending accumulator to another register.
  void move_accumulator(const Warp& warp, uint32_t from, uint32_t to);

 private:
  struct Store {
    uint32_t event = 0;
    const Instr* instr = nullptr;
    int lane = 0;
    uint32_t group = 0;
    bool read = false;  // and waited for
    Pending::Ticket read_ticket = 0, write_ticket = 0;
  };
  struct Copies {
    uint32_t event = 0;
    Mask left = 0;     // lanes that have not waited
    Mask arrived = 0;  // lanes that have told an mbarrier
    std::array<uint32_t, kLanes> group{};
    Pending::Ticket ticket = 0;
  };
  struct Product {
    uint32_t event = 0;
    uint32_t group = 0;
    uint32_t waited = 0;  // by which of the warps
    Pending::Ticket ticket = 0;
    std::array<uint32_t, 4> destinations{};
    ProductWork work;  // empty once done
  };
  // A warp.
  struct Actor {
    const Warp* warp = nullptr;
    Knowledge view;
    uint32_t synced = 0;  // its count when its lanes were last ordered
    std::array<uint32_t, kLanes> lane_fenced{};
    std::array<uint32_t, kLanes> store_commits{}, copy_commits{};
    uint32_t product_commits = 0;
    std::vector<Store> stores;
    std::vector<Copies> copies;
    std::vector<Product> products;  // of the warp-group that begins with it
  };
  struct BarrierState {
    // Of waits of any scope, and of those of scope cluster: of what other blocks' threads store.
    uint32_t component = 0;
    uint32_t component_of_cluster() const { return component + 1; }
    uint32_t phases = 0;  // ended
    const Instr* init_instr = nullptr;
    uint32_t initialiser = 0, init_clock = 0;
    int init_lane = 0;
    bool published = false;
    // What arrivals brought, and what of it the phases that have ended did.
    Knowledge now, ended;
    Clock now_remote, ended_remote;  // seen, by arrivals of other blocks
    // The latest copy that it counts: issued where, and over when so many phases have ended.
    const Instr* copy_instr = nullptr;
    uint32_t copy_actor = 0, copy_phase = 0;
    int copy_lane = 0;
    const Block* copy_source = nullptr;  // whose shared memory it reads, if any does
  };
  // An access to another block's shared memory.
  struct RemoteTouch {
    const Instr* instr = nullptr;
    uint32_t clock = 0;
    int lane = 0;
  };
  struct Place {
    const Block* block = nullptr;
    uint64_t offset = 0;
  };

  uint32_t actor_of(const Warp& warp) const {
    return static_cast<uint32_t>(warp.block->rank) * warps_ + static_cast<uint32_t>(warp.index);
  }
  Actor& of(const Warp& warp) { return actors_[actor_of(warp)]; }
  uint32_t count_of(uint32_t actor) const { return actors_[actor].view.reached.at(actor); }
  // What the warp did so far is in somebody's knowledge now; what it does from here on is not.
  void advance(uint32_t actor);
  void release(const Warp& warp, Knowledge* to);
  Place place_of(uint64_t address) const;
  BarrierState* state_of(uint64_t address);
  // That block must have begun; true when the run has to stop.
  bool begins_too_early(const Instr* instr, const Warp& warp, int lane, const Block& block);
  // The same, and it must not have ended.
  bool touch_remote(const Instr* instr, const Warp& warp, int lane, const Block& block);

  // Checks an access of bytes of a granule, and records it. True when the run has to stop.
  bool meet(uint16_t bytes, const Event& event, uint32_t lane, const Knowledge& view,
            const Place& place);
  Granule& granule_at(const Place& place) {
    return shadow_.at(static_cast<size_t>(place.block->rank), arenas_.shadow_of(place.offset));
  }
  Arenas::Owner& owner_of(const Place& place) {
    return arenas_.owner(static_cast<size_t>(place.block->rank), place.offset);
  }
  // Whether the array has its bytes; reports where another one has. True when the run has to stop.
  bool check_owner(const Event& event, uint32_t lane, const Knowledge& view, const Place& place);
  Conflict conflict(const Event& earlier, uint32_t lane, AccessKind later, uint32_t actor,
                    const Knowledge& view) const;
  // Whether an asynchronous access is over for whoever has the clock; and fenced after that.
  bool is_over(const Event& event, uint32_t lane, const Clock& clock) const;
  bool is_fenced(const Event& event, uint32_t lane, const Knowledge& view) const;

  void run_products(uint32_t actor, uint32_t last_event);
  void finish_copies(Copies& copies, Mask lanes, uint32_t clock);

  // --- watch_report.cc ---
  bool report(Conflict why, const Event& earlier, uint32_t earlier_lane, const Event& later,
              uint32_t lane, const Place& place, const Knowledge& view);
  std::string describe_place(const Place& place, const Block& from) const;
  const std::string& array_name(uint32_t array) const;
  bool report_owner(const Arenas::Owner& owner, const Event& event, uint32_t lane,
                    const Place& place, const Knowledge& view);
  std::string thread_of(uint32_t actor, uint32_t lane) const;
  // Of an earlier access: why it may not be over; what helps.
  std::string why_unfinished(const Event& earlier, uint32_t lane, const Knowledge& view) const;
  bool report_exits();

  const Completion completion_;
  const Cluster* cluster_ = nullptr;
  Machine* machine_ = nullptr;
  uint32_t warps_ = 0;  // of a block
  std::unique_ptr<Pending> pending_;
  bool stopped_ = false;
  uint32_t polls_ = 0;
  Arenas arenas_;
  Shadow shadow_;
  std::vector<Actor> actors_;
  std::map<uint64_t, std::unique_ptr<BarrierState>> barriers_;
  uint32_t components_ = 0;
  std::vector<std::array<Knowledge, kNamedBarriers>> named_;  // of each block
  std::array<Knowledge, 2> cluster_rounds_;
  Knowledge memory_;                              // what fences and atomics have published
  std::vector<std::vector<RemoteTouch>> remote_;  // of each block, by each warp
  // Event::id: earlier, found to be over for the access at hand, which is made with that knowledge.
  uint32_t fine_ = 0;
  const Knowledge* fine_for_ = nullptr;
};

// The model of the cluster of a warp; nullptr where the program is not watched.
inline Watch* watch_of(const Warp& warp) { return warp.block->cluster->watch.get(); }

}  // namespace heddle::ir::interp
