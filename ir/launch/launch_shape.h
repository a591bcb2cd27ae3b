// How a kernel is launched: `{.grid = rows, .block = 512}`. One struct from the caller to the
// driver, so that what is new in a launch is a field here and what the driver makes of it.
#pragma once

#include <cstdint>

#include "heddle/ir/dim3.h"

namespace heddle::ir {

// The x of the grid that the kernel says itself, by launch_grid() (dsl/contract.h); one block where
// it does not.
inline constexpr int64_t kGridOfKernel = INT64_MIN;
// Likewise of the block: what require_block() says, one thread where the kernel says nothing.
inline constexpr int64_t kBlockOfKernel = INT64_MIN;

struct LaunchShape {
  Dim3 grid = kGridOfKernel;    // blocks
  Dim3 block = kBlockOfKernel;  // threads in a block, at most 1024
  // Blocks in a cluster (sm_90 and up). A kernel that was compiled for one may leave it at 1.
  Dim3 cluster = 1;
  int64_t shared_bytes = 0;  // dynamic shared memory, for dynamic_shared<T>()
  bool cooperative = false;  // all blocks are resident together, or the launch fails
  // May start before the kernel in front of it in the stream has ended, whose results it sees
  // behind grid_dependency_wait() (dsl/cuda/grid.h); what it reads of them before is undefined.
  // Devices below sm_90 ignore it; the interpreter runs one after the other, and reports a kernel that never waits.
  bool programmatic = false;

  // The block to compile for: {0, 0, 0}, any, where the kernel has the word.
  Dim3 block_to_compile() const { return block.x == kBlockOfKernel ? Dim3(0, 0, 0) : block; }
  // The block to launch, of a kernel that was compiled for `compiled`.
  Dim3 block_to_launch(const Dim3& compiled) const {
    if (block.x != kBlockOfKernel) return block;
    return compiled.x == 0 ? Dim3(1) : compiled;
  }

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

}  // namespace heddle::ir

namespace heddle {
using ir::LaunchShape;
inline constexpr Dim3 kGridOfKernel = ir::kGridOfKernel, kBlockOfKernel = ir::kBlockOfKernel;
}  // namespace heddle
