// What a device is and what it can hold: read once when it is opened.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::runtime {

// What stands behind a device.
enum class BackendKind : uint8_t { kInterp, kCuda, kDryRun };

// Limits of one launch, in blocks and threads.
struct LaunchLimits {
  // Blocks in each direction of a grid.
  int64_t max_grid_x = 2147483647;
  int64_t max_grid_y = 65535;
  int64_t max_grid_z = 65535;
  // Threads in each direction of a block, and in all.
  int64_t max_block_x = 1024;
  int64_t max_block_y = 1024;
  int64_t max_block_z = 64;
  int64_t max_threads_per_block = 1024;
  // Bytes of shared memory that one block may have, static and dynamic together.
  int64_t max_shared_per_block = 232448;
};

// What a device is and has; an interpreter says what its caller asks for, by default an H200's.
struct DeviceInfo {
  std::string name;  // as the driver calls it
  // Compute capability, such as 9 and 0.
  int compute_major = 9;
  int compute_minor = 0;
  // Resources. An SM is a multiprocessor; memory is in bytes.
  int sm_count = 132;
  int warp_size = 32;
  int max_threads_per_sm = 2048;
  int registers_per_sm = 65536;
  int64_t shared_per_sm = 233472;
  int64_t l2_bytes = int64_t{60} << 20;
  int64_t total_memory = int64_t{140} << 30;
  // Whether launches with clusters, and cooperative launches, are supported.
  bool cluster_launch = true;
  bool cooperative_launch = true;
  // The newest CUDA that the driver speaks, as 1000 × major + 10 × minor; 0 without a driver.
  int driver_version = 0;
  // What a launch may ask for.
  LaunchLimits limits;
};

// Device memory at one moment, in bytes.
struct MemoryUsage {
  uint64_t free_bytes = 0;   // not allocated
  uint64_t total_bytes = 0;  // of the device
};

}  // namespace heddle::runtime
