// What kernels of the library share about vectors of elements.
#pragma once

#include <cstdint>

namespace heddle::kernels {

// The widest access of a thread.
inline constexpr int kVectorBytes = 16;

// a / b, rounded up; both are positive or a is 0.
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace heddle::kernels
