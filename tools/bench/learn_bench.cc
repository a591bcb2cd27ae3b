// The programs of kernels/learn on a GPU beside their CUDA C++ twins (learn/*.cu): pairs.h. Clearing and copying what
// a run starts from counts where each run needs it, on both sides.
#include "bench/pairs.h"
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

class Bench : public Pairs {
 public:
  using Pairs::Pairs;

  nlohmann::ordered_json all() {
    saxpy();
    transpose();
    histogram();
    nbody();
    mandelbrot();
    black_scholes();
    bitonic_sort();
    scan();
    spmv();
    monte_carlo_pi();
    stencil();
    cluster_histogram();
    return figures();
  }

 private:
  // The twin of a program has its name, in a file of that name.
  template <class Ours, class Theirs>
  void compare(const std::string& program, const std::string& size, double elements,
               const std::vector<int64_t>& bytes, const Tolerance& tolerance, Ours ours,
               Theirs theirs, const std::vector<std::string>& more = {}) {
    Pairs::compare(program, program, size, elements, bytes, tolerance, ours, theirs, more);
  }

  void saxpy() {
    const int n = (1 << 26) + 5;
    const Buffer x = floats(n, -1, 1);
    const LaunchShape shape = learn::saxpy_shape(n);
    compare(
        "saxpy", std::to_string(n), n, {4l * n}, 0,
        [&](Buffer* out) {
          return learn::saxpy.launch(stream(), shape, 2.5f, as_tensor<const float>(x, {n}),
                                     as_tensor<float>(out[0], {n}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, 2.5f, address(x), address(out[0]), n);
        });
  }

  void transpose() {
    const int rows = 8200, columns = 8190;
    const int64_t n = int64_t{rows} * columns;
    const Buffer x = floats(n, -1, 1);
    const LaunchShape shape = learn::transpose_shape(rows, columns);
    compare(
        "transpose", by(rows, columns), n, {4 * n}, 0,
        [&](Buffer* out) {
          return learn::transpose.launch(stream(), shape,
                                         as_tensor<const float>(x, {rows, columns}),
                                         as_tensor<float>(out[0], {columns, rows}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(out[0]), rows, columns);
        });
  }

  void histogram() {
    const int n = (1 << 26) + 5;
    const Buffer words = random_words(device(), stream(), n);
    const LaunchShape shape = learn::histogram_shape(8 * device().info().sm_count);
    compare(
        "histogram", std::to_string(n) + " words", n, {4l * learn::kBins}, 0,
        [&](Buffer* out) {
          return learn::histogram.launch(stream(), shape, as_tensor<const uint32_t>(words, {n}),
                                         as_tensor<uint32_t>(out[0], {learn::kBins}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(words), address(out[0]), n);
        });
  }

  // Instructions are counted by pairs of bodies.
  void nbody() {
    const int n = 65536;
    const Buffer body = floats(4l * n, 0.1f, 1);
    const LaunchShape shape = learn::nbody_shape(n);
    compare(
        "nbody", std::to_string(n), double{n} * n, {16l * n, 16l * n}, 1e-4,
        [&](Buffer* out) {
          return learn::nbody.launch(stream(), shape, as_tensor<const float>(body, {n, 4}),
                                     as_tensor<float>(out[0], {n, 4}),
                                     as_tensor<float>(out[1], {n, 4}), 1e-3f);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(body), address(out[0]), address(out[1]), n, 1e-3f);
        });
  }

  void mandelbrot() {
    const int height = 4096, width = 4096, limit = 512;
    const float left = -2, top = -1.25f, step = 2.5f / 4096;
    const LaunchShape shape = learn::mandelbrot_shape(height, width);
    compare(
        "mandelbrot", "4096 × 4096, 512 steps", double{height} * width, {4l * height * width}, 0,
        [&](Buffer* out) {
          return learn::mandelbrot.launch(stream(), shape,
                                          as_tensor<int32_t>(out[0], {height, width}),
                                          learn::Window{left, top, step}, limit);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(out[0]), height, width, left, top, step, limit);
        });
  }

  // Both sides' exponentials, logarithms and quotients may be off by what dsl/math/fast_math.h and
  // CUDA's documentation say. Through the formula, in which an error of d1 cancels to the first
  // order, and with the roundings that follow, that is at most 7.8e-5 in a call of up to 29
  // and 1.04e-4 in a put of up to 94, for these prices: 2.7e-6 of the largest.
  void black_scholes() {
    const int n = 1 << 25;
    const Buffer price = floats(n, 5, 30), strike = floats(n + 7, 1, 100),
                 years = floats(n + 5, 0.25f, 10);
    const LaunchShape shape = learn::black_scholes_shape(n);
    compare(
        "black_scholes", std::to_string(n), n, {4l * n, 4l * n}, 2.8e-6,
        [&](Buffer* out) {
          return learn::black_scholes.launch(
              stream(), shape, learn::Market{0.02f, 0.3f}, as_tensor<const float>(price, {n}),
              as_tensor<const float>(strike, {n}), as_tensor<const float>(years, {n}),
              as_tensor<float>(out[0], {n}), as_tensor<float>(out[1], {n}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, 0.02f, 0.3f, address(price), address(strike),
                 address(years), address(out[0]), address(out[1]), n);
        });
  }

  void bitonic_sort() {
    const int n = 1 << 22;
    const Buffer keys = random_words(device(), stream(), n);
    const LaunchShape shape{.grid = n / learn::kSortTile, .block = learn::kSortThreads};
    compare(
        "bitonic_sort", std::to_string(n), n, {4l * n}, 0,
        [&](Buffer* out) {
          check(out[0].copy_from(stream(), keys, 4l * n));
          return learn::bitonic_sort(stream(), as_tensor<uint32_t>(out[0], {n}));
        },
        [&](const std::vector<Function>& twins, Buffer* out) {
          const Function &tiles = twins[0], &far = twins[1], &near = twins[2];
          check(out[0].copy_from(stream(), keys, 4l * n));
          launch(stream(), tiles, shape, address(out[0]));
          for (int size = 2 * learn::kSortTile; size <= n; size *= 2) {
            for (int stride = size / 2; stride >= learn::kSortTile; stride /= 2) {
              launch(stream(), far, shape, address(out[0]), size, stride);
            }
            launch(stream(), near, shape, address(out[0]), size);
          }
        },
        {"merge_far", "merge_near"});
  }

  void scan() {
    const int n = (1 << 26) + 4;
    const Buffer x = random_words(device(), stream(), n);
    const int64_t words = learn::scan_tiles(n) + 1;
    Buffer progress = take(device().allocate(8 * words));
    const LaunchShape shape = learn::scan_shape(n);
    compare(
        "scan", std::to_string(n), n, {4l * n}, 0,
        [&](Buffer* out) {
          check(progress.fill(stream(), 0));
          return learn::scan.launch(stream(), shape, as_tensor<const uint32_t>(x, {n}),
                                    as_tensor<uint32_t>(out[0], {n}),
                                    as_tensor<uint64_t>(progress, {words}));
        },
        [&](const Function& twin, Buffer* out) {
          check(progress.fill(stream(), 0));
          launch(stream(), twin, shape, address(x), address(out[0]), address(progress), n);
        });
  }

  // Rows of 16 to 79 elements, in columns near the diagonal and far from it.
  void spmv() {
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
    const LaunchShape shape = learn::spmv_shape(rows);
    compare(
        "spmv", std::to_string(rows) + " rows, " + std::to_string(count) + " elements", count,
        {4l * rows}, 1e-6,
        [&](Buffer* out) {
          return learn::spmv.launch(
              stream(), shape, as_tensor<const int32_t>(starts, {rows + 1}),
              as_tensor<const int32_t>(columns, {count}), as_tensor<const float>(values, {count}),
              as_tensor<const float>(x, {rows}), as_tensor<float>(out[0], {rows}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(starts), address(columns), address(values),
                 address(x), address(out[0]), rows);
        });
  }

  void monte_carlo_pi() {
    const int n = 1 << 28;
    const LaunchShape shape = learn::pi_shape(8 * device().info().sm_count);
    compare(
        "monte_carlo_pi", std::to_string(n) + " hashes", n, {8}, 0,
        [&](Buffer* out) {
          return learn::monte_carlo_pi.launch(stream(), shape, as_tensor<uint64_t>(out[0], {1}), n,
                                              42u);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(out[0]), n, 42u);
        });
  }

  void stencil() {
    const int n = 512, framed = n + 2 * learn::kReach;
    const int64_t count = int64_t{n} * n * n;
    const Buffer x = floats(int64_t{framed} * framed * framed, -1, 1);
    const LaunchShape shape = learn::stencil_shape(n, n);
    compare(
        "stencil", "512 × 512 × 512", count, {4 * count}, 0,
        [&](Buffer* out) {
          return learn::stencil.launch(stream(), shape,
                                       as_tensor<const float>(x, {framed, framed, framed}),
                                       as_tensor<float>(out[0], {n, n, n}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(out[0]), n, n, n);
        });
  }

  void cluster_histogram() {
    const int n = (1 << 26) + 5;
    const Buffer words = random_words(device(), stream(), n);
    const LaunchShape shape = learn::cluster_histogram_shape(device().info().sm_count / 2);
    compare(
        "cluster_histogram", std::to_string(n) + " words", n, {4l * learn::kValues}, 0,
        [&](Buffer* out) {
          return learn::cluster_histogram.launch(stream(), shape,
                                                 as_tensor<const uint32_t>(words, {n}),
                                                 as_tensor<uint32_t>(out[0], {learn::kValues}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(words), address(out[0]), n);
        });
  }
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_pairs<heddle::bench::Bench>(
      "The programs of kernels/learn beside their CUDA C++ twins.", argc, argv);
}
