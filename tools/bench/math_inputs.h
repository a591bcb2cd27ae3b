// Arguments to measure mathematical functions with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace heddle::tools {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Numbers at which implementations switch their method, of both signs.
template <class T>
std::vector<T> boundary_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           Limits::denorm_min(),
                           Limits::min(),
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::epsilon()};
  for (const double v : {0.25,
                         1.0 / 3,
                         0.5,
                         0.6931471805599453,
                         0.7853981633974483,
                         1.0,
                         1.5707963267948966,
                         2.0,
                         2.5,
                         3.0,
                         3.141592653589793,
                         4.0,
                         10.0,
                         24.0,
                         53.0,
                         88.72284,
                         103.97,
                         127.0,
                         128.0,
                         149.0,
                         150.0,
                         709.782712893384,
                         745.13,
                         1023.0,
                         1024.0,
                         65536.0,
                         131072.0,
                         16777216.0,
                         1073741824.0,
                         1e15,
                         1e30}) {
    const T t = static_cast<T>(v);
    values.insert(values.end(), {t, std::nextafter(t, T{0}), std::nextafter(t, Limits::max())});
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// A number of any exponent, or, half of the time, of a common one.
template <class T>
T random_number(std::mt19937_64& random) {
  const uint64_t bits = random();
  if ((bits & 1) == 0) return std::bit_cast<T>(static_cast<Bits<T>>(random()));
  const double mantissa = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63;
  return static_cast<T>(std::ldexp(mantissa, static_cast<int>(bits >> 1 & 15) - 5));
}

}  // namespace heddle::tools
