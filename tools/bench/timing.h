// What benchmarks of memory-bound kernels share: times between events, and inputs that no cache holds.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "heddle/runtime/device.h"
#include "heddle/tools/bench/figures.h"

namespace heddle::bench {

inline constexpr int kLaunches = 20;
inline constexpr int kRounds = 15;

// Milliseconds of one call of work(i): the median of rounds, of which each times kLaunches calls between two
// events.
template <class Work>
double median_ms(const Device& device, const Stream& stream, Work&& work) {
  Event start = take(device.create_event());
  Event stop = take(device.create_event());
  std::vector<double> times;
  for (int round = -2; round < kRounds; ++round) {
    check(start.record(stream));
    for (int i = 0; i < kLaunches; ++i) work(i);
    check(stop.record(stream));
    const double ms = take(Event::elapsed_ms(start, stop)) / kLaunches;
    if (round >= 0) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Milliseconds of a call of each work(i): medians of rounds, in an order that is drawn anew each time. One that is empty
// takes 0.
inline std::vector<double> in_turns_ms(const Device& device, const Stream& stream,
                                       std::mt19937& random,
                                       const std::vector<std::function<void(int)>>& works) {
  Event start = take(device.create_event()), stop = take(device.create_event());
  std::vector<std::vector<double>> times(works.size());
  std::vector<size_t> order(works.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = -2; round < kRounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t which : order) {
      if (!works[which]) continue;
      check(start.record(stream));
      for (int i = 0; i < kLaunches; ++i) works[which](i);
      check(stop.record(stream));
      const double ms = take(Event::elapsed_ms(start, stop)) / kLaunches;
      if (round >= 0) times[which].push_back(ms);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& one : times) {
    std::sort(one.begin(), one.end());
    medians.push_back(one.empty() ? 0 : one[one.size() / 2]);
  }
  return medians;
}

// Buffers of `bytes` random numbers in [-1, 1], as many as fill four times the L2 cache and at least two.
template <class T>
std::vector<Buffer> random_buffers(const Device& device, const Stream& stream, int64_t bytes) {
  const int count = std::max<int>(2, static_cast<int>(4 * device.info().l2_bytes / bytes + 1));
  // One random block, repeated: what matters is that it is no constant.
  std::vector<T> block(1 << 20);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (T& value : block) value = T(uniform(random));
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    Buffer& buffer = buffers.emplace_back(take(device.allocate(bytes)));
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(block.size() * sizeof(T))) {
      const int64_t part = std::min<int64_t>(bytes - at, block.size() * sizeof(T));
      check(buffer.copy_from_host(stream, block.data(), part, at));
    }
  }
  return buffers;
}

}  // namespace heddle::bench
