#include "heddle/runtime/graph/interp_graph.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::runtime {
namespace {

constexpr char kOutside[] = "; fix: move the call out of the capture";

Status cannot_wait(absl::string_view what) {
  return FailedPreconditionError(absl::StrCat(
      what, " waits for a stream whose work is being recorded, which does not run meanwhile",
      kOutside));
}

}  // namespace

InterpCapture::~InterpCapture() { device.graph_memory().release(device, this); }

int InterpCapture::launches() const {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(),
                                        [](const InterpStep& s) { return s.launch.has_value(); }));
}

const LaunchShape* InterpCapture::launch() const {
  for (const InterpStep& step : steps) {
    if (step.launch) return &*step.launch;
  }
  return nullptr;
}

StatusOr<InterpGraph::Recorded> InterpGraph::record(Launch launch) {
  const StatusOr<StreamHandle> stream = device_.create_stream();
  if (!stream.ok()) return stream.status();
  if (Status s = device_.captures().begin(device_, *stream); !s.ok()) return s;
  StatusOr<std::shared_ptr<InterpCapture>> capture = std::shared_ptr<InterpCapture>();
  Status launched;
  {
    // Also where the launch throws.
    const auto end = absl::MakeCleanup([&] { capture = device_.captures().end(*stream); });
    launched = launch(*stream);
  }
  if (!launched.ok()) return launched;
  if (!capture.ok()) return capture.status();
  if ((*capture)->launches() > 1) return more_than_one_launch((*capture)->launches());
  return *std::move(capture);
}

Status InterpGraph::add_launch(absl::Span<const int>, Launch launch) {
  StatusOr<Recorded> recorded = record(launch);
  if (!recorded.ok()) return recorded.status();
  nodes_.push_back({*recorded, *recorded});
  return OkStatus();
}

Status InterpGraph::add_part(absl::Span<const int>, std::unique_ptr<WorkGraph> part) {
  const Recorded& recorded = static_cast<const InterpGraph&>(*part).nodes_[0].now;
  nodes_.push_back({recorded, recorded});
  return OkStatus();
}

Status InterpGraph::launch(StreamHandle stream) {
  if (device_.captures().of(stream) != nullptr) return cannot_be_recorded();
  // A node waits for those before it, and the graph for what the stream did.
  device_.launches().forget(stream);
  for (const Node& node : nodes_) {
    for (const InterpStep& step : node.now->steps) {
      const bool of_main = step.stream == node.now->steps.front().stream;
      if (Status s = step.run(of_main ? stream : step.stream); !s.ok()) return s;
    }
    for (const InterpStep& step : node.now->steps) device_.launches().forget(step.stream);
    device_.launches().forget(stream);
  }
  return OkStatus();
}

Status InterpGraph::set_launch(int index, Launch launch) {
  StatusOr<Recorded> recorded = record(launch);
  if (!recorded.ok()) return recorded.status();
  Node& node = nodes_[index];
  if (Status s = check_replacement(node.added->launch(), (*recorded)->launch()); !s.ok()) return s;
  node.now = *std::move(recorded);
  return OkStatus();
}

Status InterpGraph::set_part(int index, std::unique_ptr<WorkGraph> part) {
  const Recorded& recorded = static_cast<const InterpGraph&>(*part).nodes_[0].now;
  Node& node = nodes_[index];
  const bool alike =
      std::equal(recorded->steps.begin(), recorded->steps.end(), node.added->steps.begin(),
                 node.added->steps.end(), [](const InterpStep& a, const InterpStep& b) {
                   return a.launch.has_value() == b.launch.has_value();
                 });
  if (!alike) return other_work();
  node.now = recorded;
  return OkStatus();
}

Status InterpGraph::replace(std::unique_ptr<WorkGraph> captured) {
  std::swap(nodes_, static_cast<InterpGraph&>(*captured).nodes_);
  return OkStatus();
}

std::shared_ptr<InterpCapture> InterpCaptures::find(StreamHandle stream) const {
  const auto found = of_stream_.find(stream);
  return found == of_stream_.end() ? nullptr : found->second;
}

std::shared_ptr<InterpCapture> InterpCaptures::of(StreamHandle stream) {
  if (!any()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  return find(stream);
}

Status InterpCaptures::begin(InterpBackend& device, StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto [at, fresh] = of_stream_.try_emplace(stream);
  if (!fresh) return already_recorded();
  at->second = std::make_shared<InterpCapture>(device);
  at->second->members[stream];
  ++count_;
  return OkStatus();
}

StatusOr<std::shared_ptr<InterpCapture>> InterpCaptures::end(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<InterpCapture> capture = find(stream);
  for (const auto& [member, state] : capture->members) of_stream_.erase(member);
  --count_;
  if (!capture->broken.ok()) return capture->broken;
  for (const auto& [member, state] : capture->members) {
    if (member == stream || state.waited_for == state.steps) continue;
    return FailedPreconditionError(
        "a stream that takes part in the capture has work that nobody waits for; fix: record an "
        "event on it, and let the captured stream wait for that");
  }
  return capture;
}

bool InterpCaptures::record(StreamHandle stream, const InterpWork& work,
                            const std::optional<LaunchShape>& launch) {
  if (!any()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<InterpCapture> capture = find(stream);
  if (capture == nullptr) return false;
  ++capture->members[stream].steps;
  capture->steps.push_back({work, stream, launch});
  return true;
}

Status InterpCaptures::refuse_wait(StreamHandle stream, absl::string_view what) {
  if (!any()) return OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<InterpCapture> capture = find(stream);
  if (capture == nullptr) return OkStatus();
  return capture->broken = cannot_wait(what);
}

Status InterpCaptures::refuse_any_wait(absl::string_view what) {
  if (!any()) return OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [stream, capture] : of_stream_) capture->broken = cannot_wait(what);
  return of_stream_.empty() ? OkStatus() : cannot_wait(what);
}

InterpCaptures::Point InterpCaptures::point(StreamHandle stream) {
  if (!any()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<InterpCapture> capture = find(stream);
  if (capture == nullptr) return {};
  return {capture, stream, capture->members[stream].steps};
}

Status InterpCaptures::join(StreamHandle stream, const Point& point) {
  if (!any()) return OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<InterpCapture> theirs = point.capture.lock();
  const std::shared_ptr<InterpCapture> ours = find(stream);
  const bool running = theirs != nullptr && find(point.stream) == theirs;
  if (ours == nullptr && !running) return OkStatus();
  if (!running || (ours != nullptr && ours != theirs)) {
    return ours->broken = FailedPreconditionError(absl::StrCat(
               "recorded work cannot wait for an event of work that is not in the capture",
               kOutside));
  }
  if (ours == nullptr) of_stream_[stream] = theirs;
  InterpCapture::Member& waited = theirs->members[point.stream];
  waited.waited_for = std::max(waited.waited_for, point.steps);
  ++theirs->members[stream].steps;  // what waits has to be waited for
  return OkStatus();
}

}  // namespace heddle::runtime
