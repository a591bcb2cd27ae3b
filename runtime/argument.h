// The arguments of one launch, erased.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::runtime {

// A scalar's bits, zero-extended, or a tensor's address with its extents and strides in elements.
struct Argument {
  uint64_t bits = 0;
  const int64_t* extents = nullptr;  // `rank` of them; nullptr for scalars and pointers
  const int64_t* strides = nullptr;
  int64_t capacity_bytes = -1;  // memory behind the address; -1: not known
  int rank = -1;                // -1: a scalar
  // What tensor_argument() finds: the least and greatest element offset that coordinates reach (as
  // near as 64 bits can say), whether there is no coordinate, and whether an extent is negative.
  int64_t min_offset = 0;
  int64_t max_offset = 0;
  bool empty = false;
  bool negative = false;
};

inline Argument scalar_argument(uint64_t bits) { return {.bits = bits}; }

// A tensor, measured: every launch asks for the answers several times. A pointer has no extents.
inline Argument tensor_argument(uint64_t address, const int64_t* extents, const int64_t* strides,
                                int rank, int64_t capacity_bytes = -1) {
  Argument a{.bits = address,
             .extents = extents,
             .strides = strides,
             .capacity_bytes = capacity_bytes,
             .rank = rank};
  for (int dim = 0; extents != nullptr && dim < rank; ++dim) {
    a.empty |= extents[dim] == 0;
    a.negative |= extents[dim] < 0;
    int64_t reach;
    int64_t& end = strides[dim] < 0 ? a.min_offset : a.max_offset;
    const bool overflow = __builtin_mul_overflow(extents[dim] - 1, strides[dim], &reach) ||
                          __builtin_add_overflow(end, reach, &end);
    if (overflow) end = strides[dim] < 0 ? INT64_MIN : INT64_MAX;
  }
  return a;
}

using Arguments = absl::Span<const Argument>;

}  // namespace heddle::runtime
