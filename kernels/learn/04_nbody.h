// 4. N-body: load once, use by all.
//
//   nbody.launch(stream, nbody_shape(n), body, velocity, moved, 0.01f);   // n × 4 each
//
// Each of n bodies (x, y, z, mass) feels all others: n² interactions over n loads. A block reads a
// tile of bodies together, one a thread, and every thread then meets the whole tile in shared
// memory, where one word for all threads of a warp is one access. The inner loop is unrolled, and
// rsqrt spared its care for subnormal arguments: the softening is far from those.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kBodies = 256;          // in a tile, and threads in a block
inline constexpr float kSoftening2 = 1e-4f;  // keeps close encounters finite

struct Vec3 {
  Float x, y, z;
};

// The acceleration of a body at `p`, with the part that `other` adds.
inline Vec3 interact(const Vec3& a, const Vec<float, 4>& p, const Vec<float, 4>& other) {
  Float dx = other[0] - p[0], dy = other[1] - p[1], dz = other[2] - p[2];
  const FlushSubnormals flush;
  Float inverse = rsqrt(dx * dx + dy * dy + dz * dz + kSoftening2);
  Float pull = other[3] * (inverse * inverse * inverse);
  return {a.x + dx * pull, a.y + dy * pull, a.z + dz * pull};
}

inline const auto nbody = define_kernel(
    "nbody(body, velocity, moved, dt)",
    [](Tensor<const float, 2> body, Tensor<float, 2> velocity, Tensor<float, 2> moved, Float dt) {
      Shared<float, 2> tile({kBodies, 4});
      Int n = body.shape(0), own = block_idx.x * kBodies + thread_idx.x;
      const auto load = [&](const Int& i) {  // past the end: the last body, without its mass
        Vec<float, 4> b = body.vec<4>(min(i, n - 1), 0);
        return Vec<float, 4>(b[0], b[1], b[2], select(i < n, b[3], 0.0f));
      };
      Vec<float, 4> p = load(own);
      Vec3 a = For(range(0, n, kBodies), Vec3{0, 0, 0}, [&](Int first, Vec3 sum) {
        tile.vec<4>(thread_idx.x, 0) = load(first + thread_idx.x);
        sync_threads();
        Vec3 total = For(range(kBodies).unroll(64), sum,
                         [&](Int j, Vec3 part) { return interact(part, p, tile.vec<4>(j, 0)); });
        sync_threads();
        return total;
      });
      If(own < n, [&] {
        Vec<float, 4> v = velocity.vec<4>(own, 0);
        Vec<float, 4> w = fma(Vec<float, 4>(a.x, a.y, a.z, 0.0f), dt, v);
        velocity.vec<4>(own, 0) = w;
        moved.vec<4>(own, 0) =
            Vec<float, 4>(p[0] + w[0] * dt, p[1] + w[1] * dt, p[2] + w[2] * dt, p[3]);
      });
    });

constexpr LaunchShape nbody_shape(int64_t n) {
  return {.grid = (n + kBodies - 1) / kBodies, .block = kBodies};
}

}  // namespace heddle::learn
