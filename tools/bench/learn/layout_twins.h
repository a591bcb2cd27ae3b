// The programs of kernels/learn/13 to 16 as one writes them without layouts: index by index.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline const auto row_sum_twin =
    define_kernel("row_sum_twin(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      constexpr int kTile = 512;
      const Int row = block_idx.x, n = x.shape(1), first = thread_idx.x * 4;
      const int width = x.vector_width();
      const auto load = [&](const Int& column) {
        if (width >= 4) return Fragment<float>(x.elements(4, row, column));
        std::vector<detail::Node> nodes;
        for (int i = 0; i < 4; i += width) {
          const Fragment<float> some = x.elements(width, row, column + i);
          for (int k = 0; k < width; ++k) nodes.push_back(some[k].node());
        }
        return Fragment<float>(detail::emit_pack(
            detail::fragment_type(detail::scalar_of<float>(), 4, {}), nodes.data(), 4, {}));
      };
      const auto sum_of = [](const Fragment<float>& v) { return (v[0] + v[1]) + (v[2] + v[3]); };
      Var<float> sum(0.0f);
      for (Int k : range(n / kTile)) sum += sum_of(load(k * kTile + first));
      const Int rest = n / kTile * kTile + first;
      std::array<Float, 4> values{0.0f, 0.0f, 0.0f, 0.0f};
      Var<std::array<Float, 4>> tail(values);
      for (int i = 0; i < 4; ++i) {
        If(rest + i < n, [&] {
          auto now = tail.get();
          std::array<Float, 4> next{
              i == 0 ? Float(x(row, rest)) : now[0], i == 1 ? Float(x(row, rest + 1)) : now[1],
              i == 2 ? Float(x(row, rest + 2)) : now[2], i == 3 ? Float(x(row, rest + 3)) : now[3]};
          tail = next;
        });
      }
      const auto t = tail.get();
      Float total = block_reduce(sum + ((t[0] + t[1]) + (t[2] + t[3])), plus());
      If(thread_idx.x == 0, [&] { y(row) = total; });
    });

inline const auto add_twin = define_kernel(
    "add_twin(x, y, z)",
    [](Tensor<const float, 2> x, Tensor<const float, 2> y, Tensor<float, 2> z) {
      const Int row = block_idx.y * 16 + thread_idx.x / 32 * 4;
      const Int column = block_idx.x * 128 + thread_idx.x % 32 * 4;
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          If(row + i < x.shape(0) && column + j < x.shape(1),
             [&] { z(row + i, column + j) = x(row + i, column + j) + y(row + i, column + j); });
        }
      }
    });

inline const auto transpose_twin =
    define_kernel("transpose_twin(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      Shared<float> tile(32 * 32);
      const Int i = thread_idx.x / 32, j = thread_idx.x % 32;
      const Int row = block_idx.y * 32, column = block_idx.x * 32;
      for (int k = 0; k < 32; k += 8) {
        If(row + i + k < x.shape(0) && column + j < x.shape(1),
           [&] { tile((i + k) * 32 + ((i + k) ^ j)) = x(row + i + k, column + j); });
      }
      sync_threads();
      for (int k = 0; k < 32; k += 8) {
        If(column + i + k < x.shape(1) && row + j < x.shape(0),
           [&] { y(column + i + k, row + j) = tile(j * 32 + (j ^ (i + k))); });
      }
    });

inline const auto swap_twin =
    define_kernel("swap_twin(x, y)", [](Tensor<const float, 4> x, Tensor<float, 4> y) {
      const Int i = block_idx.x * 256 + thread_idx.x;
      If(i < y.shape(0) * y.shape(1) * y.shape(2) * y.shape(3), [&] {
        const Int w = i % y.shape(3), row = i / y.shape(3);
        const Int s = row % y.shape(2), head = row / y.shape(2);
        const Int h = head % y.shape(1), b = head / y.shape(1);
        y(b, h, s, w) = x(b, s, h, w);
      });
    });

}  // namespace heddle::learn
