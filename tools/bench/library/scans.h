// Prefix sums of rows, and of one long row, beside scans.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/scan/scan.h"

namespace heddle::bench::library {

inline void scans(Pairs& pairs) {
  const Stream& stream = pairs.stream();
  const Buffer x = pairs.floats(kElements, -4, 4);
  pairs.compare(
      "scans", "scan_rows", Pairs::by(kRows, kColumns), kElements, {4 * kElements}, 1e-6,
      [&](Buffer* out) {
        return kernels::scan(stream, kernels::Prefix::kInclusive, matrix<const float>(x),
                             matrix<float>(out[0]));
      },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(out[0]));
      });
  constexpr int64_t kTile = 10240, kTiles = (kElements + kTile - 1) / kTile,
                    kWords = kTiles + (kTiles + 31) / 32;
  Buffer words = take(pairs.device().allocate(8 * kWords));
  pairs.compare(
      "scans", "scan_tiles", Pairs::by(1, kElements), kElements, {4 * kElements}, 1e-6,
      [&](Buffer* out) {
        return kernels::scan(stream, kernels::Prefix::kInclusive, matrix<const float>(x, kElements),
                             matrix<float>(out[0], kElements));
      },
      [&](const Function& twin, Buffer* out) {
        check(words.fill(stream, 0));
        launch(stream, twin, LaunchShape{.grid = kTiles, .block = 256}, address(x), address(out[0]),
               address(words), static_cast<int>(kElements / 4));
      });
}

}  // namespace heddle::bench::library
