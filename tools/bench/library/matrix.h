// The matrices that the library's kernels are compared on.
#pragma once

#include "bench/pairs.h"

namespace heddle::bench::library {

constexpr int64_t kElements = int64_t{1} << 26;
// Rows that a block holds in registers, where one matrix is read and where two are.
constexpr int kColumns = 8192, kColumnsOfTwo = 4096;
constexpr int kRows = kElements / kColumns, kRowsOfTwo = kElements / kColumnsOfTwo;
// The launches that the library's functions choose for them, which the twins have too.
const LaunchShape kHeldRows{.grid = kRows, .block = 512},
    kHeldRowsOfTwo{.grid = kRowsOfTwo, .block = 512};

template <class T>
TensorRef<T, 2> matrix(const Buffer& buffer, int64_t columns = kColumns) {
  return as_tensor<T>(buffer, {kElements / columns, columns});
}

}  // namespace heddle::bench::library
