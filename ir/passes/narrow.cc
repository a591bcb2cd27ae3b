// narrow: arithmetic of 64 bits of which 32 bits are enough.
//
// What: divisions and remainders of 64 bits whose operands fit 32 bits, signed or not, by what is known of them, under
// the conditions around too, are done in 32 bits and their results widened. Loops whose bounds and step fit 32 signed
// bits count in these, and widen their index. And where only the lower 32 bits of sums, products and bitwise
// operations are taken and nothing else needs them, their operands lose the upper ones first.
//
// Needs: nothing. Keeps: aliasing.
//
// Why: a division of 64 bits is more than seventy instructions, and the host computes multipliers for those of 32 alone
// (lower-division); a product of 64 bits is four, a sum two. Indices of 64 bits are often numbers of 32, and of a loop
// that counts in these, passes see what its offsets, which mostly have 32, follow from.
//
//   %q = div %a, %b : i64     (both in 0 .. 2^32 - 1)       %0 = convert %a : u32
//                                                     →     %1 = convert %b : u32
//                                                           %2 = div %0, %1 : u32
//                                                           %q = convert %2 : i64
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool has_64_bits(Type type) {
  return type.is_scalar() && is_integer(type.scalar) && info(type.scalar).bits == 64;
}
bool has_32_bits(Type type) {
  return type.is_scalar() && is_integer(type.scalar) && info(type.scalar).bits == 32;
}

// Whether the lower bits of the result follow from the operands' alone.
bool lower_bits_suffice(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kFma:
    case Opcode::kNeg:
    case Opcode::kNot:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
      return true;
    default:
      return false;
  }
}

class Narrowing {
 public:
  explicit Narrowing(PassContext& context)
      : kernel_(context.kernel()), ints_(context.analysis<Ints>()), builder_(kernel_) {}

  bool run() {
    uses_ = count_uses(kernel_);
    kernel_.walk([&](OpId id) {
      const Opcode opcode = kernel_.op(id).opcode;
      if (opcode == Opcode::kFor) narrow_loop(id);
      if (opcode == Opcode::kDiv || opcode == Opcode::kRem) narrow_division(id);
      if (opcode == Opcode::kConvert) narrow_operand(id);
    });
    replaced_.apply_everywhere(kernel_);
    for (const OpId id : dead_) kernel_.erase(id);
    return changed_ || !dead_.empty();
  }

 private:
  // The type of 32 bits that both operands of a division fit. Ranges of u64 beyond 2^63 are those of negative numbers.
  std::optional<Type> fitting(const Op& op) {
    const bool is_signed_division = is_signed(kernel_.type(op.result()).scalar);
    const IntRange a = ints_.range_at(op, op.a()), b = ints_.range_at(op, op.b());
    for (const Type type : {kU32Type, kI32Type}) {
      const IntRange all = type_range(type.scalar);
      if (all.min < 0 && !is_signed_division) continue;
      if (a.min < all.min || a.max > all.max || b.min < all.min || b.max > all.max) continue;
      // The least number by -1 is beyond the greatest.
      const bool overflows = all.min < 0 && a.min == all.min && b.contains(-1);
      if (!overflows) return type;
    }
    return std::nullopt;
  }

  // The number of trips is fixed before a loop, so its index wraps in 32 bits no more than in 64.
  void narrow_loop(OpId id) {
    const Op loop = kernel_.op(id);
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    const Type wide = kernel_.type(index);
    if (!has_64_bits(wide)) return;
    const std::array<ValueId, 3> bounds = {loop.start(), loop.stop(), loop.step()};
    const IntRange all = type_range(kI32Type.scalar);
    const bool fit = std::all_of(bounds.begin(), bounds.end(), [&](ValueId bound) {
      const IntRange range = ints_.range_at(loop, bound);
      return range.min >= all.min && range.max <= all.max;
    });
    if (!fit) return;
    builder_.set_insertion_before(id);
    builder_.set_loc(loop.loc);
    for (size_t i = 0; i < bounds.size(); ++i) {
      const ValueId bound = narrowed(bounds[i], kI32Type, kDepth);
      kernel_.op(id).operands[i] = bound;
    }
    kernel_.value(index).type = kI32Type;
    builder_.set_insertion_before(kernel_.region(loop.regions[0]).first);
    const ValueId widened = builder_.create(Opcode::kConvert, {index}, wide);
    const OpId conversion = kernel_.value(widened).def;
    kernel_.walk(loop.regions[0], [&](OpId inner) {
      if (inner == conversion) return;
      auto& operands = kernel_.op(inner).operands;
      std::replace(operands.begin(), operands.end(), index, widened);
    });
    changed_ = true;
  }

  void narrow_division(OpId id) {
    const Op op = kernel_.op(id);  // a copy: new ops may move all others
    const Type wide = kernel_.type(op.result());
    if (!has_64_bits(wide)) return;
    const std::optional<Type> type = fitting(op);
    if (!type) return;
    builder_.set_insertion_before(id);
    builder_.set_loc(op.loc);
    const ValueId a = narrowed(op.a(), *type, kDepth), b = narrowed(op.b(), *type, kDepth);
    const ValueId narrow = builder_.create(op.opcode, {a, b}, *type, op.attrs);
    replace(id, builder_.create(Opcode::kConvert, {narrow}, wide));
  }
  void replace(OpId id, ValueId by) {
    const ValueId result = kernel_.op(id).result();
    inherit_name(kernel_, by, result);
    replaced_.add(result, by);
    dead_.push_back(id);
  }

  // What a number was before it was widened from 32 bits; kNone for another.
  ValueId before_widening(ValueId value) const {
    const Op* const def = kernel_.def(value);
    const bool widened =
        def != nullptr && def->opcode == Opcode::kConvert && has_32_bits(kernel_.type(def->a()));
    return widened ? def->a() : ValueId::kNone;
  }
  ValueId lower_half(ValueId value, Type type) {
    if (const ValueId before = before_widening(value); valid(before)) {
      return kernel_.type(before) == type ? before
                                          : builder_.create(Opcode::kConvert, {before}, type);
    }
    if (const auto bits = kernel_.constant_bits(value)) {
      return builder_.constant(type, *bits & std::numeric_limits<uint32_t>::max());
    }
    return builder_.create(Opcode::kConvert, {value}, type);
  }

  // Of a conversion to 32 bits.
  void narrow_operand(OpId id) {
    const Op op = kernel_.op(id);
    const Type type = kernel_.type(op.result());
    if (!has_32_bits(type) || !has_64_bits(kernel_.type(op.a()))) return;
    if (!may_narrow(op.a()) && !valid(before_widening(op.a()))) return;
    builder_.set_insertion_before(id);
    replace(id, narrowed(op.a(), type, kDepth));
  }
  bool may_narrow(ValueId value) const {
    const Op* const def = kernel_.def(value);
    return def != nullptr && uses_[value] == 1 && lower_bits_suffice(def->opcode);
  }
  ValueId narrowed(ValueId value, Type type, int depth) {
    if (depth == 0 || !may_narrow(value)) return lower_half(value, type);
    const Op def = *kernel_.def(value);
    absl::InlinedVector<ValueId, 3> operands;
    for (const ValueId operand : def.operands) {
      operands.push_back(narrowed(operand, type, depth - 1));
    }
    builder_.set_loc(def.loc);
    return builder_.create(def.opcode, operands, type, def.attrs);
  }

  static constexpr int kDepth = 8;

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder builder_;
  IdMap<ValueId, uint32_t> uses_;
  Replacements replaced_;
  std::vector<OpId> dead_;  // what has been replaced
  bool changed_ = false;    // loops
};

}  // namespace

bool narrow(PassContext& context) { return Narrowing(context).run(); }

}  // namespace heddle::ir
