#include "heddle/runtime/observe/occupancy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace heddle::runtime {
namespace {

// What the multiprocessor of an architecture holds. Its shared memory is what a block may have (Target::shared_bytes), and what the
// system takes of it.
struct Multiprocessor {
  int sm;
  int warps;
  int blocks;
  int barriers;  // 0: as many as blocks can name
};
constexpr Multiprocessor kMultiprocessors[] = {
    {80, 64, 32, 0},   {86, 48, 16, 0},   {89, 48, 24, 0},   {90, 64, 32, 64},
    {100, 64, 32, 64}, {103, 64, 32, 64}, {110, 48, 24, 24}, {120, 48, 24, 24},
};

// The same in all of them.
constexpr int64_t kWarpThreads = 32;
constexpr int64_t kPartitions = 4;         // each has a quarter of the registers, and of the warps
constexpr int64_t kRegisters = 65536;      // of a multiprocessor
constexpr int64_t kRegisterUnit = 256;     // in which a warp gets them
constexpr int64_t kSharedUnit = 128;       // in which a block gets shared memory, in bytes
constexpr int64_t kSharedOfSystem = 1024;  // that each block takes besides its own
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t round_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

// Blocks whose registers fit. A warp's lie in one partition.
int64_t blocks_by_registers(const BlockResources& block, int64_t warps) {
  const int64_t of_warp = round_up(block.registers * kWarpThreads, kRegisterUnit);
  if (of_warp == 0) return kNoLimit;
  return kRegisters / kPartitions / of_warp * kPartitions / warps;
}

int64_t blocks_by_shared_memory(const BlockResources& block, const ir::Target& target) {
  const int64_t of_multiprocessor = target.shared_bytes + kSharedOfSystem;
  return of_multiprocessor / round_up(block.shared_bytes + kSharedOfSystem, kSharedUnit);
}

}  // namespace

absl::string_view name_of(OccupancyLimit limit) {
  constexpr absl::string_view kNames[] = {"registers", "shared memory", "warps", "blocks",
                                          "barriers"};
  return kNames[static_cast<size_t>(limit)];
}

std::optional<Occupancy> occupancy_of(const ir::Target& target, const BlockResources& block) {
  const auto of = std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                               [&](const Multiprocessor& m) { return m.sm == target.sm; });
  if (of == std::end(kMultiprocessors) || block.threads <= 0) return std::nullopt;
  const int64_t warps = (block.threads + kWarpThreads - 1) / kWarpThreads;
  const std::array<std::pair<OccupancyLimit, int64_t>, 5> fit = {{
      {OccupancyLimit::kRegisters, blocks_by_registers(block, warps)},
      {OccupancyLimit::kSharedMemory, blocks_by_shared_memory(block, target)},
      {OccupancyLimit::kWarps, of->warps / warps},
      {OccupancyLimit::kBlocks, of->blocks},
      {OccupancyLimit::kBarriers,
       of->barriers == 0 || block.barriers == 0 ? kNoLimit : of->barriers / block.barriers},
  }};
  int64_t fewest = kNoLimit;
  for (const auto& [limit, blocks] : fit) fewest = std::min(fewest, blocks);
  Occupancy occupancy{.blocks = static_cast<int>(fewest),
                      .warps = static_cast<int>(fewest * warps),
                      .max_warps = of->warps,
                      .limits = {}};
  for (const auto& [limit, blocks] : fit) {
    if (blocks == fewest) occupancy.limits.push_back(limit);
  }
  return occupancy;
}

}  // namespace heddle::runtime
