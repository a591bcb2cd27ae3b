// Which commit group a pending fragment's last wgmma is in, and whether a wait waits for that
// group: followed through ifs and around loops. The rule stands above the rows of wgmma in ops.def.
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/verifier_internal.h"

namespace heddle::ir {
namespace {

// The wgmma that wrote or read a fragment last, and how many groups have been closed since, on the way
// where that is least: 0 is a wgmma that no commit follows, 1 is one of the newest group.
struct Flight {
  static constexpr int kLanded = std::numeric_limits<int>::max();
  int commits = kLanded;
  OpId writer = OpId::kNone;
};

class GroupCheck {
 public:
  explicit GroupCheck(Verification& v) : v_(v), kernel_(v.kernel()) {}

  void run() {
    bool any = false;
    kernel_.walk([&](OpId id) { any |= kernel_.op(id).opcode == Opcode::kWgmma; });
    if (!any) return;
    // Sweeps until what loops hand back to themselves is known, and a last one that reports.
    do {
      changed_ = false;
      State state;
      sweep(kernel_.body(), state);
    } while (changed_);
    reporting_ = true;
    State state;
    sweep(kernel_.body(), state);
  }

 private:
  // What is in flight, on the path so far.
  using State = absl::flat_hash_map<ValueId, Flight>;

  static Flight find(const State& state, ValueId value) {
    const auto found = state.find(value);
    return found == state.end() ? Flight() : found->second;
  }
  static bool is_worse(const Flight& a, const Flight& b) { return a.commits < b.commits; }
  static Flight worse(const Flight& a, const Flight& b) { return is_worse(a, b) ? a : b; }

  void sweep(RegionId region, State& state) {
    for (const OpId id : kernel_.ops(region)) visit(id, state);
  }

  void visit(OpId id, State& state) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kWgmma) {
      state[op.result()] = {0, id};
      if (kernel_.type(op.a()).is_pending()) state[op.a()] = {0, id};
    } else if (op.opcode == Opcode::kWgmmaCommit) {
      for (auto& [value, flight] : state) {
        if (flight.commits != Flight::kLanded) ++flight.commits;
      }
    } else if (op.opcode == Opcode::kWgmmaWait) {
      if (reporting_) check(id, state);
      const int64_t groups = op.attr_or(AttrKey::kGroups, 0);
      absl::erase_if(state, [&](const auto& entry) { return entry.second.commits > groups; });
    } else if (op.opcode == Opcode::kIf) {
      State other = state;
      sweep(op.regions[0], state);
      sweep(op.regions[1], other);
      for (const auto& [value, flight] : other) {
        state[value] = worse(find(state, value), flight);
      }
    } else if (!op.regions.empty()) {
      visit_loop(id, state);
    }
  }

  void visit_loop(OpId id, State& state) {
    const Op& loop = kernel_.op(id);
    const size_t count = loop.results.size();
    const auto inits = loop.inits();
    State inside = state;
    for (size_t i = 0; i < count; ++i) {
      const Flight carried = worse(find(state, inits[i]), handed_back_[loop.results[i]]);
      for (const RegionId region : loop.regions) {
        const auto& args = kernel_.region(region).args;
        inside[args[args.size() - count + i]] = carried;
      }
    }
    for (const RegionId region : loop.regions) sweep(region, inside);
    const Op& end = kernel_.op(kernel_.terminator(loop.regions.back()));
    for (size_t i = 0; i < count; ++i) {
      const Flight next = find(inside, end.operands[i]);
      if (is_worse(next, handed_back_[loop.results[i]])) {
        handed_back_.at(loop.results[i]) = next;
        changed_ = true;
      }
      // There may have been no trip.
      state[loop.results[i]] = worse(find(state, inits[i]), next);
    }
    // Fragments from outside that wgmmas inside read.
    for (const auto& [value, flight] : inside) {
      if (!is_inside(kernel_, value, id)) state[value] = worse(find(state, value), flight);
    }
  }

  void check(OpId id, const State& state) {
    const Op& wait = kernel_.op(id);
    const int64_t groups = wait.attr_or(AttrKey::kGroups, 0);
    bool open = false;
    for (const ValueId operand : wait.operands) {
      const Flight flight = find(state, operand);
      if (flight.commits > groups) continue;
      if (flight.commits == 0) {
        open = true;
        report_open(id, operand, flight);
        continue;
      }
      Diagnostic& wrong = v_.error(
          id,
          absl::StrCat("this wait does not settle ", v_.name(operand), ": the newest ", groups,
                       " commit groups may still be in flight, its own among them"),
          absl::StrCat("wait with {groups = ", flight.commits - 1, "} or fewer"));
      wrong.notes.push_back(note(operand, flight));
    }
    if (open) return;
    // What it does not list: the last of the wgmmas that are in no group.
    ValueId last = ValueId::kNone;
    for (const auto& [value, flight] : state) {
      if (flight.commits == 0 && (!valid(last) || last < value)) last = value;
    }
    if (valid(last)) report_open(id, last, find(state, last));
  }

  void report_open(OpId wait, ValueId value, const Flight& flight) {
    Diagnostic& wrong = v_.error(
        wait,
        absl::StrCat("this wait does not settle ", v_.name(value), ": the wgmma that ",
                     reads(value, flight) ? "reads" : "writes", " it is in no commit group"),
        "close the group with wgmma.commit before the wait");
    wrong.notes.push_back(note(value, flight));
  }

  // Whether the wgmma reads the fragment as operand a.
  bool reads(ValueId value, const Flight& flight) const {
    return kernel_.op(flight.writer).a() == value;
  }
  Note note(ValueId value, const Flight& flight) const {
    return {v_.place(flight.writer),
            reads(value, flight) ? "it is read here" : "it is written here"};
  }

  Verification& v_;
  const Kernel& kernel_;
  IdMap<ValueId, Flight> handed_back_;  // of loops' results: by the end of a trip
  bool changed_ = false;
  bool reporting_ = false;
};

}  // namespace

void verify_groups(Verification& v) { GroupCheck(v).run(); }

}  // namespace heddle::ir
