// Break, Continue and Return, which a structured program has no ops for: each sets a flag, and what
// would still run behind it is put under the condition that no flag is set. A `for` that may be
// left becomes a `while`. promote-vars turns the flags into values. Not for users.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/dsl/control.h"
#include "heddle/ir/builder.h"

namespace heddle::detail {

class Trace;

class Exits {
 public:
  explicit Exits(Trace& trace) : trace_(trace) {}

  // Records one at the current place.
  void record(ExitKind kind, SourceLoc loc);
  // Once the whole kernel is recorded: rewrites what the exits skip. Those that would have to leave
  // values behind are reported.
  void lower();

 private:
  using Flags = absl::InlinedVector<ir::ValueId, 3>;  // variables: what may be set
  struct Flag {
    ExitKind kind;
    ir::OpId loop;  // kNone: the kernel
    ir::ValueId slot;
  };
  struct Exit {
    ir::OpId store;
    ir::ValueId slot;
    ExitKind kind;
    SourceLoc loc;
  };

  bool in_condition(ir::OpId loop) const;
  ir::ValueId flag_for(ExitKind kind, ir::OpId loop);
  // The flags that may be set at the end of a region, which is rewritten.
  Flags lower_region(ir::RegionId region);
  Flags lower_op(ir::OpId id);
  Flags lower_loop(ir::OpId loop);
  Flags lower_condition(ir::OpId loop);
  void ask_first_break_ahead(ir::OpId loop);
  bool may_always_ask(ir::RegionId condition) const;
  void stop_while(ir::OpId loop, const Flags& flags);
  void turn_into_while(ir::OpId loop, const Flags& flags);
  ir::RegionId guard_rest(ir::OpId behind, const Flags& flags);
  // Whether none of the flags is set, at the builder's place.
  ir::ValueId none_set(const Flags& flags);
  void report_values_lost(ir::OpId owner, const Flags& flags);
  const Exit& exit_of(const Flags& flags) const;
  void move_ops(ir::OpId first, ir::OpId end, ir::RegionId to);

  Trace& trace_;
  std::vector<Flag> flags_;
  std::vector<Exit> exits_;
};

}  // namespace heddle::detail
