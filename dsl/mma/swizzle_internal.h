// Swizzles of the copy engine and of matrix descriptors. Not for users.
#pragma once

#include <optional>

#include "heddle/dsl/layout/swizzle.h"

namespace heddle::detail {

constexpr int kChunkBytes = 16;         // what a swizzle moves about
constexpr int kSwizzleLines = 8;        // that its pattern covers
constexpr int kMostSwizzleBytes = 128;  // of a line

// The swizzle of elements whose lines have so many bytes: 32, 64 or 128, or 0 for none.
Swizzle swizzle_of_lines(int line_bytes, int element_bits);
// The bytes of a line of such a swizzle, 0 for none; nullopt for another one.
std::optional<int> line_bytes_of(const Swizzle& swizzle, int element_bits);

}  // namespace heddle::detail
