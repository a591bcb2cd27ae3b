// Loops that end early, and branches within them.
#pragma once

#include <deque>
#include <limits>

#include "heddle/dsl/dsl.h"

namespace heddle::plain {

// Where the first of a column's keys stands that is the wanted one; -1 without.
inline const auto linear_search = define_kernel(
    "linear_search(keys, wanted, at)",
    [](Tensor<const int32_t, 2> keys, Tensor<const int32_t, 1> wanted, Tensor<int32_t, 1> at) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < at.shape(0), [&] {
        const Int key = wanted(i);
        Var<int32_t> found(-1);
        for (Int k : range(keys.shape(0))) {
          If(keys(k, i) == key, [&] {
            found = k;
            Break();
          });
        }
        at(i) = found;
      });
    });

// The sum of the roots of a column's positive elements.
inline const auto sum_of_roots =
    define_kernel("sum_of_roots(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < y.shape(0), [&] {
        Var<float> sum(0.0f);
        for (Int k : range(x.shape(0))) {
          const Float v = x(k, i);
          If(v <= 0, [] { Continue(); });
          sum += sqrt(v);
        }
        y(i) = sum;
      });
    });

// How many steps Collatz's sequence from i + 1 takes to 1.
inline const auto collatz = define_kernel("collatz(steps)", [](Tensor<int32_t, 1> steps) {
  const Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < steps.shape(0), [&] {
    Var<uint32_t> n(cast<uint32_t>(i) + 1u);
    Var<int32_t> count(0);
    While([&] { return n != 1u; },
          [&] {
            If((n & 1u) == 0, [&] { n = n / 2; }).Else([&] { n = 3u * n + 1u; });
            count += 1;
          });
    steps(i) = count;
  });
});

// After XSBench's grid_search: the interval of a sorted grid that holds a value.
inline const auto grid_search = define_kernel(
    "grid_search(grid, values, at)",
    [](Tensor<const float, 1> grid, Tensor<const float, 1> values, Tensor<int32_t, 1> at) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < at.shape(0), [&] {
        const Float value = values(i);
        Var<int32_t> lower(0), upper(grid.shape(0) - 1), length(grid.shape(0) - 1);
        While([&] { return length > 1; },
              [&] {
                const Int middle = lower + length / 2;
                If(grid(middle) > value, [&] { upper = middle; }).Else([&] { lower = middle; });
                length = upper - lower;
              });
        at(i) = lower;
      });
    });

inline UInt hash_of(const UInt& key) {
  const UInt mixed = (key ^ (key >> 16u)) * 0x85ebca6bu;
  return mixed ^ (mixed >> 13u);
}

// Open addressing: where each key stands in a table of a power of two of keys; 0 is an empty place.
inline const auto hash_find = define_kernel(
    "hash_find(table, keys, at)",
    [](Tensor<const uint32_t, 1> table, Tensor<const uint32_t, 1> keys, Tensor<int32_t, 1> at) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < keys.shape(0), [&] {
        const UInt key = keys(i), mask = cast<uint32_t>(table.shape(0)) - 1u;
        Var<uint32_t> place(hash_of(key) & mask);
        Var<int32_t> found(-1);
        While([] { return Bool(true); },
              [&] {
                const UInt there = table(cast<int32_t>(place));
                If(there == key, [&] {
                  found = cast<int32_t>(place);
                  Break();
                });
                If(there == 0u, [] { Break(); });
                place = (place + 1u) & mask;
              });
        at(i) = found;
      });
    });

// The same table filled: each key is put into the first empty place from its own on, or found there.
inline const auto hash_insert = define_kernel(
    "hash_insert(table, keys, is_new)",
    [](Tensor<uint32_t, 1> table, Tensor<const uint32_t, 1> keys, Tensor<int32_t, 1> is_new) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < keys.shape(0), [&] {
        const UInt key = keys(i), mask = cast<uint32_t>(table.shape(0)) - 1u;
        Var<uint32_t> place(hash_of(key) & mask);
        Var<int32_t> inserted(0);
        While([] { return Bool(true); },
              [&] {
                const UInt there = atomic_cas(table(cast<int32_t>(place)), 0u, key);
                If(there == 0u, [&] {
                  inserted = 1;
                  Break();
                });
                If(there == key, [] { Break(); });
                place = (place + 1u) & mask;
              });
        is_new(i) = inserted;
      });
    });

// The eight largest elements of each row, the largest first, one block a row: each thread keeps the eight largest of its
// own in order, then the block takes the largest of all first elements eight times.
inline const auto top_k = define_kernel("top_k(x, y)", [](Tensor<const float, 2> x,
                                                          Tensor<float, 2> y) {
  const Int row = block_idx.x;
  std::deque<Var<float>> best;  // variables do not move
  for (int k = 0; k < 8; ++k) best.emplace_back(std::numeric_limits<float>::lowest());
  for (Int i : range(thread_idx.x, x.shape(1), block_dim.x)) {
    Var<float> rest(x(row, i));
    for (Var<float>& b : best) {
      const Float larger = max(b, rest);
      rest = min(b, rest);
      b = larger;
    }
  }
  for (int k = 0; k < 8; ++k) {
    const Float top = block_reduce(Float(best[0]), maximum());
    const Int owner = block_reduce(
        select(best[0] == top, Int(thread_idx.x), std::numeric_limits<int32_t>::max()), minimum());
    If(thread_idx.x == owner, [&] {
      for (size_t j = 0; j + 1 < best.size(); ++j) best[j] = best[j + 1];
      best.back() = std::numeric_limits<float>::lowest();
      y(row, k) = top;
    });
  }
});

// After "Ray Tracing in One Weekend" (Shirley): where rays from the origin hit the nearest of some spheres, and the
// direction away from it. A sphere has a centre and a radius.
inline const auto hits = define_kernel(
    "hits(directions, spheres, distances, normals)",
    [](Tensor<const float, 2> directions, Tensor<const float, 2> spheres,
       Tensor<float, 1> distances, Tensor<float, 2> normals) {
      const Int ray = block_idx.x * block_dim.x + thread_idx.x;
      If(ray < distances.shape(0), [&] {
        const Float dx = directions(ray, 0), dy = directions(ray, 1), dz = directions(ray, 2);
        const Float length2 = dx * dx + dy * dy + dz * dz;
        Var<float> closest(std::numeric_limits<float>::infinity());
        for (Int sphere : range(spheres.shape(0))) {
          const Float x = spheres(sphere, 0), y = spheres(sphere, 1), z = spheres(sphere, 2);
          const Float radius = spheres(sphere, 3);
          const Float along = x * dx + y * dy + z * dz;
          const Float outside = x * x + y * y + z * z - radius * radius;
          const Float under_root = along * along - length2 * outside;
          const Float distance = (along - sqrt(under_root)) / length2;
          const Float normal_x = (distance * dx - x) / radius;
          const Float normal_y = (distance * dy - y) / radius;
          const Float normal_z = (distance * dz - z) / radius;
          If(under_root > 0 && along > 0 && distance < closest, [&] {
            closest = distance;
            distances(ray) = distance;
            normals(ray, 0) = normal_x;
            normals(ray, 1) = normal_y;
            normals(ray, 2) = normal_z;
          });
        }
      });
    });

}  // namespace heddle::plain
