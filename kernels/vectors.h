// What kernels of the library share about counting elements and vectors of them.
#pragma once

#include <cstdint>

namespace heddle::kernels {

// The widest access of a thread.
inline constexpr int kVectorBytes = 16;

// What kernels count in 32 bits: elements of a mode, and those of a block or tile behind the last.
inline constexpr int64_t kMostCounted = (int64_t{1} << 31) - 65536;

// a / b, rounded up; both are positive or a is 0.
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace heddle::kernels
