// The shape of a launch, and where its kernel comes from.
//
//   LaunchConfig config{.grid = {width, height}, .block = 256, .stream = &stream};
//   Status status = check_launch_limits(device.info(), config, site);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "heddle/ir/dim3.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device_info.h"

namespace heddle::runtime {

class Stream;

// How a kernel is launched, with arguments as data. Typed launches take a LaunchShape.
struct LaunchConfig {
  // Blocks. Where x is kGridOfKernel, the grid that the kernel gives by launch_grid(), else one
  // block.
  Dim3 grid = {};
  // Threads of a block.
  Dim3 block = {};
  // Blocks of a cluster; one block means no cluster. A kernel that was compiled for a cluster may
  // leave it at one.
  Dim3 cluster = {};
  // Bytes on top of the kernel's static shared memory.
  int64_t dynamic_shared_bytes = 0;
  // All blocks are resident together, so that they can wait for each other.
  bool cooperative = false;
  // Programmatic dependent launch: the kernel may start before its predecessor in the stream is
  // complete, as soon as all blocks of that have called grid_dependency_launch() or ended. It waits
  // for the predecessor's results itself, by grid_dependency_wait(); reading them before that is
  // undefined, and not reported. Devices below compute capability 9.0 and the interpreter ignore
  // it.
  bool programmatic = false;
  // Null: the device's default stream.
  const Stream* stream = nullptr;
};

// Which kernel a launch runs and where it was defined, for error messages. Made once per kernel and
// passed to each launch, which keeps a bounded copy, so it need not outlive the launch.
class LaunchSite {
 public:
  // `file` may be empty and `line` 0 when the place is unknown.
  LaunchSite(std::string kernel, std::string file, int line);

  const std::string& kernel() const { return kernel_; }
  const std::string& file() const { return file_; }
  int line() const { return line_; }

  // "kernel 'row_sum' (row_sum.cc:14)"
  std::string describe() const;

  // Name and the end of the path as NUL-terminated words, cut to fit: what a launch copies.
  static constexpr size_t kNameWords = 6;
  static constexpr size_t kFileWords = 6;
  using Digest = std::array<uint64_t, kNameWords + kFileWords>;
  const Digest& digest() const { return digest_; }
  // The site of a digest, with a line.
  static LaunchSite from_digest(const Digest& digest, int line);

 private:
  std::string kernel_;
  std::string file_;
  int line_;
  Digest digest_{};
};

// "grid 8x1x1, block 512x1x1", with cluster and dynamic shared memory where there are any.
std::string describe(const LaunchConfig& config);

// Checks grid, block, cluster and dynamic shared memory against the device's limits.
// kInvalidArgument says the value and the limit.
Status check_launch_limits(const DeviceInfo& info, const LaunchConfig& config,
                           const LaunchSite& site);

// Checks a cooperative grid against the blocks that the device can run at once. kInvalidArgument
// says both.
Status check_cooperative(const DeviceInfo& info, const LaunchConfig& config,
                         int64_t resident_blocks, const LaunchSite& site);

}  // namespace heddle::runtime
