// The ranges of time that a kernel recorded (heddle/dsl/cuda/timeline.h), and a trace of them for chrome://tracing and
// Perfetto (ui.perfetto.dev).
//
//   TimelineBuffer buffer = TimelineBuffer::allocate(stream, {.warps = 64, .events = 200}).value();
//   Status status = sums.launch(stream, {.grid = 8, .block = 256}, x, y, buffer.events());
//   TimelineRecording recording = buffer.read(stream).value();
//   status = recording.write_chrome_trace("sums.json");
//
// A row of the trace is a warp; rows are grouped by multiprocessor. Ranges are timed by the clock of their multiprocessor,
// which counts cycles. Each warp also reads the clock and the global timer, which counts nanoseconds for all of the GPU, at
// its beginning and its end: from these follow the clock's rate and how the multiprocessors' clocks lie to each other, as
// exactly as the global timer's steps allow (between 32 ns and 1 µs, by GPU). Durations need no more than the rate.
//
// On the interpreter both clocks are the host's, so that a range is as long as the interpreter took, warps of a block that wait for
// each other take turns, and there is one multiprocessor, 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/dim3.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/stream.h"

namespace heddle {

template <class T, int Rank>
struct TensorRef;  // dsl/kernel.h

namespace runtime {

// How much a timeline can hold.
struct TimelineSize {
  // Warps, counted block by block through the grid. Later ones are counted as `warps_without_row`.
  int64_t warps = 0;
  // Events of each: a range has two, a mark one. 16 bytes each. Later ones are counted as dropped.
  int64_t events = 256;
};

// How the events become times.
struct TimelineOptions {
  // The multiprocessors' clock in GHz; 0: from what the warps recorded. For kernels that run for no
  // more than a few steps of the global timer.
  double clock_ghz = 0;
};

// A warp that recorded. Times are in nanoseconds since the first warp began.
struct TimelineWarp {
  // Its place: the block's coordinates, its number in the block, and the multiprocessor that ran it.
  Dim3 block{0, 0, 0};
  int warp = 0;
  int multiprocessor = 0;
  // From when to when; without an end where it did not come to the end of its Timeline.
  int64_t begin_ns = 0;
  std::optional<int64_t> end_ns{};
  // Events that found its row full. Of a warp without an end: 1 where there was any.
  int64_t dropped_events = 0;

  // "block (1, 0, 0) warp 2"
  std::string describe() const;
};

// A range, or a mark (whose end is its beginning).
struct TimelineSpan {
  // As the kernel gave them.
  std::string name;
  std::optional<int32_t> argument{};
  // From when to when, in nanoseconds as above.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // Whose it is, in TimelineRecording::warps; and how many ranges are around it.
  int64_t warp = 0;
  int depth = 0;
  // A moment, no range.
  bool mark = false;
  // Else `end_ns` is where an outer range ended, the warp's end, or its last event.
  bool has_end = true;
};

// What one launch recorded.
struct TimelineRecording {
  // In the order of their rows.
  std::vector<TimelineWarp> warps;
  // Warp by warp, in the order of their beginnings; a range stands in front of those inside it.
  std::vector<TimelineSpan> spans;
  // Events that found their warp's row full, and warps that had no row.
  int64_t dropped_events = 0;
  int64_t warps_without_row = 0;
  // Of the multiprocessors' clocks, in GHz; as recorded or as given.
  double clock_ghz = 0;
  // What is wrong, a sentence each: ranges without an end or a beginning, ranges that do not nest, lost events, an unknown
  // rate. At most 20, and a last one that counts the rest.
  std::vector<std::string> problems;

  // The trace as JSON in Chrome's format: complete events ("X") with times in microseconds to three places, marks as
  // instants, and the problems in `otherData`.
  std::string to_chrome_trace() const;
  // Writes it to a file; the system's error with the path where that fails.
  Status write_chrome_trace(const std::string& path) const;
};

// A recording from the words that a launch has left: `rows` of the same length, the first of which is the launch's.
// kInvalidArgument for words that no TimelineBuffer has.
StatusOr<TimelineRecording> decode_timeline(absl::Span<const int64_t> words, int64_t rows,
                                            const TimelineOptions& options = {});

// Memory for one launch's timeline. Movable.
class TimelineBuffer {
 public:
  // Allocates and clears it, in the stream's order. kInvalidArgument for sizes below 1 or above
  // 2^28, kResourceExhausted as Stream::allocate().
  static StatusOr<TimelineBuffer> allocate(const Stream& stream, const TimelineSize& size);

  // The argument of a launch, for a parameter of type TimelineEvents.
  TensorRef<int64_t, 2> events() const;
  // Clears it for another launch, in the stream's order.
  Status clear(const Stream& stream);
  // Waits for the stream and gives what the last launch recorded.
  StatusOr<TimelineRecording> read(const Stream& stream, const TimelineOptions& options = {}) const;

 private:
  TimelineBuffer(Buffer buffer, int64_t rows, int64_t row_words)
      : buffer_(std::move(buffer)), rows_(rows), row_words_(row_words) {}

  Buffer buffer_;
  int64_t rows_;
  int64_t row_words_;
};

}  // namespace runtime

using runtime::TimelineBuffer;
using runtime::TimelineRecording;
}  // namespace heddle
