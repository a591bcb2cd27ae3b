// What a graph needs while it exists, written down while its work is recorded, and which launches
// on a device belong to such a recording.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/cuda/driver_api.h"
#include "heddle/runtime/cuda/launch_ring.h"

namespace heddle::runtime::cuda {

class CudaBackend;
struct FunctionState;

// A launch, with copies of all that it points to.
struct StoredLaunch {
  FunctionHandle function;
  LaunchShape shape;
  std::vector<LaunchAttribute> attributes;
  std::vector<std::byte> block;  // of parameters
  std::vector<int> places;       // of each of them, where the driver takes them one by one
};

// One capture, or one node that is being built.
class Recording {
 public:
  // Of a capture, launches are the driver's affair; of a node, they are stored here.
  enum class Kind : uint8_t { kCapture, kNode };
  Recording(CudaBackend& gpu, Kind of) : kind(of), gpu_(gpu) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Frees its scratch memory.
  ~Recording();

  const Kind kind;
  // Keeps the code of a launch; several threads may be enqueuing.
  void keep(const std::shared_ptr<const FunctionState>& function);
  // Notes a launch that the driver has recorded, for messages about faults.
  void note(const LaunchRecord& launch);

  // Once nobody enqueues any more.
  std::vector<std::shared_ptr<const FunctionState>> code;
  std::vector<LaunchRecord> launches;
  std::vector<StoredLaunch> stored;  // of a node, which one thread records

 private:
  CudaBackend& gpu_;
  std::mutex mutex_;
};

// The recordings of a device that are under way. Thread-safe.
class Recordings {
 public:
  explicit Recordings(CudaBackend& gpu) : gpu_(gpu) {}

  // Whether there is any: false is the usual case, and cheap.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // That of a stream, which is nullptr where the stream's work runs.
  StatusOr<std::shared_ptr<Recording>> of(StreamHandle stream);

  // Begins to capture a stream, and ends it. The graph is the caller's, also where the end fails.
  Status begin_capture(StreamHandle stream);
  StatusOr<std::shared_ptr<Recording>> end_capture(StreamHandle stream, GraphHandle* graph);

  // Records launches on a stream that is none; `stream` stands for it meanwhile.
  std::shared_ptr<Recording> begin_node(StreamHandle stream);
  void end_node(StreamHandle stream);

 private:
  // The number of the capture that a stream takes part in; 0: of none.
  StatusOr<uint64_t> capture_of(StreamHandle stream);
  Status end_driver_capture(StreamHandle stream, GraphHandle* graph);

  CudaBackend& gpu_;
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::map<StreamHandle, std::shared_ptr<Recording>> nodes_;
  std::map<uint64_t, std::shared_ptr<Recording>> captures_;
  std::map<StreamHandle, uint64_t> begun_;  // the number of the capture that began on a stream
};

}  // namespace heddle::runtime::cuda
