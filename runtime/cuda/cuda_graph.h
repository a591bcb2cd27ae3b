// Graphs of the driver: a template, which nodes are added to, and the executable made of it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/recording.h"
#include "heddle/runtime/graph/work_graph.h"

namespace heddle::runtime::cuda {

class CudaGraph final : public WorkGraph {
 public:
  // Owns the driver's graph from now on. `recording` is that of a capture, nullptr for an empty graph.
  CudaGraph(CudaBackend& gpu, GraphHandle graph, std::shared_ptr<Recording> recording)
      : gpu_(gpu), graph_(graph), captured_(std::move(recording)) {}
  ~CudaGraph() override;

  Status add_launch(absl::Span<const int> after, Launch launch) override;
  Status add_part(absl::Span<const int> after, std::unique_ptr<WorkGraph> part) override;
  Status finish() override;
  Status launch(StreamHandle stream) override;
  Status set_launch(int node, Launch launch) override;
  Status set_part(int node, std::unique_ptr<WorkGraph> part) override;
  Status replace(std::unique_ptr<WorkGraph> captured) override;

 private:
  // A launch or a part, and neither where the launch had nothing to do.
  struct Node {
    GraphNodeHandle handle = nullptr;
    std::shared_ptr<Recording> recording;
    std::unique_ptr<WorkGraph> part;
    // Of what it was added with: the driver compares what replaces it with that. `added_shape`: nothing where there was no launch.
    std::vector<std::shared_ptr<const FunctionState>> added_code;
    std::optional<LaunchShape> added_shape;
    bool enabled = true;
  };
  StatusOr<std::shared_ptr<Recording>> record(Launch launch);
  std::vector<GraphNodeHandle> handles(absl::Span<const int> nodes) const;
  // What it runs, as far as it was recorded: of parts, of nodes, or of the capture.
  template <class Visit>
  void for_each_recording(const Visit& visit) const;

  size_t launches() const;

  CudaBackend& gpu_;
  GraphHandle graph_;
  GraphExecHandle executable_ = nullptr;
  std::shared_ptr<Recording> captured_;
  std::vector<Node> nodes_;
  Status unusable_;  // a node is there in part
};

}  // namespace heddle::runtime::cuda
