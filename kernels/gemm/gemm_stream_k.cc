#include "heddle/kernels/gemm/gemm_stream_k.h"

namespace heddle::kernels {

StatusOr<GemmWorkspace> gemm_workspace(const Stream& stream) {
  const Device device = stream.device();
  GemmWorkspace made{.blocks = device.info().sm_count};
  const auto blocks = static_cast<size_t>(made.blocks);
  StatusOr<Buffer> sums = device.allocate(blocks * detail::kMostSums * sizeof(float));
  if (!sums.ok()) return sums.status();
  StatusOr<Buffer> flags = device.allocate(blocks * detail::kMostFlags * sizeof(uint32_t));
  if (!flags.ok()) return flags.status();
  if (Status s = flags->fill(stream, 0); !s.ok()) return s;
  made.sums = *std::move(sums);
  made.flags = *std::move(flags);
  return made;
}

namespace detail {

Status check_workspace(const GemmWorkspace& workspace, const GemmConfig& config,
                       const LaunchShape& shape) {
  const auto refused = [&](auto... why) {
    return InvalidArgumentError(
        absl::StrCat("gemm: the configuration ", config.to_string(), why...));
  };
  if (!config.stream_k) {
    return refused(" shares no depths by stream_k; gemm_by() takes it, without a workspace");
  }
  const int64_t sums = int64_t{config.m} * config.n;
  if (sums > kMostSums || config.groups * kWarpsOfGroup > kMostFlags) {
    return refused(" has ", sums, " sums of ", config.groups * kWarpsOfGroup,
                   " warps; a workspace has room for ", kMostSums, " of ", kMostFlags);
  }
  if (shape.grid.count() > workspace.blocks) {
    return refused(" runs in ", shape.grid.count(), " blocks, and the workspace has room for ",
                   workspace.blocks, "; make one by gemm_workspace() on a stream of this device");
  }
  return OkStatus();
}

}  // namespace detail
}  // namespace heddle::kernels
