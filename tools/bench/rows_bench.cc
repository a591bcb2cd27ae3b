// Kernels of rows (softmax, norms) on a GPU beside a device-to-device copy of the same bytes. Prints JSON.
//
//   rows_bench [--only REGEX]      of "softmax bf16 8192", …
//
// The matrix has 256 MiB, so that no cache holds it; it is read once and written once, which is the copy's work too,
// but by cross_entropy, which only reads, and the backward passes, which read two: of the copy's speed they take what
// their bytes would.
// Each figure is the median of rounds, of 20 launches between two events; kernel and copy take turns round by
// round, and which begins is drawn anew each time.
#include <functional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/softmax/softmax.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

constexpr int64_t kBytes = int64_t{1} << 28;
constexpr int64_t kColumns[] = {256,   1024,   2048,   4096, 8192, 16384, 32768,
                                65536, 131072, 262144, 1023, 8191, 32771, 131071};

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device), stream_(take(device.create_stream())), only_(only) {}

  template <class T>
  void type(const char* dtype) {
    const std::vector<Buffer> inputs = random_buffers<T>(device_, stream_, kBytes);
    std::vector<Buffer> outputs;
    for (size_t i = 0; i < inputs.size(); ++i) outputs.push_back(take(device_.allocate(kBytes)));
    using In = TensorRef<const T, 2>;
    using Out = TensorRef<T, 2>;
    using Kernel = std::function<Status(const In&, const Out&)>;
    // Weights are the first matrix's first elements.
    const auto along = [&](const In& x) { return as_tensor<const T>(inputs[0], {x.extents[1]}); };
    const int64_t most_rows = kBytes / static_cast<int64_t>(sizeof(T)) / kColumns[0];
    const Buffer targets = take(device_.upload<int64_t>(std::vector<int64_t>(most_rows, 200)));
    const Buffer losses = take(device_.allocate(most_rows * sizeof(float))),
                 ones = take(device_.upload<float>(std::vector<float>(most_rows, 1)));
    const Buffer sums = take(device_.allocate(kBytes));
    const std::vector<Buffer> gradients = random_buffers<T>(device_, stream_, kBytes);
    const auto gradient = [&](const In& y) { return as_tensor<const T>(gradients[0], y.extents); };
    struct Measured {
      const char* name;
      double passes;  // over the matrix's bytes
      Kernel kernel;
    };
    const Measured measured[] = {
        {"softmax", 2, [&](const In& x, const Out& y) { return kernels::softmax(stream_, x, y); }},
        {"log_softmax", 2,
         [&](const In& x, const Out& y) { return kernels::log_softmax(stream_, x, y); }},
        {"rms_norm", 2,
         [&](const In& x, const Out& y) {
           return kernels::rms_norm(stream_, x, along(x), y, 1e-6f);
         }},
        {"cross_entropy", 1,
         [&](const In& x, const Out&) {
           const int64_t rows = x.extents[0];
           return kernels::cross_entropy(stream_, x, as_tensor<const int64_t>(targets, {rows}),
                                         as_tensor<float>(losses, {rows}));
         }},
        {"cross_entropy_backward", 2,
         [&](const In& x, const Out& dx) {
           const int64_t rows = x.extents[0];
           return kernels::cross_entropy_backward(stream_, x,
                                                  as_tensor<const int64_t>(targets, {rows}),
                                                  as_tensor<const float>(ones, {rows}), dx);
         }},
        {"add_rms_norm", 4,
         [&](const In& x, const Out& y) {
           return kernels::add_rms_norm(stream_, x, gradient(x), along(x), y,
                                        as_tensor<T>(sums, x.extents), 1e-6f);
         }},
        {"rms_norm_backward", 3,
         [&](const In& x, const Out& dx) {
           return kernels::rms_norm_backward(stream_, x, along(x), gradient(x), dx,
                                             as_tensor<T>(sums, {x.extents[1]}), 1e-6f);
         }},
        {"layer_norm_backward", 3,
         [&](const In& x, const Out& dx) {
           const auto dw = as_tensor<T>(sums, {x.extents[1]});
           return kernels::layer_norm_backward(
               stream_, x, along(x), gradient(x), dx, dw,
               TensorRef<T, 1>(dw.data + dw.extents[0], {dw.extents[0]}), 1e-5f);
         }},
        {"softmax_backward", 3,
         [&](const In& y, const Out& dx) {
           return kernels::softmax_backward(stream_, y, gradient(y), dx);
         }},
        {"log_softmax_backward", 3,
         [&](const In& y, const Out& dx) {
           return kernels::log_softmax_backward(stream_, y, gradient(y), dx);
         }},
        {"layer_norm", 2, [&](const In& x, const Out& y) {
           return kernels::layer_norm(stream_, x, along(x), along(x), y, 1e-5f);
         }}};
    for (const auto& [name, passes, kernel] : measured) {
      for (const int64_t columns : kColumns) {
        const std::string title = name + std::string(" ") + dtype + " " + std::to_string(columns);
        if (!std::regex_search(title, only_)) continue;
        const int64_t rows = kBytes / static_cast<int64_t>(sizeof(T)) / columns;
        const int64_t bytes = rows * columns * static_cast<int64_t>(sizeof(T));
        const auto run = [&, kernel = kernel](int i) {
          const size_t at = static_cast<size_t>(i) % inputs.size();
          check(kernel(as_tensor<const T>(inputs[at], {rows, columns}),
                       as_tensor<T>(outputs[at], {rows, columns})));
        };
        const auto copy = [&](int i) {
          const size_t at = static_cast<size_t>(i) % inputs.size();
          check(outputs[at].copy_from(stream_, inputs[at], bytes));
        };
        const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {run, copy});
        const double ours = ms[0], theirs = ms[1];
        const double of_copy = theirs * passes / 2 / ours;
        figures_.push_back({{"kernel", name},
                            {"dtype", dtype},
                            {"rows", rows},
                            {"columns", columns},
                            {"heddle_us", ours * 1e3},
                            {"copy_us", theirs * 1e3},
                            {"of_copy", of_copy}});
        std::fprintf(stderr, "%s: %.1f us, %.3f of copy\n", title.c_str(), ours * 1e3, of_copy);
      }
    }
  }
  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  const Device device_;
  const Stream stream_;
  const std::regex only_;
  std::mt19937 random_{1};
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>(
      "rows_bench", "Kernels of rows beside a copy.", argc, argv, [](auto& bench) {
        using heddle::bfloat16;
        bench.template type<float>("f32");
        bench.template type<bfloat16>("bf16");
      });
}
