// Products of matrices and what is like them.
#pragma once

#include <deque>
#include <limits>
#include <vector>

#include "heddle/dsl/dsl.h"

namespace heddle::plain {

// After PolyBench/GPU's GEMM: one thread an element of the result, d = alpha a b + beta d.
inline const auto product = define_kernel("product(a, b, d, alpha, beta)",
                                          [](Tensor<const float, 2> a, Tensor<const float, 2> b,
                                             Tensor<float, 2> d, Float alpha, Float beta) {
                                            const Int j = block_idx.x * block_dim.x + thread_idx.x;
                                            const Int i = block_idx.y * block_dim.y + thread_idx.y;
                                            If(i < d.shape(0) && j < d.shape(1), [&] {
                                              Var<float> sum(beta * d(i, j));
                                              for (Int k : range(a.shape(1)))
                                                sum += alpha * a(i, k) * b(k, j);
                                              d(i, j) = sum;
                                            });
                                          });

// The same by tiles in shared memory, and 8 x 8 sums a thread; extents are multiples of the tile's.
inline constexpr int kTile = 128, kDepth = 8, kSums = 8;
inline const auto tiled_product = define_kernel(
    "tiled_product(a, b, d)",
    [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 2> d) {
      Shared<float, 2> a_tile({kDepth, kTile}), b_tile({kDepth, kTile});
      const Int t = thread_idx.x, row = block_idx.y * kTile, column = block_idx.x * kTile;
      const Int i = t / (kTile / kSums) * kSums, j = t % (kTile / kSums) * kSums;
      std::deque<Var<float>> sums;
      for (int n = 0; n < kSums * kSums; ++n) sums.emplace_back(0.0f);
      for (Int k : range(0, a.shape(1), kDepth)) {
        for (int n = 0; n < 4; ++n) {
          a_tile(t % 2 * 4 + n, t / 2) = a(row + t / 2, k + t % 2 * 4 + n);
          b_tile(t / 32, t % 32 * 4 + n) = b(k + t / 32, column + t % 32 * 4 + n);
        }
        sync_threads();
        for (int depth = 0; depth < kDepth; ++depth) {
          std::vector<Float> left, right;
          for (int n = 0; n < kSums; ++n) {
            left.push_back(a_tile(depth, i + n));
            right.push_back(b_tile(depth, j + n));
          }
          for (int m = 0; m < kSums; ++m) {
            for (int n = 0; n < kSums; ++n) sums[m * kSums + n] += left[m] * right[n];
          }
        }
        sync_threads();
      }
      for (int m = 0; m < kSums; ++m) {
        for (int n = 0; n < kSums; ++n) d(row + i + m, column + j + n) = sums[m * kSums + n];
      }
    });

// After Rodinia's kmeans: the nearest of some centres, features along the rows of `points`.
inline const auto nearest = define_kernel(
    "nearest(points, centres, y)",
    [](Tensor<const float, 2> points, Tensor<const float, 2> centres, Tensor<int32_t, 1> y) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < y.shape(0), [&] {
        Var<float> least(std::numeric_limits<float>::max());
        Var<int32_t> best(0);
        for (Int c : range(centres.shape(0))) {
          Var<float> distance(0.0f);
          for (Int f : range(points.shape(0))) {
            const Float apart = points(f, i) - centres(c, f);
            distance += apart * apart;
          }
          If(distance < least, [&] {
            least = distance;
            best = c;
          });
        }
        y(i) = best;
      });
    });

// After AMD's FloydWarshall sample: one of n steps of all shortest paths.
inline const auto shortest_paths =
    define_kernel("shortest_paths(d, k)", [](Tensor<int32_t, 2> d, Int k) {
      const Int j = block_idx.x * block_dim.x + thread_idx.x;
      const Int i = block_idx.y * block_dim.y + thread_idx.y;
      If(i < d.shape(0) && j < d.shape(1), [&] {
        const Int via = d(i, k) + d(k, j);
        If(via < d(i, j), [&] { d(i, j) = via; });
      });
    });

}  // namespace heddle::plain
