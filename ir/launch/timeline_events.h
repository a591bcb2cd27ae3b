// What a kernel with a timeline (dsl/cuda/timeline.h) leaves in memory, and runtime/timeline.h reads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace heddle::ir {

// Rows of 64-bit words. Row 0 is the launch's, row 1 + w that of warp w, counted through the grid.
// All words are 0 before the launch.
struct TimelineLayout {
  // Of row 0: how many warps found no row.
  static constexpr int kWarpsWithoutRow = 0;

  // Of a warp's row: the global timer, and right behind it the multiprocessor's clock, at the
  // beginning and at the end; the multiprocessor + 1, and above it the warp's number in its block;
  // the block's coordinates; at the end, how many events there were. Events follow, and a spare
  // place that those beyond the last one overwrite.
  static constexpr int kBeginTimer = 0, kBeginClock = 1, kEndTimer = 2, kEndClock = 3;
  static constexpr int kProcessor = 4;  // and the warp << 32
  static constexpr int kBlock = 5;      // x, y << 32, z << 48
  static constexpr int kEventCount = 6;
  static constexpr int kHeader = 8;
  static constexpr int kWordsOfEvent = 2;
  static constexpr int64_t words_of_row(int64_t events) {
    return kHeader + kWordsOfEvent * (events + 1);
  }

  // An event is the clock and its tag: the kind, a flag, the name's number; and an argument in the
  // upper 32 bits.
  static constexpr uint32_t kBegin = 1, kEnd = 2, kMark = 3, kKind = 3;
  static constexpr uint32_t kHasArgument = 4;
  static constexpr uint32_t kNameMask = ~7u;
};

// The number of a range's name, which follows from the name alone.
struct TimelineName {
  uint32_t number = 0;
  std::string other;  // a name of the same number that was kept before; empty: there is none
};
// Keeps a name for the life of the process, so that whoever reads events finds it.
TimelineName keep_timeline_name(absl::string_view name);
// The name of a number; empty where none of it was kept.
std::string timeline_name_of(uint32_t number);

}  // namespace heddle::ir
