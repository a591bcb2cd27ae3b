// Ranges of time inside a running kernel, for a trace that chrome://tracing and Perfetto draw.
//
//   const auto sums = define_kernel("sums(x, y, events)", [](Tensor<const float, 2> x,
//                                                            Tensor<float, 1> y,
//                                                            TimelineEvents events) {
//     Timeline timeline(events);
//     for (Int tile : range(x.shape(1) / 128)) {
//       const TimelineRange whole = timeline.range("tile", tile);   // to the end of the C++ scope
//       …
//     }
//   });
//
// heddle/runtime/timeline.h makes the memory that a launch passes as `events`, reads it and writes
// the trace. A Timeline() without memory is off: the kernel's code is then what it is without one.
// Code that serves for both takes a `const Timeline&`.
//
// Lane 0 of each warp records for its warp, so a range under a condition that does not hold in lane
// 0 is not recorded. An event (a range has two) takes 16 bytes of the warp's row. It costs the warp
// thirteen instructions on sm_90a: a branch, a read of the clock, its place, and a store of 16 bytes
// that nothing waits for. A register counts events. Events beyond the row's end are counted, not
// stored. A loop with a range in it is not unrolled.
//
// A range measures when the warp issues instructions. A load is issued at once and waited for where
// its value is used: pin(value) in front of a range's end makes the range wait.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/dsl/kernel.h"
#include "heddle/dsl/var.h"

namespace heddle {

// The parameter of a kernel that records a timeline; as an argument, TimelineBuffer::events().
using TimelineEvents = Tensor<int64_t, 2>;

namespace detail {

// A range's name and place.
struct RangeName {
  std::string_view text;
  SourceLoc loc;
  RangeName(const char* name, SourceLoc where = SourceLoc::current()) : text(name), loc(where) {}
  RangeName(const std::string& name, SourceLoc where = SourceLoc::current())
      : text(name), loc(where) {}
};

}  // namespace detail

class TimelineRange;

// What a kernel records its ranges with; one for each launch's memory. A range that is left by Break(), Continue() or
// Return() has no end: the reader draws it up to the warp's last event, and says so.
class Timeline {
 public:
  // Off: records nothing and adds nothing to the kernel.
  Timeline() = default;
  // Records into the row of each warp, from here to the end of its C++ scope. Warps that the memory has no row for are
  // counted. All threads of the block make it, at the beginning of the kernel.
  explicit Timeline(const TimelineEvents& events, SourceLoc loc = SourceLoc::current());
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  ~Timeline();

  // Whether it records.
  bool on() const { return row_.has_value(); }

  // A range from here to the end of the C++ scope of what it gives. `argument` is shown beside the name: the number of an
  // iteration, say.
  [[nodiscard]] TimelineRange range(const detail::RangeName& name) const;
  [[nodiscard]] TimelineRange range(const detail::RangeName& name,
                                    detail::Arg<int32_t> argument) const;

  // The beginning and the end of a range, for ranges that are no C++ scope. The reader reports those that do not nest.
  void begin(const detail::RangeName& name) const;
  void begin(const detail::RangeName& name, detail::Arg<int32_t> argument) const;
  void end(const detail::RangeName& name) const;

  // A moment.
  void mark(const detail::RangeName& name) const;
  void mark(const detail::RangeName& name, detail::Arg<int32_t> argument) const;

 private:
  // A warp's row, while recording.
  struct Row {
    Row(const TimelineEvents& memory, const Int& row, const Bool& records, SourceLoc where);
    // Stores what both clocks show.
    void read_clocks(int place) const;

    TimelineEvents events;
    Int number;             // in `events`
    Bool recorder;          // in the lane that records, of a warp that has a row
    Int spare;              // where the events behind the last place go
    mutable Var<int> next;  // where the next event lies, also when that is behind the last place
    SourceLoc loc;
  };
  void record(uint32_t kind, const detail::RangeName& name, const detail::Node* argument) const;

  std::optional<Row> row_;
};

// A range that ends with its C++ scope.
class [[nodiscard]] TimelineRange {
 public:
  TimelineRange(const TimelineRange&) = delete;
  TimelineRange& operator=(const TimelineRange&) = delete;
  ~TimelineRange() { timeline_.end({name_, loc_}); }

 private:
  friend class Timeline;
  TimelineRange(const Timeline& timeline, const detail::RangeName& name)
      : timeline_(timeline), name_(name.text), loc_(name.loc) {}

  const Timeline& timeline_;
  const std::string name_;
  const SourceLoc loc_;
};

}  // namespace heddle
