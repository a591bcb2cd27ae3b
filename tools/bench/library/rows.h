// Softmax, cross-entropy and their gradients beside rows.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "heddle/kernels/softmax/softmax.h"

namespace heddle::bench::library {

inline void of_one_matrix(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRows, kColumns);
  const Buffer x = pairs.floats(kElements, -4, 4), gradients = pairs.floats(kRows, -1, 1);
  std::vector<int64_t> classes(kRows);
  for (int row = 0; row < kRows; ++row) classes[row] = row % 50 == 0 ? -1 : row * 37 % kColumns;
  const Buffer targets = take(pairs.device().upload(absl::MakeConstSpan(classes)));
  const auto in = matrix<const float>(x);
  const auto target = as_tensor<const int64_t>(targets, {kRows});
  const auto to_twin = [&](const Function& twin, Buffer* out) {
    launch(stream, twin, kHeldRows, address(x), address(out[0]));
  };
  pairs.compare(
      "rows", "softmax", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) { return kernels::softmax(stream, in, matrix<float>(out[0])); }, to_twin);
  pairs.compare(
      "rows", "log_softmax", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) { return kernels::log_softmax(stream, in, matrix<float>(out[0])); },
      to_twin);
  pairs.compare(
      "rows", "cross_entropy", size, kElements, {4 * kRows}, 1e-5,
      [&](Buffer* out) {
        return kernels::cross_entropy(stream, in, target, as_tensor<float>(out[0], {kRows}));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(targets), address(out[0]));
      });
  pairs.compare(
      "rows", "cross_entropy_backward", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::cross_entropy_backward(
            stream, in, target, as_tensor<const float>(gradients, {kRows}), matrix<float>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(targets), address(gradients),
               address(out[0]));
      });
}

inline void of_two_matrices(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRowsOfTwo, kColumnsOfTwo);
  const Buffer y = pairs.floats(kElements, 0, 1), dy = pairs.floats(kElements, -1, 1);
  const auto of = matrix<const float>(y, kColumnsOfTwo),
             by_dy = matrix<const float>(dy, kColumnsOfTwo);
  const auto to_twin = [&](const Function& twin, Buffer* out) {
    launch(stream, twin, kHeldRowsOfTwo, address(y), address(dy), address(out[0]));
  };
  pairs.compare(
      "rows", "softmax_backward", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::softmax_backward(stream, of, by_dy, matrix<float>(out[0], kColumnsOfTwo));
      },
      to_twin);
  pairs.compare(
      "rows", "log_softmax_backward", size, kElements, {4 * kElements}, 1e-5,
      [&](Buffer* out) {
        return kernels::log_softmax_backward(stream, of, by_dy,
                                             matrix<float>(out[0], kColumnsOfTwo));
      },
      to_twin);
}

// Of bfloat16, each word two numbers, with small exponents, so that none is NaN.
inline void of_halves(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const Buffer x = random_words(pairs.device(), stream, kElements / 2, 0xbfffbfff);
  pairs.compare(
      "rows", "softmax_bf16", Pairs::by(kRows, kColumns), kElements, {2 * kElements},
      {1e-2, Held::kBFloats},
      [&](Buffer* out) {
        return kernels::softmax(stream, matrix<const bfloat16>(x), matrix<bfloat16>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, LaunchShape{.grid = kRows, .block = 256}, address(x), address(out[0]));
      });
}

inline void rows(Pairs& pairs) {
  of_one_matrix(pairs);
  of_two_matrices(pairs);
  of_halves(pairs);
}

}  // namespace heddle::bench::library
