// Elements that become 0 at random beside dropout.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/dropout/dropout.h"

namespace heddle::bench::library {

inline void dropout(Pairs& pairs) {
  constexpr uint32_t kSeed[] = {12345, 678};
  const Stream& stream = pairs.stream();
  const Buffer x = pairs.floats(kElements, -4, 4);
  const LaunchShape shape{.grid = Pairs::blocks(kElements / 8), .block = 256};
  pairs.compare(
      "dropout", "dropout", Pairs::by(kRows, kColumns), kElements, {4 * kElements}, 0,
      [&](Buffer* out) {
        return kernels::dropout(stream, matrix<const float>(x), 0.25f,
                                uint64_t{kSeed[1]} << 32 | kSeed[0], matrix<float>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, shape, address(x), address(out[0]),
               uint64_t{kSeed[1]} << 32 | kSeed[0], uint32_t{1} << 30, 1 / 0.75f, kRows);
      });
}

}  // namespace heddle::bench::library
