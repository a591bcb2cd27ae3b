// Runs kernels that turn rows of a matrix into rows of another, wherever these lie in memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/kernels/rows/deal.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {

// A matrix in memory: elements before the first, and from row to row.
struct Place {
  int64_t pitch = 0;  // 0: as many as columns
  int64_t offset = 0;
};
struct RowsAt {
  int64_t rows, columns;
  Place in = {}, out = {};
};

inline int64_t pitch_of(const RowsAt& shape, const Place& place) {
  return place.pitch == 0 ? shape.columns : place.pitch;
}
// Elements of memory up to the matrix's end, and one that nothing may touch.
inline int64_t size_of(const RowsAt& shape, const Place& place) {
  return place.offset + shape.rows * pitch_of(shape, place) + 1;
}
template <class T>
TensorRef<T, 2> matrix_in(const Buffer& buffer, const RowsAt& shape, const Place& place) {
  return {reinterpret_cast<T*>(static_cast<uintptr_t>(buffer.address())) + place.offset,
          {shape.rows, shape.columns},
          {pitch_of(shape, place), 1}};
}

inline std::ostream& operator<<(std::ostream& out, const RowsAt& shape) {
  return out << shape.rows << "x" << shape.columns << " pitches " << shape.in.pitch << ", "
             << shape.out.pitch << " offsets " << shape.in.offset << ", " << shape.out.offset;
}

template <class T>
double wide(T value) {
  return static_cast<double>(static_cast<float>(value));
}

// The most that rounding to T changes a number, relatively; and half of T's smallest number.
template <class T>
constexpr double kStep = std::is_same_v<T, float>  ? 0x1p-24
                         : std::is_same_v<T, half> ? 0x1p-11
                                                   : 0x1p-8;
template <class T>
constexpr double kLeast = std::is_same_v<T, half> ? 0x1p-25 : 0x1p-126;

// Random numbers of a normal distribution.
template <class T>
std::vector<T> random_elements(int64_t count, float mean, float spread, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(T(mean + normal(random)));
  return values;
}

// Runs call(stream, x, y) on a random matrix, and check(row of x, row of y) on each row; nothing outside the rows may be
// read or written.
template <class T, class Call, class Check>
void check_rows(const RowsAt& shape, float mean, float spread, Call call, Check check) {
  SCOPED_TRACE(testing::Message() << shape);
  const auto values = random_elements<T>(shape.rows * shape.columns, mean, spread,
                                         static_cast<unsigned>(shape.rows * 31 + shape.columns));
  const T marker(-2.0f);
  std::vector<T> host(static_cast<size_t>(size_of(shape, shape.in)),
                      T(std::numeric_limits<float>::quiet_NaN())),
      clean(static_cast<size_t>(size_of(shape, shape.out)), marker);
  const auto at = [&](const Place& place, int64_t row) {
    return static_cast<size_t>(place.offset + row * pitch_of(shape, place));
  };
  for (int64_t row = 0; row < shape.rows; ++row) {
    std::copy_n(values.begin() + row * shape.columns, shape.columns,
                host.begin() + at(shape.in, row));
  }
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(host)).value();
  const Buffer out = device.upload(absl::MakeConstSpan(clean)).value();
  const auto x = matrix_in<const T>(in, shape, shape.in);
  const auto y = matrix_in<T>(out, shape, shape.out);
  ASSERT_THAT(call(stream, x, y), IsOk());
  std::vector<T> got = out.download<T>(stream).value();
  for (int64_t row = 0; row < shape.rows; ++row) {
    std::vector<double> from, to;
    for (int64_t c = 0; c < shape.columns; ++c) {
      from.push_back(wide(values[row * shape.columns + c]));
      T& place = got[at(shape.out, row) + c];
      to.push_back(wide(place));
      place = marker;
    }
    if (shape.columns == 0) continue;
    ASSERT_NO_FATAL_FAILURE(check(from, to)) << "row " << row;
  }
  for (const T& value : got) ASSERT_EQ(wide(value), wide(marker)) << "written outside the rows";
}

}  // namespace heddle
