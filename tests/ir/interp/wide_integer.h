// Integers wide enough that oracles compute as on paper.
#pragma once

namespace heddle::ir {

__extension__ typedef __int128 Wide;

// a * b + c modulo 2^128, for factors of 64 bits; a result is cut to 64 bits at most.
inline Wide multiply_add(Wide a, Wide b, Wide c) {
  __extension__ typedef unsigned __int128 Unsigned;
  return static_cast<Wide>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b) +
                           static_cast<Unsigned>(c));
}

}  // namespace heddle::ir
