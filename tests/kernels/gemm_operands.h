// Operands of products for tests, and what of a result is exact. For test files alone.
#pragma once

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "heddle/runtime/heddle.h"
#include "support/test_device.h"

namespace heddle {

inline bool has_wgmma() {
  const DeviceInfo& info = test_device().info();
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

// Half the distance of neighbours of a type, relatively.
template <class T>
double unit() {
  if constexpr (std::is_same_v<T, float>) return 0x1p-24;
  return std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;
}
template <class T>
double number(const T& x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return x.to_float();
  }
}

template <class T>
std::vector<T> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.emplace_back(T(uniform(random)));
  return values;
}

// A batch of matrices (rows, columns), contiguous along either mode, with lines 16 bytes apart.
template <class T>
struct Matrices {
  Matrices(int64_t batches_, int64_t rows_, int64_t columns_, bool along_columns, unsigned seed)
      : batches(batches_), rows(rows_), columns(columns_) {
    const int64_t pad = 16 / static_cast<int64_t>(sizeof(T));
    const auto padded = [&](int64_t line) { return (line + pad - 1) / pad * pad; };
    const int64_t pitch = padded(along_columns ? columns : rows);
    row = along_columns ? pitch : 1;
    column = along_columns ? 1 : pitch;
    batch = pitch * (along_columns ? rows : columns);
    host = random_numbers<T>(batches * batch, seed);
    memory = test_device().template upload<T>(host).value();
  }
  TensorRef<T, 3> ref() const {
    return {reinterpret_cast<T*>(memory.address()), {batches, rows, columns}, {batch, row, column}};
  }
  double at(int64_t l, int64_t i, int64_t j) const {
    return number(host[static_cast<size_t>(l * batch + i * row + j * column)]);
  }

  int64_t batches, rows, columns;
  int64_t batch, row, column;
  std::vector<T> host;
  Buffer memory;
};

// What the tensor cores, which add with fewer bits than f32 has, lose of the sum of the magnitudes.
inline constexpr double kSums = 0x1p-20, kFloat8Sums = 0x1p-11;

// The first matrix of a batch.
template <class T>
TensorRef<T, 2> matrix(const TensorRef<T, 3>& x) {
  return TensorRef<T, 2>(x.data, {x.extents[1], x.extents[2]}, {x.strides[1], x.strides[2]});
}

}  // namespace heddle
