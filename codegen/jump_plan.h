// Where control goes at the ends of regions, when it is known how the tests come out that follow.
//
// The language's exits are flags: Break() sets one, and what comes behind it, and the loop's
// condition, ask for it. Along most ways to such a test its answer is known:
//
//   %f = if %p { yield true } else { yield %old }      // %old is false here
//   %g = not %f
//   if %g { B … }                                      // the rest of the body
//
// The first branch's end then jumps behind the second `if`, through the loop's condition and out of
// the loop, and the other one's into B. A flag that nobody asks any more has no register.
//
// A way does what the program would have done along it, copy by copy in the same order, but for
// the tests. So each register holds what it would have held, and lifetimes stay as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heddle/codegen/offsets.h"
#include "heddle/ir/kernel.h"

namespace heddle::codegen {

class JumpPlan {
 public:
  JumpPlan(const ir::Kernel& kernel, ir::Analyses& analyses);

  struct Step {
    enum class Kind : uint8_t {
      kHand,   // what `region` yields goes to the op that owns it
      kPrint,  // `op` is printed here too
      kSet,    // `value` is `holds`
      kTest,   // where `value` is `holds`, the loop `op` goes on with its body
    };
    Kind kind;
    bool holds = false;
    ir::OpId op = ir::OpId::kNone;
    ir::RegionId region = ir::RegionId::kNone;
    ir::ValueId value = ir::ValueId::kNone;
  };
  // Steps, and then a jump: to a region's start, or behind an op.
  struct Way {
    std::vector<Step> steps;
    ir::RegionId start = ir::RegionId::kNone;
    ir::OpId behind = ir::OpId::kNone;
  };

  // The way from a region's end; nullptr where control goes on as the IR says.
  const Way* way(ir::RegionId region) const { return find(ways_, region); }
  // The way into a `while`, whose condition need not be asked in full before the first trip: none
  // of its steps hands anything over. nullptr where it is.
  const Way* entry(ir::OpId loop) const { return find(entries_, loop); }

  // Whether a way leads to the region's start, or behind the op.
  bool is_entered(ir::RegionId region) const { return flag(entered_, region); }
  bool is_left(ir::OpId op) const { return flag(left_, op); }
  // Whether control ever comes to the test of an `if` or a `while`.
  bool is_tested(ir::OpId op) const { return !flag(untested_, op); }
  // Whether some trip of a `while` comes back to its condition, rather than by a way.
  bool is_asked_again(ir::OpId loop) const { return !flag(never_again_, loop); }
  // The values that ways ask in place of a loop's condition.
  absl::Span<const ir::ValueId> questions(ir::OpId loop) const {
    const auto it = questions_.find(loop);
    return it == questions_.end() ? absl::Span<const ir::ValueId>() : it->second;
  }
  // Whether an op prints nothing wherever it stands, as constants do.
  static bool prints_nothing(const ir::Op& op);
  // Whether a way leads to the region's start, or to some place inside.
  bool holds_target(ir::RegionId region) const { return flag(holds_target_, region); }
  // Whether the value is a flag that every test knows, so that it needs no register.
  bool is_dead(ir::ValueId value) const { return any_ && !live_[ir::index_of(value)]; }

 private:
  enum class Fact : uint8_t { kUnknown, kFalse, kTrue };
  struct Change {
    ir::ValueId value;
    Fact before;
  };
  struct Loop {
    ir::OpId op;
    size_t mark;  // of what is known in front of it
  };
  // A way that is being looked for.
  struct Search {
    Way way;
    size_t decided_steps = 0;  // of the steps, those that lead to where the way leads so far
    ir::RegionId start = ir::RegionId::kNone;
    ir::OpId behind = ir::OpId::kNone;
    ir::OpId decided = ir::OpId::kNone;           // the last `if` whose answer was known
    size_t condition_steps = 0;                   // before the condition at hand
    absl::InlinedVector<ir::ValueId, 4> asked{};  // on whose answers it depends who goes this way
    int budget = 0;                               // ops that may still be looked at
  };

  template <class Id>
  static const Way* find(const absl::flat_hash_map<Id, Way>& ways, Id id) {
    const auto it = ways.find(id);
    return it == ways.end() ? nullptr : &it->second;
  }
  template <class Id>
  static bool flag(const std::vector<uint8_t>& flags, Id id) {
    return flags[ir::index_of(id)] != 0;
  }

  // Each says whether control comes to the end by falling through.
  bool visit(ir::RegionId region, bool reached);
  bool visit_op(ir::OpId id, bool reached);
  bool visit_if(ir::OpId id, bool reached);
  void visit_while(ir::OpId id);
  // Whether control comes to a visited region's end and goes on from there as the IR says.
  bool falls_out(ir::RegionId region);

  // What is known along the way at hand.
  void learn(ir::ValueId value, bool holds);
  void set(ir::ValueId value, Fact fact);
  void forget_since(size_t mark);
  std::optional<bool> known(ir::ValueId value, int depth = 0);
  std::optional<bool> opposite(const ir::Op& comparison) const;
  void learn_pairs(absl::Span<const ir::ValueId> to, absl::Span<const ir::ValueId> from);

  void search_from(ir::RegionId region);
  void search_entry(ir::OpId loop);
  // Each moves to the op that comes next; kNone where the search ends.
  ir::OpId pass(Search& search, ir::OpId at);
  ir::OpId decide(Search& search, ir::OpId id);
  ir::OpId leave(Search& search, ir::RegionId region);
  ir::OpId answer(Search& search, ir::OpId loop);
  void commit(Search& search, ir::RegionId start, ir::OpId behind);
  void mark_target(const Way& way);
  void mark_around(ir::RegionId region);
  // The part of a condition that is not known, and the answer with which the loop goes on.
  struct Question {
    ir::ValueId value;
    bool goes_on;
    bool is_shorter;  // than the condition
  };
  Question unknown_part(ir::ValueId condition);
  void keep_what_decides(std::vector<Step>& steps, size_t first, ir::ValueId value) const;
  bool is_repeatable(const ir::Op& op) const;
  // Whether all threads of a warp go this way, or none.
  bool agrees(const Search& search);
  bool is_unreachable(ir::RegionId region) const;
  bool is_condition(ir::RegionId region) const;

  void find_live();
  void make_live(ir::ValueId value, std::vector<ir::ValueId>& work);

  const ir::Kernel& kernel_;
  ir::Analyses& analyses_;
  absl::flat_hash_map<ir::RegionId, Way> ways_;
  absl::flat_hash_map<ir::OpId, Way> entries_;
  absl::flat_hash_map<ir::OpId, absl::InlinedVector<ir::ValueId, 2>> questions_;
  std::vector<uint8_t> entered_, holds_target_, ends_;               // regions
  std::vector<uint8_t> left_, untested_, never_again_, collective_;  // ops
  std::vector<uint8_t> live_;                                        // values
  std::vector<Fact> facts_;
  std::vector<Change> changes_;           // of facts_, oldest first
  std::vector<ir::ValueId> comparisons_;  // that hold or do not, of integers, oldest first
  std::vector<Loop> loops_;               // around the region that is visited
  int conditions_ = 0;                    // of loops, around what is visited
  bool any_ = false;                      // whether there is a way at all
};

}  // namespace heddle::codegen
