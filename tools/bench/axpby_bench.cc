// axpby on a GPU beside a device-to-device copy that moves as many bytes. Prints JSON.
//
//   axpby_bench > results/axpby.json
//
// The floor is x read, y read and y written over the memory's bandwidth; two of the three where beta is 0. As
// many vectors as fill four times the L2 cache take turns. Cases come in an order that changes each round; a
// figure is the median of its rounds.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "heddle/kernels/axpby.h"
#include "heddle/tools/bench/timing.h"

namespace heddle {
namespace {

using bench::check;
using bench::take;

constexpr int kTurns = 5;

struct Case {
  const char* dtype;
  int64_t count;
  float beta;
  int64_t offset;  // elements before the first: what is not aligned to 16 bytes
  std::vector<double> ours, copy;
};

template <class T>
void measure(const Device& device, Case& c) {
  const Stream stream = take(device.create_stream());
  const int64_t bytes = c.count * static_cast<int64_t>(sizeof(T));
  const int64_t padded = bytes + 256;
  const std::vector<Buffer> x = bench::random_buffers<T>(device, stream, padded);
  std::vector<Buffer> y = bench::random_buffers<T>(device, stream, padded);
  const auto part = [&](const Buffer& buffer) {
    return reinterpret_cast<T*>(buffer.address()) + c.offset;
  };
  c.ours.push_back(bench::median_ms(device, stream, [&](int i) {
    const size_t at = static_cast<size_t>(i) % x.size();
    check(kernels::axpby(stream, 0.5f, TensorRef<const T, 1>(part(x[at]), {c.count}), c.beta,
                         TensorRef<T, 1>(part(y[at]), {c.count})));
  }));
  // A copy moves each of its bytes twice.
  const int64_t copied = std::min(padded, c.beta == 0 ? bytes : bytes * 3 / 2);
  const double scale =
      (c.beta == 0 ? 1.0 : 1.5) * static_cast<double>(bytes) / static_cast<double>(copied);
  c.copy.push_back(scale * bench::median_ms(device, stream, [&](int i) {
                     const size_t at = static_cast<size_t>(i) % x.size();
                     check(y[at].copy_from(stream, x[at], copied));
                   }));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  const Device device = take(Device::open("cuda:0"));
  std::vector<Case> cases;
  for (const char* dtype : {"f32", "bf16"}) {
    for (const int64_t count :
         {int64_t{1} << 28, int64_t{1} << 26, (int64_t{1} << 26) + 5, int64_t{1} << 20}) {
      cases.push_back({dtype, count, 0.5f, 0, {}, {}});
    }
    cases.push_back({dtype, int64_t{1} << 26, 0, 0, {}, {}});
    cases.push_back({dtype, int64_t{1} << 26, 0.5f, 1, {}, {}});
  }
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(7);
  for (int turn = 0; turn < kTurns; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t at : order) {
      if (std::string(cases[at].dtype) == "f32") {
        measure<float>(device, cases[at]);
      } else {
        measure<bfloat16>(device, cases[at]);
      }
    }
  }
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Case& c : cases) {
    const double bytes =
        static_cast<double>(c.count) * (c.dtype[0] == 'f' ? 4 : 2) * (c.beta == 0 ? 2 : 3);
    const double ours = median(c.ours), copy = median(c.copy);
    figures.push_back({{"dtype", c.dtype},
                       {"n", c.count},
                       {"beta", c.beta},
                       {"offset", c.offset},
                       {"heddle_us", ours * 1e3},
                       {"heddle_gb_per_s", bytes / ours * 1e-6},
                       {"copy_gb_per_s", bytes / copy * 1e-6},
                       {"of_copy", copy / ours}});
  }
  bench::print_figures("axpby_bench", argc, argv, device, figures);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
