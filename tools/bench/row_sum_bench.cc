// row_sum on a GPU beside a device-to-device copy that moves as many bytes. Prints JSON.
//
//   row_sum_bench [--dtype f32|f16|bf16] [--rows N] [--columns N]
//
// The floor is the matrix's bytes over the memory's bandwidth. Inputs are random, and as many
// matrices as fill four times the L2 cache take turns, so that none is found there. Each figure is
// the median of rounds; a round times 20 launches between two events.
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/kernels/row_sum.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::median_ms;
using bench::take;

template <class T>
nlohmann::ordered_json measure(const Device& device, const char* dtype, int64_t rows,
                               int64_t columns) {
  const Stream stream = take(device.create_stream());
  const int64_t bytes = rows * columns * static_cast<int64_t>(sizeof(T));
  const std::vector<Buffer> inputs = bench::random_buffers<T>(device, stream, bytes);
  const int matrices = static_cast<int>(inputs.size());
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
