// The ladder of products: d = a b^T, from a thread for each element to the tensor cores of a
// Hopper GPU that are fed without a pause.
//
//   product_naive.launch(stream, product_naive_shape, a, b, d);
//
// Each of 01_naive.h to 10_cluster.h changes one thing, and says at its top why that is faster;
// tools/bench/FIGURES.md has their TFLOP/s on a GPU, and heddle run product_01_naive and so on run
// them. All compute the same: a is m x k, b is n x k and d is m x n, of bf16 with contiguous rows;
// the products are summed in f32. A multiply-add takes two elements, so how fast a kernel is
// follows from how often it uses what it has loaded, in each kind of memory. The first rungs could
// as well multiply f32, but then no two figures could be compared. To keep the kernels short, m, n
// and k are multiples of the tile; kernels/gemm/multistage.h and kernels/gemm/gemm.h take any.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

using ProductIn = Tensor<const bfloat16, 2>;
using ProductOut = Tensor<bfloat16, 2>;

// What every rung requires of its launches: operands that belong together, whole tiles of m x n,
// and a multiple of k elements to sum over. Others are refused, with both numbers.
inline void require_tiles(const ProductIn& a, const ProductIn& b, const ProductOut& d, int m, int n,
                          int k) {
  require(a.shape(1) == b.shape(1));
  require(a.shape(0) == d.shape(0));
  require(b.shape(0) == d.shape(1));
  require(d.shape(0) % m == 0);
  require(d.shape(1) % n == 0);
  require(a.shape(1) % k == 0);
}

}  // namespace heddle::learn
