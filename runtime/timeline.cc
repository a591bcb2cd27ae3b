#include "heddle/runtime/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/launch/timeline_events.h"
#include "heddle/runtime/launch.h"

namespace heddle::runtime {
namespace {

using Layout = ir::TimelineLayout;

constexpr size_t kListedProblems = 20;

// Warps, and events of each, so that their product is a number of bytes.
constexpr int64_t kMost = 1 << 28;

// The two clocks at one moment.
struct Reading {
  int64_t timer = 0;
  int64_t clock = 0;
};

// What one warp wrote.
struct Row {
  absl::Span<const int64_t> words;
  int processor = 0;
  Reading begin, end;  // `end`: zeros where the warp did not come to it
  int64_t events = 0;  // that are stored
  int64_t dropped = 0;
};

// Gathers problems up to a limit.
class Problems {
 public:
  void add(std::string text) {
    if (list_.size() < kListedProblems) {
      list_.push_back(std::move(text));
    } else {
      ++more_;
    }
  }
  std::vector<std::string> finish() {
    if (more_ > 0) list_.push_back(absl::StrCat("and ", more_, " more like these"));
    return std::move(list_);
  }

 private:
  std::vector<std::string> list_;
  int64_t more_ = 0;
};

int64_t events_of_row(int64_t words) {
  return (words - Layout::kHeader) / Layout::kWordsOfEvent - 1;
}

std::optional<Row> read_row(absl::Span<const int64_t> words) {
  if (words[Layout::kProcessor] == 0) return std::nullopt;
  Row row;
  row.words = words;
  row.processor = static_cast<int>(words[Layout::kProcessor] & 0xFFFFFFFF) - 1;
  row.begin = {words[Layout::kBeginTimer], words[Layout::kBeginClock]};
  row.end = {words[Layout::kEndTimer], words[Layout::kEndClock]};
  const int64_t capacity = events_of_row(static_cast<int64_t>(words.size()));
  // A tag is never 0.
  const auto is_there = [&](int64_t i) {
    return words[static_cast<size_t>(Layout::words_of_row(i) - 1)] != 0;
  };
  while (row.events < capacity && is_there(row.events)) ++row.events;
  // A warp that ended early has not written how many events there were.
  row.dropped = std::max<int64_t>(words[Layout::kEventCount] - row.events, is_there(capacity));
  return row;
}

// How the clocks of the multiprocessors become one time.
class Clocks {
 public:
  Clocks(const std::vector<Row>& rows, const TimelineOptions& options, Problems& problems) {
    int64_t cycles = 0, nanoseconds = 0;
    for (const Row& row : rows) add(row);
    for (const auto& [number, processor] : processors_) {
      cycles += processor.last.clock - processor.first.clock;
      nanoseconds += processor.last.timer - processor.first.timer;
    }
    rate_ = options.clock_ghz;
    if (rate_ <= 0 && cycles > 0 && nanoseconds > 0) {
      rate_ = static_cast<double>(cycles) / static_cast<double>(nanoseconds);
    }
    if (rate_ <= 0) {
      rate_ = 1;
      problems.add(
          "the clock's rate is unknown, and a cycle is shown as a nanosecond: no warp saw the "
          "global timer advance; give "
          "TimelineOptions::clock_ghz");
    }
    // The timer advances in steps, and stood at each reading where its last step had left it, at or before the clock's
    // moment. The latest estimate is therefore the closest one.
    for (const Row& row : rows) {
      Processor& processor = processors_[row.processor];
      for (const Reading& reading : {row.begin, row.end}) {
        if (reading.timer == 0) continue;
        const double offset = static_cast<double>(reading.timer - origin_) -
                              static_cast<double>(reading.clock - processor.first.clock) / rate_;
        processor.offset = std::max(processor.offset, offset);
      }
    }
  }

  double rate() const { return rate_; }

  // Nanoseconds since the earliest reading of the timer.
  int64_t time(int processor, int64_t clock) const {
    const Processor& known = processors_.at(processor);
    return std::llround(known.offset + static_cast<double>(clock - known.first.clock) / rate_);
  }

 private:
  struct Processor {
    Reading first, last;
    double offset = -INFINITY;  // of `first`, from the origin
  };

  void add(const Row& row) {
    const auto [at, is_new] = processors_.emplace(row.processor, Processor{row.begin, row.begin});
    if (is_new && processors_.size() == 1) origin_ = row.begin.timer;
    origin_ = std::min(origin_, row.begin.timer);
    Processor& processor = at->second;
    for (const Reading& reading : {row.begin, row.end}) {
      if (reading.timer == 0) continue;
      if (reading.clock < processor.first.clock) processor.first = reading;
      if (reading.clock > processor.last.clock) processor.last = reading;
    }
  }

  std::map<int, Processor> processors_;
  int64_t origin_ = 0;
  double rate_ = 0;
};

// Makes the ranges of one warp of its events.
class Nesting {
 public:
  Nesting(TimelineRecording& recording, int64_t warp, Problems& problems)
      : recording_(recording), warp_(warp), problems_(problems) {}

  void add(int64_t time, int64_t tag_word) {
    const uint32_t tag = static_cast<uint32_t>(tag_word);
    std::string name = ir::timeline_name_of(tag & Layout::kNameMask);
    if (name.empty()) name = absl::StrFormat("range %08x", tag & Layout::kNameMask);
    last_ = std::max(last_, time);
    const uint32_t kind = tag & Layout::kKind;
    if (kind == Layout::kEnd) return end(name, time);
    TimelineSpan span{.name = std::move(name),
                      .begin_ns = time,
                      .end_ns = time,
                      .warp = warp_,
                      .depth = static_cast<int>(open_.size()),
                      .mark = kind == Layout::kMark};
    if ((tag & Layout::kHasArgument) != 0) span.argument = static_cast<int32_t>(tag_word >> 32);
    if (!span.mark) open_.push_back(recording_.spans.size());
    recording_.spans.push_back(std::move(span));
  }

  // Ends what is open. Where events were dropped, the ends may be among them.
  void finish(bool dropped) {
    const TimelineWarp& warp = where();
    const int64_t time = std::max(last_, warp.end_ns.value_or(last_));
    while (!open_.empty()) {
      TimelineSpan& span = recording_.spans[open_.back()];
      span.end_ns = time;
      span.has_end = false;
      if (!dropped) {
        problems_.add(absl::StrCat(warp.describe(), ": range '", span.name,
                                   "' has no end; it is shown up to the warp's"));
      }
      open_.pop_back();
    }
  }

 private:
  const TimelineWarp& where() const { return recording_.warps[static_cast<size_t>(warp_)]; }

  void end(const std::string& name, int64_t time) {
    const auto is_it = [&](size_t span) { return recording_.spans[span].name == name; };
    const auto found = std::find_if(open_.rbegin(), open_.rend(), is_it);
    if (found == open_.rend()) {
      problems_.add(
          absl::StrCat(where().describe(), ": range '", name, "' ends without a beginning"));
      return;
    }
    // Those that began inside and are open still end here too.
    while (!is_it(open_.back())) {
      TimelineSpan& inner = recording_.spans[open_.back()];
      inner.end_ns = time;
      inner.has_end = false;
      problems_.add(absl::StrCat(where().describe(), ": range '", name, "' ends inside of range '",
                                 inner.name, "', which is cut there"));
      open_.pop_back();
    }
    recording_.spans[open_.back()].end_ns = time;
    open_.pop_back();
  }

  TimelineRecording& recording_;
  const int64_t warp_;
  Problems& problems_;
  std::vector<size_t> open_;  // in recording_.spans
  int64_t last_ = INT64_MIN;
};

}  // namespace

std::string TimelineWarp::describe() const {
  return absl::StrCat("block (", block.x, ", ", block.y, ", ", block.z, ") warp ", warp);
}

StatusOr<TimelineRecording> decode_timeline(absl::Span<const int64_t> words, int64_t rows,
                                            const TimelineOptions& options) {
  const auto size = static_cast<int64_t>(words.size());
  if (rows < 1 || size % rows != 0 || size / rows < Layout::words_of_row(1)) {
    return InvalidArgumentError(absl::StrCat("these are no timeline's words: ", size, " in ", rows,
                                             " rows of at least ", Layout::words_of_row(1)));
  }
  const auto row_words = static_cast<size_t>(size / rows);
  std::vector<Row> written;
  for (int64_t i = 1; i < rows; ++i) {
    if (const auto row = read_row(words.subspan(static_cast<size_t>(i) * row_words, row_words))) {
      written.push_back(*row);
    }
  }

  TimelineRecording recording;
  Problems problems;
  recording.warps_without_row = words[Layout::kWarpsWithoutRow];
  if (recording.warps_without_row > 0) {
    problems.add(absl::StrCat(recording.warps_without_row, " warps had no row: the timeline has ",
                              rows - 1));
  }
  for (const Row& row : written) recording.dropped_events += row.dropped;
  if (recording.dropped_events > 0) {
    problems.add(absl::StrCat(recording.dropped_events,
                              " events were dropped: a warp has room for ",
                              events_of_row(size / rows)));
  }
  if (written.empty()) {
    recording.problems = problems.finish();
    return recording;
  }

  const Clocks clocks(written, options, problems);
  recording.clock_ghz = clocks.rate();
  int64_t first = INT64_MAX;
  for (const Row& row : written) {
    first = std::min(first, clocks.time(row.processor, row.begin.clock));
  }
  for (const Row& row : written) {
    const auto time = [&](int64_t clock) { return clocks.time(row.processor, clock) - first; };
    const int64_t block = row.words[Layout::kBlock];
    TimelineWarp warp{.block = Dim3(block & 0xFFFFFFFF, block >> 32 & 0xFFFF, block >> 48 & 0xFFFF),
                      .warp = static_cast<int>(row.words[Layout::kProcessor] >> 32),
                      .multiprocessor = row.processor,
                      .begin_ns = time(row.begin.clock),
                      .dropped_events = row.dropped};
    if (row.end.timer != 0) warp.end_ns = time(row.end.clock);
    recording.warps.push_back(warp);
    Nesting nesting(recording, static_cast<int64_t>(recording.warps.size()) - 1, problems);
    for (int64_t i = 0; i < row.events; ++i) {
      const size_t at = static_cast<size_t>(Layout::kHeader + Layout::kWordsOfEvent * i);
      nesting.add(time(row.words[at]), row.words[at + 1]);
    }
    nesting.finish(row.dropped > 0);
  }
  recording.problems = problems.finish();
  return recording;
}

StatusOr<TimelineBuffer> TimelineBuffer::allocate(const Stream& stream, const TimelineSize& size) {
  if (size.warps < 1 || size.warps > kMost || size.events < 1 || size.events > kMost) {
    return InvalidArgumentError(absl::StrCat("a timeline of ", size.warps, " warps with ",
                                             size.events, " events each: both are between 1 and ",
                                             kMost));
  }
  const int64_t rows = size.warps + 1, row_words = Layout::words_of_row(size.events);
  StatusOr<Buffer> buffer =
      stream.allocate(static_cast<size_t>(rows * row_words) * sizeof(int64_t));
  if (!buffer.ok()) return buffer.status();
  TimelineBuffer made(*std::move(buffer), rows, row_words);
  if (Status s = made.clear(stream); !s.ok()) return s;
  return made;
}

TensorRef<int64_t, 2> TimelineBuffer::events() const {
  return as_tensor<int64_t>(buffer_, {rows_, row_words_});
}

Status TimelineBuffer::clear(const Stream& stream) { return buffer_.fill(stream, 0); }

StatusOr<TimelineRecording> TimelineBuffer::read(const Stream& stream,
                                                 const TimelineOptions& options) const {
  const StatusOr<std::vector<int64_t>> words = buffer_.download<int64_t>(stream);
  if (!words.ok()) return words.status();
  return decode_timeline(*words, rows_, options);
}

}  // namespace heddle::runtime
