#include "fuzz/reducer.h"

#include <algorithm>
#include <vector>

#include "heddle/ir/builder.h"
#include "heddle/ir/passes/rewrite.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"

namespace heddle::fuzz {
namespace {

using ir::Builder;
using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::Type;
using ir::ValueId;

std::vector<OpId> ops_of(const Kernel& kernel) {
  std::vector<OpId> ops;
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode != Opcode::kYield) ops.push_back(id);
  });
  return ops;
}

bool is_used(const Kernel& kernel, const Op& op) {
  const auto uses = ir::count_uses(kernel);
  return std::any_of(op.results.begin(), op.results.end(),
                     [&](ValueId result) { return uses[result] != 0; });
}

// A zero of the type, made before the op.
ValueId zero_before(Kernel& kernel, OpId position, Type type) {
  Builder b(kernel);
  b.set_insertion_before(position);
  return b.constant(type, 0);
}

// One way to make a kernel smaller around an op; false where it is none.
using Step = bool (*)(Kernel&, OpId);

bool drop(Kernel& kernel, OpId id) {
  if (is_used(kernel, kernel.op(id))) return false;
  kernel.erase(id);
  return true;
}

// Zeros in place of the results, and no op.
bool drop_for_zeros(Kernel& kernel, OpId id) {
  const auto results = kernel.op(id).results;
  if (kernel.op(id).opcode == Opcode::kConst || results.empty()) return false;
  for (const ValueId result : results) {
    if (!kernel.type(result).is_data()) return false;
    kernel.replace_all_uses(result, zero_before(kernel, id, kernel.type(result)));
  }
  kernel.erase(id);
  return true;
}

// An operand of the same type in place of the result; of a loop, the first values.
template <size_t kWhich>
bool drop_for_operand(Kernel& kernel, OpId id) {
  const Op op = kernel.op(id);
  const size_t first = ir::is_loop(op) ? op.index_of(ir::OperandName::kInits) : kWhich;
  if (op.opcode == Opcode::kIf || op.results.empty()) return false;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (first + i >= op.operands.size()) return false;
    const ValueId operand = op.operands[first + i];
    if (kernel.type(operand) != kernel.type(op.results[i])) return false;
    kernel.replace_all_uses(op.results[i], operand);
  }
  kernel.erase(id);
  return true;
}

// The ops of a region before the op that owns it, which goes: one trip of a loop, one branch.
template <size_t kRegion>
bool take_region(Kernel& kernel, OpId id) {
  const Op op = kernel.op(id);
  if (op.regions.size() <= kRegion) return false;
  const RegionId region = op.regions[kRegion];
  const bool condition = op.opcode == Opcode::kWhile && kRegion == 0;
  if (condition) return false;
  const auto args = kernel.region(region).args;
  if (op.opcode != Opcode::kIf) {
    for (size_t i = 0; i < args.size(); ++i) {
      const size_t carried = ir::first_carried(op);
      const ValueId first = i < carried ? op.start() : op.inits()[i - carried];
      kernel.replace_all_uses(args[i], first);
    }
  }
  const OpId end = kernel.terminator(region);
  std::vector<OpId> moved;
  for (const OpId inner : kernel.ops(region)) moved.push_back(inner);
  const std::vector<ValueId> yielded(kernel.op(end).operands.begin(),
                                     kernel.op(end).operands.end());
  for (const OpId inner : moved) {
    if (inner == end) continue;
    kernel.unlink(inner);
    kernel.insert_before(id, inner);
  }
  for (size_t i = 0; i < op.results.size(); ++i) kernel.replace_all_uses(op.results[i], yielded[i]);
  kernel.erase(id);
  return true;
}

// One value less that goes through the op's regions.
bool carry_less(Kernel& kernel, OpId id) {
  const auto uses = ir::count_uses(kernel);
  Op& op = kernel.op(id);
  if (op.regions.empty()) return false;
  for (size_t i = op.results.size(); i-- > 0;) {
    if (uses[op.results[i]] != 0) continue;
    if (ir::is_loop(op)) {
      for (const RegionId region : op.regions) {
        auto& args = kernel.region(region).args;
        kernel.replace_all_uses(args[ir::first_carried(op) + i], op.inits()[i]);
      }
    }
    // Rebuilt, since positions are part of what values are.
    Builder b(kernel);
    b.set_insertion_before(id);
    const Op old = kernel.op(id);
    std::vector<Type> types;
    for (size_t k = 0; k < old.results.size(); ++k) {
      if (k != i) types.push_back(kernel.type(old.results[k]));
    }
    std::vector<ValueId> operands(old.operands.begin(), old.operands.end());
    if (ir::is_loop(old)) {
      operands.erase(operands.begin() +
                     static_cast<std::ptrdiff_t>(old.index_of(ir::OperandName::kInits) + i));
    }
    const std::vector<ir::Attr> attrs(old.attrs.begin(), old.attrs.end());
    const OpId fresh = b.create_op(old.opcode, operands, types, attrs);
    for (size_t r = 0; r < old.regions.size(); ++r) {
      const RegionId to = kernel.add_region(fresh);
      const auto args = kernel.region(old.regions[r]).args;
      const size_t dropped = ir::is_loop(old) ? ir::first_carried(old) + i : args.size();
      for (size_t k = 0; k < args.size(); ++k) {
        if (k == dropped) continue;
        kernel.replace_all_uses(args[k], kernel.add_region_arg(to, kernel.type(args[k])));
      }
      std::vector<OpId> moved;
      for (const OpId inner : kernel.ops(old.regions[r])) moved.push_back(inner);
      for (const OpId inner : moved) {
        kernel.unlink(inner);
        kernel.append(to, inner);
      }
      auto& yielded = kernel.op(moved.back()).operands;
      const bool condition = old.opcode == Opcode::kWhile && r == 0;
      if (!condition) yielded.erase(yielded.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const auto results = kernel.op(fresh).results;
    for (size_t k = 0, next = 0; k < old.results.size(); ++k) {
      if (k != i) kernel.replace_all_uses(old.results[k], results[next++]);
    }
    kernel.erase(id);
    return true;
  }
  return false;
}

// Zero for an operand.
template <size_t kWhich>
bool zero_operand(Kernel& kernel, OpId id) {
  const Op& op = kernel.op(id);
  if (op.operands.size() <= kWhich) return false;
  const ValueId operand = op.operands[kWhich];
  const Type type = kernel.type(operand);
  if (!type.is_data() || kernel.constant_bits(operand)) return false;
  const ValueId zero = zero_before(kernel, id, type);
  kernel.op(id).operands[kWhich] = zero;
  return true;
}

// Its first values for what a loop yields, the first operands of an `if`'s branch for zeros.
bool zero_yields(Kernel& kernel, OpId id) {
  const Op op = kernel.op(id);
  bool changed = false;
  for (const RegionId region : op.regions) {
    const OpId end = kernel.terminator(region);
    for (size_t i = 0; i < kernel.op(end).operands.size(); ++i) {
      const ValueId value = kernel.op(end).operands[i];
      if (!kernel.type(value).is_data() || kernel.constant_bits(value)) continue;
      const ValueId zero = zero_before(kernel, end, kernel.type(value));
      kernel.op(end).operands[i] = zero;
      changed = true;
    }
  }
  return changed;
}

bool drop_attributes(Kernel& kernel, OpId id) {
  Op& op = kernel.op(id);
  const ir::OpInfo& row = ir::info(op.opcode);
  const auto optional = [&](const ir::Attr& attr) {
    return std::any_of(
        row.attrs.begin(), row.attrs.begin() + row.attr_count,
        [&](const ir::AttrRule& rule) { return rule.key == attr.key && !rule.required; });
  };
  const auto end = std::remove_if(op.attrs.begin(), op.attrs.end(), optional);
  if (end == op.attrs.end()) return false;
  op.attrs.erase(end, op.attrs.end());
  return true;
}

constexpr Step kSteps[] = {
    drop,
    take_region<0>,
    take_region<1>,
    drop_for_operand<0>,
    drop_for_operand<1>,
    drop_for_zeros,
    drop_for_operand<2>,
    carry_less,
    zero_yields,
    drop_attributes,
    zero_operand<0>,
    zero_operand<1>,
    zero_operand<2>,
    zero_operand<3>,
};

// A half, a quarter … of all ops at once: those of them that nothing uses.
bool drop_many(Kernel& kernel, size_t from, size_t count) {
  const std::vector<OpId> ops = ops_of(kernel);
  bool changed = false;
  for (size_t i = std::min(ops.size(), from + count); i-- > from;) {
    if (!kernel.linked(ops[i])) continue;
    const bool stays = is_used(kernel, kernel.op(ops[i]));
    if (stays) continue;
    kernel.erase(ops[i]);
    changed = true;
  }
  return changed;
}

}  // namespace

int count_ops(const Kernel& kernel) { return static_cast<int>(ops_of(kernel).size()); }

Kernel reduce(const Kernel& kernel, const Predicate& shows, int attempts) {
  Kernel best = kernel;
  const auto accept = [&](Kernel candidate) {
    --attempts;
    if (!shows(candidate)) return false;
    best = std::move(candidate);
    return true;
  };
  for (size_t size = static_cast<size_t>(count_ops(best)); size > 1; size /= 2) {
    for (size_t from = 0; from < static_cast<size_t>(count_ops(best)) && attempts > 0;
         from += size) {
      Kernel candidate = best;
      if (drop_many(candidate, from, size)) accept(std::move(candidate));
    }
  }
  for (bool changed = true; changed && attempts > 0;) {
    changed = false;
    for (const Step step : kSteps) {
      // From the end, so that uses go before what they use.
      std::vector<OpId> ops = ops_of(best);
      for (size_t i = ops.size(); i-- > 0 && attempts > 0;) {
        if (!best.linked(ops[i])) continue;
        Kernel candidate = best;
        if (step(candidate, ops[i])) changed |= accept(std::move(candidate));
      }
    }
    // Ids, too, are those of a kernel that was never larger.
    if (auto compact = ir::parse(ir::print(best), "reduced.ir"); compact.ok()) {
      accept(*std::move(compact));
    }
  }
  return best;
}

}  // namespace heddle::fuzz
