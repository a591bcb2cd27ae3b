// What references of operations are written with (OperationSpec::reference): elements in double
// precision, and how far from them f32 may be.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::kernels {

using Tensors = std::map<std::string, runtime::HostValues>;
using Outputs = StatusOr<std::map<std::string, runtime::Expected>>;

// The most that one rounding to f32 changes a number, relatively.
inline constexpr double kRounding = 0x1p-24;

// Settings, which bind() has found to be numbers, as the function is given them.
inline float real(const runtime::Settings& settings, const char* name) {
  float number = 0;
  (void)absl::SimpleAtof(settings.find(name)->second, &number);
  return number;
}
inline int64_t whole(const runtime::Settings& settings, const char* name) {
  int64_t number = 0;
  (void)absl::SimpleAtoi(settings.find(name)->second, &number);
  return number;
}

// An element of an output; without a tolerance it is exact.
struct Close {
  double value;
  double tolerance = 0;
};

// How an element type rounds: half the distance of neighbours, relatively, the least such half, and where
// numbers become infinite, or the largest one that they become instead.
struct Rounding {
  double relative, least, limit, largest = HUGE_VAL;

  // A number that is within `error` of the exact one, rounded once.
  Close of(double exact, double error) const {
    const double magnitude = std::abs(exact);
    if (magnitude - error >= limit) return {std::copysign(largest, exact)};
    if (magnitude + error >= limit) return {exact, HUGE_VAL};
    return {exact, error + (magnitude + error) * relative + least};
  }
};
inline Rounding rounding_of(ir::Scalar scalar) {
  if (scalar == ir::Scalar::kF16) return {0x1p-11, 0x1p-25, 65520};
  if (scalar == ir::Scalar::kBF16) return {0x1p-8, 0x1p-134, 0x1.FFp127};
  if (scalar == ir::Scalar::kE4M3) return {0x1p-4, 0x1p-10, 448, 448};
  return {kRounding, 0x1p-150, 0x1.FFFFFFp127};
}

// A sum that the kernel forms in f32, in whatever order: with so many roundings on the way of each
// term it is within that many of the sum of the magnitudes.
struct Sum {
  double value = 0, magnitude = 0;

  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
  Close within(double roundings) const { return {value, roundings * kRounding * magnitude}; }
};

// A whole output: element(i) is the one at place i of row-major order.
template <class Element>
runtime::Expected elements(const runtime::HostValues& output, Element element) {
  int64_t count = 1;
  for (const int64_t extent : output.shape.extents) count *= extent;
  runtime::Expected expected;
  for (int64_t i = 0; i < count; ++i) {
    const Close close = element(i);
    expected.values.push_back(close.value);
    expected.tolerance.push_back(close.tolerance);
  }
  return expected;
}

// The outputs of an operation that has one.
template <class Element>
Outputs only_output(const Tensors& tensors, const std::string& name, Element element) {
  return std::map<std::string, runtime::Expected>{{name, elements(tensors.at(name), element)}};
}

// The sum of each row of a matrix "x", as "y". Sums of at most 64 terms, pairs and lanes included,
// and of a 64th of a row meet in one accumulator.
inline Outputs row_sums(const Settings&, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t columns = x.shape.extents[1];
  return only_output(tensors, "y", [&](int64_t row) {
    Sum sum;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) sum.add(x.values[i]);
    return sum.within(64 + static_cast<double>(columns) / 64);
  });
}

}  // namespace heddle::kernels
