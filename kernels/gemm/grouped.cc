#include "heddle/kernels/gemm/grouped.h"

namespace heddle::kernels {

#define HEDDLE_DEFINE_GROUPED_GEMM(T, D)                                        \
  Status gemm_grouped(const Stream& stream, const TensorRef<const T, 2>& a,     \
                      const TensorRef<const T, 3>& b, const TensorRef<D, 2>& d, \
                      const TensorRef<const int32_t, 1>& ends) {                \
    return gemm_grouped_with(stream, PlainSums(), a, b, d, ends);               \
  }                                                                             \
  Status gemm_masked(const Stream& stream, const TensorRef<const T, 3>& a,      \
                     const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d,  \
                     const TensorRef<const int32_t, 1>& rows) {                 \
    return gemm_masked_with(stream, PlainSums(), a, b, d, rows);                \
  }                                                                             \
  static_assert(true)
HEDDLE_GROUPED_GEMM_TYPES(HEDDLE_DEFINE_GROUPED_GEMM);

}  // namespace heddle::kernels
