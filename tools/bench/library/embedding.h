// Rows of a table, and their gradients, beside embedding.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/embedding/embedding.h"

namespace heddle::bench::library {

inline void embedding(Pairs& pairs) {
  constexpr int kWidth = 1024, kIds = kElements / kWidth;
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kIds, kWidth);
  const Buffer table = pairs.floats(kElements, -4, 4);
  std::mt19937 random(7);
  std::vector<int64_t> rows(kIds);
  for (int64_t& row : rows) row = random() % kIds;
  const Buffer id_buffer = take(pairs.device().upload(absl::MakeConstSpan(rows)));
  const auto from = matrix<const float>(table, kWidth);
  const auto ids = as_tensor<const int64_t>(id_buffer, {kIds});
  const LaunchShape shape{.grid = kIds / 4, .block = {64, 4}};
  pairs.compare(
      "embedding", "embedding", size, kElements, {4 * kElements}, 0,
      [&](Buffer* out) {
        return kernels::embedding(stream, from, ids, matrix<float>(out[0], kWidth));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, shape, address(table), address(id_buffer), address(out[0]), kIds);
      });
  // The table's numbers as the gradients.
  pairs.compare(
      "embedding", "embedding_backward", size, kElements, {4 * kElements}, 1e-6,
      [&](Buffer* out) {
        return kernels::embedding_backward(stream, ids, from, matrix<float>(out[0], kWidth));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, shape, address(id_buffer), address(table), address(out[0]), kIds);
      });
}

}  // namespace heddle::bench::library
