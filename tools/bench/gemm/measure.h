// How the contenders are timed: in bursts after the GPU has been idle, and for seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include "heddle/tools/bench/contender.h"
#include "heddle/tools/bench/gemm/data.h"
#include "heddle/tools/bench/nvml.h"
#include "heddle/tools/spin.h"

namespace heddle::bench {

inline constexpr int kBurst = 8;
inline constexpr std::chrono::milliseconds kIdle{250}, kNoIdle{0};
inline constexpr double kNear = 1.08;  // of the fastest candidate's time: worth a second look
inline constexpr std::chrono::seconds kSustained{4};

// A contender that can launch: one candidate of it, on buffers that take turns.
struct Runner {
  std::unique_ptr<Prepared> prepared;
  int candidate = 0;
  std::vector<std::vector<void*>> pointers;  // of each set of buffers
  void* workspace = nullptr;

  Status launch(const Stream& stream, size_t i) const {
    return prepared->launch(candidate, pointers[i % pointers.size()].data(), workspace, stream);
  }
};

class Timer {
 public:
  Timer(const Device& device, const Stream& stream)
      : stream_(stream),
        start_(take(device.create_event())),
        stop_(take(device.create_event())),
        spun_(take(device.allocate(sizeof(int64_t)))) {}

  // Milliseconds of a launch, of `launches` that the GPU finds enqueued.
  double burst_ms(const Runner& runner, int launches) {
    check(tools::spin_kernel().launch(stream_, {.grid = 1, .block = 1},
                                      as_tensor<int64_t>(spun_, {1}), tools::kSpinCycles));
    check(start_.record(stream_));
    for (int i = 0; i < launches; ++i) check(runner.launch(stream_, next_++));
    check(stop_.record(stream_));
    check(stop_.synchronize());
    return take(Event::elapsed_ms(start_, stop_)) / launches;
  }

  // Microseconds of a launch in a burst after the GPU has been idle.
  double idle_burst_us(const Runner& runner, std::chrono::milliseconds idle) {
    check(stream_.synchronize());
    std::this_thread::sleep_for(idle);
    return burst_ms(runner, kBurst) * 1e3;
  }

  // Launches without a pause, and what the GPU did meanwhile.
  nlohmann::ordered_json sustained(const Runner& runner, const Nvml* nvml, double operations) {
    check(stream_.synchronize());
    std::this_thread::sleep_for(std::chrono::seconds(1));
    GpuLog log(nvml);
    const double joules = nvml != nullptr ? nvml->joules() : 0;
    const auto until = std::chrono::steady_clock::now() + kSustained;
    int64_t launches = 0;
    std::deque<Event> in_flight;  // ends of batches
    check(start_.record(stream_));
    while (std::chrono::steady_clock::now() < until) {
      for (int i = 0; i < kBurst; ++i) check(runner.launch(stream_, next_++));
      launches += kBurst;
      in_flight.push_back(take(stream_.device().create_event()));
      check(in_flight.back().record(stream_));
      if (in_flight.size() < 3) continue;
      check(in_flight.front().synchronize());
      in_flight.pop_front();
    }
    check(stop_.record(stream_));
    check(stop_.synchronize());
    const double ms = take(Event::elapsed_ms(start_, stop_)) / static_cast<double>(launches);
    nlohmann::ordered_json figure = {{"us", ms * 1e3}, {"tflop_per_s", operations / ms * 1e-9}};
    if (nvml != nullptr) {
      figure["joules"] = (nvml->joules() - joules) / static_cast<double>(launches);
      figure["gpu"] = log.summary();
    }
    return figure;
  }

 private:
  const Stream& stream_;
  Event start_, stop_;
  Buffer spun_;      // what the kernel that spins stores
  size_t next_ = 0;  // the set of buffers
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace heddle::bench
