// Random numbers without a state: Philox4x32-10 (Salmon et al., Parallel Random Numbers, 2011).
//
//   const std::array<UInt, 4> words = philox({column / 4, row, 0, 0}, {seed_low, seed_high});
//
// A hash of a counter by a key: whoever has both has the same four words of 32 bits, whatever thread computes them.
#pragma once

#include <array>

#include "heddle/dsl/dsl.h"

namespace heddle::kernels {

// Four random words of a counter and a key.
inline std::array<UInt, 4> philox(const std::array<UInt, 4>& counter,
                                  const std::array<UInt, 2>& key) {
  using Words = std::array<UInt, 4>;
  Var<Words> c(counter);
  for (uint32_t round = 0; round < 10; ++round) {
    const Words w = c;
    const UInt first = key[0] + 0x9E3779B9u * round, second = key[1] + 0xBB67AE85u * round;
    c = Words{mulhi(0xCD9E8D57u, w[2]) ^ w[1] ^ first, 0xCD9E8D57u * w[2],
              mulhi(0xD2511F53u, w[0]) ^ w[3] ^ second, 0xD2511F53u * w[0]};
  }
  return c;
}

}  // namespace heddle::kernels
