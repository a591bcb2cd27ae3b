// Comparisons of products with double precision. For test files alone.
#pragma once

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/gemm/fused.h"
#include "kernels/gemm_operands.h"
#include "support/matchers.h"

namespace heddle {

// Extents of a product, and how its operands lie.
struct GemmCase {
  int64_t m, n, k;
  bool a_along_k = true, b_along_k = true;
  int64_t batches = 1;
};

// Calls launch(stream, a, b, d) and compares d with what wanted(sum, l, row, column) says of the sums in
// double precision.
template <class T, class D, class Launch, class Wanted>
void check_product(const GemmCase& c, double precision, const Launch& launch,
                   const Wanted& wanted) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k << ", a "
                                  << (c.a_along_k ? "t" : "n") << ", b "
                                  << (c.b_along_k ? "n" : "t"));
  const auto seed = static_cast<unsigned>(c.m * 31 + c.n * 7 + c.k);
  const Matrices<T> a(c.batches, c.m, c.k, c.a_along_k, seed),
      b(c.batches, c.n, c.k, c.b_along_k, seed + 1);
  const Matrices<D> d(c.batches, c.m, c.n, true, seed + 2);
  const Stream stream = test_device().create_stream().value();
  ASSERT_THAT(
      launch(stream, TensorRef<const T, 3>(a.ref()), TensorRef<const T, 3>(b.ref()), d.ref()),
      IsOk());
  const std::vector<D> got = d.memory.template download<D>(stream).value();
  for (int64_t l = 0; l < c.batches; ++l) {
    for (int64_t row = 0; row < c.m; ++row) {
      for (int64_t column = 0; column < c.n; ++column) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < c.k; ++i) {
          const double product = a.at(l, row, i) * b.at(l, column, i);
          sum += product;
          magnitude += std::abs(product);
        }
        const double expected = wanted(sum, l, row, column);
        ASSERT_NEAR(number(got[static_cast<size_t>(l * d.batch + row * d.row + column)]), expected,
                    unit<D>() * std::abs(expected) + magnitude * precision + 1e-30)
            << l << " " << row << " " << column;
      }
    }
  }
  // What lies between the rows is left alone.
  for (int64_t i = c.n; i < d.row; ++i)
    EXPECT_EQ(number(got[static_cast<size_t>(i)]), d.at(0, 0, i));
}

}  // namespace heddle
