// What a device can launch, and where a launch's kernel comes from, for messages.
//
//   const LaunchShape shape{.grid = {width, height}, .block = 256};
//   Status status = check_launch_limits(device.info(), shape, site);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device_info.h"

namespace heddle::runtime {

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
std::string describe(const LaunchShape& shape);

// Checks grid, block, cluster and dynamic shared memory against the device's limits.
// kInvalidArgument says the value and the limit.
Status check_launch_limits(const DeviceInfo& info, const LaunchShape& shape,
                           const LaunchSite& site);

// Checks a cooperative grid against the blocks that the device can run at once. kInvalidArgument
// says both.
Status check_cooperative(const DeviceInfo& info, const LaunchShape& shape, int64_t resident_blocks,
                         const LaunchSite& site);

}  // namespace heddle::runtime
