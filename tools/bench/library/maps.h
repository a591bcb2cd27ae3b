// Maps, copies and transposes beside maps.cu and transposes.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/axpby.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/map/elementwise.h"

namespace heddle::bench::library {

inline void elementwise(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRows, kColumns);
  const Buffer x = pairs.floats(kElements, -4, 4), row = pairs.floats(kColumns, -1, 1);
  const auto in = matrix<const float>(x);
  const auto vectors = static_cast<int>(kElements / 4);
  const LaunchShape one_each{.grid = Pairs::blocks(vectors), .block = 256},
      two_each{.grid = Pairs::blocks(vectors, 512), .block = 256},
      four_each{.grid = Pairs::blocks(vectors, 1024), .block = 256};
  pairs.compare(
      "maps", "axpby", std::to_string(kElements), kElements, {4 * kElements}, 1e-6,
      [&](Buffer* out) {
        return kernels::axpby(stream, 2.5f, as_tensor<const float>(x, {kElements}), 0.5f,
                              as_tensor<float>(out[0], {kElements}));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, four_each, 2.5f, address(x), 0.5f, address(out[0]),
               static_cast<int>(kElements));
      });
  pairs.compare(
      "maps", "gelu", size, kElements, {4 * kElements}, 1e-6,
      [&](Buffer* out) { return kernels::gelu(stream, in, matrix<float>(out[0])); },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, one_each, address(x), address(out[0]), vectors);
      });
  pairs.compare(
      "maps", "add_row", size, kElements, {4 * kElements}, 0,
      [&](Buffer* out) {
        return kernels::add(stream, in, as_tensor<const float>(row, {kColumns}),
                            matrix<float>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, one_each, address(x), address(row), address(out[0]), vectors);
      });
  pairs.compare(
      "maps", "cast_bf16", size, kElements, {2 * kElements}, 0,
      [&](Buffer* out) { return kernels::cast(stream, in, matrix<bfloat16>(out[0])); },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, two_each, address(x), address(out[0]), vectors);
      });
}

// From rows that lie 8256 elements apart.
inline void strided_copy(Pairs& pairs) {
  constexpr int kPitch = kColumns + 64;
  const Stream& stream = pairs.stream();
  const Buffer x = pairs.floats(int64_t{kPitch} * kRows, -4, 4);
  const auto all = as_tensor<const float>(x, {int64_t{kPitch} * kRows});
  const auto vectors = static_cast<int>(kElements / 4);
  pairs.compare(
      "maps", "copy_rows", Pairs::by(kRows, kColumns), kElements, {4 * kElements}, 0,
      [&](Buffer* out) {
        return kernels::copy(stream,
                             TensorRef<const float, 2>(all.data, {kRows, kColumns}, {kPitch, 1}),
                             matrix<float>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, LaunchShape{.grid = Pairs::blocks(vectors), .block = 256}, address(x),
               address(out[0]), kPitch / 4, vectors);
      });
}

// Tiles of `rows` rows and `columns` columns.
template <class T>
void transposed_copy(Pairs& pairs, const char* name, int rows, int columns) {
  const Stream& stream = pairs.stream();
  const Buffer x = random_words(pairs.device(), stream, kElements * int64_t{sizeof(T)} / 4);
  pairs.compare(
      "transposes", name, Pairs::by(kRows, kColumns), kElements, {kElements * int64_t{sizeof(T)}},
      0,
      [&](Buffer* out) {
        return kernels::copy(stream, kernels::permuted(matrix<const T>(x), {1, 0}),
                             as_tensor<T>(out[0], {kColumns, kRows}));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, {.grid = {kRows / rows, kColumns / columns}, .block = 256}, address(x),
               address(out[0]), kRows, kColumns);
      });
}

inline void maps(Pairs& pairs) {
  elementwise(pairs);
  strided_copy(pairs);
  transposed_copy<float>(pairs, "copy_transposed", 64, 64);
  transposed_copy<bfloat16>(pairs, "copy_transposed_bf16", 64, 128);
}

}  // namespace heddle::bench::library
