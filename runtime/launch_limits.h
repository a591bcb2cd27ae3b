// What a device can launch, and where a launch's kernel comes from, for messages.
//
//   const LaunchShape shape{.grid = {width, height}, .block = 256};
//   Status status = check_launch_limits(device.info(), shape, site);
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device_info.h"

namespace heddle::runtime {

// Which kernel a launch runs and where it was defined, for error messages. A pointer to a text that is kept once for the process, so
// that a fault can name a launch whose kernel is gone.
class LaunchSite {
 public:
  // `file` may be empty and `line` 0 when the place is unknown.
  LaunchSite(std::string kernel, std::string file, int line);

  // What it was made of.
  const std::string& kernel() const { return text_->kernel; }
  const std::string& file() const { return text_->file; }
  int line() const { return text_->line; }

  // "kernel 'row_sum' (row_sum.cc:14)"
  std::string describe() const;

  // As a word, and back.
  uint64_t word() const { return reinterpret_cast<uintptr_t>(text_); }
  static LaunchSite of_word(uint64_t word) {
    return LaunchSite(reinterpret_cast<const Text*>(static_cast<uintptr_t>(word)));
  }

 private:
  struct Text {
    std::string kernel, file;
    int line;
    auto operator<=>(const Text&) const = default;
  };
  explicit LaunchSite(const Text* text) : text_(text) {}
  // The one that is kept.
  static const Text* keep(Text text);

  const Text* text_;
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
