// Runs one program of kernels/learn beside its CUDA C++ twin: both on memory of their own, with the
// same inputs, compared and then timed in turn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/tools/bench/figures.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {

// The kernels of FOLDER/<name>.cubin.
class Twin {
 public:
  Twin(const Device& device, const std::string& folder, const std::string& name)
      : module_(load(device, folder + "/" + name + ".cubin")) {}
  Function function(const char* name) const { return take(module_.function(name)); }

 private:
  static Module load(const Device& device, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) check(NotFoundError("cannot read " + path));
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    return take(
        Module::load_cubin(device, {reinterpret_cast<const uint8_t*>(image.data()), image.size()}));
  }
  Module module_;
};

// Launches a kernel of a cubin; the arguments have its parameters' types, addresses as uint64_t.
template <class... Args>
void launch(const Stream& stream, const Function& function, const LaunchShape& shape,
            const Args&... args) {
  alignas(8) std::byte params[128];
  size_t bytes = 0;
  const auto append = [&](const auto& arg) {
    bytes = (bytes + sizeof(arg) - 1) / sizeof(arg) * sizeof(arg);
    std::memcpy(params + bytes, &arg, sizeof(arg));
    bytes += sizeof(arg);
  };
  (append(args), ...);
  check(runtime::launch_raw(function, shape, params, bytes, nullptr, &stream));
}

inline uint64_t address(const Buffer& buffer) { return static_cast<uint64_t>(buffer.address()); }

// The memory of one side: what it computes, from a given start.
struct Side {
  std::vector<Buffer> outputs;
  std::function<void()> reset;
  std::function<void()> run;
};

// The greatest difference of two outputs of floats over the greatest magnitude; of words, how many
// differ.
inline double difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                         bool floats) {
  double worst = 0, magnitude = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!floats) {
      worst += a[i] != b[i] ? 1 : 0;
      continue;
    }
    float x, y;
    std::memcpy(&x, &a[i], sizeof(x));
    std::memcpy(&y, &b[i], sizeof(y));
    const double d = std::abs(double{x} - y);
    worst = d <= worst ? worst : d;  // NaN counts
    magnitude = std::max<double>(magnitude, std::abs(y));
  }
  return floats ? worst / magnitude : worst;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// `tolerance` 0: the outputs are integers, and equal.
inline nlohmann::ordered_json measure(const Device& device, const Stream& stream,
                                      const std::string& program, const std::string& size,
                                      const Side& heddle, const Side& nvcc, double tolerance,
                                      const std::string& other = "nvcc") {
  constexpr int kRounds = 21, kLaunches = 10;
  for (const Side* side : {&heddle, &nvcc}) {
    side->reset();
    side->run();
    check(stream.synchronize());
  }
  double worst = 0;
  for (size_t i = 0; i < heddle.outputs.size(); ++i) {
    const double d = difference(take(heddle.outputs[i].download<uint32_t>(stream)),
                                take(nvcc.outputs[i].download<uint32_t>(stream)), tolerance > 0);
    worst = d <= worst ? worst : d;
  }
  Event start = take(device.create_event()), stop = take(device.create_event());
  std::vector<double> times[2];
  for (int round = -3; round < kRounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + round) & 1;  // who begins changes
      const Side& side = which == 0 ? heddle : nvcc;
      check(start.record(stream));
      for (int i = 0; i < kLaunches; ++i) side.run();
      check(stop.record(stream));
      const double us = take(Event::elapsed_ms(start, stop)) * 1e3 / kLaunches;
      if (round >= 0) times[which].push_back(us);
    }
  }
  const double ours = median(times[0]), theirs = median(times[1]);
  return {{"program", program},         {"size", size},           {"heddle_us", ours},
          {other + "_us", theirs},      {"ratio", ours / theirs}, {"difference", worst},
          {"agree", worst <= tolerance}};
}

// A buffer of random words, or floats from `low` to `high`: a block of them, repeated.
inline Buffer random_words(const Device& device, const Stream& stream, int64_t count,
                           uint32_t mask = ~0u) {
  std::mt19937 random(1);
  std::vector<uint32_t> values(count);
  const int64_t block = std::min<int64_t>(count, (1 << 20) - 3);
  for (int64_t i = 0; i < count; ++i) values[i] = i < block ? random() & mask : values[i - block];
  Buffer buffer = take(device.allocate(count * 4));
  check(buffer.copy_from_host(stream, values.data(), count * 4));
  check(stream.synchronize());
  return buffer;
}
inline Buffer random_floats(const Device& device, const Stream& stream, int64_t count, float low,
                            float high) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  const int64_t block = std::min<int64_t>(count, (1 << 20) - 3);
  for (int64_t i = 0; i < count; ++i) values[i] = i < block ? uniform(random) : values[i - block];
  Buffer buffer = take(device.allocate(count * 4));
  check(buffer.copy_from_host(stream, values.data(), count * 4));
  check(stream.synchronize());
  return buffer;
}

}  // namespace heddle::bench
