#include "heddle/runtime/launch_limits.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"

namespace heddle::runtime {
namespace {

// Clusters of more blocks do not exist on any device.
constexpr int64_t kMaxClusterBlocks = 16;

bool within(int64_t value, int64_t limit) {
  // One comparison: what is below 1 wraps to something huge.
  return static_cast<uint64_t>(value) - 1 < static_cast<uint64_t>(limit);
}

// Every launch comes here, so the usual one, without a cluster, is settled in a few instructions.
bool fits_without_cluster(const LaunchLimits& limits, const LaunchShape& shape) {
  return within(shape.grid.x, limits.max_grid_x) && within(shape.grid.y, limits.max_grid_y) &&
         within(shape.grid.z, limits.max_grid_z) && within(shape.block.x, limits.max_block_x) &&
         within(shape.block.y, limits.max_block_y) && within(shape.block.z, limits.max_block_z) &&
         shape.block.count() <= limits.max_threads_per_block && shape.shared_bytes >= 0 &&
         shape.shared_bytes <= limits.max_shared_per_block && shape.cluster == Dim3();
}

struct Extent {
  const char* name;
  int64_t value;
  int64_t limit;
};

// What to do about an extent that is out of range.
const char* fix_for(const Extent& extent) {
  const bool too_small = extent.value < 1;
  switch (extent.name[0]) {
    case 'g':
      return too_small ? "launch nothing where there is nothing to do"
                       : "use fewer blocks that each do more";
    case 'b':
      return too_small ? "a block needs at least one thread"
                       : "use smaller blocks and more of them";
    default:
      return too_small ? "a cluster needs at least one block" : "use smaller clusters";
  }
}

}  // namespace

LaunchSite::LaunchSite(std::string kernel, std::string file, int line)
    : LaunchSite(keep({std::move(kernel), std::move(file), line})) {}

const LaunchSite::Text* LaunchSite::keep(Text text) {
  // Never destroyed: a context that is lost may be asked while the program ends.
  static std::mutex& mutex = *new std::mutex;
  static std::set<Text>& kept = *new std::set<Text>;
  const std::lock_guard<std::mutex> lock(mutex);
  return &*kept.insert(std::move(text)).first;
}

std::string LaunchSite::describe() const {
  if (file().empty()) return absl::StrCat("kernel '", kernel(), "'");
  return absl::StrCat("kernel '", kernel(), "' (", file(), ":", line(), ")");
}

std::string describe(const LaunchShape& shape) {
  std::string text =
      absl::StrCat("grid ", to_string(shape.grid), ", block ", to_string(shape.block));
  if (shape.cluster != Dim3()) absl::StrAppend(&text, ", cluster ", to_string(shape.cluster));
  if (shape.shared_bytes != 0) {
    absl::StrAppend(&text, ", ", shape.shared_bytes, " bytes of dynamic shared memory");
  }
  return text;
}

Status check_launch_limits(const DeviceInfo& info, const LaunchShape& shape,
                           const LaunchSite& site) {
  const LaunchLimits& limits = info.limits;
  if (fits_without_cluster(limits, shape)) return OkStatus();

  const auto error = [&](const auto&... text) {
    return InvalidArgumentError(absl::StrCat(site.describe(), " cannot launch: ", text...));
  };

  const Extent extents[] = {
      {"grid.x", shape.grid.x, limits.max_grid_x},
      {"grid.y", shape.grid.y, limits.max_grid_y},
      {"grid.z", shape.grid.z, limits.max_grid_z},
      {"block.x", shape.block.x, limits.max_block_x},
      {"block.y", shape.block.y, limits.max_block_y},
      {"block.z", shape.block.z, limits.max_block_z},
      {"cluster.x", shape.cluster.x, kMaxClusterBlocks},
      {"cluster.y", shape.cluster.y, kMaxClusterBlocks},
      {"cluster.z", shape.cluster.z, kMaxClusterBlocks},
  };
  for (const Extent& extent : extents) {
    if (extent.value < 1 || extent.value > extent.limit) {
      if (extent.value == ir::kGridOfKernel) {
        return error("no grid is given; fix: set .grid");
      }
      return error(extent.name, " is ", extent.value, ", but must be from 1 to ", extent.limit,
                   "; fix: ", fix_for(extent));
    }
  }
  if (shape.block.count() > limits.max_threads_per_block) {
    return error("block ", to_string(shape.block), " has ", shape.block.count(),
                 " threads, but a block has at most ", limits.max_threads_per_block,
                 "; fix: use smaller blocks and more of them");
  }
  if (shape.shared_bytes < 0 || shape.shared_bytes > limits.max_shared_per_block) {
    return error("shared_bytes is ", shape.shared_bytes, ", but must be from 0 to ",
                 limits.max_shared_per_block, "; fix: ",
                 shape.shared_bytes < 0 ? "leave it out where the kernel needs none"
                                        : "let each block work on less at a time");
  }

  if (shape.cluster == Dim3()) return OkStatus();
  if (!info.cluster_launch) {
    return error("cluster ", to_string(shape.cluster), " needs compute capability 9.0, but ",
                 info.name, " has ", info.compute_major, ".", info.compute_minor,
                 "; fix: launch it without .cluster");
  }
  if (shape.cluster.count() > kMaxClusterBlocks) {
    return error("cluster ", to_string(shape.cluster), " has ", shape.cluster.count(),
                 " blocks, but a cluster has at most ", kMaxClusterBlocks,
                 "; fix: use smaller clusters");
  }
  if (shape.grid.x % shape.cluster.x != 0 || shape.grid.y % shape.cluster.y != 0 ||
      shape.grid.z % shape.cluster.z != 0) {
    return error("grid ", to_string(shape.grid), " is not a multiple of cluster ",
                 to_string(shape.cluster),
                 " in every direction; fix: round the grid up, and let blocks outside do nothing");
  }
  return OkStatus();
}

Status check_cooperative(const DeviceInfo& info, const LaunchShape& shape, int64_t resident_blocks,
                         const LaunchSite& site) {
  if (!shape.cooperative || shape.grid.count() <= resident_blocks) return OkStatus();
  return InvalidArgumentError(absl::StrCat(
      site.describe(), " cannot launch: a cooperative grid ", to_string(shape.grid), " has ",
      shape.grid.count(), " blocks, but only ", resident_blocks, " of them fit ", info.name,
      " at once; fix: use fewer blocks that each do more"));
}

}  // namespace heddle::runtime
