// Asynchronous stores to another block's shared memory. Each lane's is complete at once.
#include <algorithm>
#include <cstring>

#include "heddle/ir/interp/legal.h"
#include "heddle/ir/interp/mbarrier.h"

namespace heddle::ir::interp {
namespace {

// Stores a lane's elements, and tells the barrier of their bytes. Whether the run goes on.
bool store(const Instr* instr, Warp& warp, const Access& access, uint64_t address, int lane) {
  const uint64_t told = warp.reg<uint64_t>(instr->b)[lane];
  Mbarrier* const barrier =
      find_mbarrier(instr, warp, told, access.mbarrier_array, /*initialised=*/true, lane);
  if (barrier == nullptr) return false;
  if (block_of(warp, told, sizeof(Mbarrier)) != block_of(warp, address, access.bytes)) {
    return !warp.block->machine->reporter->add(
        warp, instr, Mask{1} << lane,
        "an asynchronous store tells another block's mbarrier than its destination's",
        "map the mbarrier to the block that gets the value");
  }
  const auto size = static_cast<size_t>(bytes_of(access.scalar));
  const std::byte* from = warp.reg<std::byte>(instr->c) + static_cast<size_t>(lane) * size;
  auto* to = reinterpret_cast<std::byte*>(address);
  for (uint32_t e = 0; e < instr->count; ++e, to += size, from += kLanes * size) {
    std::memcpy(to, from, size);
  }
  barrier->bytes -= static_cast<int64_t>(access.bytes);
  barrier->complete();
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
  bool goes_on = true;
  for_each_lane(
      lanes, [&](int l) { goes_on = goes_on && store(instr, warp, access, addresses.at[l], l); });
  return goes_on ? instr + 1 : warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler store_async_handler() { return &run_store_async; }

}  // namespace heddle::ir::interp
