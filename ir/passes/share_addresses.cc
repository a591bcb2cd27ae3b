// share-addresses: offsets that differ by constants are computed from each other.
//
// What: of loads and stores whose offsets are the same sum of values but for a constant, the first in the program computes
// its offset, and those that it dominates add a constant to that. Whether they are of one view does not matter.
//
// Needs: no-variables. Keeps: aliasing, ints, guarded-ints, movable-ints.
//
// Why: the constant goes into the instruction, and the address that is left is one for all of them. A window of
// 3 x 3 takes three addresses instead of nine.
//
//   %1 = add %row, %left               %1 = add %row, %left
//   %a = load %x, %1 : f32             %a = load %x, %1 : f32
//   %2 = add %row, %right        →     %2 = add %1, 2            where %left is %i - 1 and %right is %i + 1
//   %b = load %x, %2 : f32             %b = load %x, %2 : f32
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/launch/fact.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

class AddressSharing {
 public:
  explicit AddressSharing(PassContext& context)
      : kernel_(context.kernel()), sums_(context.analysis<Sums>()), b_(kernel_) {}

  bool run() {
    visit(kernel_.body());
    return changed_;
  }

 private:
  // Sums without their constants.
  using Key = std::vector<std::pair<ValueId, int64_t>>;
  struct Base {
    ValueId offset;
    int64_t constant;
  };

  void visit(RegionId region) {
    std::vector<Key>
        added;  // their offsets are computed in this region: code behind it may not use them
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      if (op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore) share(id, added);
      for (size_t i = 0; i < kernel_.op(id).regions.size(); ++i) visit(kernel_.op(id).regions[i]);
    }
    for (const Key& key : added) bases_.erase(key);
  }

  void share(OpId id, std::vector<Key>& added) {
    const ValueId offset = kernel_.op(id).offset();
    const LinearSum sum = sums_.of(offset);
    if (sum.terms.empty()) return;
    Key key = {{ValueId::kNone, sum.bits}};
    for (const LinearSum::Term& term : sum.terms) key.emplace_back(term.value, term.factor);
    const auto [it, is_new] = bases_.try_emplace(key, Base{offset, sum.constant});
    if (is_new) return added.push_back(std::move(key));
    const Base& base = it->second;
    const int64_t more = static_cast<int64_t>(static_cast<uint64_t>(sum.constant) -
                                              static_cast<uint64_t>(base.constant));
    if (more < -kSpareOffsets || more > kSpareOffsets) return;
    if (offset == base.offset || is_sum_of(offset, base.offset)) return;
    b_.set_insertion_before(id);
    b_.set_loc(kernel_.op(id).loc);
    ValueId moved = base.offset;
    if (more != 0) {
      moved = b_.create(Opcode::kAdd, {moved, b_.constant_int(kernel_.type(offset), more)});
    }
    kernel_.op(id).set_operand(OperandName::kOffset, moved);
    changed_ = true;
  }

  // Whether it already is that and a constant.
  bool is_sum_of(ValueId value, ValueId base) const {
    const Op* const op = kernel_.def(value);
    return op != nullptr && op->opcode == Opcode::kAdd && op->a() == base &&
           kernel_.constant_int(op->b()).has_value();
  }

  Kernel& kernel_;
  LinearSums& sums_;
  Builder b_;
  absl::flat_hash_map<Key, Base> bases_;
  bool changed_ = false;
};

}  // namespace

bool share_addresses(PassContext& context) { return AddressSharing(context).run(); }

}  // namespace heddle::ir
