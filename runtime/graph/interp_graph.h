// Graphs of the interpreter: steps, which run in the order in which they were recorded.
//
// It refuses what CUDA refuses: waiting for a stream that is being recorded, work of it that depends
// on work of others, and streams that joined a capture and were not waited for.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "heddle/ir/launch/launch_shape.h"
#include "heddle/runtime/graph/work_graph.h"

namespace heddle::runtime {

class InterpBackend;

// One operation, on the stream that it is given.
using InterpWork = std::function<Status(StreamHandle)>;

// A recorded one.
struct InterpStep {
  InterpWork run;       // what it does
  StreamHandle stream;  // that it was recorded on
  std::optional<LaunchShape>
      launch;  // how the kernel was launched; none: a copy, a fill or the like
};

// What is being recorded, and then a node of a graph.
struct InterpCapture {
  // With nothing recorded yet.
  explicit InterpCapture(InterpBackend& on) : device(on) {}
  InterpCapture(const InterpCapture&) = delete;
  InterpCapture& operator=(const InterpCapture&) = delete;
  // Frees what was allocated for its steps.
  ~InterpCapture();

  // Of each stream that takes part, how many steps it has recorded, and up to which another has waited for it.
  struct Member {
    int64_t steps = 0;       // recorded
    int64_t waited_for = 0;  // of them
  };
  InterpBackend& device;
  std::map<StreamHandle, Member> members;
  std::vector<InterpStep> steps;
  Status broken;  // why it cannot be ended

  // The shape of its only launch, nullptr where nothing is launched; and how many there are.
  const LaunchShape* launch() const;
  int launches() const;
};

// A graph as a list of steps.
class InterpGraph final : public WorkGraph {
 public:
  // Without nodes.
  explicit InterpGraph(InterpBackend& device) : device_(device) {}
  // Of a capture, one node.
  InterpGraph(InterpBackend& device, const std::shared_ptr<const InterpCapture>& capture)
      : device_(device), nodes_{{capture, capture}} {}

  Status add_launch(absl::Span<const int> after, Launch launch) override;
  Status add_part(absl::Span<const int> after, std::unique_ptr<WorkGraph> part) override;
  Status finish() override { return OkStatus(); }
  Status launch(StreamHandle stream) override;
  Status set_launch(int node, Launch launch) override;
  Status set_part(int node, std::unique_ptr<WorkGraph> part) override;
  Status replace(std::unique_ptr<WorkGraph> captured) override;

 private:
  using Recorded = std::shared_ptr<const InterpCapture>;
  // What runs, and what it was when it was added, which what replaces it has to resemble.
  struct Node {
    Recorded now, added;
  };
  StatusOr<Recorded> record(Launch launch);

  InterpBackend& device_;
  // Each stands behind those that it depends on.
  std::vector<Node> nodes_;
};

// The captures of a device. Thread-safe.
class InterpCaptures {
 public:
  // Records the stream from now on.
  Status begin(InterpBackend& device, StreamHandle stream);
  // What was recorded. kFailedPrecondition where something went wrong meanwhile.
  StatusOr<std::shared_ptr<InterpCapture>> end(StreamHandle stream);

  // Whether a stream is being recorded, or any.
  std::shared_ptr<InterpCapture> of(StreamHandle stream);
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  // Records a step, where its stream is being recorded.
  bool record(StreamHandle stream, const InterpWork& work,
              const std::optional<LaunchShape>& launch);
  // Refuses a wait for a stream that is being recorded, and for any; `what` names the call.
  Status refuse_wait(StreamHandle stream, absl::string_view what);
  Status refuse_any_wait(absl::string_view what);

  // A point in a capture.
  struct Point {
    std::weak_ptr<InterpCapture> capture;          // none: outside
    StreamHandle stream = StreamHandle::kDefault;  // which is never recorded
    int64_t steps = 0;                             // of the stream, in front of it
  };
  // Where a stream is, if it is being recorded.
  Point point(StreamHandle stream);
  // A stream waits for a point, or for an event outside every capture.
  Status join(StreamHandle stream, const Point& point);

 private:
  std::shared_ptr<InterpCapture> find(StreamHandle stream) const;

  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::map<StreamHandle, std::shared_ptr<InterpCapture>> of_stream_;
};

}  // namespace heddle::runtime
