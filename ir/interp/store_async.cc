// Asynchronous stores to another block's shared memory. In programs that are watched they are complete
// when the model says so, those of a warp together, else at once.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "heddle/ir/interp/legal.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

constexpr size_t kMostBytes = 16;

// A lane's elements on their way, whose bytes a barrier counts.
struct Arrival {
  std::byte* to;
  std::array<std::byte, kMostBytes> value;
  Mbarrier* barrier;
  uint32_t event;  // of watched programs
};

// Sends a lane's elements off; false where that is a mistake, which was reported.
bool send(const Instr* instr, Warp& warp, const Access& access, uint64_t address, int lane,
          std::vector<Arrival>& under_way) {
  const uint64_t told = warp.reg<uint64_t>(instr->b)[lane];
  Mbarrier* const barrier =
      find_mbarrier(instr, warp, told, access.mbarrier_array, /*initialised=*/true, lane);
  if (barrier == nullptr) return false;
  const Block* const block = block_of(warp, address, access.bytes);
  if (block_of(warp, told, sizeof(Mbarrier)) != block) {
    return !warp.block->machine->reporter->add(
        warp, instr, Mask{1} << lane,
        "an asynchronous store tells another block's mbarrier than its destination's",
        "map the mbarrier to the block that gets the value");
  }
  Arrival arrival{reinterpret_cast<std::byte*>(address), {}, barrier, 0};
  // The register may change before the value has arrived.
  const auto size = static_cast<size_t>(bytes_of(access.scalar));
  const std::byte* from = warp.reg<std::byte>(instr->c) + static_cast<size_t>(lane) * size;
  for (size_t e = 0; e < instr->count; ++e, from += kLanes * size) {
    std::memcpy(arrival.value.data() + e * size, from, size);
  }
  if (Watch* const watch = watch_of(warp); watch != nullptr) {
    arrival.event = watch->begin(instr, warp, lane, AccessKind::kStoreAsync);
    watch->counts_for(arrival.event, told);
    if (watch->touch(arrival.event, *block, address, access.bytes)) return false;
  }
  under_way.push_back(arrival);
  return true;
}

const Instr* run_store_async(const Instr* instr, Warp& warp) {
  const Code& code = *warp.block->machine->code;
  const Access& access = code.accesses[instr->aux];
  Addresses addresses;
  std::copy_n(warp.reg<uint64_t>(instr->a), kLanes, addresses.at);
  Mask lanes = warp.mask;
  if (code.checked &&
      legal_lanes<ClusterMemory>(instr, warp, access, warp.mask, addresses, &lanes)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  std::vector<Arrival> under_way;
  bool goes_on = true;
  for_each_lane(lanes, [&](int l) {
    goes_on = goes_on && send(instr, warp, access, addresses.at[l], l, under_way);
  });
  const auto bytes = static_cast<int64_t>(access.bytes);
  Watch* const watch = watch_of(warp);
  const auto arrive = [watch, bytes, under_way = std::move(under_way)] {
    for (const Arrival& arrival : under_way) {
      std::memcpy(arrival.to, arrival.value.data(), static_cast<size_t>(bytes));
      if (watch != nullptr) {
        watch->complete_tx({arrival.event}, *arrival.barrier, bytes);
      } else {
        arrival.barrier->bytes -= bytes;
        arrival.barrier->complete();
      }
    }
  };
  if (watch != nullptr) {
    watch->pending().add(arrive);
  } else {
    arrive();
  }
  return goes_on ? instr + 1 : warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler store_async_handler() { return &run_store_async; }

}  // namespace heddle::ir::interp
