// One call of the stand-in for libcuda.
#pragma once

#include <mutex>
#include <string>

#include "runtime/cuda/fake_cuda/fake_state.h"

namespace heddle::runtime::cuda {

inline constexpr Result kInvalidValue = Result::kInvalidValue;
inline constexpr Result kNotInitialized{3};
inline constexpr Result kInvalidContext{201};
inline constexpr Result kInvalidHandle{400};
inline constexpr Result kCaptureUnsupported{900};
inline constexpr Result kNotFound{500};

inline Fake& fake() {
  // Never destroyed: kernels of static storage give back what they have at the program's end.
  static Fake& instance = *new Fake;
  return instance;
}

inline ContextHandle primary_context(DeviceOrdinal device) {
  return reinterpret_cast<ContextHandle>(static_cast<uintptr_t>(0xC000 + device));
}

// What a call needs before it does anything.
enum Need { kNothing, kInit, kContext };

// One call: locks, logs, and says whether it must fail.
class Call {
 public:
  Call(const char* symbol, Need need, const std::string& arguments = "")
      : lock_(fake().mutex), result_(Result::kSuccess) {
    Fake& f = fake();
    f.log.push_back(arguments.empty() ? symbol : symbol + (" " + arguments));
    if (const auto found = f.faults.find(symbol); found != f.faults.end()) {
      if (found->second.after-- <= 0) result_ = Result{found->second.code};
    }
    if (result_ != Result::kSuccess) return;
    if (need >= kInit && !f.initialized) result_ = kNotInitialized;
    if (need == kContext) {
      const ContextHandle current = f.current_context();
      bool ours = false;
      for (const auto& [device, count] : f.retained) {
        ours |= count > 0 && current == primary_context(device);
      }
      if (!ours) result_ = kInvalidContext;
    }
  }
  bool failed() const { return result_ != Result::kSuccess; }
  Result result() const { return result_; }
  // For calls that meet the faults of earlier kernels.
  bool faulted() {
    if (result_ == Result::kSuccess && fake().pending_fault != 0) {
      result_ = Result{fake().pending_fault};
    }
    return failed();
  }

 private:
  std::lock_guard<std::mutex> lock_;
  Result result_;
};

inline std::string text(uint64_t value) { return std::to_string(value); }

// A launch as it is remembered.
inline FakeLaunch launch_of(FunctionHandle function, void** parameters, void** extra) {
  FakeLaunch launch;
  launch.kernel = fake().functions[function];
  const uint8_t* block = nullptr;
  size_t bytes = 0;
  for (void** key = extra; key != nullptr && *key != nullptr; key += 2) {
    const uintptr_t name = reinterpret_cast<uintptr_t>(*key);
    if (name == kLaunchParamBufferPointer) block = static_cast<const uint8_t*>(key[1]);
    if (name == kLaunchParamBufferSize) bytes = *static_cast<size_t*>(key[1]);
  }
  if (block != nullptr) launch.parameters.assign(block, block + bytes);
  // Of parameters one by one, a byte of each.
  for (int i = 0; parameters != nullptr && i < fake().parameter_count; ++i) {
    launch.parameters.push_back(*static_cast<const uint8_t*>(parameters[i]));
  }
  return launch;
}

}  // namespace heddle::runtime::cuda
