#include "heddle/runtime/graph/graph.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace heddle::runtime {
namespace {

// What `work` enqueues on a stream of a device, as a graph.
StatusOr<std::unique_ptr<WorkGraph>> record(const Stream& stream, Work work) {
  Backend& backend = *stream.backend();
  if (Status s = backend.begin_capture(stream.handle()); !s.ok()) return s;
  StatusOr<std::unique_ptr<WorkGraph>> graph = std::unique_ptr<WorkGraph>();
  Status worked;
  {
    // Also where `work` throws.
    const auto end = absl::MakeCleanup([&] { graph = backend.end_capture(stream.handle()); });
    worked = work(stream);
  }
  if (!worked.ok()) return worked;
  return graph;
}

Status check_stream(const Stream& stream, const Backend* device) {
  if (stream.backend() == nullptr) return moved_from("a Stream");
  if (device == nullptr) return moved_from("a Graph");
  if (stream.backend().get() == device) return OkStatus();
  return InvalidArgumentError(absl::StrCat("a graph and its stream: one belongs to ",
                                           device->name(), ", the other to ",
                                           stream.backend()->name()));
}

Status check_recordable(const Stream& stream) {
  if (stream.backend() == nullptr) return moved_from("a Stream");
  if (stream.handle() != StreamHandle::kDefault) return OkStatus();
  return InvalidArgumentError(
      "the default stream's work cannot be recorded; fix: make a stream by "
      "Device::create_stream()");
}

}  // namespace

StatusOr<Graph> Graph::capture(const Stream& stream, Work work) {
  if (Status s = check_recordable(stream); !s.ok()) return s;
  StatusOr<std::unique_ptr<WorkGraph>> recorded = record(stream, work);
  if (!recorded.ok()) return recorded.status();
  if (Status s = (*recorded)->finish(); !s.ok()) return s;
  return Graph(stream.backend(), *std::move(recorded), true);
}

Status Graph::launch(const Stream& stream) const {
  if (Status s = check_stream(stream, backend_.get()); !s.ok()) return s;
  if (stream.launches_only_) return cannot_be_recorded();
  return work_->launch(stream.handle());
}

Status Graph::recapture(const Stream& stream, Work work) {
  if (Status s = check_stream(stream, backend_.get()); !s.ok()) return s;
  if (Status s = check_recordable(stream); !s.ok()) return s;
  if (!captured_) {
    return FailedPreconditionError(
        "a graph that a GraphBuilder made cannot be recorded anew; fix: replace its nodes by "
        "set() and set_kernel()");
  }
  StatusOr<std::unique_ptr<WorkGraph>> recorded = record(stream, work);
  if (!recorded.ok()) return recorded.status();
  return work_->replace(*std::move(recorded));
}

Status Graph::check(GraphNode node, bool is_launch) const {
  if (work_ == nullptr) return moved_from("a Graph");
  if (node.graph_ != work_->id) return InvalidArgumentError("a node of another graph");
  if (node.is_launch_ == is_launch) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat("the node was added by ", is_launch ? "add()" : "add_kernel()",
                   "; fix: replace it by ", is_launch ? "set()" : "set_kernel()"));
}

Status Graph::set_launch(GraphNode node, Work launch) {
  if (Status s = check(node, true); !s.ok()) return s;
  return work_->set_launch(node.index_, [&](StreamHandle stream) {
    return launch(Stream(backend_, stream, nullptr, /*launches_only=*/true));
  });
}

Status Graph::set(GraphNode node, Work work) {
  if (Status s = check(node, false); !s.ok()) return s;
  const StatusOr<Stream> stream = device().create_stream();
  if (!stream.ok()) return stream.status();
  StatusOr<std::unique_ptr<WorkGraph>> part = record(*stream, work);
  if (!part.ok()) return part.status();
  return work_->set_part(node.index_, *std::move(part));
}

StatusOr<std::vector<int>> GraphBuilder::begin(absl::Span<const GraphNode> after) {
  if (backend_ == nullptr) return moved_from("a GraphBuilder");
  if (work_ == nullptr) {
    StatusOr<std::unique_ptr<WorkGraph>> made = backend_->create_graph();
    if (!made.ok()) return made.status();
    work_ = *std::move(made);
  }
  std::vector<int> places;
  for (const GraphNode& node : after) {
    if (node.graph_ != work_->id) {
      return InvalidArgumentError("a graph's node comes after a node of another graph");
    }
    places.push_back(node.index_);
  }
  return places;
}

StatusOr<GraphNode> GraphBuilder::add_launch(absl::Span<const GraphNode> after, Work launch) {
  const StatusOr<std::vector<int>> places = begin(after);
  if (!places.ok()) return places.status();
  const Status added = work_->add_launch(*places, [&](StreamHandle stream) {
    return launch(Stream(backend_, stream, nullptr, /*launches_only=*/true));
  });
  if (!added.ok()) return added;
  return GraphNode(work_->id, nodes_++, true);
}

StatusOr<GraphNode> GraphBuilder::add(absl::Span<const GraphNode> after, Work work) {
  const StatusOr<std::vector<int>> places = begin(after);
  if (!places.ok()) return places.status();
  const StatusOr<Stream> stream = Device(backend_).create_stream();
  if (!stream.ok()) return stream.status();
  StatusOr<std::unique_ptr<WorkGraph>> part = record(*stream, work);
  if (!part.ok()) return part.status();
  if (Status s = work_->add_part(*places, *std::move(part)); !s.ok()) return s;
  return GraphNode(work_->id, nodes_++, false);
}

StatusOr<Graph> GraphBuilder::build() && {
  if (StatusOr<std::vector<int>> begun = begin({}); !begun.ok()) return begun.status();
  if (Status s = work_->finish(); !s.ok()) return s;
  return Graph(std::move(backend_), std::move(work_), false);
}

}  // namespace heddle::runtime
