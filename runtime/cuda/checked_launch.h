// A launch in two steps: what its limits say of it, which follows from the function and the shape, and the call of the
// driver. launch_raw does both; a launch that comes again needs the second alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/cuda/driver_api.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::runtime {

class Function;

namespace cuda {

struct FunctionState;

// A launch that its device and its kernel can run.
struct CheckedLaunch {
  // The Function's own, and its kernel's: both live longer.
  const std::shared_ptr<FunctionState>* function = nullptr;
  const LaunchSite* site = nullptr;
  LaunchShape shape;  // with the kernel's own cluster
  LaunchAttribute attributes[3];
  uint32_t attribute_count = 0;
};

}  // namespace cuda

// Fills in `launch`. kInvalidArgument for what the limits of the device or the kernel forbid, with value and limit; the
// driver's errors where it has to be asked. `site`: see launch_raw.
Status check_launch(const Function& function, const LaunchShape& shape, const LaunchSite* site,
                    cuda::CheckedLaunch& launch);

// Calls the driver, or records the launch where the stream is being recorded. `parameters`, `bytes` and `places`: see
// launch_raw.
Status enqueue(const cuda::CheckedLaunch& launch, StreamHandle stream, const void* parameters,
               size_t bytes, absl::Span<const int> places);

}  // namespace heddle::runtime
