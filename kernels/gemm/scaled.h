// Products of scaled 8-bit floats: the elements of a and b are float8_e4m3, and count by factors of f32
// that lie beside them.
//
//   // d(i, j) = a_scale(i) b_scale(j) sum over k of a(i, k) b(j, k)
//   Status s = kernels::gemm_scaled(stream, a, b, d, a_scale, b_scale);    // a_scale: m, b_scale: n
//   // Blocks of 128 along k: a_scale is m x ceil(k / 128), b_scale ceil(n / 128) x ceil(k / 128)
//   s = kernels::gemm_scaled(stream, a, b, d, a_blocks, b_blocks);
//
// With a factor for each row and column, these are applied to the sums. With blocks, a(i, k) counts by
// a_scale(i, k / 128) and b(j, k) by b_scale(j / 128, k / 128), the usual quantisation of weights and
// activations; each block along k is then summed by the tensor cores, and the blocks in f32, so that long
// sums lose less than those of gemm(). Factors may have any strides; along the rows of a, contiguous ones
// load fastest. a: m x k, b: n x k, d: m x n of half, bfloat16 or float; strides and errors are those of
// gemm() (gemm.h).
//
// Of groups (grouped.h), the factors of b are those of each group, and a's lie as its rows do:
//
//   s = kernels::gemm_grouped_scaled(stream, a, b, d, ends, a_blocks, b_blocks);  // b_blocks: groups x ...
//   s = kernels::gemm_masked_scaled(stream, a, b, d, rows, a_blocks, b_blocks);   // both: groups x ...
#pragma once

#include <tuple>

#include "heddle/kernels/gemm/fused.h"

namespace heddle::kernels {
namespace detail {

// The problem with factors, or what does not fit: `a_scale` is (m, blocks, batch), `b_scale` (blocks of n,
// blocks, batch), as in_batches() gives them.
StatusOr<GemmProblem> with_factors(const StatusOr<GemmProblem>& problem, const OperandShapes& x,
                                   const int64_t* a_scale, const int64_t* b_scale);

// Launches products with factors for blocks: `problem_of` says what the operands' problem is without them,
// and `of` has what the tiles take.
template <class Tiles, class Epilogue, class ProblemOf, class D, int RankA, int RankB, int RankD,
          class... Of, class... Args>
Status launch_scaled(const Stream& stream, const Epilogue& epilogue, const ProblemOf& problem_of,
                     const TensorRef<const float8_e4m3, RankA>& a,
                     const TensorRef<const float8_e4m3, RankB>& b, const TensorRef<D, RankD>& d,
                     const TensorRef<const float, RankA>& a_scale,
                     const TensorRef<const float, RankB>& b_scale, const std::tuple<Of...>& of,
                     const Args&... args) {
  const auto as = in_batches(a), bs = in_batches(b);
  const auto ds = in_batches(d);
  const auto a_factors = in_batches(a_scale), b_factors = in_batches(b_scale);
  const OperandShapes x(as, bs, ds);
  const StatusOr<GemmProblem> problem =
      with_factors(problem_of(x), x, a_factors.extents, b_factors.extents);
  return std::apply(
      [&](const Of&... tiles) {
        return launch_gemm<Tiles, ScaledLoop>(stream, epilogue, problem, as, bs, ds, tiles...,
                                              a_factors, b_factors, args...);
      },
      of);
}

}  // namespace detail

// The products with factors for blocks, and an epilogue as gemm_with() takes it (fused.h).
template <class Epilogue, class D, int Rank, class... Args>
Status gemm_scaled_with(const Stream& stream, const Epilogue& epilogue,
                        const TensorRef<const float8_e4m3, Rank>& a,
                        const TensorRef<const float8_e4m3, Rank>& b, const TensorRef<D, Rank>& d,
                        const TensorRef<const float, Rank>& a_scale,
                        const TensorRef<const float, Rank>& b_scale, const Args&... args) {
  return detail::launch_scaled<BatchTiles>(stream, epilogue, detail::gemm_problem, a, b, d, a_scale,
                                           b_scale, std::tuple(), args...);
}
template <class Epilogue, class D, class... Args>
Status gemm_grouped_scaled_with(const Stream& stream, const Epilogue& epilogue,
                                const TensorRef<const float8_e4m3, 2>& a,
                                const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 2>& d,
                                const TensorRef<const int32_t, 1>& ends,
                                const TensorRef<const float, 2>& a_scale,
                                const TensorRef<const float, 3>& b_scale, const Args&... args) {
  return detail::launch_scaled<GroupTiles<RowsInOneMatrix>>(
      stream, epilogue,
      [&](const detail::OperandShapes& x) {
        return detail::problem_of_groups(x, ends.extents[0], true);
      },
      a, b, d, a_scale, b_scale, std::tuple(ends), args...);
}
template <class Epilogue, class D, class... Args>
Status gemm_masked_scaled_with(const Stream& stream, const Epilogue& epilogue,
                               const TensorRef<const float8_e4m3, 3>& a,
                               const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 3>& d,
                               const TensorRef<const int32_t, 1>& rows,
                               const TensorRef<const float, 3>& a_scale,
                               const TensorRef<const float, 3>& b_scale, const Args&... args) {
  return detail::launch_scaled<GroupTiles<RowsOfMatrices>>(
      stream, epilogue,
      [&](const detail::OperandShapes& x) {
        return detail::problem_of_groups(x, rows.extents[0], false);
      },
      a, b, d, a_scale, b_scale, std::tuple(rows), args...);
}

// The products alone, by the type of d. kInvalidArgument where extents or strides do not fit. Needs
// sm_90a.
#define HEDDLE_SCALED_GEMM_TYPES(declare) \
  declare(half);                          \
  declare(bfloat16);                      \
  declare(float)
#define HEDDLE_DECLARE_SCALED_GEMM(D)                                                            \
  Status gemm_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,             \
                     const TensorRef<const float8_e4m3, 2>& b, const TensorRef<D, 2>& d,         \
                     const TensorRef<const float, 1>& a_scale,                                   \
                     const TensorRef<const float, 1>& b_scale);                                  \
  Status gemm_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,             \
                     const TensorRef<const float8_e4m3, 2>& b, const TensorRef<D, 2>& d,         \
                     const TensorRef<const float, 2>& a_scale,                                   \
                     const TensorRef<const float, 2>& b_scale);                                  \
  Status gemm_grouped_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 2>& a,     \
                             const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 2>& d, \
                             const TensorRef<const int32_t, 1>& ends,                            \
                             const TensorRef<const float, 2>& a_scale,                           \
                             const TensorRef<const float, 3>& b_scale);                          \
  Status gemm_masked_scaled(const Stream& stream, const TensorRef<const float8_e4m3, 3>& a,      \
                            const TensorRef<const float8_e4m3, 3>& b, const TensorRef<D, 3>& d,  \
                            const TensorRef<const int32_t, 1>& rows,                             \
                            const TensorRef<const float, 3>& a_scale,                            \
                            const TensorRef<const float, 3>& b_scale)
HEDDLE_SCALED_GEMM_TYPES(HEDDLE_DECLARE_SCALED_GEMM);
#undef HEDDLE_DECLARE_SCALED_GEMM

}  // namespace heddle::kernels
