// The extents of a block, a cluster or a grid: the one type for them, from a launch to its machine
// code. Every folder may include it, so it includes nothing of ours.
//
//   LaunchShape{.grid = rows, .block = {32, 8}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace heddle::ir {

template <class T>
concept WholeNumber = std::is_convertible_v<T, int64_t> && !std::is_floating_point_v<T>;

// Extents in x, y and z, as the caller gave them: a launch reports negative and oversized ones.
struct Dim3 {
  int64_t x = 1, y = 1, z = 1;  // in threads or blocks

  constexpr Dim3() = default;
  // From one to three integers of any type.
  template <WholeNumber X, WholeNumber Y = int, WholeNumber Z = int>
  constexpr Dim3(X x_, Y y_ = 1, Z z_ = 1)  // NOLINT: .grid = rows
      : x(clamp(x_)), y(clamp(y_)), z(clamp(z_)) {}

  // The number of threads or blocks, x * y * z.
  constexpr int64_t count() const { return x * y * z; }
  // The extent in x (0), y (1) or z (2).
  constexpr int64_t& operator[](size_t axis) { return axis == 0 ? x : axis == 1 ? y : z; }
  constexpr int64_t operator[](size_t axis) const { return axis == 0 ? x : axis == 1 ? y : z; }

  friend constexpr bool operator==(const Dim3&, const Dim3&) = default;

 private:
  template <class T>
  static constexpr int64_t clamp(T value) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t)) {
      if (value > static_cast<T>(INT64_MAX)) return INT64_MAX;
    }
    return static_cast<int64_t>(value);
  }
};

}  // namespace heddle::ir

namespace heddle {
using ir::Dim3;
}  // namespace heddle
