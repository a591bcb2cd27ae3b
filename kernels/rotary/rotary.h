// Rotary position embedding (Su et al., RoFormer, 2021): pairs of a head's elements turn by angles of their token.
//
//   Status s = kernels::rotary(stream, RotaryPairs::kHalves, x, cosine, sine, y);
//
// With a = x(t, h, i) and b its partner: y(t, h, i) = a cosine(t, i) − b sine(t, i), and in the partner's place
// b cosine(t, i) + a sine(t, i), i from 0 to half of a head's elements. Of kHalves i and i + half are partners, of
// kNeighbours 2 i and 2 i + 1. The gradient is the turn back: rotary_backward. x is read once and y written once, the floor.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

enum class RotaryPairs { kHalves, kNeighbours };

// x and y of tokens × heads × elements, T of f32, f16 or bf16; cosine and sine of tokens × half of the elements. Computed in
// f32 with one product rounded and a fused multiply-add, rounded once more to T; y may be x. kInvalidArgument where extents do
// not fit each other, elements of a head are odd, and for 2^31 - 65536 tokens or elements of a token, or more.
template <class T>
Status rotary(const Stream& stream, RotaryPairs pairs, const TensorRef<const T, 3>& x,
              const TensorRef<const float, 2>& cosine, const TensorRef<const float, 2>& sine,
              const TensorRef<T, 3>& y);

// dx of dy: turns by the same angles the other way.
template <class T>
Status rotary_backward(const Stream& stream, RotaryPairs pairs, const TensorRef<const T, 3>& dy,
                       const TensorRef<const float, 2>& cosine,
                       const TensorRef<const float, 2>& sine, const TensorRef<T, 3>& dx);

}  // namespace heddle::kernels
