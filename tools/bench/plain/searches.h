// Loops that end early, and branches within them.
#pragma once

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

}  // namespace heddle::plain
