// What stands behind a Graph: a device's recorded work. Programs use graph.h, which is built on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"

namespace heddle::runtime {

// Nodes that run after those they name, built once and run as often as wanted. One thread at a time. Nodes count from 0 in the
// order in which they were added; what a capture recorded has none that could be named.
class WorkGraph {
 public:
  // Enqueues one launch on the stream that it is given.
  using Launch = absl::FunctionRef<Status(StreamHandle)>;

  // Without nodes.
  WorkGraph() : id(next_id()) {}
  WorkGraph(const WorkGraph&) = delete;
  WorkGraph& operator=(const WorkGraph&) = delete;
  virtual ~WorkGraph() = default;

  // No other graph of the process has this number or ever gets it.
  const uint64_t id;

  // Adds a node that is one launch, or a whole graph, which was captured on the same device. Where that fails there is no node, or
  // finish() fails likewise.
  virtual Status add_launch(absl::Span<const int> after, Launch launch) = 0;
  virtual Status add_part(absl::Span<const int> after, std::unique_ptr<WorkGraph> part) = 0;
  // Makes it ready to run; nothing can be added from then on.
  virtual Status finish() = 0;

  // Runs it, once it is finished. Of later launches of the stream, each waits for all of it.
  virtual Status launch(StreamHandle stream) = 0;
  // Replaces a node by another of its kind, from the next launch on. kFailedPrecondition where the
  // device cannot; the node stays as it was.
  virtual Status set_launch(int node, Launch launch) = 0;
  virtual Status set_part(int node, std::unique_ptr<WorkGraph> part) = 0;
  // Replaces all of it by what was captured. Cheap where only arguments and sizes differ.
  virtual Status replace(std::unique_ptr<WorkGraph> captured) = 0;

 private:
  static uint64_t next_id() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1);
  }
};

// Of a launch that cannot replace a node.
inline Status no_such_update(absl::string_view why) {
  return FailedPreconditionError(
      absl::StrCat("a graph's node cannot be replaced: ", why, "; fix: build the graph anew"));
}

// Whether a launch can replace the one that a node was added with; nullptr: nothing was launched.
inline Status check_replacement(const LaunchShape* before, const LaunchShape* now) {
  if (now == nullptr) return OkStatus();  // the node does nothing from then on
  if (before == nullptr) return no_such_update("it had nothing to launch when it was added");
  if (now->cluster != before->cluster) return no_such_update("the cluster of a node is fixed");
  if (now->cooperative != before->cooperative) {
    return no_such_update("whether a node's launch is cooperative is fixed");
  }
  return OkStatus();
}
// Of recorded work that cannot replace a node's.
inline Status other_work() {
  return no_such_update("it has other launches or copies than the work that it is to run");
}

// Of a stream that is captured already.
inline Status already_recorded() {
  return FailedPreconditionError(
      "the stream's work is already being recorded; fix: end that first, or record on another "
      "stream");
}
// Of a graph that is launched on a stream whose work is being recorded.
inline Status cannot_be_recorded() {
  return FailedPreconditionError(
      "a graph is launched on a stream whose work is being recorded, and graphs are not recorded "
      "themselves; fix: record what it runs");
}
// Of a node of one launch that enqueues several.
inline Status more_than_one_launch(size_t count) {
  return InvalidArgumentError(absl::StrCat("a graph's node of one launch enqueues ", count,
                                           " of them; fix: add it by GraphBuilder::add()"));
}

}  // namespace heddle::runtime
