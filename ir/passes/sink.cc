// sink: what only one branch of an `if` needs is computed there.
//
// What: a pure op in front of an `if` moves to the start of the branch that has all its uses, from there on into branches
// inside of that one, and what only the moved op needs moves with it. Loads stay where they were asked for, so that
// they are under way early; loops are never entered. So stay constants, parts of vectors and fragments, whose whole would
// live on, views, what an op ties to its result, and integers that a warp agrees on: outside of branches they have an
// arithmetic of their own. Fewer than eight instructions stay too, and so does what would go into a branch that lanes
// take by their number: every warp takes it.
//
// Needs: no-variables. Keeps: aliasing, movable-ints.
//
// Why: C++ computes arguments before a lambda is called, so a trace computes in front of an `if` what its branch alone
// uses. Threads that do not take the branch pay for it too, and its registers are taken while the condition is
// computed. ptxas moves no instruction into a branch.
//
//   %f = div %a, %b : f32                   if %near {
//   if %near {                       →        %f = div %a, %b : f32
//     store %y, %f, %i                        store %y, %f, %i
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Where an if only keeps accesses in bounds, nearly all warps enter it, and a few instructions less do not pay for a
// branch in place of a predicate.
constexpr int kFewestInstructions = 8;
// Of an op that is not cheap, such as a division.
constexpr int kSlowInstructions = 8;

class Sinking {
 public:
  explicit Sinking(PassContext& context)
      : context_(context), kernel_(context.kernel()), tied_(tied_values(kernel_)) {}

  bool run() {
    kernel_.walk([&](OpId id) {
      for (const ValueId operand : kernel_.op(id).operands) users_.at(operand).push_back(id);
    });
    visit(kernel_.body());
    return moved_;
  }

 private:
  // Users come first, so that what is computed for them can follow them.
  void visit(RegionId region) {
    std::vector<OpId> movable;
    for (OpId id = kernel_.region(region).last; valid(id); id = kernel_.op(id).prev) {
      const RegionId branch = may_move(kernel_.op(id)) ? branch_of_users(id) : RegionId::kNone;
      if (!valid(branch) || is_integer_of_warp(kernel_.op(id).result())) continue;
      goes_to_.at(id) = branch;
      instructions_.at(branch) += has(info(kernel_.op(id)), kCheap) ? 1 : kSlowInstructions;
      movable.push_back(id);
    }
    for (const OpId id : movable) {
      const RegionId branch = std::exchange(goes_to_.at(id), RegionId::kNone);
      if (instructions_[branch] < kFewestInstructions) continue;
      kernel_.unlink(id);
      kernel_.insert_before(kernel_.region(branch).first, id);
      moved_ = true;
    }
    for (const OpId id : kernel_.ops(region)) {
      for (size_t i = 0; i < kernel_.op(id).regions.size(); ++i) visit(kernel_.op(id).regions[i]);
    }
  }

  bool may_move(const Op& op) const {
    if (!has(info(op), kPure) || op.results.size() != 1 || op.operands.empty()) return false;
    if (op.opcode == Opcode::kExtract || op.opcode == Opcode::kSlice) return false;
    if (tied_[op.result()] != 0) return false;
    const TypeKind kind = kernel_.type(op.result()).kind;
    return kind == TypeKind::kScalar || kind == TypeKind::kVector;
  }
  // Only now and then is the analysis needed.
  bool is_integer_of_warp(ValueId value) {
    if (is_float(kernel_.type(value).scalar)) return false;
    if (uniformity_ == nullptr) uniformity_ = &context_.analysis<Uniformity>();
    return uniformity_->of(value) >= Scope::kWarp;
  }

  // The branch of an `if` beside the op in which all its users are; kNone where there is no such one.
  RegionId branch_of_users(OpId id) const {
    RegionId branch = RegionId::kNone;
    for (const OpId user : users_[kernel_.op(id).result()]) {
      const RegionId here =
          valid(goes_to_[user]) ? goes_to_[user] : branch_beside(kernel_.op(id).parent, user);
      if (!valid(here) || (valid(branch) && here != branch)) return RegionId::kNone;
      branch = here;
    }
    return branch;
  }
  RegionId branch_beside(RegionId outer, OpId user) const {
    RegionId region = kernel_.op(user).parent;
    while (region != outer) {
      const OpId owner = kernel_.region(region).parent;
      const RegionId around = kernel_.op(owner).parent;
      if (around == outer) {
        const Op& op = kernel_.op(owner);
        const bool enters = op.opcode == Opcode::kIf && !is_of_every_warp(op.condition());
        return enters ? region : RegionId::kNone;
      }
      region = around;
    }
    return RegionId::kNone;
  }

  // Whether it chooses lanes by their number, so that each warp goes both ways.
  bool is_of_every_warp(ValueId condition) const {
    const Op* const op = kernel_.def(condition);
    return op != nullptr && std::any_of(op->operands.begin(), op->operands.end(), [&](ValueId of) {
             const Op* const def = kernel_.def(of);
             return def != nullptr && def->opcode == Opcode::kLaneId;
           });
  }

  PassContext& context_;
  Kernel& kernel_;
  const Uniformity* uniformity_ = nullptr;
  const IdMap<ValueId, uint8_t> tied_;
  IdMap<ValueId, absl::InlinedVector<OpId, 2>> users_{{}};
  IdMap<OpId, RegionId> goes_to_{RegionId::kNone};  // of the region at hand
  IdMap<RegionId, int> instructions_{0};            // of what may move there
  bool moved_ = false;
};

}  // namespace

bool sink(PassContext& context) { return Sinking(context).run(); }

}  // namespace heddle::ir
