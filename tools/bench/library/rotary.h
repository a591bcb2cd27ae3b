// Pairs that turn by their token's angles beside rotary.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/rotary/rotary.h"

namespace heddle::bench::library {

inline void rotary(Pairs& pairs) {
  constexpr int kHeads = 32, kOfHead = 128, kTokens = kElements / kHeads / kOfHead;
  const Stream& stream = pairs.stream();
  const Buffer x = pairs.floats(kElements, -4, 4),
               cosine = pairs.floats(int64_t{kTokens} * kOfHead / 2, -1, 1),
               sine = pairs.floats(int64_t{kTokens} * kOfHead / 2, -1, 1);
  const auto angles = [&](const Buffer& of) {
    return as_tensor<const float>(of, {kTokens, kOfHead / 2});
  };
  const LaunchShape shape{.grid = Pairs::blocks(kElements / 32), .block = 256};
  pairs.compare(
      "rotary", "rotary", Pairs::by(kTokens, kHeads) + " × " + std::to_string(kOfHead), kElements,
      {4 * kElements}, 0,
      [&](Buffer* out) {
        return kernels::rotary(stream, kernels::RotaryPairs::kHalves,
                               as_tensor<const float>(x, {kTokens, kHeads, kOfHead}),
                               angles(cosine), angles(sine),
                               as_tensor<float>(out[0], {kTokens, kHeads, kOfHead}));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, shape, address(x), address(cosine), address(sine), address(out[0]),
               kTokens);
      });
}

}  // namespace heddle::bench::library
