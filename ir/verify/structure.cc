#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/verifier_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kOrdinals[] = {"first", "second"};

int regions_of(Opcode opcode) {
  if (!has(info(opcode), kRegions)) return 0;
  return opcode == Opcode::kFor ? 1 : 2;
}

class StructureCheck {
 public:
  explicit StructureCheck(Verification& v) : v_(v), kernel_(v.kernel()) {}

  void check_region(RegionId region) {
    std::vector<ValueId> defined;
    const auto define = [&](ValueId value) {
      states_.at(value) = State::kVisible;
      defined.push_back(value);
    };
    for (const ValueId arg : kernel_.region(region).args) define(arg);
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      if (op.parent != region) {
        v_.error(id, absl::StrCat(v_.quoted(id), " stands in a region that it does not belong to"));
      }
      check_operands(id);
      if (check_regions(id)) {
        for (const RegionId inner : op.regions) check_region(inner);
        check_carried(id);
      }
      for (const ValueId result : op.results) define(result);
    }
    for (const ValueId value : defined) states_.at(value) = State::kEnded;
  }

 private:
  enum class State : uint8_t { kUnseen, kVisible, kEnded };

  // --- Definitions before uses ---

  void check_operands(OpId id) {
    const Op& op = kernel_.op(id);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId operand = op.operands[i];
      const bool exists = index_of(operand) < kernel_.value_count();
      if (exists && states_[operand] == State::kVisible) continue;
      const std::string which = absl::StrCat("operand ", i + 1, " of ", v_.quoted(id));
      if (exists) {
        report_invisible(id, operand, which);
      } else {
        v_.error(id, absl::StrCat(which, " is missing"));
      }
    }
  }

  void report_invisible(OpId id, ValueId operand, absl::string_view which) {
    const Value& value = kernel_.value(operand);
    const OpId owner = valid(value.def) ? value.def : kernel_.region(value.region).parent;
    if (valid(owner) && !kernel_.linked(owner)) {
      v_.error(id, absl::StrCat(which, " was computed by an op that has been removed"),
               "remove an op only when nothing uses its results");
      return;
    }
    if (states_[operand] == State::kUnseen) {
      Diagnostic& wrong = v_.error(
          id, absl::StrCat(which, ", ", v_.name(operand), ", is used before it is defined"),
          "compute it above, in this region or one around it");
      if (valid(owner)) wrong.notes.push_back({v_.place(owner), "it is defined here"});
      return;
    }
    // The op whose region the value lives in.
    const RegionId home = valid(value.def) ? kernel_.op(value.def).parent : value.region;
    const OpId around = kernel_.region(home).parent;
    Diagnostic& wrong =
        v_.error(id,
                 absl::StrCat(which, ", ", v_.name(operand), ", exists only inside the ",
                              v_.quoted(around), v_.at_place(around)),
                 "yield it from there and use the op's result");
    wrong.notes.push_back({v_.place(owner), "it is defined here"});
  }

  // --- Regions and their ends ---

  bool check_regions(OpId id) {
    const Op& op = kernel_.op(id);
    const int wanted = regions_of(op.opcode);
    if (static_cast<int>(op.regions.size()) != wanted) {
      v_.error(id, absl::StrCat(v_.quoted(id), " has ", counted(op.regions.size(), "region"),
                                ", but owns ", wanted));
      return false;
    }
    bool right = true;
    for (size_t i = 0; i < op.regions.size(); ++i) right &= check_end(id, i);
    if (has(info(op), kTerminator) && op.parent == kernel_.body()) {
      v_.error(id, "the kernel's body ends without a yield: it hands nothing over", "remove it");
    } else if (has(info(op), kTerminator) && valid(op.next)) {
      v_.error(id, "a yield ends its region, but other ops follow this one",
               "move it to the end of the region");
    }
    return right;
  }

  std::string region_name(OpId id, size_t index) const {
    if (kernel_.op(id).regions.size() == 1) return absl::StrCat("the region of ", v_.quoted(id));
    return absl::StrCat("the ", kOrdinals[index], " region of ", v_.quoted(id));
  }

  bool check_end(OpId id, size_t index) {
    const RegionId region = kernel_.op(id).regions[index];
    if (kernel_.region(region).parent != id) {
      v_.error(id, absl::StrCat(region_name(id, index), " belongs to another op"));
      return false;
    }
    if (valid(kernel_.terminator(region))) return true;
    v_.error(id, absl::StrCat(region_name(id, index), " does not end in a yield"),
             "end it with a yield of the values that it hands over");
    return false;
  }

  // --- What goes round a loop, or comes out of an if ---

  // Compares a list with the op's results, one by one.
  template <class Values>
  void check_list(OpId id, OpId reported, const Values& values, absl::string_view what) {
    const Op& op = kernel_.op(id);
    if (values.size() != op.results.size()) {
      v_.error(reported,
               absl::StrCat(v_.quoted(id), " has ", counted(op.results.size(), "result"), ", but ",
                            what, " ", counted(values.size(), "value")),
               "give one for each result");
      return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (index_of(values[i]) >= kernel_.value_count()) continue;
      const Type type = kernel_.type(values[i]);
      const Type wanted = kernel_.type(op.results[i]);
      if (type == wanted) continue;
      v_.error(
          reported,
          absl::StrCat("result ", i + 1, " of ", v_.quoted(id), " is ", to_string(wanted), ", but ",
                       what, " ", v_.name(values[i]), ", which is ", to_string(type)),
          "convert one of them, so that the types agree");
    }
  }

  void check_yield(OpId id, size_t region) {
    const OpId yield = kernel_.terminator(kernel_.op(id).regions[region]);
    check_list(id, yield, kernel_.op(yield).operands,
               absl::StrCat(region_name(id, region), " yields"));
  }

  void check_carried(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kFor) check_for(id, op);
    if (op.opcode == Opcode::kWhile) check_while(id, op);
    if (op.opcode == Opcode::kIf) check_if(id, op);
  }

  void check_for(OpId id, const Op& op) {
    absl::Span<const ValueId> args = kernel_.region(op.regions[0]).args;
    if (!valid(op.step())) return;  // the op's row says so
    check_loop_variable(id, op, args);
    if (!args.empty()) args.remove_prefix(1);
    check_list(id, id, args, "its region is given");
    check_list(id, id, op.inits(), "it starts from");
    check_yield(id, 0);
  }

  void check_while(OpId id, const Op& op) {
    check_list(id, id, op.operands, "it starts from");
    check_list(id, id, kernel_.region(op.regions[0]).args, "its condition is given");
    check_list(id, id, kernel_.region(op.regions[1]).args, "its body is given");
    check_condition(id);
    check_yield(id, 1);
  }

  void check_if(OpId id, const Op& op) {
    for (size_t i = 0; i < 2; ++i) {
      if (!kernel_.region(op.regions[i]).args.empty()) {
        v_.error(id, absl::StrCat(region_name(id, i), " takes arguments, but an 'if' gives none"));
      }
      check_yield(id, i);
    }
  }

  void check_loop_variable(OpId id, const Op& op, absl::Span<const ValueId> args) {
    if (args.empty()) {
      v_.error(id, "the region of 'for' lacks the loop's variable");
      return;
    }
    const Type wanted = kernel_.type(args[0]);
    for (const OperandName name : {OperandName::kStart, OperandName::kStop, OperandName::kStep}) {
      const ValueId bound = op.operand(name);
      if (index_of(bound) >= kernel_.value_count()) continue;
      const Type type = kernel_.type(bound);
      if (type == wanted) continue;
      v_.error(id,
               absl::StrCat("the loop's variable is ", to_string(wanted), ", but its ",
                            name_of(name), " is ", to_string(type)),
               "convert the bounds and the step to one type");
    }
  }

  void check_condition(OpId id) {
    const OpId yield = kernel_.terminator(kernel_.op(id).regions[0]);
    const auto yielded = kernel_.op(yield).values();
    if (yielded.size() == 1 && index_of(yielded.front()) < kernel_.value_count() &&
        kernel_.type(yielded.front()).is_bool()) {
      return;
    }
    v_.error(yield, "the first region of 'while' yields one bool: whether to go on",
             "yield the condition alone; the body yields the carried values");
  }

  Verification& v_;
  const Kernel& kernel_;
  IdMap<ValueId, State> states_;
};

}  // namespace

void verify_structure(Verification& v) { StructureCheck(v).check_region(v.kernel().body()); }

}  // namespace heddle::ir
