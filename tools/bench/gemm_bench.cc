// gemm on a GPU, in bursts: eight launches after the GPU has been idle for a while. Prints JSON.
//
//   gemm_bench [M N K]... > results/gemm.json
//
// The floor is 2 M N K operations over the tensor cores' rate. Inputs are random in [-1, 1]; as many as fill
// four times the L2 cache take turns. A figure is the median of its rounds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "heddle/kernels/gemm/gemm.h"
#include "heddle/tools/bench/timing.h"

namespace heddle {
namespace {

using bench::check;
using bench::take;

constexpr int kBurst = 8;
constexpr int kBursts = 7;
constexpr std::chrono::milliseconds kIdle{250};

struct Shape {
  int64_t m, n, k;
};

// Milliseconds of a product.
double measure(const Device& device, const Shape& shape) {
  const Stream stream = take(device.create_stream());
  const auto buffers = [&](int64_t elements) {
    return bench::random_buffers<bfloat16>(device, stream, elements * 2);
  };
  const std::vector<Buffer> a = buffers(shape.m * shape.k), b = buffers(shape.n * shape.k);
  const std::vector<Buffer> d = buffers(shape.m * shape.n);
  Event start = take(device.create_event()), stop = take(device.create_event());
  std::vector<double> times;
  for (int burst = -1; burst < kBursts; ++burst) {
    check(stream.synchronize());
    std::this_thread::sleep_for(kIdle);
    check(start.record(stream));
    for (size_t i = 0; i < kBurst; ++i) {
      check(kernels::gemm(stream, as_tensor<const bfloat16>(a[i % a.size()], {shape.m, shape.k}),
                          as_tensor<const bfloat16>(b[i % b.size()], {shape.n, shape.k}),
                          as_tensor<bfloat16>(d[i % d.size()], {shape.m, shape.n})));
    }
    check(stop.record(stream));
    check(stop.synchronize());
    if (burst >= 0) times.push_back(take(Event::elapsed_ms(start, stop)) / kBurst);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int run(int argc, char** argv) {
  const Device device = take(Device::open("cuda:0"));
  std::vector<Shape> shapes;
  for (int i = 1; i + 2 < argc; i += 3) {
    shapes.push_back({std::atoll(argv[i]), std::atoll(argv[i + 1]), std::atoll(argv[i + 2])});
  }
  if (shapes.empty()) shapes = {{4096, 4096, 4096}, {8192, 8192, 8192}};
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Shape& shape : shapes) {
    const double ms = measure(device, shape);
    const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                              static_cast<double>(shape.k);
    figures.push_back({{"dtype", "bf16"},
                       {"m", shape.m},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"heddle_us", ms * 1e3},
                       {"heddle_tflop_per_s", operations / ms * 1e-9}});
  }
  bench::print_figures("gemm_bench", argc, argv, device, figures);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
