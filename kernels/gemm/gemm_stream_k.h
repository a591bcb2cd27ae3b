// Products whose tiles do not fill the last wave of the device: its multiprocessors share the depths of
// tiles (stream-K), so that all of them have the same work.
//
//   const StatusOr<GemmWorkspace> workspace = gemm_workspace(stream);         // once for each stream
//   Status s = gemm_stream_k_with(stream, *workspace, PlainSums(), a, b, d);
//
// Sums come together in the workspace, in an order that the shape and the number of multiprocessors decide:
// results are the same bits each time. The products of one stream, which run one after the other, use one
// workspace; products of two streams need one each. gemm() has no such kernels among those that it chooses
// from: a hand-over takes 7 to 10 µs, which no product wins back; gemm_bench --tune times them.
#pragma once

#include "heddle/kernels/gemm/fused.h"
#include "heddle/kernels/gemm/stream_k.h"

namespace heddle::kernels {

// Memory for the sums of every block that the device runs at once, some 17 MB on an H200, and flags that are 0
// between launches.
struct GemmWorkspace {
  // (block, element) of float, and a word for each warp.
  Buffer sums = {}, flags = {};
  int64_t blocks = 0;  // as many as it is for
};
// A workspace of the stream's device, made in the stream's order. Errors are those of allocating.
StatusOr<GemmWorkspace> gemm_workspace(const Stream& stream);

namespace detail {

// Floats of a block's sums, and warps that have some.
inline constexpr int64_t kMostSums = 256 * 128, kMostFlags = 2 * kWarpsOfGroup;

// kInvalidArgument where a configuration is none with stream_k, or the workspace is too small for it.
Status check_workspace(const GemmWorkspace& workspace, const GemmConfig& config,
                       const LaunchShape& shape);

// The workspace as a kernel takes it.
inline TensorRef<float, 2> sums_of(const GemmWorkspace& workspace) {
  return as_tensor<float>(workspace.sums, {workspace.blocks, kMostSums});
}
inline TensorRef<uint32_t, 1> flags_of(const GemmWorkspace& workspace) {
  return as_tensor<uint32_t>(workspace.flags, {workspace.blocks * kMostFlags});
}
// Launches the kernel of a configuration with stream_k.
template <class Epilogue, class T, class D, class... Args>
Status launch_stream_k(const Stream& stream, const GemmWorkspace& workspace,
                       const GemmConfig& config, const LaunchShape& shape, const Epilogue& epilogue,
                       const TensorRef<const T, 3>& a, const TensorRef<const T, 3>& b,
                       const TensorRef<D, 3>& d, const Args&... args) {
  if (Status s = check_workspace(workspace, config, shape); !s.ok()) return s;
  return launch_config<StreamTiles, PlainLoop>(stream, config, shape, epilogue, a, b, d,
                                               sums_of(workspace), flags_of(workspace), args...);
}

}  // namespace detail

// d = epilogue(a * b^T) as gemm_with() has it (fused.h), by a configuration with stream_k. kInvalidArgument
// also where the configuration does not fit, or the workspace is another device's.
template <class Epilogue, class T, class D, int Rank, class... Args>
Status gemm_stream_k_by(const Stream& stream, const GemmWorkspace& workspace,
                        const GemmConfig& config, const Epilogue& epilogue,
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
  return detail::launch_stream_k(stream, workspace, config, gemm_shape(config, *problem, device),
                                 epilogue, as, bs, ds, args...);
}

// The same by the configuration with stream_k that the model expects to be the fastest; where the tiles of
// all fill whole waves, as gemm_with() does it.
template <class Epilogue, class T, class D, int Rank, class... Args>
Status gemm_stream_k_with(const Stream& stream, const GemmWorkspace& workspace,
                          const Epilogue& epilogue, const TensorRef<const T, Rank>& a,
                          const TensorRef<const T, Rank>& b, const TensorRef<D, Rank>& d,
                          const Args&... args) {
  const StatusOr<GemmProblem> problem =
      detail::gemm_problem({detail::in_batches(a), detail::in_batches(b), detail::in_batches(d)});
  if (!problem.ok()) return problem.status();
  if (problem->is_empty()) return OkStatus();
  const auto config =
      choose_stream_k(detail::followed_by<Epilogue>(*problem), stream.device().info());
  if (!config) return gemm_with(stream, epilogue, a, b, d, args...);
  return gemm_stream_k_by(stream, workspace, *config, epilogue, a, b, d, args...);
}

}  // namespace heddle::kernels
