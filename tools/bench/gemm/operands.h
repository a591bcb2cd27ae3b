// The operands of a product of shapes.def in the order that peers/peer.h has them, and what its result is in
// double precision.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "heddle/tools/bench/gemm/cases.h"
#include "heddle/tools/bench/peers/peer.h"

namespace heddle::bench {

inline constexpr int kA = 0, kB = 1, kD = 2;  // of the operands; others stand behind
inline constexpr int64_t kScaleBlock = 128;   // along k, and rows of b

// The bytes of the elements between the first and the last, both included.
inline int64_t bytes_of(const PeerTensor& t) {
  int64_t last = 0;
  for (int mode = 0; mode < t.rank; ++mode) last += (t.extent[mode] - 1) * t.stride[mode];
  return (last + 1) * dtype_of(t.dtype)->bytes;
}
inline int64_t elements_of(const PeerTensor& t) { return bytes_of(t) / dtype_of(t.dtype)->bytes; }

class Operands {
 public:
  explicit Operands(const Product& product)
      : product_(product), dtype_(*dtype_of(product.dtype)), rows_(product.rows()) {
    const int64_t n = product.n, k = product.k;
    const char *ab = product.dtype, *out = dtype_.result;
    const auto blocks = [](int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; };
    if (product.has_groups()) {
      const int64_t groups = product.count, most = 2 * product.m;
      if (product.is("grouped")) {
        problem_ = {"gemm_grouped", "", 0, {}};
        add({ab, 2, {groups * product.m, k}, {k, 1}});
        add({ab, 3, {groups, n, k}, {n * k, k, 1}});
        add({out, 2, {groups * product.m, n}, {n, 1}});
      } else {
        problem_ = {"gemm_masked", "", 0, {}};
        add({ab, 3, {groups, most, k}, {most * k, k, 1}});
        add({ab, 3, {groups, n, k}, {n * k, k, 1}});
        add({out, 3, {groups, most, n}, {most * n, n, 1}});
      }
      add({"i32", 1, {groups}, {1}});
      return;
    }
    problem_ = {"gemm", product.variant, 0, {}};
    add(matrix(ab, product.m, k, product.layout[0] == 't'));
    add(matrix(ab, n, k, product.layout[1] == 'n'));
    add(matrix(out, product.m, n, true));
    if (product.is("row-scaled")) {
      add({"f32", 1, {product.m}, {1}});
      add({"f32", 1, {n}, {1}});
    } else if (product.is("block-scaled")) {
      const int64_t pitch = (blocks(k) + 3) / 4 * 4;  // as cublasLt takes it
      add(matrix("f32", product.m, blocks(k), false));
      add({"f32", 2, {blocks(n), blocks(k)}, {pitch, 1}});
    } else if (product.is("bias_gelu_residual")) {
      add({"f32", 1, {n}, {1}});
      add(matrix(out, product.m, n, true));
    }
  }

  const PeerProblem& problem() const { return problem_; }
  const PeerTensor& tensor(int i) const { return problem_.tensor[i]; }
  int count() const { return problem_.tensors; }
  const std::vector<int64_t>& rows() const { return rows_; }
  // The rows of groups as their operand has them: where they end, or how many they are.
  std::vector<int32_t> counts() const {
    std::vector<int32_t> all;
    int64_t end = 0;
    for (const int64_t rows : rows_) {
      end = product_.is("masked") ? rows : end + rows;
      all.push_back(static_cast<int32_t>(end));
    }
    return all;
  }

  // An element of the result: its place in d's memory, and its value where the operands were filled with these
  // seeds. With `plain` that of the product alone.
  struct Element {
    int64_t place;
    double value;
  };
  // `row` counts the rows of all groups.
  template <class Seed>
  Element element(int64_t row, int64_t column, bool plain, const Seed& seed) const {
    int64_t group = 0, inside = row;
    if (product_.has_groups()) {
      while (inside >= rows_[static_cast<size_t>(group)])
        inside -= rows_[static_cast<size_t>(group++)];
    }
    const bool masked = product_.is("masked");
    const auto at = [&](int i, int64_t x, int64_t y) {
      const PeerTensor& t = tensor(i);
      const int64_t first = t.rank == 3 ? group * t.stride[0] : 0;
      return first + x * t.stride[t.rank - 2] + y * t.stride[t.rank - 1];
    };
    const auto value = [&](int i, int64_t place) {
      return filled(*dtype_of(tensor(i).dtype), place, seed(i));
    };
    const int64_t of_a = masked ? inside : row;
    const bool blocks = product_.is("block-scaled") && !plain;
    double sum = 0;
    for (int64_t k = 0; k < product_.k; ++k) {
      double term = value(kA, at(kA, of_a, k)) * value(kB, at(kB, column, k));
      if (blocks) {
        term *= value(3, at(3, of_a, k / kScaleBlock)) *
                value(4, at(4, column / kScaleBlock, k / kScaleBlock));
      }
      sum += term;
    }
    const int64_t place = at(kD, of_a, column);
    if (product_.is("row-scaled") && !plain) sum *= value(3, of_a) * value(4, column);
    if (product_.is("bias_gelu_residual") && !plain) {
      const double x = sum + value(3, column);
      sum = x / 2 * std::erfc(-x * M_SQRT1_2) + value(4, at(4, of_a, column));
    }
    return {place, sum};
  }
  // All rows that count.
  int64_t all_rows() const { return product_.count * product_.m; }

 private:
  static PeerTensor matrix(const char* dtype, int64_t rows, int64_t columns,
                           bool columns_contiguous) {
    if (columns_contiguous) return {dtype, 2, {rows, columns}, {columns, 1}};
    return {dtype, 2, {rows, columns}, {1, rows}};
  }
  void add(const PeerTensor& t) { problem_.tensor[problem_.tensors++] = t; }

  Product product_;
  const Dtype& dtype_;
  std::vector<int64_t> rows_;
  PeerProblem problem_{};
};

}  // namespace heddle::bench
