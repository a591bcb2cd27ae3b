#include "heddle/ir/interp/deadlock.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"

namespace heddle::ir::interp {
namespace {

// "warps 0 to 2 wait at a.cc:5"
std::string who_waits(const Block& block, const Reporter& reporter) {
  std::string text;
  const auto describe = [&](const Warp& warp) -> std::string {
    if (warp.state == WarpState::kDone) return "finished the kernel";
    const SourceLine place = reporter.place_of(warp.pc);
    return absl::StrCat(
        warp.state == WarpState::kAtWarpGroup ? "at the warp-group's op" : "at the barrier",
        place.file.empty() ? "" : absl::StrCat(" of ", place.file, ":", place.line));
  };
  for (size_t i = 0; i < block.warps.size();) {
    size_t end = i + 1;
    const std::string what = describe(block.warps[i]);
    while (end < block.warps.size() && describe(block.warps[end]) == what) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    end - i == 1 ? absl::StrCat("warp ", i, " is ")
                                 : absl::StrCat("warps ", i, " to ", end - 1, " are "),
                    what == "finished the kernel" ? "at its end" : what);
    i = end;
  }
  return text;
}

// Where the other warps are: each place once.
std::vector<Note> where_others_wait(const std::vector<Block*>& blocks, const Warp& waiting) {
  constexpr size_t kMostNotes = 6;
  const Reporter& reporter = *waiting.block->machine->reporter;
  std::vector<Note> notes;
  std::vector<const Instr*> places{waiting.pc};
  const auto name = [&](const Warp& warp) {
    const std::string thread = thread_name(warp, std::countr_zero(warp.mask));
    return warp.block == waiting.block || warp.block->cluster->blocks.size() == 1
               ? thread
               : absl::StrCat(thread, " of block ", warp.block->rank);
  };
  for (const Block* const block : blocks) {
    if (block->cluster != waiting.block->cluster) continue;
    for (const Warp& warp : block->warps) {
      const bool done = warp.state == WarpState::kDone;
      const Instr* const place = done ? nullptr : warp.pc;
      const bool known = std::find(places.begin(), places.end(), place) != places.end();
      if (known || notes.size() == kMostNotes) continue;
      places.push_back(place);
      if (done) {
        notes.push_back({{}, absl::StrCat(name(warp), " has finished the kernel")});
        continue;
      }
      notes.push_back({reporter.place_of(place),
                       absl::StrCat(name(warp), " waits here",
                                    warp.state == WarpState::kWaiting
                                        ? absl::StrCat(", for ", warp.wait->lacks(warp))
                                        : "")});
    }
  }
  return notes;
}

}  // namespace

bool is_done(const Block& block) {
  return std::all_of(block.warps.begin(), block.warps.end(),
                     [](const Warp& warp) { return warp.state == WarpState::kDone; });
}

void report_deadlock(const std::vector<Block*>& blocks) {
  const auto last = std::find_if(blocks.rbegin(), blocks.rend(),
                                 [](const Block* block) { return !is_done(*block); });
  Block& block = **last;
  Reporter& reporter = *block.machine->reporter;
  const Warp& waiting = *std::find_if(block.warps.begin(), block.warps.end(), [](const Warp& warp) {
    return warp.state != WarpState::kDone;
  });
  std::vector<Note> notes = where_others_wait(blocks, waiting);
  if (waiting.state == WarpState::kWaiting) {
    return reporter.add_fatal(
        block, waiting.pc,
        absl::StrCat(thread_name(waiting, std::countr_zero(waiting.mask)),
                     " waits here for ever, for ", waiting.wait->lacks(waiting)),
        waiting.wait->fix, std::move(notes));
  }
  reporter.add_fatal(
      block, waiting.pc,
      absl::StrCat(waiting.state == WarpState::kAtWarpGroup ? "warp-group op" : "barrier",
                   " that not every thread reaches: ", thread_name(waiting, 0),
                   " waits here for ever; ", who_waits(block, reporter)),
      "move it out of the branch or loop, or make its condition the same for all who must arrive",
      std::move(notes));
}

}  // namespace heddle::ir::interp
