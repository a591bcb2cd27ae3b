// contract: a product that only a sum uses becomes one fused op.
//
// What: add(mul(a, b), c) and sub(mul(a, b), c) become fma, sub(c, mul(a, b)) too with a negated;
// only where nothing else uses the product and both stand in the same region. Integers: add alone,
// where the target multiplies and adds in one instruction either way and the result is the same.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints.
//
// Why: one instruction instead of two, and it is the only place where that happens: PTX is printed
// so that ptxas fuses nothing by itself. A fused float is rounded once instead of twice, so results
// change, mostly for the better; leave the pass out (kExactPipeline) to have what is written.
//
//   %0 = mul %a, %b : f32      →     %1 = fma %a, %b, %c : f32
//   %1 = add %0, %c : f32
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

class Contraction {
 public:
  explicit Contraction(Kernel& kernel) : kernel_(kernel), uses_(count_uses(kernel)) {}

  bool run() {
    bool changed = false;
    kernel_.walk([&](OpId id) {
      const Opcode opcode = kernel_.op(id).opcode;
      if (opcode != Opcode::kAdd && opcode != Opcode::kSub) return;
      const bool subtract = opcode == Opcode::kSub;
      if (subtract && !is_float(kernel_.type(kernel_.op(id).result()).scalar)) return;
      for (const size_t at : {size_t{0}, size_t{1}}) {
        const OpId product = product_for(id, at);
        if (!valid(product)) continue;
        fuse(id, at, product, subtract);
        changed = true;
        break;
      }
    });
    return changed;
  }

 private:
  // The multiplication behind an operand, where the sum may swallow it.
  OpId product_for(OpId sum, size_t at) const {
    const ValueId operand = kernel_.op(sum).operands[at];
    const OpId def = kernel_.value(operand).def;
    if (!valid(def) || kernel_.op(def).opcode != Opcode::kMul) return OpId::kNone;
    if (kernel_.op(def).attr(AttrKey::kFtz) != kernel_.op(sum).attr(AttrKey::kFtz)) {
      return OpId::kNone;
    }
    const bool own = uses_[operand] == 1 && kernel_.op(def).parent == kernel_.op(sum).parent;
    return own ? def : OpId::kNone;
  }

  ValueId negated(OpId before, ValueId value) {
    Builder b(kernel_);
    b.set_loc(kernel_.op(before).loc);
    b.set_insertion_before(before);
    return b.create(Opcode::kNeg, {value});
  }

  void fuse(OpId id, size_t at, OpId product, bool subtract) {
    ValueId a = kernel_.op(product).a();
    const ValueId b = kernel_.op(product).b();
    ValueId c = at == 0 ? kernel_.op(id).b() : kernel_.op(id).a();
    // Negating an operand is free and exact, so a * b - c = fma(a, b, -c), c - a * b = fma(-a, b,
    // c).
    if (subtract && at == 0) c = negated(id, c);
    if (subtract && at == 1) a = negated(id, a);
    Op& op = kernel_.op(id);
    op.opcode = Opcode::kFma;
    op.operands = {a, b, c};
    kernel_.erase(product);
  }

  Kernel& kernel_;
  IdMap<ValueId, uint32_t> uses_;
};

}  // namespace

bool contract(Kernel& kernel) { return Contraction(kernel).run(); }

}  // namespace heddle::ir
