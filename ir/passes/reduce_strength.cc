// reduce-strength: strength reduction of division. A division by a power of two that is computed becomes a
// shift, its remainder a mask.
//
// What: div and rem of integers where the dividend is unsigned or known not to be negative, and the divisor
// is a power of two by the way it is computed: a constant, one shifted left, a product of two, or one of two
// by a condition. A shift or a product that drops the only bit gives 0; dividing by that is unspecified, and
// the interpreter reports it no more once the division is gone (`--passes` without this one keeps it). fold
// does the same for divisors that are constants, where more follows from it.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints.
//
// Why: a division by a number that only the kernel knows is some twenty instructions, a shift is one.
//
//   %one = const 1 : u32                    %one = const 1 : u32
//   %d = shl %one, %n : u32         →       %d = shl %one, %n : u32
//   %q = div %x, %d : u32                   %q = shr %x, %n : u32
//   %r = rem %x, %d : u32                   %m = sub %d, %one : u32
//                                           %r = and %x, %m : u32
#include <bit>

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

class StrengthReduction {
 public:
  explicit StrengthReduction(PassContext& context)
      : kernel_(context.kernel()), ints_(context.analysis<Ints>()), builder_(kernel_) {}

  bool run() {
    bool changed = false;
    kernel_.walk([&](OpId id) { changed |= reduce(id); });
    return changed;
  }

 private:
  bool reduce(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode != Opcode::kDiv && op.opcode != Opcode::kRem) return false;
    const Type type = kernel_.type(op.result());
    if (!is_integer(type.scalar) || !is_power_of_two(op.b(), kDepth)) return false;
    if (is_signed(type.scalar) && ints_.range_at(op, op.a()).min < 0) return false;
    const bool divides = op.opcode == Opcode::kDiv;
    const ValueId a = op.a();
    const ValueId divisor = op.b();
    builder_.set_loc(op.loc);
    builder_.set_insertion_before(id);
    const ValueId second =
        divides ? exponent_of(divisor)
                : builder_.create(Opcode::kSub, {divisor, builder_.constant(type, 1)});
    Op& reduced = kernel_.op(id);
    reduced.opcode = divides ? Opcode::kShr : Opcode::kAnd;
    reduced.operands = {a, second};
    return true;
  }

  // By the way it is computed; 0 counts as one, for dividing by it is unspecified.
  bool is_power_of_two(ValueId value, int depth) const {
    const OpId def = kernel_.value(value).def;
    if (!valid(def) || depth == 0) return false;
    const Op& op = kernel_.op(def);
    switch (op.opcode) {
      case Opcode::kConst:
        return std::has_single_bit(*kernel_.constant_bits(value));
      case Opcode::kShl:
        return is_power_of_two(op.a(), depth - 1);
      case Opcode::kMul:
      case Opcode::kSelect:
        return is_power_of_two(op.a(), depth - 1) && is_power_of_two(op.b(), depth - 1);
      default:
        return false;
    }
  }

  // Of a power of two; a u32, in front of the division.
  ValueId exponent_of(ValueId value) {
    const OpId def = kernel_.value(value).def;
    const Opcode opcode = kernel_.op(def).opcode;
    if (opcode == Opcode::kConst) {
      const int exponent = std::countr_zero(*kernel_.constant_bits(value));
      return builder_.constant(kU32Type, static_cast<uint64_t>(exponent));
    }
    const ValueId a = exponent_of(kernel_.op(def).a());
    if (opcode == Opcode::kShl) return sum(a, kernel_.op(def).count());
    const ValueId b = exponent_of(kernel_.op(def).b());
    if (opcode == Opcode::kMul) return sum(a, b);
    return builder_.create(Opcode::kSelect, {kernel_.op(def).condition(), a, b});
  }

  ValueId sum(ValueId a, ValueId b) {
    if (kernel_.constant_bits(a) == 0) return b;
    return builder_.create(Opcode::kAdd, {a, b});
  }

  // A chain of selects may name its values often.
  static constexpr int kDepth = 5;

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder builder_;
};

}  // namespace

bool reduce_strength(PassContext& context) { return StrengthReduction(context).run(); }

}  // namespace heddle::ir
