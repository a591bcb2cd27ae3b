// divide-at-launch: divisions by what the launch knows become multiplications by numbers that the host computes.
//
// What: div and rem of i32 and u32 whose divisor follows from the kernel's arguments, extents and strides and is not
// negative, and whose dividend is unsigned or known not to be negative. Where the host knows the dividend too, it
// divides. Divisors that are constants, and powers of two, are left to fold, reduce-strength and the assembler. A
// division by 0 is unspecified; the interpreter reports it no more once the division is gone.
//
// Why: a division by a number that only the launch knows is some twenty instructions; a multiplication, an addition and
// two shifts are four. It stands behind all that asks for ranges and divisors, which know more of a quotient than of a
// shifted product.
//
//   %q = div %i, %n : u32        →     %m, %a, %s = at_launch …, once for each divisor
//                                      %p = fma (u64)%i, (u64)%m, %a : u64
//                                      %q = (u32)(%p >> 32) >> %s : u32
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/launch/divider.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

class DivisionAtLaunch {
 public:
  explicit DivisionAtLaunch(PassContext& context)
      : kernel_(context.kernel()), ints_(context.analysis<Ints>()), b_(kernel_) {}

  bool run() {
    std::vector<OpId> divisions;
    kernel_.walk([&](OpId id) {
      const Op& op = kernel_.op(id);
      if ((op.opcode == Opcode::kDiv || op.opcode == Opcode::kRem) && can_replace(op)) {
        divisions.push_back(id);
      }
    });
    for (const OpId id : divisions) replace(id);
    return !divisions.empty();
  }

 private:
  bool is_known(ValueId value) const { return !unknown_at_launch(kernel_, value).has_value(); }

  bool can_replace(const Op& op) const {
    const Type type = kernel_.type(op.result());
    if (type != kI32Type && type != kU32Type) return false;
    if (kernel_.constant_int(op.b()) || !is_known(op.b())) return false;
    if (type == kU32Type) return true;
    return ints_.range_at(op, op.a()).min >= 0 && ints_.range_at(op, op.b()).min >= 0;
  }

  void replace(OpId id) {
    const Op op = kernel_.op(id);
    const Type type = kernel_.type(op.result());
    if (is_known(op.a())) {
      b_.set_insertion_before(id);
      b_.set_loc(op.loc);
      const ValueId divided = b_.create(op.opcode, {op.a(), op.b()});
      return put(id, b_.create(Opcode::kAtLaunch, {divided}));
    }
    const Divider divider = divider_of(op.b());
    b_.set_insertion_before(id);
    b_.set_loc(op.loc);
    const ValueId n = as(kU32Type, op.a());
    const ValueId divided = quotient_of(op, n, divider);
    if (op.opcode == Opcode::kDiv) return put(id, as(type, divided));
    const ValueId product = b_.create(Opcode::kMul, {divided, as(kU32Type, op.b())});
    put(id, as(type, b_.create(Opcode::kSub, {n, product})));
  }

  void put(OpId id, ValueId value) {
    inherit_name(kernel_, value, kernel_.op(id).result());
    kernel_.replace_all_uses(kernel_.op(id).result(), value);
    kernel_.erase(id);
  }

  // Once for a quotient and a remainder of one region.
  ValueId quotient_of(const Op& op, ValueId n, const Divider& divider) {
    ValueId& known =
        quotients_.try_emplace({op.parent, op.a(), op.b()}, ValueId::kNone).first->second;
    if (valid(known)) return known;
    return known = quotient(b_, n, divider);
  }

  // Behind the divisor, so that all divisions by it find it there.
  Divider divider_of(ValueId divisor) {
    const auto [it, is_new] = dividers_.try_emplace(divisor);
    if (!is_new) return it->second;
    const OpId def = kernel_.value(divisor).def;
    const OpId first = valid(def) ? kernel_.op(def).next : kernel_.region(kernel_.body()).first;
    b_.set_insertion_before(first);
    return it->second = make_divider(b_, as(kU32Type, divisor));
  }

  ValueId as(Type type, ValueId value) {
    return kernel_.type(value) == type ? value : b_.create(Opcode::kBitcast, {value}, type);
  }

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder b_;
  absl::flat_hash_map<ValueId, Divider> dividers_;
  absl::flat_hash_map<std::tuple<RegionId, ValueId, ValueId>, ValueId> quotients_;
};

}  // namespace

bool divide_at_launch(PassContext& context) { return DivisionAtLaunch(context).run(); }

}  // namespace heddle::ir
