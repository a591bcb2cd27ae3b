// Graphs: work that is recorded once and launched as a whole, at less cost than its launches.
//
//   Graph step = Graph::capture(stream, [&](const Stream& s) {
//     if (Status status = norm.launch(s, shape, x, y); !status.ok()) return status;
//     return softmax(s, y, z);                              // an operation of several launches
//   }).value();
//   for (int i = 0; i < 100; ++i) step.launch(stream);
//
// A capture records whatever `work` enqueues, on the stream and on those that wait for its events
// and that it waits for in turn. Nothing of it runs meanwhile; kernels are compiled as they are met.
//
// A graph can also be put together, where parts do not depend on each other or change one by one:
//
//   GraphBuilder builder(device);
//   GraphNode a = builder.add_kernel({}, scale, shape, x, y).value();
//   GraphNode b = builder.add_kernel({}, scale, shape, u, v).value();      // beside a
//   GraphNode c = builder.add({a, b}, [&](const Stream& s) { return sum(s, y, v, z); }).value();
//   Graph graph = std::move(builder).build().value();
//   graph.set_kernel(a, scale, shape, other_x, y);          // from the next launch on
//
// A graph keeps the machine code of its kernels, and what Stream::allocate() gave while it was recorded: its scratch memory, which
// is allocated once. Tensors and host memory that it works on are the caller's and have to exist whenever it runs. It is also what the
// interpreter runs, so that a program can be tested without a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/graph/work_graph.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/stream.h"

namespace heddle::runtime {

// Enqueues work on a stream.
using Work = absl::FunctionRef<Status(const Stream&)>;

// A node of a graph that a GraphBuilder made.
class GraphNode {
 private:
  friend class Graph;
  friend class GraphBuilder;
  GraphNode(uint64_t graph, int index, bool is_launch)
      : graph_(graph), index_(index), is_launch_(is_launch) {}

  uint64_t graph_;  // WorkGraph::id
  int index_;
  bool is_launch_;  // or recorded work
};

// Recorded work, ready to run. Movable; one thread at a time. It may be destroyed while it runs.
class Graph {
 public:
  Graph(Graph&&) = default;
  Graph& operator=(Graph&& other) noexcept {
    const Graph old(std::move(*this));  // its work goes before its device
    backend_ = std::move(other.backend_);
    work_ = std::move(other.work_);
    captured_ = other.captured_;
    return *this;
  }
  ~Graph() = default;

  // Records what `work` enqueues on a stream, which may not be the default one. The first error of
  // `work` is returned; so is, as kFailedPrecondition, a wait for a stream that is being recorded.
  static StatusOr<Graph> capture(const Stream& stream, Work work);

  // Enqueues all of it, in the stream's order. Launches of one graph run one after the other.
  Status launch(const Stream& stream) const;
  // Records anew, in place of what it was: cheap where only arguments and sizes differ, as kernels,
  // copies and their order then stay. Not for a graph that a builder made, whose nodes have names.
  Status recapture(const Stream& stream, Work work);

  // Replaces a node of GraphBuilder::add_kernel: another grid, other arguments, another kernel. From the next launch on.
  // kFailedPrecondition where the cluster differs, or one is cooperative and the other is not.
  template <class... P>
  Status set_kernel(GraphNode node, const Kernel<P...>& kernel, const LaunchShape& shape,
                    const typename heddle::detail::ParamTraits<P>::Host&... args) {
    return set_launch(node, [&](const Stream& s) { return kernel.launch(s, shape, args...); });
  }
  // Replaces a node of GraphBuilder::add: other arguments and sizes, with the same launches and copies in the same order.
  Status set(GraphNode node, Work work);
  // What set_kernel() calls.
  Status set_launch(GraphNode node, Work launch);

  // The device that it runs on. It may not have been moved from.
  Device device() const { return Device(backend_); }

 private:
  friend class GraphBuilder;
  Graph(std::shared_ptr<Backend> backend, std::unique_ptr<WorkGraph> work, bool captured)
      : backend_(std::move(backend)), work_(std::move(work)), captured_(captured) {}
  // What is wrong with a node that is to be replaced by a launch, or by recorded work.
  Status check(GraphNode node, bool is_launch) const;

  std::shared_ptr<Backend> backend_;
  std::unique_ptr<WorkGraph> work_;
  bool captured_;
};

// Puts a graph together, node by node. `after` names the nodes that have to be complete before the new one starts. Movable; one
// thread at a time.
class GraphBuilder {
 public:
  // An empty graph of a device.
  explicit GraphBuilder(const Device& device) : backend_(device.backend()) {}
  GraphBuilder(GraphBuilder&&) = default;
  GraphBuilder& operator=(GraphBuilder&& other) noexcept {
    const GraphBuilder old(std::move(*this));  // likewise
    backend_ = std::move(other.backend_);
    work_ = std::move(other.work_);
    nodes_ = other.nodes_;
    return *this;
  }
  ~GraphBuilder() = default;

  // One launch.
  template <class... P>
  StatusOr<GraphNode> add_kernel(absl::Span<const GraphNode> after, const Kernel<P...>& kernel,
                                 const LaunchShape& shape,
                                 const typename heddle::detail::ParamTraits<P>::Host&... args) {
    return add_launch(after, [&](const Stream& s) { return kernel.launch(s, shape, args...); });
  }
  // Whatever `work` enqueues on its stream, recorded as Graph::capture() does.
  StatusOr<GraphNode> add(absl::Span<const GraphNode> after, Work work);
  // What add_kernel() calls: `launch` enqueues one launch.
  StatusOr<GraphNode> add_launch(absl::Span<const GraphNode> after, Work launch);

  // The graph of what was added, whose nodes keep their names; the builder is used up.
  StatusOr<Graph> build() &&;

 private:
  // The places of nodes; also makes the graph where there is none yet.
  StatusOr<std::vector<int>> begin(absl::Span<const GraphNode> after);

  std::shared_ptr<Backend> backend_;
  std::unique_ptr<WorkGraph> work_;
  int nodes_ = 0;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::Graph;
using runtime::GraphBuilder;
using runtime::GraphNode;
}  // namespace heddle
