// What a run found wrong: collects mistakes, one for each op, and turns them into a Status.
// Internal.
#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/machine.h"
#include "heddle/ir/status.h"

namespace heddle::ir::interp {

class Reporter {
 public:
  // Stops the run at the `limit`th distinct mistake.
  Reporter(const Code& code, int limit) : code_(code), limit_(limit) {}

  // A mistake that the lanes of `bad` (not empty) make at an instruction: the first of them is
  // named. `what` says what the thread does and why that is wrong. True when the run has to stop.
  bool add(const Warp& warp, const Instr* instr, Mask bad, std::string what, std::string fix,
           std::vector<Note> notes = {});
  // A mistake of the block as a whole, after which it cannot go on.
  void add_fatal(const Block& block, const Instr* instr, std::string what, std::string fix,
                 std::vector<Note> notes = {});
  // The run was cut off by the instruction limit.
  void exhausted(const Warp& warp, const Instr* instr, std::string what, std::string fix,
                 std::vector<Note> notes);

  // Whether a mistake at this instruction's op is already known, and so need not be described
  // again.
  bool known(const Instr* instr) const;

  // OK, or kFailedPrecondition (kResourceExhausted when cut off) with everything that was found.
  Status status() const;

  // The line of an instruction, a control op or a place in the tables.
  SourceLine place_of(const Instr* instr) const;
  SourceLine place(uint32_t index) const;
  const Site& site_of(const Instr* instr) const { return code_.sites[instr - code_.instrs.data()]; }

 private:
  void push(const Instr* instr, std::string message, std::string fix, std::vector<Note> notes);

  const Code& code_;
  const int limit_;
  bool exhausted_ = false;
  Diagnostics found_;
  absl::flat_hash_set<uint32_t> ops_;
};

// "thread (5, 0, 0)", of a lane.
std::string thread_name(const Warp& warp, int lane);
std::string thread_name(const Block& block, int thread);
// "(1, 2, 3)"
std::string coordinates_text(absl::Span<const int64_t> coordinates);
// Why a lane that exists is not active at an instruction: the line of the control op that it left.
Note where_lane_is(const Warp& warp, const Instr* instr, int lane);

}  // namespace heddle::ir::interp
