#include "heddle/runtime/operation/dry_run.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/graph/work_graph.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::runtime {
namespace {

// As the driver aligns memory. The first address is that of nobody's memory on a GPU.
constexpr DeviceAddress kAlignment = 256;
constexpr DeviceAddress kFirstAddress = DeviceAddress{1} << 44;

}  // namespace

DeviceInfo info_of(const ir::Target& target) {
  DeviceInfo info = InterpBackend::default_info();
  info.name = std::string(target.name);
  info.compute_major = target.sm / 10;
  info.compute_minor = target.sm % 10;
  info.cluster_launch = has(target, ir::Feature::kClusters);
  info.limits.max_shared_per_block = target.shared_bytes;
  return info;
}

Device open_dry_run(DeviceInfo info, OnDryLaunch on_launch) {
  return Device(std::make_shared<DryRunBackend>(std::move(info), std::move(on_launch)));
}

bool results_were_wanted(const Device& dry_run) {
  return dry_run.kind() == BackendKind::kDryRun &&
         static_cast<const DryRunBackend&>(*dry_run.backend()).results_were_wanted();
}

DryRunBackend::DryRunBackend(DeviceInfo info, OnDryLaunch on_launch)
    : Backend(BackendKind::kDryRun, "dry run", std::move(info)),
      on_launch_(std::move(on_launch)),
      next_address_(kFirstAddress) {}

Status DryRunBackend::launch(const DryLaunch& launch) const {
  const ir::SourceLine place =
      launch.source != nullptr ? launch.source->place() : launch.compiled->place;
  const LaunchSite site(launch.source != nullptr ? launch.source->name() : launch.compiled->name,
                        place.file, place.line);
  // A grid that the kernel itself gives is known once it is compiled; a whole cluster stands for it.
  LaunchShape shape = launch.shape;
  if (shape.grid.x == ir::kGridOfKernel) shape.grid = shape.cluster;
  if (shape.block.x == ir::kBlockOfKernel) shape.block = Dim3();
  if (Status s = check_launch_limits(info(), shape, site); !s.ok()) return s;
  return on_launch_(launch);
}

StatusOr<MemoryUsage> DryRunBackend::memory_usage() {
  const auto total = static_cast<uint64_t>(info().total_memory);
  return MemoryUsage{total, total};
}

StatusOr<DeviceAddress> DryRunBackend::allocate(size_t bytes) {
  if (bytes > static_cast<size_t>(info().total_memory)) {
    return ResourceExhaustedError(absl::StrCat("allocation on ", name(), " failed: ", bytes,
                                               " bytes, and the device has ", info().total_memory));
  }
  return next_address_.fetch_add((bytes + kAlignment - 1) / kAlignment * kAlignment);
}

StatusOr<void*> DryRunBackend::allocate_host(size_t bytes) {
  void* const memory = std::calloc(bytes, 1);
  if (memory != nullptr) return memory;
  return ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes of host memory"));
}

void DryRunBackend::deallocate_host(void* memory) noexcept { std::free(memory); }

Status DryRunBackend::copy_to_host(StreamHandle, void*, DeviceAddress, size_t, Unwritten) {
  results_were_wanted_.store(true);
  return FailedPreconditionError(
      "copy to the host on a dry run: nothing has been computed; an operation that looks at "
      "results "
      "can only be run");
}

Status DryRunBackend::begin_capture(StreamHandle) {
  return FailedPreconditionError("a dry run has no graphs: nothing is enqueued on it");
}

StatusOr<std::unique_ptr<WorkGraph>> DryRunBackend::create_graph() {
  return begin_capture(StreamHandle::kDefault);
}

StatusOr<std::unique_ptr<WorkGraph>> DryRunBackend::end_capture(StreamHandle stream) {
  return begin_capture(stream);
}

}  // namespace heddle::runtime
