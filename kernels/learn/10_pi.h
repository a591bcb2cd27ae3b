// 10. Monte Carlo π with Philox (Salmon et al. 2011): random numbers without a state.
//
//   hits.fill(stream, 0);                                            // one uint64_t
//   monte_carlo_pi.launch(stream, pi_shape(blocks), hits, n, seed);  // of 2 n points
//
// A counter-based generator is a hash: number i of stream `seed` is philox(i, seed), so a thread
// needs nothing but its own i, and results do not depend on the grid. Each hash gives two points of
// the unit square; the share of those within the quarter circle is π/4.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

using Word4 = std::array<UInt, 4>;

// Philox4x32-10: four random words from a counter and a key, by ten rounds of wide products.
inline Word4 philox(const UInt& counter, const UInt& key) {
  Var<Word4> c(Word4{counter, 0, 0, 0});
  UInt k0 = key, k1 = 0;
  for (int round = 0; round < 10; ++round) {
    const Word4 w = c;
    UInt r0 = k0 + 0x9E3779B9u * round, r1 = k1 + 0xBB67AE85u * round;
    c = Word4{mulhi(0xCD9E8D57u, w[2]) ^ w[1] ^ r0, 0xCD9E8D57u * w[2],
              mulhi(0xD2511F53u, w[0]) ^ w[3] ^ r1, 0xD2511F53u * w[0]};
  }
  return c;
}

// 1 if the point, two words scaled to (0, 1), lies within the circle.
inline UInt hit(const UInt& a, const UInt& b) {
  Float x = fma(cast<float>(a), 0x1p-32f, 0x1p-33f), y = fma(cast<float>(b), 0x1p-32f, 0x1p-33f);
  return select(fma(x, x, y * y) < 1.0f, 1u, 0u);
}

inline const auto monte_carlo_pi =
    define_kernel("monte_carlo_pi(hits, n, seed)", [](Tensor<uint64_t, 1> hits, Int n, UInt seed) {
      Int first = block_idx.x * block_dim.x + thread_idx.x;
      UInt mine = For(range(first, n, grid_dim.x * block_dim.x), UInt(0), [&](Int i, UInt count) {
        Word4 w = philox(bitcast<uint32_t>(i), seed);
        return count + hit(w[0], w[1]) + hit(w[2], w[3]);
      });
      UInt sum = block_reduce(mine, plus());
      If(thread_idx.x == 0, [&] { atomic_add(hits(0), cast<uint64_t>(sum)); });
    });

constexpr LaunchShape pi_shape(int64_t blocks) { return {.grid = blocks, .block = 256}; }

}  // namespace heddle::learn
