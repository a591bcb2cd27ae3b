// Runs kernels beside their CUDA C++ twins: both on memory of their own, with the same inputs,
// compared and then timed in turn.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
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
    bytes = (bytes + alignof(decltype(arg)) - 1) / alignof(decltype(arg)) * alignof(decltype(arg));
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

// What outputs hold.
enum class Held { kWords, kFloats, kHalves, kBFloats };

// The number in a word, or the one of its lower or upper half.
inline double number_in(uint32_t word, Held held, bool upper) {
  const auto bits = static_cast<uint16_t>(upper ? word >> 16 : word);
  switch (held) {
    case Held::kWords:
      return word;
    case Held::kFloats:
      return std::bit_cast<float>(word);
    case Held::kHalves:
      return static_cast<float>(std::bit_cast<half>(bits));
    case Held::kBFloats:
      return static_cast<float>(std::bit_cast<bfloat16>(bits));
  }
  return 0;
}

// The greatest difference of two outputs of floats over the greatest magnitude; of words, how many
// differ.
inline double difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                         Held held) {
  double worst = 0, magnitude = 1e-30;
  const int per_word = held == Held::kHalves || held == Held::kBFloats ? 2 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (held == Held::kWords) {
      worst += a[i] != b[i] ? 1 : 0;
      continue;
    }
    for (int k = 0; k < per_word; ++k) {
      const double x = number_in(a[i], held, k == 1), y = number_in(b[i], held, k == 1);
      const double d = a[i] == b[i] ? 0 : std::abs(x - y);
      worst = d <= worst ? worst : d;  // NaN counts
      magnitude = std::max(magnitude, std::abs(y));
    }
  }
  return held == Held::kWords ? worst : worst / magnitude;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What outputs may differ by, and what they hold; those of 0 are compared as words.
struct Tolerance {
  Tolerance(double most, Held outputs = Held::kFloats)  // NOLINT: a number says it
      : difference(most), held(most == 0 ? Held::kWords : outputs) {}
  double difference;
  Held held;
};

// What outputs differ by is 0 where there is no tolerance: they are not compared then, which takes most of the time.
inline nlohmann::ordered_json measure(const Device& device, const Stream& stream,
                                      const std::string& program, const std::string& size,
                                      const Side& heddle, const Side& nvcc,
                                      const std::optional<Tolerance>& allowed,
                                      const std::string& other = "nvcc") {
  constexpr int kRounds = 21, kLaunches = 10;
  for (const Side* side : {&heddle, &nvcc}) {
    side->reset();
    side->run();
    check(stream.synchronize());
  }
  const Tolerance tolerance = allowed.value_or(0);
  double worst = 0;
  for (size_t i = 0; allowed && i < heddle.outputs.size(); ++i) {
    const double d = difference(take(heddle.outputs[i].download<uint32_t>(stream)),
                                take(nvcc.outputs[i].download<uint32_t>(stream)), tolerance.held);
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
  return {{"program", program},
          {"size", size},
          {"heddle_us", ours},
          {other + "_us", theirs},
          {"ratio", ours / theirs},
          {"difference", worst},
          {"agree", worst <= tolerance.difference}};
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

// Pairs of programs on one device, and what was found of them.
class Twins {
 public:
  // `folder` has the twins' cubins.
  Twins(const Device& device, std::string folder)
      : device_(device), stream_(take(device.create_stream())), folder_(std::move(folder)) {}

  const Device& device() const { return device_; }
  const Stream& stream() const { return stream_; }
  Function function(const std::string& file, const std::string& name) const {
    return Twin(device_, folder_, file).function(name.c_str());
  }
  Buffer floats(int64_t count, float low, float high) const {
    return random_floats(device_, stream_, count, low, high);
  }

  // A side's outputs of so many bytes, of whole words, which are compared.
  std::vector<Buffer> outputs(const std::vector<int64_t>& bytes) const {
    std::vector<Buffer> made;
    for (const int64_t n : bytes) made.push_back(take(device_.allocate((n + 3) / 4 * 4)));
    return made;
  }

  // Both sides, from run(side's outputs, is it Heddle's); each output has so many bytes.
  template <class Run>
  nlohmann::ordered_json compare(const std::string& name, const std::string& size,
                                 const std::vector<int64_t>& bytes,
                                 const std::optional<Tolerance>& tolerance, Run run,
                                 const std::string& other = "nvcc") const {
    const auto make = [&](bool ours) {
      Side side;
      side.outputs = outputs(bytes);
      // Moving the vector leaves its elements where they are.
      Buffer* out = side.outputs.data();
      side.run = [&run, out, ours] { run(out, ours); };
      side.reset = [this, out, count = bytes.size()] {
        for (size_t i = 0; i < count; ++i) check(out[i].fill(stream_, 0));
      };
      return side;
    };
    const Side heddle = make(true), nvcc = make(false);
    nlohmann::ordered_json figures =
        measure(device_, stream_, name, size, heddle, nvcc, tolerance, other);
    std::fprintf(stderr, "%s\n", figures.dump().c_str());
    return figures;
  }

 private:
  const Device device_;
  const Stream stream_;
  const std::string folder_;
};

}  // namespace heddle::bench
