#include "heddle/ir/analysis/liveness.h"

#include <algorithm>
#include <vector>

namespace heddle::ir {
namespace {

// Positions of ops in the text, and where values begin and end there.
class Intervals {
 public:
  explicit Intervals(const Kernel& kernel) : kernel_(kernel) { number(kernel.body()); }

  const std::vector<OpId>& order() const { return order_; }

  // By how much the number of registers changes at each position. A value has its own from behind its op on.
  std::vector<int> changes() {
    uses(kernel_.body());
    // What is renamed lives as long as its new name; users come before what they use.
    for (size_t at = order_.size(); at-- > 0;) {
      const Op& op = kernel_.op(order_[at]);
      for (size_t i = 0; i < op.results.size(); ++i) {
        for (size_t k = 0; k < op.operands.size(); ++k) {
          if (shares_registers(op, k, i)) extend(op.operands[k], end_[op.results[i]]);
        }
      }
    }
    std::vector<int> change(order_.size() + 2);
    const auto count = [&](ValueId value, int begin) {
      if (end_[value] < begin) return;
      const int registers = registers_of(kernel_.type(value));
      change[static_cast<size_t>(begin)] += registers;
      change[static_cast<size_t>(end_[value]) + 1] -= registers;
    };
    for (size_t at = 0; at < order_.size(); ++at) {
      const Op& op = kernel_.op(order_[at]);
      for (const RegionId region : op.regions) {
        for (const ValueId arg : kernel_.region(region).args) count(arg, static_cast<int>(at) + 1);
      }
      if (renames(op)) continue;
      for (size_t i = 0; i < op.results.size(); ++i) {
        if (!is_tied(op, i)) count(op.results[i], last_[order_[at]] + 1);
      }
    }
    return change;
  }

 private:
  static bool is_tied(const Op& op, size_t result) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (tied_result(op, i) == result) return true;
    }
    return false;
  }
  // A part of a vector counts as registers of its own, so that it does not keep the whole.
  static bool renames(const Op& op) {
    return has(info(op), kRename) && op.opcode != Opcode::kExtract && op.opcode != Opcode::kSlice;
  }
  static bool shares_registers(const Op& op, size_t operand, size_t result) {
    return renames(op) || tied_result(op, operand) == result;
  }

  void number(RegionId region) {
    for (const OpId id : kernel_.ops(region)) {
      position_.at(id) = static_cast<int>(order_.size());
      order_.push_back(id);
      for (const RegionId inner : kernel_.op(id).regions) number(inner);
      last_.at(id) = static_cast<int>(order_.size()) - 1;
    }
  }

  ValueId index_of_loop(const Op& loop) const { return kernel_.region(loop.regions[0]).args[0]; }
  void extend(ValueId value, int to) { end_.at(value) = std::max(end_[value], to); }

  void uses(RegionId region) {
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      for (const ValueId operand : op.operands) extend(operand, last_use(operand, id));
      if (op.opcode == Opcode::kFor) {
        // Each trip compares and adds.
        for (const ValueId value : {op.stop(), op.step(), index_of_loop(op)})
          extend(value, last_[id]);
      }
      for (const RegionId inner : op.regions) uses(inner);
    }
  }

  // Where a value that an op uses is last used for that: at the end of the outermost loop around the op that is not around
  // the value too.
  int last_use(ValueId value, OpId user) const {
    const Value& v = kernel_.value(value);
    const RegionId home = valid(v.def) ? kernel_.op(v.def).parent : v.region;
    int end = position_[user];
    for (RegionId region = kernel_.op(user).parent; region != home;) {
      const OpId owner = kernel_.region(region).parent;
      if (!valid(owner)) break;
      if (is_loop(kernel_.op(owner))) end = last_[owner];
      region = kernel_.op(owner).parent;
    }
    return end;
  }

  const Kernel& kernel_;
  std::vector<OpId> order_;
  IdMap<OpId, int> position_{0}, last_{0};  // last_: of what is in its regions
  IdMap<ValueId, int> end_{-1};
};

}  // namespace

int registers_of(Type type) {
  switch (type.kind) {
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      if (type.scalar == Scalar::kBool) return 0;
      return type.count == 1 ? std::max(1, bytes_of(type.scalar) / 4) : (type.bytes() + 3) / 4;
    case TypeKind::kDescriptor:
      return 2;
    case TypeKind::kNone:
    case TypeKind::kView:
    case TypeKind::kCheck:
    case TypeKind::kTensorMap:
      return 0;
  }
  return 0;
}

Liveness::Liveness(const Kernel& kernel) {
  Intervals intervals(kernel);
  const std::vector<int> change = intervals.changes();
  int registers = 0;
  for (size_t at = 0; at < intervals.order().size(); ++at) {
    const OpId op = intervals.order()[at];
    registers += change[at];
    registers_.at(op) = registers;
    if (!valid(peak_) || registers > registers_[peak_]) peak_ = op;
  }
}

}  // namespace heddle::ir
