#include <algorithm>
#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/cuda/checked_launch.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/loss_report.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/cuda/module_state.h"

namespace heddle::runtime {

using cuda::CudaBackend;
using cuda::DriverLaunchConfig;
using cuda::FunctionAttribute;
using cuda::FunctionState;
using cuda::LaunchAttribute;
using cuda::LaunchAttributeId;
using cuda::Result;

namespace {

// Every device with clusters takes this many blocks; for more it has to be asked.
constexpr int64_t kPortableClusterBlocks = 8;

// Occupancy answers that a function remembers; a program that needs more asks the driver again.
constexpr size_t kRememberedOccupancies = 64;

// The first compute capability whose kernels can start before their predecessors end.
constexpr int kFirstProgrammatic = 9;

constexpr Dim3 kOne;

// Both structs are left uninitialised where the driver does not look.
void set_flag(LaunchAttribute& attribute, LaunchAttributeId id) {
  attribute.id = id;
  attribute.value.flag = 1;
}

void set_cluster(LaunchAttribute& attribute, const Dim3& cluster) {
  attribute.id = LaunchAttributeId::kClusterDimension;
  attribute.value.cluster = {static_cast<uint32_t>(cluster.x), static_cast<uint32_t>(cluster.y),
                             static_cast<uint32_t>(cluster.z)};
}

DriverLaunchConfig to_driver(const LaunchShape& shape, StreamHandle stream,
                             LaunchAttribute* attributes, uint32_t attribute_count) {
  return {static_cast<uint32_t>(shape.grid.x),
          static_cast<uint32_t>(shape.grid.y),
          static_cast<uint32_t>(shape.grid.z),
          static_cast<uint32_t>(shape.block.x),
          static_cast<uint32_t>(shape.block.y),
          static_cast<uint32_t>(shape.block.z),
          static_cast<uint32_t>(shape.shared_bytes),
          cuda::driver_stream(stream),
          attributes,
          attribute_count};
}

template <class... Text>
Status cannot_launch(const LaunchSite& site, const Text&... text) {
  return InvalidArgumentError(absl::StrCat(site.describe(), " cannot launch: ", text...));
}

// What check_launch_limits cannot know: the kernel's own limits.
Status check_function_limits(const FunctionState& state, const LaunchShape& shape,
                             const LaunchSite& site) {
  const FunctionAttributes& attributes = state.attributes;
  if (shape.block.count() > attributes.max_threads_per_block) {
    return cannot_launch(site, "block ", to_string(shape.block), " has ", shape.block.count(),
                         " threads, but the kernel's ", attributes.registers,
                         " registers a thread allow at most ", attributes.max_threads_per_block,
                         "; fix: use smaller blocks, or CompileOptions::max_registers");
  }
  if (shape.cluster != kOne && attributes.required_cluster != kOne &&
      shape.cluster != attributes.required_cluster) {
    return cannot_launch(site, "cluster is ", to_string(shape.cluster),
                         ", but the kernel was compiled for ",
                         to_string(attributes.required_cluster), "; fix: launch it with that");
  }
  return OkStatus();
}

// Clusters of more than the portable size, and grids whose blocks wait for each other.
Status check_residency(FunctionState& state, const LaunchShape& shape, const LaunchSite& site) {
  const DeviceInfo& info = state.backend().info();
  if (shape.cooperative && !info.cooperative_launch) {
    return cannot_launch(site, info.name,
                         " has no cooperative launches; fix: launch it without .cooperative, in as "
                         "many launches as there are waits for the grid");
  }
  const StatusOr<int64_t> resident = cuda::max_resident_blocks(state, shape, site);
  if (!resident.ok()) return resident.status();
  if (*resident == 0) {
    return cannot_launch(site, "no cluster ", to_string(shape.cluster), " of blocks ",
                         to_string(shape.block), " with ", shape.shared_bytes,
                         " bytes of dynamic shared memory fits ", info.name,
                         "; fix: use a smaller cluster, or less shared memory or fewer threads a "
                         "block");
  }
  return check_cooperative(info, shape, *resident, site);
}

// Only with HEDDLE_LAUNCH_BLOCKING=1 or CUDA_LAUNCH_BLOCKING=1: waits for the launch, so that a fault is known to be its own.
Status wait_for_launch(CudaBackend& gpu, const LaunchSite& site, const LaunchShape& shape,
                       StreamHandle stream, uint64_t ticket) {
  const StatusOr<bool> captured = gpu.is_captured(stream);
  if (!captured.ok()) return captured.status();
  // A captured launch has not run; waiting for it would break the capture.
  if (*captured) return OkStatus();
  const cuda::DriverApi& api = gpu.api();
  const Result result = api.stream_synchronize(cuda::driver_stream(stream));
  if (result == Result::kSuccess) {
    gpu.ring().complete(stream, ticket + 1);
    return OkStatus();
  }
  const cuda::LaunchRecord culprit{site, shape, stream, ticket};
  return gpu.fail(api.stream_synchronize.symbol, result, site.describe(), "", &culprit);
}

}  // namespace

namespace cuda {

Status reserve_dynamic_shared(FunctionState& state, int64_t bytes, const LaunchSite& site) {
  if (bytes <= state.dynamic_shared_allowed.load(std::memory_order_acquire)) {
    return OkStatus();
  }
  CudaBackend& gpu = state.backend();
  const int64_t fixed = state.attributes.static_shared_bytes;
  const int64_t limit = gpu.info().limits.max_shared_per_block;
  if (bytes > limit - fixed) {
    return cannot_launch(site, "a block needs ", fixed, " + ", bytes,
                         " bytes of static and dynamic shared memory, but has at most ", limit,
                         " on ", gpu.info().name, "; fix: let each block work on less at a time");
  }
  std::lock_guard<std::mutex> lock(state.mutex);
  if (bytes <= state.dynamic_shared_allowed.load(std::memory_order_acquire)) {
    return OkStatus();
  }
  if (Status s = gpu.call(gpu.api().func_set_attribute, state.handle,
                          FunctionAttribute::kMaxDynamicSharedSizeBytes, static_cast<int>(bytes));
      !s.ok()) {
    return s;
  }
  state.dynamic_shared_allowed.store(bytes, std::memory_order_release);
  return OkStatus();
}

StatusOr<int64_t> max_resident_blocks(FunctionState& state, const LaunchShape& shape,
                                      const LaunchSite& site) {
  CudaBackend& gpu = state.backend();
  const DriverApi& api = gpu.api();
  LaunchShape asked = shape;
  if (asked.cluster == kOne) asked.cluster = state.attributes.required_cluster;
  const Dim3 cluster = asked.cluster;
  asked.grid = cluster;
  if (Status s = check_launch_limits(gpu.info(), asked, site); !s.ok()) return s;
  if (Status s = check_function_limits(state, asked, site); !s.ok()) return s;
  if (Status s = reserve_dynamic_shared(state, asked.shared_bytes, site); !s.ok()) {
    return s;
  }

  const int64_t threads = asked.block.count();
  const FunctionState::OccupancyKey key = {cluster.x, cluster.y, cluster.z, threads,
                                           asked.shared_bytes};
  std::lock_guard<std::mutex> lock(state.mutex);
  if (const auto known = state.resident_blocks.find(key); known != state.resident_blocks.end()) {
    return known->second;
  }

  int64_t resident = 0;
  int count = 0;
  if (cluster == kOne) {
    if (Status s = gpu.call(api.occupancy_max_active_blocks, &count, state.handle,
                            static_cast<int>(threads), static_cast<size_t>(asked.shared_bytes));
        !s.ok()) {
      return s;
    }
    resident = int64_t{count} * gpu.info().sm_count;
  } else {
    // The driver answers for a large cluster (other than with 912) only once the function allows
    // it; where none fits the permission is taken back.
    const bool ask = cluster.count() > kPortableClusterBlocks && !state.large_cluster_allowed;
    if (ask) {
      if (Status s = gpu.call(api.func_set_attribute, state.handle,
                              FunctionAttribute::kNonPortableClusterSizeAllowed, 1);
          !s.ok()) {
        return s;
      }
    }
    LaunchAttribute attribute;
    set_cluster(attribute, cluster);
    const DriverLaunchConfig query = to_driver(asked, StreamHandle::kDefault, &attribute, 1);
    Status status = gpu.call(api.occupancy_max_active_clusters, &count, state.handle, &query);
    if (status.driver_code() == static_cast<int>(Result::kInvalidClusterSize)) {
      status = OkStatus();
      count = 0;
    }
    if (ask && (!status.ok() || count == 0)) {
      // Best effort: what is left behind is a permission that nothing uses.
      (void)gpu.call(api.func_set_attribute, state.handle,
                     FunctionAttribute::kNonPortableClusterSizeAllowed, 0);
    }
    if (!status.ok()) return status;
    state.large_cluster_allowed |= ask && count > 0;
    resident = count * cluster.count();
  }
  if (state.resident_blocks.size() >= kRememberedOccupancies) state.resident_blocks.clear();
  state.resident_blocks.emplace(key, resident);
  return resident;
}

}  // namespace cuda

Status check_launch(const Function& function, const LaunchShape& shape, const LaunchSite* site,
                    cuda::CheckedLaunch& launch) {
  FunctionState& state = *function.state_;
  CudaBackend& gpu = state.backend();
  if (site == nullptr) site = &state.site;
  if (ABSL_PREDICT_FALSE(gpu.lost())) return gpu.health();

  launch.function = &function.state_;
  launch.site = site;
  launch.shape = shape;
  // A kernel that was compiled for a cluster is launched with it, whether the caller says so or
  // not.
  if (shape.cluster == kOne) launch.shape.cluster = state.attributes.required_cluster;
  const LaunchShape& full = launch.shape;

  if (Status s = check_launch_limits(gpu.info(), full, *site); !s.ok()) return s;
  if (Status s = check_function_limits(state, full, *site); !s.ok()) return s;
  if (ABSL_PREDICT_FALSE(full.shared_bytes >
                         state.dynamic_shared_allowed.load(std::memory_order_acquire))) {
    if (Status s = cuda::reserve_dynamic_shared(state, full.shared_bytes, *site); !s.ok()) {
      return s;
    }
  }

  uint32_t count = 0;
  const bool clustered = full.cluster != kOne;
  if (clustered) set_cluster(launch.attributes[count++], full.cluster);
  if (full.programmatic && gpu.info().compute_major >= kFirstProgrammatic) {
    set_flag(launch.attributes[count++], LaunchAttributeId::kProgrammaticStreamSerialization);
  }
  if (full.cooperative) set_flag(launch.attributes[count++], LaunchAttributeId::kCooperative);
  launch.attribute_count = count;
  if (full.cooperative || (clustered && full.cluster.count() > kPortableClusterBlocks)) {
    return check_residency(state, full, *site);
  }
  return OkStatus();
}

Status enqueue(const cuda::CheckedLaunch& launch, StreamHandle stream, const void* parameters,
               size_t bytes, absl::Span<const int> places) {
  FunctionState& state = **launch.function;
  CudaBackend& gpu = state.backend();
  const LaunchSite& site = *launch.site;
  const LaunchShape& shape = launch.shape;
  if (ABSL_PREDICT_FALSE(gpu.lost())) return gpu.health();

  const DriverLaunchConfig config = to_driver(
      shape, stream, const_cast<LaunchAttribute*>(launch.attributes), launch.attribute_count);
  void* const extra[] = {reinterpret_cast<void*>(cuda::kLaunchParamBufferPointer),
                         const_cast<void*>(parameters),
                         reinterpret_cast<void*>(cuda::kLaunchParamBufferSize), &bytes,
                         reinterpret_cast<void*>(cuda::kLaunchParamEnd)};
  absl::FixedArray<void*, 8> pointers(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    pointers[i] = static_cast<std::byte*>(const_cast<void*>(parameters)) + places[i];
  }

  const CudaBackend::Scope scope(gpu);
  if (ABSL_PREDICT_FALSE(scope.result() != Result::kSuccess)) {
    return gpu.fail(scope.failed_call(), scope.result(), site.describe());
  }
  std::shared_ptr<cuda::Recording> recording;
  if (ABSL_PREDICT_FALSE(gpu.recordings().any())) {
    StatusOr<std::shared_ptr<cuda::Recording>> found = gpu.recordings().of(stream);
    if (!found.ok()) return found.status();
    recording = *std::move(found);
  }
  if (ABSL_PREDICT_FALSE(recording != nullptr)) {
    recording->keep(*launch.function);
    if (recording->kind == cuda::Recording::Kind::kNode) {
      recording->note({site, shape, stream});
      const auto* const block = static_cast<const std::byte*>(parameters);
      recording->stored.push_back({state.handle,
                                   shape,
                                   {launch.attributes, launch.attributes + launch.attribute_count},
                                   {block, block + bytes},
                                   {places.begin(), places.end()}});
      return OkStatus();
    }
  }
  // Recorded first: another thread may meet this launch's fault before the call below returns.
  const uint64_t ticket = gpu.ring().add(site, shape, stream);
  if (ABSL_PREDICT_FALSE(gpu.reporter() != nullptr && recording == nullptr)) {
    gpu.reporter()->launched({site, shape, stream, ticket}, state.attributes, state.parameters(),
                             parameters, bytes);
  }
  const bool one_by_one = !places.empty();
  const Result result =
      gpu.api().launch_kernel_ex(&config, state.handle, one_by_one ? pointers.data() : nullptr,
                                 one_by_one || bytes == 0 ? nullptr : const_cast<void**>(extra));
  if (ABSL_PREDICT_FALSE(result != Result::kSuccess)) {
    gpu.ring().remove(ticket);
    // A driver that waits has waited for the launches before: the fault is this one's.
    const cuda::LaunchRecord culprit{site, shape, stream, ticket};
    if (gpu.reporter() != nullptr && !gpu.driver_blocks()) gpu.reporter()->refused(ticket);
    return gpu.fail(gpu.api().launch_kernel_ex.symbol, result,
                    absl::StrCat(site.describe(), " with ", describe(shape)), "",
                    gpu.driver_blocks() ? &culprit : nullptr);
  }
  if (ABSL_PREDICT_FALSE(recording != nullptr)) {
    gpu.ring().remove(ticket);  // it has not run
    recording->note({site, shape, stream});
    return OkStatus();
  }
  if (ABSL_PREDICT_FALSE(gpu.blocking())) {
    return wait_for_launch(gpu, site, shape, stream, ticket);
  }
  return OkStatus();
}

Status launch_raw(const Function& function, const LaunchShape& shape, const void* parameters,
                  size_t bytes, const LaunchSite* site, const Stream* stream,
                  absl::Span<const int> places) {
  const CudaBackend& gpu = function.state_->backend();
  StreamHandle queue = StreamHandle::kDefault;
  if (stream != nullptr) {
    if (ABSL_PREDICT_FALSE(stream->backend().get() != &gpu)) {
      if (stream->backend() == nullptr) return moved_from("a Stream");
      return cannot_launch(site == nullptr ? function.state_->site : *site, "it is loaded on ",
                           gpu.name(), ", but the stream belongs to ", stream->backend()->name(),
                           "; fix: launch on a stream of ", gpu.name(), ", or load it on ",
                           stream->backend()->name());
    }
    queue = stream->handle();
  }
  cuda::CheckedLaunch launch;
  if (Status s = check_launch(function, shape, site, launch); !s.ok()) return s;
  return enqueue(launch, queue, parameters, bytes, places);
}

}  // namespace heddle::runtime
