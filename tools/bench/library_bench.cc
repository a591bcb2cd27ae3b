// The library's kernels on a GPU beside CUDA C++ twins of the same algorithm (library/*.cu): pairs.h. Matrices of
// 2^26 elements. gemm has none: what its loop takes stands beside CUTLASS's.
#include "bench/pairs.h"
#include "heddle/kernels/axpby.h"
#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/kernels/softmax/softmax.h"

namespace heddle::bench {
namespace {

constexpr int64_t kElements = int64_t{1} << 26;
// The launches that the library's functions choose for these matrices, which the twins have too.
constexpr int kColumns = 8192, kRows = kElements / kColumns;
const LaunchShape kHeldRows{.grid = kRows, .block = 512};
constexpr int kColumnsOfTwo = 4096,
              kRowsOfTwo = kElements / kColumnsOfTwo;  // where two matrices are read
const LaunchShape kHeldRowsOfTwo{.grid = kRowsOfTwo, .block = 512};
constexpr float kEpsilon = 1e-5f;

class Bench : public Pairs {
 public:
  using Pairs::Pairs;

  nlohmann::ordered_json all() {
    of_one_matrix();
    of_two_matrices();
    halves();
    return figures();
  }

 private:
  template <class T>
  static TensorRef<T, 2> matrix(const Buffer& buffer, int64_t columns = kColumns) {
    return as_tensor<T>(buffer, {kElements / columns, columns});
  }

  void of_one_matrix() {
    const std::string size = by(kRows, kColumns);
    const Buffer x = floats(kElements, -4, 4), weight = floats(kColumns, 0.5f, 2),
                 bias = floats(kColumns, -1, 1);
    const auto in = matrix<const float>(x);
    const auto w = as_tensor<const float>(weight, {kColumns}),
               b = as_tensor<const float>(bias, {kColumns});
    const auto to_twin = [&](const Function& twin, Buffer* out) {
      launch(stream(), twin, kHeldRows, address(x), address(out[0]));
    };
    const LaunchShape tiles{.grid = kElements / 4096, .block = 256};
    compare(
        "library", "axpby", std::to_string(kElements), kElements, {4 * kElements}, 1e-6,
        [&](Buffer* out) {
          return kernels::axpby(stream(), 2.5f, as_tensor<const float>(x, {kElements}), 0.5f,
                                as_tensor<float>(out[0], {kElements}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, tiles, 2.5f, address(x), 0.5f, address(out[0]),
                 static_cast<int>(kElements));
        });
    compare(
        "library", "row_sum", size, kElements, {4 * kRows}, 1e-5,
        [&](Buffer* out) {
          return kernels::row_sum(stream(), in, as_tensor<float>(out[0], {kRows}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, kHeldRows, address(x), address(out[0]), kColumns);
        });
    compare(
        "library", "softmax", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) { return kernels::softmax(stream(), in, matrix<float>(out[0])); },
        to_twin);
    compare(
        "library", "log_softmax", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) { return kernels::log_softmax(stream(), in, matrix<float>(out[0])); },
        to_twin);
    compare(
        "library", "rms_norm", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) {
          return kernels::rms_norm(stream(), in, w, matrix<float>(out[0]), kEpsilon);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, kHeldRows, address(x), address(weight), address(out[0]), kEpsilon,
                 kColumns);
        });
    compare(
        "library", "layer_norm", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) {
          return kernels::layer_norm(stream(), in, w, b, matrix<float>(out[0]), kEpsilon);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, kHeldRows, address(x), address(weight), address(bias),
                 address(out[0]), kEpsilon, kColumns);
        });
    const Buffer targets = take(device().upload<int64_t>(std::vector<int64_t>(kRows, 200)));
    compare(
        "library", "cross_entropy", size, kElements, {4 * kRows}, 1e-5,
        [&](Buffer* out) {
          return kernels::cross_entropy(stream(), in, as_tensor<const int64_t>(targets, {kRows}),
                                        as_tensor<float>(out[0], {kRows}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, kHeldRows, address(x), address(targets), address(out[0]));
        });
  }

  void of_two_matrices() {
    const std::string size = by(kRowsOfTwo, kColumnsOfTwo);
    const Buffer y = floats(kElements, 0, 1), dy = floats(kElements, -1, 1);
    const auto of = matrix<const float>(y, kColumnsOfTwo),
               by_dy = matrix<const float>(dy, kColumnsOfTwo);
    const auto to_twin = [&](const Function& twin, Buffer* out) {
      launch(stream(), twin, kHeldRowsOfTwo, address(y), address(dy), address(out[0]));
    };
    compare(
        "library", "softmax_backward", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) {
          return kernels::softmax_backward(stream(), of, by_dy,
                                           matrix<float>(out[0], kColumnsOfTwo));
        },
        to_twin);
    compare(
        "library", "log_softmax_backward", size, kElements, {4 * kElements}, 1e-5,
        [&](Buffer* out) {
          return kernels::log_softmax_backward(stream(), of, by_dy,
                                               matrix<float>(out[0], kColumnsOfTwo));
        },
        to_twin);
  }

  // Of bfloat16, each word two numbers, with small exponents, so that none is NaN.
  void halves() {
    const Buffer x = random_words(device(), stream(), kElements / 2, 0xbfffbfff);
    compare(
        "library", "softmax_bf16", by(kRows, kColumns), kElements, {2 * kElements},
        {1e-2, Held::kBFloats},
        [&](Buffer* out) {
          return kernels::softmax(stream(), matrix<const bfloat16>(x), matrix<bfloat16>(out[0]));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, LaunchShape{.grid = kRows, .block = 256}, address(x),
                 address(out[0]));
        });
  }
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_pairs<heddle::bench::Bench>(
      "The library's kernels beside their CUDA C++ twins.", argc, argv);
}
