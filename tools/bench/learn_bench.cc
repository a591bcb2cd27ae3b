// The programs of kernels/learn on a GPU beside their CUDA C++ twins. Prints JSON.
//
//   learn_bench FOLDER     FOLDER: tools/bench/learn/*.cu as cubins (learn_figures.py makes them)
//
// Each pair has the same inputs and the same launch shape; outputs are compared first. A time is
// the median of 21 rounds of 10 runs between two events, the two sides taking turns. Clearing and
// copying what a run starts from counts where each run needs it, on both sides.
#include "CLI/CLI.hpp"
#include "bench/twins.h"
#include "heddle/kernels/learn/01_saxpy.h"
#include "heddle/kernels/learn/02_transpose.h"
#include "heddle/kernels/learn/03_histogram.h"
#include "heddle/kernels/learn/04_nbody.h"
#include "heddle/kernels/learn/05_mandelbrot.h"
#include "heddle/kernels/learn/06_black_scholes.h"
#include "heddle/kernels/learn/07_bitonic_sort.h"
#include "heddle/kernels/learn/08_scan.h"
#include "heddle/kernels/learn/09_spmv.h"
#include "heddle/kernels/learn/10_pi.h"
#include "heddle/kernels/learn/11_stencil.h"
#include "heddle/kernels/learn/12_cluster_histogram.h"

namespace heddle::bench {
namespace {

class Bench : Twins {
 public:
  using Twins::Twins;

  nlohmann::ordered_json all() {
    return {saxpy(),      transpose(),      histogram(),    nbody(),
            mandelbrot(), black_scholes(),  bitonic_sort(), scan(),
            spmv(),       monte_carlo_pi(), stencil(),      cluster_histogram()};
  }

 private:
  nlohmann::ordered_json saxpy() {
    const int n = (1 << 26) + 5;
    const Buffer x = floats(n, -1, 1);
    const Function twin = function("saxpy", "saxpy");
    const LaunchShape shape = learn::saxpy_shape(n);
    return compare("saxpy", std::to_string(n), {4l * n}, 0, [&](Buffer* out, bool ours) {
      if (!ours) return launch(stream(), twin, shape, 2.5f, address(x), address(out[0]), n);
      check(learn::saxpy.launch(stream(), shape, 2.5f, as_tensor<const float>(x, {n}),
                                as_tensor<float>(out[0], {n})));
    });
  }

  nlohmann::ordered_json transpose() {
    const int rows = 8200, columns = 8190;
    const Buffer x = floats(int64_t{rows} * columns, -1, 1);
    const Function twin = function("transpose", "transpose");
    const LaunchShape shape = learn::transpose_shape(rows, columns);
    return compare(
        "transpose", "8200 × 8190", {4l * rows * columns}, 0, [&](Buffer* out, bool ours) {
          if (!ours) {
            return launch(stream(), twin, shape, address(x), address(out[0]), rows, columns);
          }
          check(learn::transpose.launch(stream(), shape, as_tensor<const float>(x, {rows, columns}),
                                        as_tensor<float>(out[0], {columns, rows})));
        });
  }

  nlohmann::ordered_json histogram() {
    const int n = (1 << 26) + 5;
    const Buffer words = random_words(device(), stream(), n);
    const Function twin = function("histogram", "histogram");
    const LaunchShape shape = learn::histogram_shape(8 * device().info().sm_count);
    return compare(
        "histogram", std::to_string(n) + " words", {4l * learn::kBins}, 0,
        [&](Buffer* out, bool ours) {
          if (!ours) {
            return launch(stream(), twin, shape, address(words), address(out[0]), n);
          }
          check(learn::histogram.launch(stream(), shape, as_tensor<const uint32_t>(words, {n}),
                                        as_tensor<uint32_t>(out[0], {learn::kBins})));
        });
  }

  nlohmann::ordered_json nbody() {
    const int n = 65536;
    const Buffer body = floats(4l * n, 0.1f, 1);
    const Function twin = function("nbody", "nbody");
    const LaunchShape shape = learn::nbody_shape(n);
    return compare(
        "nbody", std::to_string(n), {16l * n, 16l * n}, 1e-4, [&](Buffer* out, bool ours) {
          if (!ours) {
            return launch(stream(), twin, shape, address(body), address(out[0]), address(out[1]), n,
                          1e-3f);
          }
          check(learn::nbody.launch(stream(), shape, as_tensor<const float>(body, {n, 4}),
                                    as_tensor<float>(out[0], {n, 4}),
                                    as_tensor<float>(out[1], {n, 4}), 1e-3f));
        });
  }

  nlohmann::ordered_json mandelbrot() {
    const int height = 4096, width = 4096, limit = 512;
    const float left = -2, top = -1.25f, step = 2.5f / 4096;
    const Function twin = function("mandelbrot", "mandelbrot");
    const LaunchShape shape = learn::mandelbrot_shape(height, width);
    return compare("mandelbrot", "4096 × 4096, 512 steps", {4l * height * width}, 0,
                   [&](Buffer* out, bool ours) {
                     if (!ours) {
                       return launch(stream(), twin, shape, address(out[0]), height, width, left,
                                     top, step, limit);
                     }
                     check(learn::mandelbrot.launch(stream(), shape,
                                                    as_tensor<int32_t>(out[0], {height, width}),
                                                    learn::Window{left, top, step}, limit));
                   });
  }

  // Both sides' exponentials, logarithms and quotients may be off by what dsl/math/fast_math.h and
  // CUDA's documentation say. Through the formula, in which an error of d1 cancels to the first
  // order, and with the roundings that follow, that is at most 7.8e-5 in a call of up to 29
  // and 1.04e-4 in a put of up to 94, for these prices: 2.7e-6 of the largest.
  nlohmann::ordered_json black_scholes() {
    const int n = 1 << 25;
    const Buffer price = floats(n, 5, 30), strike = floats(n + 7, 1, 100),
                 years = floats(n + 5, 0.25f, 10);
    const Function twin = function("black_scholes", "black_scholes");
    const LaunchShape shape = learn::black_scholes_shape(n);
    return compare(
        "black_scholes", std::to_string(n), {4l * n, 4l * n}, 2.8e-6, [&](Buffer* out, bool ours) {
          if (!ours) {
            return launch(stream(), twin, shape, 0.02f, 0.3f, address(price), address(strike),
                          address(years), address(out[0]), address(out[1]), n);
          }
          check(learn::black_scholes.launch(
              stream(), shape, learn::Market{0.02f, 0.3f}, as_tensor<const float>(price, {n}),
              as_tensor<const float>(strike, {n}), as_tensor<const float>(years, {n}),
              as_tensor<float>(out[0], {n}), as_tensor<float>(out[1], {n})));
        });
  }

  nlohmann::ordered_json bitonic_sort() {
    const int n = 1 << 22;
    const Buffer keys = random_words(device(), stream(), n);
    const Function tiles = function("bitonic_sort", "sort_tiles"),
                   far = function("bitonic_sort", "merge_far"),
                   near = function("bitonic_sort", "merge_near");
    const LaunchShape shape{.grid = n / learn::kSortTile, .block = learn::kSortThreads};
    return compare("bitonic_sort", std::to_string(n), {4l * n}, 0, [&](Buffer* out, bool ours) {
      check(out[0].copy_from(stream(), keys, 4l * n));
      if (ours) return check(learn::bitonic_sort(stream(), as_tensor<uint32_t>(out[0], {n})));
      launch(stream(), tiles, shape, address(out[0]));
      for (int size = 2 * learn::kSortTile; size <= n; size *= 2) {
        for (int stride = size / 2; stride >= learn::kSortTile; stride /= 2) {
          launch(stream(), far, shape, address(out[0]), size, stride);
        }
        launch(stream(), near, shape, address(out[0]), size);
      }
    });
  }

  nlohmann::ordered_json scan() {
    const int n = (1 << 26) + 4;
    const Buffer x = random_words(device(), stream(), n);
    const int64_t words = learn::scan_tiles(n) + 1;
    Buffer progress = take(device().allocate(8 * words));
    const Function twin = function("scan", "scan");
    const LaunchShape shape = learn::scan_shape(n);
    return compare("scan", std::to_string(n), {4l * n}, 0, [&](Buffer* out, bool ours) {
      check(progress.fill(stream(), 0));
      if (!ours) {
        return launch(stream(), twin, shape, address(x), address(out[0]), address(progress), n);
      }
      check(learn::scan.launch(stream(), shape, as_tensor<const uint32_t>(x, {n}),
                               as_tensor<uint32_t>(out[0], {n}),
                               as_tensor<uint64_t>(progress, {words})));
    });
  }

  // Rows of 16 to 79 elements, in columns near the diagonal and far from it.
  nlohmann::ordered_json spmv() {
    const int rows = 1 << 20;
    std::mt19937 random(3);
    std::vector<int32_t> start = {0}, column;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < 16 + row % 64; ++k) {
        const int near = (row + k * 3) % rows;
        column.push_back(k % 4 == 0 ? static_cast<int32_t>(random() % rows) : near);
      }
      start.push_back(static_cast<int32_t>(column.size()));
    }
    const int64_t count = static_cast<int64_t>(column.size());
    const Buffer starts = take(device().upload(absl::MakeConstSpan(start)));
    const Buffer columns = take(device().upload(absl::MakeConstSpan(column)));
    const Buffer values = floats(count, -1, 1), x = floats(rows, -1, 1);
    const Function twin = function("spmv", "spmv");
    const LaunchShape shape = learn::spmv_shape(rows);
    return compare(
        "spmv", std::to_string(rows) + " rows, " + std::to_string(count) + " elements", {4l * rows},
        1e-6, [&](Buffer* out, bool ours) {
          if (!ours) {
            return launch(stream(), twin, shape, address(starts), address(columns), address(values),
                          address(x), address(out[0]), rows);
          }
          check(learn::spmv.launch(
              stream(), shape, as_tensor<const int32_t>(starts, {rows + 1}),
              as_tensor<const int32_t>(columns, {count}), as_tensor<const float>(values, {count}),
              as_tensor<const float>(x, {rows}), as_tensor<float>(out[0], {rows})));
        });
  }

  nlohmann::ordered_json monte_carlo_pi() {
    const int n = 1 << 28;
    const Function twin = function("monte_carlo_pi", "monte_carlo_pi");
    const LaunchShape shape = learn::pi_shape(8 * device().info().sm_count);
    return compare("monte_carlo_pi", std::to_string(n) + " hashes", {8}, 0,
                   [&](Buffer* out, bool ours) {
                     if (!ours) return launch(stream(), twin, shape, address(out[0]), n, 42u);
                     check(learn::monte_carlo_pi.launch(stream(), shape,
                                                        as_tensor<uint64_t>(out[0], {1}), n, 42u));
                   });
  }

  nlohmann::ordered_json stencil() {
    const int n = 512, framed = n + 2 * learn::kReach;
    const Buffer x = floats(int64_t{framed} * framed * framed, -1, 1);
    const Function twin = function("stencil", "stencil");
    const LaunchShape shape = learn::stencil_shape(n, n);
    return compare("stencil", "512 × 512 × 512", {4l * n * n * n}, 0, [&](Buffer* out, bool ours) {
      if (!ours) return launch(stream(), twin, shape, address(x), address(out[0]), n, n, n);
      check(learn::stencil.launch(stream(), shape,
                                  as_tensor<const float>(x, {framed, framed, framed}),
                                  as_tensor<float>(out[0], {n, n, n})));
    });
  }

  nlohmann::ordered_json cluster_histogram() {
    const int n = (1 << 26) + 5;
    const Buffer words = random_words(device(), stream(), n);
    const Function twin = function("cluster_histogram", "cluster_histogram");
    const LaunchShape shape = learn::cluster_histogram_shape(device().info().sm_count / 2);
    return compare("cluster_histogram", std::to_string(n) + " words", {4l * learn::kValues}, 0,
                   [&](Buffer* out, bool ours) {
                     if (!ours) {
                       return launch(stream(), twin, shape, address(words), address(out[0]), n);
                     }
                     check(learn::cluster_histogram.launch(
                         stream(), shape, as_tensor<const uint32_t>(words, {n}),
                         as_tensor<uint32_t>(out[0], {learn::kValues})));
                   });
  }
};

int run(int argc, char** argv) {
  CLI::App app("The programs of kernels/learn beside their CUDA C++ twins.");
  std::string folder;
  app.add_option("folder", folder, "where the twins' cubins are")->required();
  CLI11_PARSE(app, argc, argv);
  const nlohmann::ordered_json figures = Bench(take(Device::open("cuda:0")), folder).all();
  std::printf("%s\n", figures.dump(2).c_str());
  for (const auto& figure : figures) {
    if (!figure["agree"].get<bool>()) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::run(argc, argv); }
