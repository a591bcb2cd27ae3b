// Asynchronous stores to another block's shared memory, lane by lane. In programs that are watched they
// are complete when the model says so, else at once.
#include <algorithm>
#include <array>
#include <cstring>

#include "heddle/ir/interp/legal.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

constexpr size_t kMostBytes = 16;

// Stores a lane's elements, and tells the barrier of their bytes. Whether the run goes on.
bool store(const Instr* instr, Warp& warp, const Access& access, uint64_t address, int lane) {
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
  // The register may change before the value has arrived.
  const auto size = static_cast<size_t>(bytes_of(access.scalar));
  std::array<std::byte, kMostBytes> value;
  const std::byte* from = warp.reg<std::byte>(instr->c) + static_cast<size_t>(lane) * size;
  for (size_t e = 0; e < instr->count; ++e, from += kLanes * size) {
    std::memcpy(value.data() + e * size, from, size);
  }
  auto* const to = reinterpret_cast<std::byte*>(address);
  const auto bytes = static_cast<int64_t>(access.bytes);
  Watch* const watch = watch_of(warp);
  if (watch == nullptr) {
    std::memcpy(to, value.data(), access.bytes);
    barrier->bytes -= bytes;
    barrier->complete();
    return true;
  }
  const uint32_t event = watch->begin(instr, warp, lane, AccessKind::kStoreAsync);
  watch->counts_for(event, told);
  if (watch->touch(event, *block, address, access.bytes)) return false;
  watch->pending().add([=] {
    std::memcpy(to, value.data(), static_cast<size_t>(bytes));
    watch->complete_tx({event}, *barrier, bytes);
  });
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
