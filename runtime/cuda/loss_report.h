// A file about the loss of a GPU, for whoever looks for the reason later: HEDDLE_REPORT_DIR=FOLDER in the environment when
// the device is opened asks for it. Without that nothing is remembered, and nothing is written.
//
// It is JSON: the error and what it means, the GPU and its driver, the last launches with their shapes and arguments, the
// memory that these point to, and the environment. It holds numbers that the program passed to kernels, and nothing of
// what lies in memory; only its user may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/cuda/launch_ring.h"
#include "heddle/runtime/cuda/module.h"

namespace heddle::runtime::cuda {

// What the bytes of a kernel's parameter block mean.
struct KernelParameters {
  struct Parameter {
    std::string name;
    ir::Type type;
    // Of a view: kDynamic where the launch passes it.
    absl::InlinedVector<int64_t, 4> extents;
    absl::InlinedVector<int64_t, 4> strides;
  };
  std::vector<Parameter> parameters;
  std::vector<ir::ParamSlot> slots;
};

// A device that was lost, as CudaBackend::fail knows it.
struct Loss {
  absl::string_view call;  // as exported
  int code = 0;
  absl::string_view name;     // of the code
  absl::string_view text;     // the driver's
  absl::string_view meaning;  // Heddle's
  absl::string_view cause;    // which launches
  absl::string_view device;   // "cuda:0"
  const DeviceInfo* info = nullptr;
  // Launches that nobody has waited for, newest first.
  std::vector<LaunchRecord> unfinished;
};

// Remembers what a report has. Thread-safe.
class LossReporter {
 public:
  // Launches, and allocations that were freed, that a report tells of.
  static constexpr size_t kLaunches = LaunchRing::kSize;
  static constexpr size_t kFreed = 64;

  explicit LossReporter(std::string folder) : folder_(std::move(folder)) {}
  // nullptr where HEDDLE_REPORT_DIR is not set or empty.
  static std::unique_ptr<LossReporter> from_environment();

  // Notes a launch before the driver is called; `parameters`: null where nobody has said what the block's bytes mean.
  void launched(const LaunchRecord& launch, const FunctionAttributes& attributes,
                std::shared_ptr<const KernelParameters> parameters, const void* block,
                size_t bytes);
  // The driver has refused it.
  void refused(uint64_t ticket);
  // Notes memory.
  void allocated(DeviceAddress address, size_t bytes);
  void freed(DeviceAddress address);

  // Writes the report to a new file in the folder, which is made where it is missing. Gives what a message says of it:
  // "a report is in 'PATH'", or why there is none. Never fails otherwise.
  std::string write(const Loss& loss) noexcept;

 private:
  struct Launch {
    LaunchRecord record;
    FunctionAttributes attributes;
    std::shared_ptr<const KernelParameters> parameters;
    std::vector<std::byte> block;
  };
  struct Memory {
    DeviceAddress address;
    size_t bytes;
  };

  std::string text_of(const Loss& loss) const;

  const std::string folder_;
  mutable std::mutex mutex_;
  std::deque<Launch> launches_;             // oldest first
  std::map<DeviceAddress, size_t> memory_;  // live
  std::deque<Memory> freed_;                // oldest first
};

}  // namespace heddle::runtime::cuda
