// How many blocks of a kernel a multiprocessor (SM) holds at once, and what limits that; computed from the target's limits, so that
// no GPU is needed.
//
//   Occupancy o = *occupancy_of(*ir::find_target("sm_90a"), {.threads = 256, .registers = 64});
//   o.blocks     // 4
//   o.warps      // 32 of o.max_warps, 64
//   o.limits     // {OccupancyLimit::kRegisters}
//
// It is what cuOccupancyMaxActiveBlocksPerMultiprocessor answers for a launch without clusters, with as much of the SM's memory for
// shared memory as there is. Clusters may fit less often: cuOccupancyMaxActiveClusters (Function::max_resident_blocks) knows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/target.h"

namespace heddle::runtime {

// What a block takes of a multiprocessor.
struct BlockResources {
  int64_t threads = 0;       // of the block
  int registers = 0;         // of a thread
  int64_t shared_bytes = 0;  // of the block, static and dynamic together
  int barriers = 0;          // of the block; 0: not known, and no limit
};

// What a multiprocessor runs out of.
enum class OccupancyLimit : uint8_t { kRegisters, kSharedMemory, kWarps, kBlocks, kBarriers };
// "registers", "shared memory", "warps", "blocks", "barriers"
absl::string_view name_of(OccupancyLimit limit);

// What a multiprocessor holds at once.
struct Occupancy {
  int blocks = 0;     // 0: not even one fits
  int warps = 0;      // of these blocks
  int max_warps = 0;  // that the multiprocessor has room for
  // What keeps one more block out: several where they run out at the same number of blocks.
  std::vector<OccupancyLimit> limits;
};

// nullopt for a block without threads (one that the launch chooses), and for an architecture whose limits are not known.
std::optional<Occupancy> occupancy_of(const ir::Target& target, const BlockResources& block);

}  // namespace heddle::runtime
