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
//
// A. D. Robison, "N-bit unsigned division via N-bit multiply-add" (ARITH 2005). With 2^k <= d < 2^(k+1) and
// m = floor(2^(32+k) / d): one of m + 1, and m with m added once, errs by no more than 2^k over all n, which rounding down
// forgives. A power of two takes the largest m that there is.
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

constexpr Type kU64Type = Type::of(Scalar::kU64);

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
  // Of a divisor d, n / d is (n * multiplier + addend) >> 32 >> shift for all n.
  struct Divider {
    ValueId multiplier, addend, shift;  // u32, u64, u32
  };

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
    const ValueId quotient = quotient_of(op, n, divider);
    if (op.opcode == Opcode::kDiv) return put(id, as(type, quotient));
    const ValueId product = b_.create(Opcode::kMul, {quotient, as(kU32Type, op.b())});
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
    const ValueId product =
        b_.create(Opcode::kFma, {convert(n), convert(divider.multiplier), divider.addend});
    const ValueId upper = b_.create(Opcode::kShr, {product, number(kU32Type, 32)});
    const ValueId low = b_.create(Opcode::kConvert, {upper}, kU32Type);
    return known = b_.create(Opcode::kShr, {low, divider.shift});
  }

  // Behind the divisor, so that all divisions by it find it there.
  Divider divider_of(ValueId divisor) {
    const auto [it, is_new] = dividers_.try_emplace(divisor);
    if (!is_new) return it->second;
    const OpId def = kernel_.value(divisor).def;
    const OpId first = valid(def) ? kernel_.op(def).next : kernel_.region(kernel_.body()).first;
    b_.set_insertion_before(first);
    const auto make = [&](Opcode opcode, ValueId a, ValueId b) {
      return b_.create(opcode, {a, b});
    };
    const auto select = [&](ValueId condition, ValueId a, ValueId b) {
      return b_.create(Opcode::kSelect, {condition, a, b});
    };
    const ValueId d = as(kU32Type, divisor), wide = convert(d);
    const ValueId zeros = b_.create(Opcode::kClz, {d});
    const ValueId k = make(Opcode::kSub, number(kU32Type, 31), as(kU32Type, zeros));
    const ValueId one = number(kU64Type, 1), none = number(kU64Type, 0);
    const ValueId bits = make(Opcode::kAdd, k, number(kU32Type, 32));
    const ValueId power = make(Opcode::kShl, one, bits);
    const ValueId down = make(Opcode::kDiv, power, wide);
    const ValueId rest = make(Opcode::kSub, power, make(Opcode::kMul, down, wide));
    const ValueId is_power = make(Opcode::kEq, rest, none);
    const ValueId lacking = make(Opcode::kSub, wide, rest);
    const ValueId is_little = make(Opcode::kLe, lacking, make(Opcode::kShl, one, k));
    const ValueId rounds_up = make(Opcode::kAnd, make(Opcode::kNe, rest, none), is_little);
    const ValueId rounded = select(rounds_up, make(Opcode::kAdd, down, one), down);
    const ValueId multiplier = select(is_power, number(kU64Type, 0xFFFFFFFF), rounded);
    const ValueId narrow = b_.create(Opcode::kConvert, {multiplier}, kU32Type);
    const auto at_launch = [&](ValueId value) { return b_.create(Opcode::kAtLaunch, {value}); };
    const Divider made = {at_launch(narrow), at_launch(select(rounds_up, none, multiplier)),
                          at_launch(k)};
    return dividers_[divisor] = made;
  }

  ValueId as(Type type, ValueId value) {
    return kernel_.type(value) == type ? value : b_.create(Opcode::kBitcast, {value}, type);
  }
  ValueId convert(ValueId value) { return b_.create(Opcode::kConvert, {value}, kU64Type); }
  ValueId number(Type type, int64_t n) { return b_.constant_int(type, n); }

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder b_;
  absl::flat_hash_map<ValueId, Divider> dividers_;
  absl::flat_hash_map<std::tuple<RegionId, ValueId, ValueId>, ValueId> quotients_;
};

}  // namespace

bool divide_at_launch(PassContext& context) { return DivisionAtLaunch(context).run(); }

}  // namespace heddle::ir
