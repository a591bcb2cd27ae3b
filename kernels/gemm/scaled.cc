#include "heddle/kernels/gemm/scaled.h"

namespace heddle::kernels {
namespace detail {

StatusOr<GemmProblem> with_factors(const StatusOr<GemmProblem>& problem, const OperandShapes& x,
                                   const int64_t* a_scale, const int64_t* b_scale) {
  if (!problem.ok()) return problem;
  const int64_t blocks = ceil_div(x.a.extents[1], ScaledLoop::kDepth);
  const int64_t columns = ceil_div(x.b.extents[0], ScaledLoop::kColumns);
  if (a_scale[0] != x.a.extents[0] || a_scale[1] != blocks || a_scale[2] != x.a.extents[2] ||
      b_scale[0] != columns || b_scale[1] != blocks || b_scale[2] != x.b.extents[2]) {
    const auto text = [](const int64_t* n) {
      return absl::StrCat(n[0], " x ", n[1],
                          n[2] == 1 ? "" : absl::StrCat(" (", n[2], " of them)"));
    };
    const int64_t a_wanted[] = {x.a.extents[0], blocks, x.a.extents[2]};
    const int64_t b_wanted[] = {columns, blocks, x.b.extents[2]};
    return InvalidArgumentError(
        absl::StrCat("gemm: a_scale is ", text(a_scale), " and b_scale ", text(b_scale),
                     "; for blocks of 128 along k, and of 128 rows of b, they are ", text(a_wanted),
                     " and ", text(b_wanted)));
  }
  GemmProblem scaled = *problem;
  scaled.scaled = true;
  return scaled;
}

}  // namespace detail

namespace {

struct ByRowAndColumn {
  Fragment<float> operator()(const GemmPart& part, const Fragment<float>& sums,
                             Tensor<const float, 1> a_scale, Tensor<const float, 1> b_scale) const {
    return sums * part.by_row(a_scale) * part.by_column(b_scale);
  }
};

}  // namespace

#define HEDDLE_DEFINE_SCALED_GEMM(D)                                                               \
  Status gemm_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,               \
                     const TensorRef<const float8_e4m3, 2>& b, const TensorRef<D, 2>& d,           \
                     const TensorRef<const float, 1>& a_scale,                                     \
                     const TensorRef<const float, 1>& b_scale) {                                   \
    if (a_scale.extents[0] != d.extents[0] || b_scale.extents[0] != d.extents[1]) {                \
      return InvalidArgumentError(                                                                 \
          absl::StrCat("gemm: a_scale has ", a_scale.extents[0], " elements and b_scale ",         \
                       b_scale.extents[0], "; one for each row of d and one for each column are ", \
                       d.extents[0], " and ", d.extents[1]));                                      \
    }                                                                                              \
    return gemm_with(stream, ByRowAndColumn(), a, b, d, a_scale, b_scale);                         \
  }                                                                                                \
  Status gemm_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,               \
                     const TensorRef<const float8_e4m3, 2>& b, const TensorRef<D, 2>& d,           \
                     const TensorRef<const float, 2>& a_scale,                                     \
                     const TensorRef<const float, 2>& b_scale) {                                   \
    return gemm_scaled_with(stream, PlainSums(), a, b, d, a_scale, b_scale);                       \
  }                                                                                                \
  Status gemm_grouped_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,       \
                             const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 2>& d,   \
                             const TensorRef<const int32_t, 1>& ends,                              \
                             const TensorRef<const float, 2>& a_scale,                             \
                             const TensorRef<const float, 3>& b_scale) {                           \
    return gemm_grouped_scaled_with(stream, PlainSums(), a, b, d, ends, a_scale, b_scale);         \
  }                                                                                                \
  Status gemm_masked_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 3>& a,        \
                            const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 3>& d,    \
                            const TensorRef<const int32_t, 1>& rows,                               \
                            const TensorRef<const float, 3>& a_scale,                              \
                            const TensorRef<const float, 3>& b_scale) {                            \
    return gemm_masked_scaled_with(stream, PlainSums(), a, b, d, rows, a_scale, b_scale);          \
  }                                                                                                \
  static_assert(true)
HEDDLE_SCALED_GEMM_TYPES(HEDDLE_DEFINE_SCALED_GEMM);

}  // namespace heddle::kernels
