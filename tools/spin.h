// A kernel that only takes time, behind which a host enqueues what it times: the GPU then finds everything enqueued.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::tools {

// Some 0.2 ms of an H200.
inline constexpr int64_t kSpinCycles = 400'000;

// Keeps the GPU busy for so many cycles, while the host enqueues what is to be timed.
inline const auto& spin_kernel() {
  static const auto kernel =
      define_kernel("spin(passed, cycles)", [](Tensor<int64_t, 1> passed, Int64 cycles) {
        const Int64 begin = clock64();
        passed(0) = While(
            Int64(0), [&](const Int64& so_far) { return so_far < cycles; },
            [&](const Int64&) { return clock64() - begin; });
      });
  return kernel;
}

}  // namespace heddle::tools
