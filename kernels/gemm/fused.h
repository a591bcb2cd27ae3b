// Products whose results pass through a function of the caller's, traced into the kernel.
//
//   const auto bias_relu = [](const GemmPart& part, const Fragment<float>& sums,
//                             Tensor<const float, 1> bias) {
//     return max(sums + part.by_column(bias), 0.0f);
//   };
//   Status s = gemm_with(stream, bias_relu, a, b, d, as_tensor<const float>(bias, {n}));
//
// epilogue.h says what an epilogue may do. There is no further pass over memory.
#pragma once

#include <concepts>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/family.h"

namespace heddle::kernels {
namespace detail {

template <class T, class... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);
// Whether there is a product of T that gives D (HEDDLE_GEMM_TYPES).
template <class T, class D>
inline constexpr bool kMultiplies =
    kIsOneOf<T, tfloat32>
        ? kIsOneOf<D, float>
        : kIsOneOf<T, half, bfloat16, float8_e4m3>&& kIsOneOf<D, half, bfloat16, float>;

template <class X>
struct IsMatrix : std::false_type {};
template <class T, int Rank>
struct IsMatrix<Tensor<T, Rank>> : std::bool_constant<(Rank > 1)> {};

// The parameters of an epilogue behind the part and the sums.
template <class Call>
struct EpilogueParameters {
  static_assert(sizeof(Call) == 0,
                "an epilogue is called with (const GemmPart& part, const Fragment<float>& sums, "
                "...), and what follows are "
                "parameters of a kernel, by value; it is const, and returns a Fragment<float>");
};
// Whether an object has one call operator, whose parameters have their types written out.
template <class Epilogue>
concept HasOneCall = requires {
  &Epilogue::operator();
};
template <class F, class... Args>
struct EpilogueParameters<Fragment<float> (F::*)(const GemmPart&, const Fragment<float>&, Args...)
                              const> {
  // Whether one is a tensor of more than one mode, of which each element of the result has its own.
  static constexpr bool kHasMatrices = (IsMatrix<std::remove_cvref_t<Args>>::value || ...);

  template <class Tiles, class Loop, class T, class D, class Epilogue>
  static const auto& kernel(const GemmConfig& config, const Epilogue& epilogue) {
    return hopper_gemm<Tiles, Loop, T, D, Epilogue, std::remove_cvref_t<Args>...>(config, epilogue);
  }
};

// The operands of a product, each (rows, columns, batch).
struct OperandShape {
  const int64_t *extents, *strides;
  uint64_t address;
};
struct OperandShapes {
  OperandShape a, b, d;
  int element_bytes, result_bytes;

  template <class T, class D>
  OperandShapes(const TensorRef<const T, 3>& a_, const TensorRef<const T, 3>& b_,
                const TensorRef<D, 3>& d_)
      : a{a_.extents, a_.strides, reinterpret_cast<uintptr_t>(a_.data)},
        b{b_.extents, b_.strides, reinterpret_cast<uintptr_t>(b_.data)},
        d{d_.extents, d_.strides, reinterpret_cast<uintptr_t>(d_.data)},
        element_bytes(sizeof(T)),
        result_bytes(sizeof(D)) {}
};
// The problem of operands, or why there is none: of a batch of products, and of groups (grouped.h) whose
// rows are those of one matrix, or of a matrix each.
StatusOr<GemmProblem> gemm_problem(const OperandShapes& x);
StatusOr<GemmProblem> problem_of_groups(const OperandShapes& x, int64_t groups, bool in_one_matrix);

// A problem as configurations are chosen for it: with an epilogue, which takes registers, or without.
template <class Epilogue>
GemmProblem followed_by(GemmProblem problem) {
  problem.fused = !std::is_same_v<Epilogue, PlainSums>;
  problem.reads_matrices = EpilogueParameters<decltype(&Epilogue::operator())>::kHasMatrices;
  return problem;
}

// The error of a configuration that takes a workspace, and is given none.
Status no_workspace(const GemmConfig& config);

// The same memory under other extents and strides.
template <class T, int Rank>
TensorRef<T, 3> of_same_memory(TensorRef<T, 3> made, const TensorRef<T, Rank>& x) {
  made.capacity_bytes = x.capacity_bytes;
  made.memory = x.memory;
  made.allocation = x.allocation;
  return made;
}
// A matrix as a batch of one, whose stride nobody uses; and (batch, rows, columns) with the batch behind.
template <class T>
TensorRef<T, 3> in_batches(const TensorRef<T, 2>& x) {
  const int64_t(&n)[2] = x.extents;
  return of_same_memory<T, 2>(
      {x.data, {n[0], n[1], 1}, {x.strides[0], x.strides[1], 16 * n[0] * n[1]}}, x);
}
template <class T>
TensorRef<T, 3> in_batches(const TensorRef<T, 3>& x) {
  return of_same_memory<T, 3>({x.data,
                               {x.extents[1], x.extents[2], x.extents[0]},
                               {x.strides[1], x.strides[2], x.strides[0]}},
                              x);
}

// Launches the kernel of a configuration. `args` are what the tiles and the loop take, and the epilogue's.
template <class Tiles, class Loop, class Epilogue, class T, class D, class... Args>
Status launch_config(const Stream& stream, const GemmConfig& config, const LaunchShape& shape,
                     const Epilogue& epilogue, const TensorRef<const T, 3>& a,
                     const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d,
                     const Args&... args) {
  using Call = EpilogueParameters<decltype(&Epilogue::operator())>;
  return Call::template kernel<Tiles, Loop, T, D, Epilogue>(config, epilogue)
      .launch(stream, shape, a, b, d, args...);
}
// Likewise of the configuration that was tuned for a problem, or that the model chooses.
template <class Tiles, class Loop, class Epilogue, class T, class D, class... Args>
Status launch_gemm(const Stream& stream, const Epilogue& epilogue,
                   const StatusOr<GemmProblem>& problem, const TensorRef<const T, 3>& a,
                   const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d, const Args&... args) {
  if (!problem.ok()) return problem.status();
  if (problem->is_empty()) return OkStatus();
  const runtime::DeviceInfo& device = stream.device().info();
  const GemmConfig config = tuned_gemm(followed_by<Epilogue>(*problem), device);
  return launch_config<Tiles, Loop>(stream, config, gemm_shape(config, *problem, device), epilogue,
                                    a, b, d, args...);
}

}  // namespace detail

// d = epilogue(a * b^T), with extents, strides and errors as gemm() has them (gemm.h). `epilogue` is a
// lambda that captures nothing, or a struct of host values with a call operator and ==, of which each
// value is a kernel; `args` are its further arguments.
template <class Epilogue, class T, class D, int Rank, class... Args>
Status gemm_with(const Stream& stream, const Epilogue& epilogue, const TensorRef<const T, Rank>& a,
                 const TensorRef<const T, Rank>& b, const TensorRef<D, Rank>& d,
                 const Args&... args) {
  static_assert(detail::HasOneCall<Epilogue>,
                "an epilogue is a lambda, or a struct with a call operator, whose parameters have "
                "their types written out (not auto)");
  static_assert(std::is_empty_v<Epilogue> || std::equality_comparable<Epilogue>,
                "an epilogue that captures has no ==, by which kernels are told apart: pass the "
                "value as an argument of gemm_with(), or take a struct of host values with ==");
  static_assert(detail::kMultiplies<T, D>,
                "a and b are of half, bfloat16, tfloat32 or float8_e4m3, and d is of float, or "
                "but for tfloat32 of half or bfloat16");
  const TensorRef<const T, 3> as = detail::in_batches(a), bs = detail::in_batches(b);
  const TensorRef<D, 3> ds = detail::in_batches(d);
  return detail::launch_gemm<BatchTiles, PlainLoop>(
      stream, epilogue, detail::gemm_problem({as, bs, ds}), as, bs, ds, args...);
}
// The same by a configuration of the caller's choice (config.h), without stream_k (gemm_stream_k.h).
// kInvalidArgument also where it does not fit.
template <class Epilogue, class T, class D, int Rank, class... Args>
Status gemm_by(const Stream& stream, const GemmConfig& config, const Epilogue& epilogue,
               const TensorRef<const T, Rank>& a, const TensorRef<const T, Rank>& b,
               const TensorRef<D, Rank>& d, const Args&... args) {
  const TensorRef<const T, 3> as = detail::in_batches(a), bs = detail::in_batches(b);
  const TensorRef<D, 3> ds = detail::in_batches(d);
  const StatusOr<GemmProblem> problem = detail::gemm_problem({as, bs, ds});
  if (!problem.ok()) return problem.status();
  if (problem->is_empty()) return OkStatus();
  const runtime::DeviceInfo& device = stream.device().info();
  const GemmProblem with_epilogue = detail::followed_by<Epilogue>(*problem);
  if (Status s = check_config(config, with_epilogue, device); !s.ok()) return s;
  if (config.stream_k) return detail::no_workspace(config);
  return detail::launch_config<BatchTiles, PlainLoop>(
      stream, config, gemm_shape(config, *problem, device), epilogue, as, bs, ds, args...);
}

}  // namespace heddle::kernels
