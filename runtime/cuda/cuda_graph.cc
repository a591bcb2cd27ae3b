#include "heddle/runtime/cuda/cuda_graph.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"

namespace heddle::runtime::cuda {
namespace {

// A launch as a node has it; it points into itself and into the launch.
class NodeParameters {
 public:
  explicit NodeParameters(StoredLaunch& launch)
      : block_(launch.block.data()),
        bytes_(launch.block.size()),
        extra_{reinterpret_cast<void*>(kLaunchParamBufferPointer), block_,
               reinterpret_cast<void*>(kLaunchParamBufferSize), &bytes_,
               reinterpret_cast<void*>(kLaunchParamEnd)} {
    for (const int place : launch.places) pointers_.push_back(block_ + place);
    const LaunchShape& shape = launch.shape;
    parameters_ = {.function = launch.function,
                   .grid_x = static_cast<uint32_t>(shape.grid.x),
                   .grid_y = static_cast<uint32_t>(shape.grid.y),
                   .grid_z = static_cast<uint32_t>(shape.grid.z),
                   .block_x = static_cast<uint32_t>(shape.block.x),
                   .block_y = static_cast<uint32_t>(shape.block.y),
                   .block_z = static_cast<uint32_t>(shape.block.z),
                   .dynamic_shared_bytes = static_cast<uint32_t>(shape.shared_bytes),
                   .parameters = pointers_.empty() ? nullptr : pointers_.data(),
                   .extra = pointers_.empty() && bytes_ != 0 ? extra_ : nullptr,
                   .kernel = nullptr,
                   .context = nullptr};
  }
  NodeParameters(const NodeParameters&) = delete;
  NodeParameters& operator=(const NodeParameters&) = delete;
  const KernelNodeParameters* get() const { return &parameters_; }

 private:
  std::byte* block_;
  size_t bytes_;
  void* extra_[5];
  absl::InlinedVector<void*, 8> pointers_;
  KernelNodeParameters parameters_;
};

}  // namespace

CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) gpu_.release(gpu_.api().graph_exec_destroy, executable_);
  gpu_.release(gpu_.api().graph_destroy, graph_);
}

std::vector<GraphNodeHandle> CudaGraph::handles(absl::Span<const int> nodes) const {
  std::vector<GraphNodeHandle> list;
  for (const int node : nodes) list.push_back(nodes_[node].handle);
  return list;
}

StatusOr<std::shared_ptr<Recording>> CudaGraph::record(Launch launch) {
  // Nobody enqueues on it, so anything that is no stream will do.
  const StreamHandle stream{reinterpret_cast<uintptr_t>(this)};
  std::shared_ptr<Recording> recording = gpu_.recordings().begin_node(stream);
  // Also where the launch throws.
  auto end = absl::MakeCleanup([&] { gpu_.recordings().end_node(stream); });
  const Status launched = launch(stream);
  std::move(end).Invoke();
  if (!launched.ok()) return launched;
  if (recording->stored.size() > 1) return more_than_one_launch(recording->stored.size());
  return recording;
}

Status CudaGraph::add_launch(absl::Span<const int> after, Launch launch) {
  StatusOr<std::shared_ptr<Recording>> recording = record(launch);
  if (!recording.ok()) return recording.status();
  const std::vector<GraphNodeHandle> before = handles(after);
  std::vector<StoredLaunch>& launches = (*recording)->stored;
  Node node;
  node.recording = *recording;
  node.added_code = (*recording)->code;
  if (launches.empty()) {
    Status status = gpu_.call(gpu_.api().graph_add_empty_node, &node.handle, graph_, before.data(),
                              before.size());
    if (!status.ok()) return status;
  } else {
    node.added_shape = launches[0].shape;
    const NodeParameters parameters(launches[0]);
    Status status = gpu_.call(gpu_.api().graph_add_kernel_node, &node.handle, graph_, before.data(),
                              before.size(), parameters.get());
    if (!status.ok()) return status;
    for (const LaunchAttribute& attribute : launches[0].attributes) {
      // A node starts after those that it is said to.
      if (attribute.id == LaunchAttributeId::kProgrammaticStreamSerialization) continue;
      status = gpu_.call(gpu_.api().graph_kernel_node_set_attribute, node.handle, attribute.id,
                         &attribute.value);
      if (!status.ok()) return unusable_ = status;
    }
  }
  nodes_.push_back(std::move(node));
  return OkStatus();
}

Status CudaGraph::add_part(absl::Span<const int> after, std::unique_ptr<WorkGraph> part) {
  const std::vector<GraphNodeHandle> before = handles(after);
  Node node;
  node.part = std::move(part);
  static_cast<const CudaGraph&>(*node.part).for_each_recording([&](const Recording& recording) {
    node.added_code.insert(node.added_code.end(), recording.code.begin(), recording.code.end());
  });
  Status status =
      gpu_.call(gpu_.api().graph_add_child_graph_node, &node.handle, graph_, before.data(),
                before.size(), static_cast<const CudaGraph&>(*node.part).graph_);
  if (status.ok()) nodes_.push_back(std::move(node));
  return status;
}

Status CudaGraph::finish() {
  if (!unusable_.ok()) return unusable_;
  return gpu_.call(gpu_.api().graph_instantiate, &executable_, graph_, 0);
}

template <class Visit>
void CudaGraph::for_each_recording(const Visit& visit) const {
  if (captured_ != nullptr) visit(*captured_);
  for (const Node& node : nodes_) {
    if (node.part != nullptr) static_cast<const CudaGraph&>(*node.part).for_each_recording(visit);
    if (node.recording != nullptr && node.enabled) visit(*node.recording);
  }
}

size_t CudaGraph::launches() const {
  size_t count = 0;
  for_each_recording([&](const Recording& recording) { count += recording.launches.size(); });
  return count;
}

Status CudaGraph::launch(StreamHandle stream) {
  if (gpu_.recordings().any()) {
    const StatusOr<std::shared_ptr<Recording>> outer = gpu_.recordings().of(stream);
    if (!outer.ok()) return outer.status();
    if (*outer != nullptr) return cannot_be_recorded();
  }
  absl::InlinedVector<uint64_t, LaunchRing::kSize> tickets;
  for_each_recording([&](const Recording& recording) {
    for (const LaunchRecord& record : recording.launches) {
      tickets.push_back(gpu_.ring().add(record.site, record.shape, stream));
    }
  });
  Status status = gpu_.call(gpu_.api().graph_launch, executable_, driver_stream(stream));
  if (!status.ok()) {
    for (const uint64_t ticket : tickets) gpu_.ring().remove(ticket);
    return status;
  }
  if (!gpu_.blocking()) return status;
  const StatusOr<bool> captured = gpu_.is_captured(stream);
  if (!captured.ok()) return captured.status();
  return *captured ? status : gpu_.synchronize_stream(stream);
}

Status CudaGraph::set_launch(int index, Launch launch) {
  StatusOr<std::shared_ptr<Recording>> recording = record(launch);
  if (!recording.ok()) return recording.status();
  Node& node = nodes_[index];
  std::vector<StoredLaunch>& launches = (*recording)->stored;
  const bool enabled = !launches.empty();
  const Status possible = check_replacement(node.added_shape ? &*node.added_shape : nullptr,
                                            enabled ? &launches[0].shape : nullptr);
  if (!possible.ok() || !node.added_shape) return possible;
  if (enabled) {
    const NodeParameters parameters(launches[0]);
    Status status = gpu_.call(gpu_.api().graph_exec_kernel_node_set_params, executable_,
                              node.handle, parameters.get());
    if (!status.ok()) return status;
    node.recording = *std::move(recording);
  }
  if (enabled != node.enabled) {
    Status status = gpu_.call(gpu_.api().graph_node_set_enabled, executable_, node.handle,
                              static_cast<unsigned>(enabled));
    if (!status.ok()) return status;
    node.enabled = enabled;
  }
  return OkStatus();
}

Status CudaGraph::set_part(int index, std::unique_ptr<WorkGraph> part) {
  Node& node = nodes_[index];
  const auto& now = static_cast<const CudaGraph&>(*part);
  if (now.launches() != static_cast<const CudaGraph&>(*node.part).launches()) return other_work();
  Status status = gpu_.call(gpu_.api().graph_exec_child_graph_node_set_params, executable_,
                            node.handle, now.graph_);
  if (status.ok()) node.part = std::move(part);
  return status;
}

Status CudaGraph::replace(std::unique_ptr<WorkGraph> captured) {
  auto& other = static_cast<CudaGraph&>(*captured);
  GraphUpdateInfo info{};
  const Status updated = gpu_.call(gpu_.api().graph_exec_update, executable_, other.graph_, &info);
  if (updated.driver_code() == static_cast<int>(Result::kGraphUpdateFailure)) {
    if (Status s = other.finish(); !s.ok()) return s;
    std::swap(executable_, other.executable_);
  } else if (!updated.ok()) {
    return updated;
  }
  std::swap(graph_, other.graph_);
  std::swap(captured_, other.captured_);
  return OkStatus();
}

}  // namespace heddle::runtime::cuda
