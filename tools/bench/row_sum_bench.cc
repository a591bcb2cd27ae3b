// row_sum on a GPU beside a device-to-device copy that moves as many bytes. Prints JSON.
//
//   row_sum_bench [--dtype f32|f16|bf16] [--rows N] [--columns N]
//
// The floor is the matrix's bytes over the memory's bandwidth. Inputs are random, and as many
// matrices as fill four times the L2 cache take turns, so that none is found there. Each figure is
// the median of rounds; a round times 20 launches between two events.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/kernels/row_sum.h"
#include "heddle/tools/bench/figures.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::take;

constexpr int kLaunches = 20;
constexpr int kRounds = 15;

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

template <class T>
nlohmann::ordered_json measure(const Device& device, const char* dtype, int64_t rows,
                               int64_t columns) {
  const Stream stream = take(device.create_stream());
  const int64_t bytes = rows * columns * static_cast<int64_t>(sizeof(T));
  const int matrices = std::max<int>(2, static_cast<int>(4 * device.info().l2_bytes / bytes + 1));
  // One random block, repeated: what matters is that it is no constant.
  std::vector<T> block(1 << 20);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (T& value : block) value = T(uniform(random));
  std::vector<Buffer> inputs;
  for (int i = 0; i < matrices; ++i) {
    Buffer& input = inputs.emplace_back(take(device.allocate(bytes)));
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(block.size() * sizeof(T))) {
      const int64_t part = std::min<int64_t>(bytes - at, block.size() * sizeof(T));
      check(input.copy_from_host(stream, block.data(), part, at));
    }
  }
  const Buffer output = take(device.allocate(rows * sizeof(float)));
  const auto y = as_tensor<float>(output, {rows});
  const double sum_ms = median_ms(device, stream, [&](int i) {
    check(kernels::row_sum(stream, as_tensor<const T>(inputs[i % matrices], {rows, columns}), y));
  });
  // Half of it read, half written.
  Buffer target = take(device.allocate(bytes / 2));
  const double copy_ms = median_ms(device, stream, [&](int i) {
    check(target.copy_from(stream, inputs[i % matrices], bytes / 2));
  });
  const double moved = static_cast<double>(bytes + rows * static_cast<int64_t>(sizeof(float)));
  return {{"dtype", dtype},
          {"rows", rows},
          {"columns", columns},
          {"heddle_us", sum_ms * 1e3},
          {"heddle_gb_per_s", moved / sum_ms * 1e-6},
          {"copy_us", copy_ms * 1e3},
          {"copy_gb_per_s", static_cast<double>(bytes) / copy_ms * 1e-6}};
}

int run(int argc, char** argv) {
  CLI::App app("row_sum on a GPU, beside a copy of as many bytes.");
  int64_t rows = 16384;
  int64_t columns = 16384;
  std::string dtype = "f32";
  app.add_option("--rows", rows);
  app.add_option("--columns", columns);
  app.add_option("--dtype", dtype)->check(CLI::IsMember({"f32", "f16", "bf16"}));
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open("cuda:0"));
  nlohmann::ordered_json result;
  if (dtype == "f32") result = measure<float>(device, "f32", rows, columns);
  if (dtype == "f16") result = measure<half>(device, "f16", rows, columns);
  if (dtype == "bf16") result = measure<bfloat16>(device, "bf16", rows, columns);
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
