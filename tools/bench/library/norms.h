// The norms, also of sums with a residual, and their gradients beside norms.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/norm/norm.h"

namespace heddle::bench::library {

constexpr float kEpsilon = 1e-5f;

inline void norms_of_one_matrix(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRows, kColumns);
  const Buffer x = pairs.floats(kElements, -4, 4), weight = pairs.floats(kColumns, 0.5f, 2),
               bias = pairs.floats(kColumns, -1, 1);
  const auto in = matrix<const float>(x);
  const auto w = as_tensor<const float>(weight, {kColumns}),
             b = as_tensor<const float>(bias, {kColumns});
  pairs.compare(
      "norms", "rms_norm", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::rms_norm(stream, in, w, matrix<float>(out[0]), kEpsilon);
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(weight), address(out[0]), kEpsilon);
      });
  pairs.compare(
      "norms", "layer_norm", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::layer_norm(stream, in, w, b, matrix<float>(out[0]), kEpsilon);
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(weight), address(bias), address(out[0]),
               kEpsilon);
      });
}

inline void norms_of_sums(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRowsOfTwo, kColumnsOfTwo);
  const Buffer x = pairs.floats(kElements, -4, 4), residual = pairs.floats(kElements, -1, 2),
               weight = pairs.floats(kColumnsOfTwo, 0.5f, 2),
               bias = pairs.floats(kColumnsOfTwo, -1, 1);
  const auto in = matrix<const float>(x, kColumnsOfTwo),
             more = matrix<const float>(residual, kColumnsOfTwo);
  const auto w = as_tensor<const float>(weight, {kColumnsOfTwo}),
             b = as_tensor<const float>(bias, {kColumnsOfTwo});
  const auto out_of = [](const Buffer& out) { return matrix<float>(out, kColumnsOfTwo); };
  pairs.compare(
      "norms", "add_rms_norm", size, kElements, {4 * kElements, 4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::add_rms_norm(stream, in, more, w, out_of(out[0]), out_of(out[1]), kEpsilon);
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRowsOfTwo, address(x), address(residual), address(weight),
               address(out[0]), address(out[1]), kEpsilon);
      });
  pairs.compare(
      "norms", "add_layer_norm", size, kElements, {4 * kElements, 4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::add_layer_norm(stream, in, more, w, b, out_of(out[0]), out_of(out[1]),
                                       kEpsilon);
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRowsOfTwo, address(x), address(residual), address(weight),
               address(bias), address(out[0]), address(out[1]), kEpsilon);
      });
}

inline void norms(Pairs& pairs) {
  norms_of_one_matrix(pairs);
  norms_of_sums(pairs);
}

// A launch for the rows, and one that adds up what its blocks have of the weights' gradients. Ours copies these once
// more, to where they may have another type.
inline void norms_backward(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRowsOfTwo, kColumnsOfTwo);
  const int64_t blocks = 2 * pairs.device().info().sm_count, columns = kColumnsOfTwo;
  const Buffer x = pairs.floats(kElements, -4, 4), dy = pairs.floats(kElements, -1, 1),
               weight = pairs.floats(columns, 0.5f, 2),
               sums = take(pairs.device().allocate(2 * blocks * columns * 4));
  const auto in = matrix<const float>(x, columns), by = matrix<const float>(dy, columns);
  const auto w = as_tensor<const float>(weight, {columns});
  const auto twin = [&](int weights) {
    return [&, weights](const std::vector<Function>& twins, Buffer* out) {
      launch(stream, twins[0], {.grid = blocks, .block = 512}, address(x), address(weight),
             address(dy), address(out[0]), address(sums), kEpsilon, kRowsOfTwo);
      launch(stream, twins[1], {.grid = {columns / 128, 1, weights}, .block = {32, 8}},
             address(sums), address(out[1]), static_cast<int>(blocks), kColumnsOfTwo);
    };
  };
  const std::vector<std::string> further = {"add_up_weights"};
  pairs.compare(
      "norms", "rms_norm_backward", size, kElements, {4 * kElements, 4 * columns}, 1e-5,
      [&](Buffer* out) {
        return kernels::rms_norm_backward(stream, in, w, by, matrix<float>(out[0], columns),
                                          as_tensor<float>(out[1], {columns}), kEpsilon);
      },
      twin(1), further);
  pairs.compare(
      "norms", "layer_norm_backward", size, kElements, {4 * kElements, 8 * columns}, 1e-5,
      [&](Buffer* out) {
        const auto gradients = as_tensor<float>(out[1], {2, columns});
        return kernels::layer_norm_backward(
            stream, in, w, by, matrix<float>(out[0], columns),
            TensorRef<float, 1>(gradients.data, {columns}),
            TensorRef<float, 1>(gradients.data + columns, {columns}), kEpsilon);
      },
      twin(2), further);
}

}  // namespace heddle::bench::library
