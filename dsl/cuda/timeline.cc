#include "heddle/dsl/cuda/timeline.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/debug.h"
#include "heddle/dsl/cuda/inline_ptx.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/launch/timeline_events.h"

namespace heddle {
namespace detail {
namespace {

// An interpreter is one multiprocessor.
UInt multiprocessor() {
  return inline_ptx<uint32_t>({"mov.u32 %0, %%smid;", [] { return uint32_t{0}; }});
}

// The block's number in the grid, and how many warps a block has.
Int block_number() { return block_idx.x + grid_dim.x * (block_idx.y + grid_dim.y * block_idx.z); }
Int warps_of_block() {
  if (const int warps = warps_per_block(); warps > 0) return warps;
  return (block_dim.x * block_dim.y * block_dim.z + (kWarpSize - 1)) / kWarpSize;
}

// `high` << 32 | `low`.
Int64 word_of_halves(const Int& high, const UInt& low) {
  return cast<int64_t>(high) << 32 | cast<int64_t>(low);
}

}  // namespace

}  // namespace detail

using ir::TimelineLayout;

Timeline::Row::Row(const TimelineEvents& memory, const Int& row, const Bool& records,
                   SourceLoc where)
    : events(memory),
      number(row),
      recorder(records),
      spare(memory.shape(1) - TimelineLayout::kWordsOfEvent),
      next(TimelineLayout::kHeader),
      loc(where) {}

void Timeline::Row::read_clocks(int place) const {
  const Int64 timer = global_timer();
  const Int64 clock = clock64();
  events.assume_aligned().vec<2>(number, place) = Vec<int64_t, 2>(timer, clock);
}

Timeline::Timeline(const TimelineEvents& events, SourceLoc loc) {
  const CallerLines lines(loc);
  const Int warp = warp_id();
  const Int number = 1 + detail::block_number() * detail::warps_of_block() + warp;
  const Bool has_row = number < events.shape(0);
  const Bool is_first = lane_id() == 0;
  const UInt processor = detail::multiprocessor();
  row_.emplace(events, number, is_first && has_row, loc);
  If(is_first, [&] {
    If(has_row, [&] {
      events(number, TimelineLayout::kProcessor) = detail::word_of_halves(warp, processor + 1u);
      events(number, TimelineLayout::kBlock) = cast<int64_t>(block_idx.x) |
                                               cast<int64_t>(block_idx.y) << 32 |
                                               cast<int64_t>(block_idx.z) << 48;
      row_->read_clocks(TimelineLayout::kBeginTimer);
    }).Else([&] { atomic_add(events(0, TimelineLayout::kWarpsWithoutRow), int64_t{1}); });
  });
}

Timeline::~Timeline() {
  if (!on()) return;
  const CallerLines lines(row_->loc);
  If(row_->recorder, [&] {
    row_->read_clocks(TimelineLayout::kEndTimer);
    row_->events(row_->number, TimelineLayout::kEventCount) =
        cast<int64_t>((row_->next - TimelineLayout::kHeader) / TimelineLayout::kWordsOfEvent);
  });
}

void Timeline::record(uint32_t kind, const detail::RangeName& name,
                      const detail::Node* argument) const {
  if (!on()) return;
  const CallerLines lines(name.loc);
  const ir::TimelineName kept =
      ir::keep_timeline_name(absl::string_view(name.text.data(), name.text.size()));
  if (!kept.other.empty()) {
    detail::fail(name.loc,
                 absl::StrCat("the timeline's names '", std::string(name.text), "' and '",
                              kept.other, "' have the same number"),
                 "change one of them");
  }
  const uint32_t tag =
      kept.number | kind | (argument != nullptr ? TimelineLayout::kHasArgument : 0);
  Var<int>& next = row_->next;
  If(row_->recorder, [&] {
    const Int64 word = argument == nullptr ? Int64(int64_t{tag})
                                           : detail::word_of_halves(Int(*argument), UInt(tag));
    row_->events.assume_aligned().vec<2>(row_->number, min(next, row_->spare)) =
        Vec<int64_t, 2>(clock64(), word);
  });
  next += TimelineLayout::kWordsOfEvent;
}

TimelineRange Timeline::range(const detail::RangeName& name) const {
  begin(name);
  return TimelineRange(*this, name);
}
TimelineRange Timeline::range(const detail::RangeName& name, detail::Arg<int32_t> argument) const {
  begin(name, argument);
  return TimelineRange(*this, name);
}

void Timeline::begin(const detail::RangeName& name) const {
  record(TimelineLayout::kBegin, name, nullptr);
}
void Timeline::begin(const detail::RangeName& name, detail::Arg<int32_t> argument) const {
  record(TimelineLayout::kBegin, name, &argument.node);
}
void Timeline::end(const detail::RangeName& name) const {
  record(TimelineLayout::kEnd, name, nullptr);
}
void Timeline::mark(const detail::RangeName& name) const {
  record(TimelineLayout::kMark, name, nullptr);
}
void Timeline::mark(const detail::RangeName& name, detail::Arg<int32_t> argument) const {
  record(TimelineLayout::kMark, name, &argument.node);
}

}  // namespace heddle
