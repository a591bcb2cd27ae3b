// The greatest elements of rows beside topk.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/topk/topk.h"

namespace heddle::bench::library {

inline void topk(Pairs& pairs) {
  constexpr int kTop = 8;
  const Stream& stream = pairs.stream();
  const Buffer x = pairs.floats(kElements, -4, 4);
  pairs.compare(
      "topk", "topk", Pairs::by(kRows, kColumns) + ", k = 8", kElements,
      {4 * kTop * kRows, 8 * kTop * kRows}, 0,
      [&](Buffer* out) {
        return kernels::topk(stream, kernels::Extreme::kGreatest, matrix<const float>(x),
                             as_tensor<float>(out[0], {kRows, kTop}),
                             as_tensor<int64_t>(out[1], {kRows, kTop}));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, LaunchShape{.grid = kRows, .block = 256}, address(x), address(out[0]),
               address(out[1]), kTop);
      });
}

}  // namespace heddle::bench::library
