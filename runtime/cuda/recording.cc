#include "heddle/runtime/cuda/recording.h"

#include <utility>

#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/graph/work_graph.h"

namespace heddle::runtime::cuda {

Recording::~Recording() { gpu_.graph_memory().release(gpu_, this); }

void Recording::keep(const std::shared_ptr<const FunctionState>& function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  code.push_back(function);
}

void Recording::note(const LaunchRecord& launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  launches.push_back(launch);
}

StatusOr<uint64_t> Recordings::capture_of(StreamHandle stream) {
  CaptureStatus status = CaptureStatus::kNone;
  uint64_t id = 0;
  const Status asked = gpu_.call(gpu_.api().stream_get_capture_info, driver_stream(stream), &status,
                                 &id, nullptr, nullptr, nullptr);
  if (!asked.ok()) return asked;
  return status == CaptureStatus::kActive ? id : 0;
}

StatusOr<std::shared_ptr<Recording>> Recordings::of(StreamHandle stream) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto node = nodes_.find(stream); node != nodes_.end()) return node->second;
    if (captures_.empty()) return nullptr;
  }
  const StatusOr<uint64_t> id = capture_of(stream);
  if (!id.ok()) return id.status();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto capture = captures_.find(*id);
  return capture == captures_.end() ? nullptr : capture->second;
}

Status Recordings::begin_capture(StreamHandle stream) {
  if (any()) {
    const StatusOr<std::shared_ptr<Recording>> outer = of(stream);
    if (!outer.ok()) return outer.status();
    if (*outer != nullptr) return already_recorded();
  }
  const Status begun =
      gpu_.call(gpu_.api().stream_begin_capture, driver_stream(stream), CaptureMode::kRelaxed);
  if (!begun.ok()) return begun;
  const StatusOr<uint64_t> id = capture_of(stream);
  if (!id.ok()) {
    GraphHandle graph = nullptr;
    (void)end_driver_capture(stream, &graph);
    if (graph != nullptr) gpu_.release(gpu_.api().graph_destroy, graph);
    return id.status();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  captures_[*id] = std::make_shared<Recording>(gpu_, Recording::Kind::kCapture);
  begun_[stream] = *id;
  ++count_;
  return OkStatus();
}

// Also where the device was lost meanwhile: the stream is not left as it is.
Status Recordings::end_driver_capture(StreamHandle stream, GraphHandle* graph) {
  const auto& end = gpu_.api().stream_end_capture;
  if (!gpu_.lost()) return gpu_.call(end, driver_stream(stream), graph);
  gpu_.release(end, driver_stream(stream), graph);
  return gpu_.health();
}

StatusOr<std::shared_ptr<Recording>> Recordings::end_capture(StreamHandle stream,
                                                             GraphHandle* graph) {
  std::shared_ptr<Recording> recording;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto begun = begun_.extract(stream);
    recording = std::move(captures_.extract(begun.mapped()).mapped());
    --count_;
  }
  if (Status s = end_driver_capture(stream, graph); !s.ok()) return s;
  return recording;
}

std::shared_ptr<Recording> Recordings::begin_node(StreamHandle stream) {
  auto recording = std::make_shared<Recording>(gpu_, Recording::Kind::kNode);
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_[stream] = recording;
  ++count_;
  return recording;
}

void Recordings::end_node(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.erase(stream);
  --count_;
}

}  // namespace heddle::runtime::cuda
