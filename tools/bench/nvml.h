// Clocks, power and energy of a GPU, by NVML, which is loaded at run time. Without it nothing is logged.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"

namespace heddle::bench {

// One look at the GPU.
struct GpuState {
  unsigned sm_mhz = 0, memory_mhz = 0, celsius = 0;
  double watts = 0;
  unsigned long long limits = 0;  // NVML's mask of reasons for lower clocks
};

class Nvml {
 public:
  // The GPU with this number, as NVML counts; nullptr without NVML.
  static std::unique_ptr<Nvml> open(unsigned index) {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto nvml = std::unique_ptr<Nvml>(new Nvml);
    int (*init)() = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    if (!find(library, "nvmlInit_v2", &init) ||
        !find(library, "nvmlDeviceGetHandleByIndex_v2", &handle) ||
        !find(library, "nvmlDeviceGetClockInfo", &nvml->clock_) ||
        !find(library, "nvmlDeviceGetPowerUsage", &nvml->power_) ||
        !find(library, "nvmlDeviceGetTemperature", &nvml->temperature_) ||
        !find(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml->energy_) ||
        !find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->limits_) ||
        init() != 0 || handle(index, &nvml->device_) != 0) {
      return nullptr;
    }
    return nvml;
  }

  GpuState state() const {
    GpuState now;
    unsigned milliwatts = 0;
    clock_(device_, 1, &now.sm_mhz);
    clock_(device_, 2, &now.memory_mhz);
    temperature_(device_, 0, &now.celsius);
    power_(device_, &milliwatts);
    limits_(device_, &now.limits);
    now.watts = milliwatts * 1e-3;
    return now;
  }
  // Since the driver was loaded.
  double joules() const {
    unsigned long long millijoules = 0;
    energy_(device_, &millijoules);
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  Nvml() = default;

  template <class F>
  static bool find(void* library, const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(library, name));
    return *function != nullptr;
  }

  void* device_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
  int (*limits_)(void*, unsigned long long*) = nullptr;
};

// Looks at the GPU every 20 ms until it is read.
class GpuLog {
 public:
  explicit GpuLog(const Nvml* nvml) {
    if (nvml == nullptr) return;
    thread_ = std::thread([this, nvml] {
      while (!stop_.load()) {
        states_.push_back(nvml->state());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  ~GpuLog() { finish(); }

  // Medians, and every reason for lower clocks that was seen; null without NVML.
  nlohmann::ordered_json summary() {
    finish();
    if (states_.empty()) return nullptr;
    const auto median = [&](auto member) {
      std::vector<double> values;
      for (const GpuState& state : states_) values.push_back(static_cast<double>(state.*member));
      std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                       values.end());
      return values[values.size() / 2];
    };
    unsigned long long limits = 0;
    for (const GpuState& state : states_) limits |= state.limits;
    return {{"sm_mhz", median(&GpuState::sm_mhz)},
            {"memory_mhz", median(&GpuState::memory_mhz)},
            {"watts", median(&GpuState::watts)},
            {"celsius", median(&GpuState::celsius)},
            {"clock_limits", limits}};
  }

 private:
  void finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> stop_{false};
  std::vector<GpuState> states_;
  std::thread thread_;
};

}  // namespace heddle::bench
