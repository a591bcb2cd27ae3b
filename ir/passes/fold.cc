// fold: what is known is computed; what is not is made simpler.
//
// What: constants, by ops.def (never what it leaves unspecified, never a NaN that an op makes up,
// never an approximate function); integers whose range holds one number, among them the block's
// dimensions and fixed extents; identities that hold in every bit for every input (x * 1, x - 0,
// x + -0 for floats, but neither x + 0 nor x - x); division and remainder by powers of two where
// the sign is known; constants collected in sums; conversions of conversions; elements of vectors
// that were put together just before. An `if` whose condition is known gives way to its branch, a
// loop that never runs to its first values, one that runs once to its body.
//
// Needs: nothing. Keeps: nothing.
//
// Why: traces are written with the general case in mind and compiled for a special one.
//
//   %0 = block_dim {axis = x} : i32         %1 = thread_idx {axis = x} : i32
//   %1 = thread_idx {axis = x} : i32        %c = const 2 : u32
//   %2 = const 4 : i32               →      %3 = shr %1, %c : i32
//   %3 = div %1, %2 : i32                   store %x, %v, %3
//   %p = lt %1, %0 : bool                                             (a block of 256 threads)
//   if %p {
//     store %x, %v, %3
//     yield
//   }
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/op_table_internal.h"
#include "heddle/ir/passes/folder.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

constexpr OpTable<FoldRule> kRules = op_table<FoldRule>(
    algebraic, {
                   {Opcode::kAdd, fold_add},         {Opcode::kSub, fold_sub},
                   {Opcode::kMul, fold_mul},         {Opcode::kDiv, fold_div},
                   {Opcode::kRem, fold_rem},         {Opcode::kMin, fold_min},
                   {Opcode::kMax, fold_max},         {Opcode::kNeg, fold_neg},
                   {Opcode::kAbs, fold_abs},         {Opcode::kFma, fold_fma},
                   {Opcode::kAnd, fold_and},         {Opcode::kOr, fold_or},
                   {Opcode::kXor, fold_xor},         {Opcode::kNot, fold_not},
                   {Opcode::kShl, fold_shl},         {Opcode::kShr, fold_shr},
                   {Opcode::kEq, fold_comparison},   {Opcode::kNe, fold_comparison},
                   {Opcode::kLt, fold_comparison},   {Opcode::kLe, fold_comparison},
                   {Opcode::kGt, fold_comparison},   {Opcode::kGe, fold_comparison},
                   {Opcode::kSelect, fold_select},   {Opcode::kConvert, fold_convert},
                   {Opcode::kBitcast, fold_bitcast}, {Opcode::kPack, fold_pack},
                   {Opcode::kExtract, fold_extract}, {Opcode::kSlice, fold_slice},
                   {Opcode::kSplat, fold_splat},     {Opcode::kAtLaunch, fold_at_launch},
               });

bool is_integer_data(Type type) {
  return type.is_data() && (is_integer(type.scalar) || type.scalar == Scalar::kBool);
}

}  // namespace

bool fold(PassContext& context) { return Folder(context).run(); }

Folder::Folder(PassContext& context)
    : kernel_(context.kernel()),
      ints_(context.analysis<GuardedInts>()),
      builder_(kernel_),
      tied_(tied_values(kernel_)) {}

bool Folder::run() {
  visit_region(kernel_.body());
  if (late_) replaced_.apply_everywhere(kernel_);
  return changed_;
}

// --- The walk ---

void Folder::visit_region(RegionId region) {
  for (OpId id = kernel_.region(region).first; valid(id);) id = visit(id);
}

void Folder::visit_regions(OpId id) {
  const size_t count = kernel_.op(id).regions.size();
  for (size_t i = 0; i < count; ++i) visit_region(kernel_.op(id).regions[i]);
}

OpId Folder::visit(OpId id) {
  replaced_.resolve_operands(kernel_.op(id));
  const Op& op = kernel_.op(id);
  if (op.opcode == Opcode::kIf) return visit_if(id);
  if (op.opcode == Opcode::kFor) return visit_for(id);
  if (op.opcode == Opcode::kWhile) return visit_while(id);
  const OpId next = op.next;
  const bool asks = op.opcode == Opcode::kAssert || op.opcode == Opcode::kRequire;
  if (asks && kernel_.constant_bits(op.condition()) == 1) {
    kernel_.erase(id);
    changed_ = true;
  } else if (has(info(op), kPure) && op.opcode != Opcode::kConst) {
    simplify_op(id);
  }
  return next;
}

void Folder::replace(ValueId from, ValueId to) {
  inherit_name(kernel_, to, from);
  replaced_.add(from, to);
  changed_ = true;
}

void Folder::simplify_op(OpId id) {
  if (kernel_.op(id).attr(AttrKey::kFtz)) return;  // identities of floats are not its own
  builder_.set_insertion_before(id);
  builder_.set_loc(kernel_.op(id).loc);
  const ValueId result = kernel_.op(id).result();
  if (owns_registers(result)) return;
  const Type type = kernel_.type(result);
  Node node = node_of(kernel_.op(id));
  ValueId simpler = ValueId::kNone;
  if (is_integer_data(type) && is_specified(node)) {
    const IntRange range = ints_.range(result);
    if (range.is_constant()) simpler = constant_number(type, range.min);
  }
  if (!valid(simpler)) simpler = simplify(node);
  if (!valid(simpler)) {
    if (node.operands != kernel_.op(id).operands) {
      kernel_.op(id).operands.assign(node.operands.begin(), node.operands.end());
      changed_ = true;
    }
    return;
  }
  if (owns_registers(simpler)) return;
  replace(result, simpler);
  kernel_.erase(id);
}

// Ranges take it that a division is by no zero; to compute one on the strength of that would hide
// it from the interpreter, which reports it.
bool Folder::is_specified(const Node& node) {
  if (node.opcode != Opcode::kDiv && node.opcode != Opcode::kRem) return true;
  const IntRange by = ints_.range(node.b());
  return !by.contains(0) && !(is_signed(node.type.scalar) && by.contains(-1));
}

// --- Control flow ---

OpId Folder::inline_region(OpId owner, RegionId region, absl::Span<const ValueId> results) {
  const OpId end = kernel_.terminator(region);
  const OpId first = kernel_.region(region).first;
  for (const OpId id : kernel_.ops(region)) {
    if (id == end) break;
    kernel_.unlink(id);
    kernel_.insert_before(owner, id);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    replaced_.add(kernel_.op(owner).results[i], results[i]);
  }
  const OpId next = first == end ? kernel_.op(owner).next : first;
  kernel_.erase(owner);
  changed_ = true;
  return next;
}

OpId Folder::visit_if(OpId id) {
  const auto condition = kernel_.constant_bits(kernel_.op(id).condition());
  if (condition) {
    const RegionId taken = kernel_.op(id).regions[*condition != 0 ? 0 : 1];
    const auto results = yielded(kernel_, taken);
    return inline_region(id, taken,
                         absl::InlinedVector<ValueId, 4>(results.begin(), results.end()));
  }
  visit_regions(id);
  forward_results(id);
  return kernel_.op(id).next;
}

// A result that is one value from outside in both branches is that value; true and false in turn
// are the condition.
void Folder::forward_results(OpId id) {
  const Op& op = kernel_.op(id);
  const auto then = yielded(kernel_, op.regions[0]);
  const auto otherwise = yielded(kernel_, op.regions[1]);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (kernel_.type(op.results[i]).kind == TypeKind::kFragment) continue;
    if (then[i] == otherwise[i]) {
      replace(op.results[i], then[i]);
    } else if (kernel_.type(op.results[i]).is_bool() && bits(then[i]) == 1 &&
               bits(otherwise[i]) == 0) {
      replace(op.results[i], op.condition());
    }
  }
}

OpId Folder::visit_for(OpId id) {
  const IntAnalysis::Trips trips = ints_.trips(id);
  const Op loop = kernel_.op(id);
  const auto inits = loop.inits();
  // A step that may be wrong is left for the interpreter to see.
  const IntRange step = ints_.range(loop.step());
  const bool right_step = step.is_constant() || step.min > 0;
  if (trips.none && right_step) {
    const OpId next = kernel_.op(id).next;
    for (size_t i = 0; i < inits.size(); ++i) replace(loop.results[i], inits[i]);
    kernel_.erase(id);
    changed_ = true;
    return next;
  }
  const RegionId body = kernel_.op(id).regions[0];
  if (trips.exactly_one) {
    const auto& args = kernel_.region(body).args;
    replaced_.add(args[0], loop.start());
    for (size_t i = 0; i < inits.size(); ++i) replaced_.add(args[1 + i], inits[i]);
    const auto results = yielded(kernel_, body);
    return inline_region(id, body, absl::InlinedVector<ValueId, 4>(results.begin(), results.end()));
  }
  replace_invariant(id);
  visit_region(body);
  replace_invariant(id);
  return kernel_.op(id).next;
}

OpId Folder::visit_while(OpId id) {
  replace_invariant(id);
  const RegionId condition = kernel_.op(id).regions[0];
  visit_region(condition);
  if (bits(yielded(kernel_, condition)[0]) == 0) {
    // The condition runs once, with the first values, and that is all.
    const auto init = kernel_.op(id).operands;
    const auto& args = kernel_.region(condition).args;
    for (size_t i = 0; i < init.size(); ++i) replaced_.add(args[i], init[i]);
    late_ = true;
    return inline_region(id, condition, init);
  }
  visit_region(kernel_.op(id).regions[1]);
  replace_invariant(id);
  return kernel_.op(id).next;
}

// What each trip hands on as it got it is what the loop starts with, inside and after.
void Folder::replace_invariant(OpId id) {
  const Op& loop = kernel_.op(id);
  const auto next = yielded(kernel_, loop.regions.back());
  for (size_t i = 0; i < loop.results.size(); ++i) {
    const TypeKind kind = kernel_.type(loop.results[i]).kind;
    if (kind == TypeKind::kFragment || kind == TypeKind::kPending) continue;
    const ValueId init = loop.inits()[i];
    const ValueId arg = kernel_.region(loop.regions.back()).args[first_carried(loop) + i];
    const ValueId handed_on = replaced_.resolve(next[i]);
    if (handed_on != arg && handed_on != init) continue;
    if (replaced_.resolve(loop.results[i]) == init) continue;  // found before
    replace(loop.results[i], init);
    for (const RegionId region : loop.regions) {
      replace(kernel_.region(region).args[first_carried(loop) + i], init);
    }
    late_ = true;
  }
}

// --- Values ---

Node Folder::node_of(const Op& op) const {
  return {.opcode = op.opcode,
          .type = kernel_.type(op.result()),
          .operands = op.operands,
          .index = op.attr_or(AttrKey::kIndex, 0)};
}

ValueId Folder::simplify(Node& node) {
  const ValueId folded = fold_constants(node);
  if (valid(folded)) return folded;
  if (has(info(node.opcode), kCommutative) && bits(node.a()) && !bits(node.b())) {
    std::swap(node.a(), node.b());
  }
  const FoldRule rule = at(kRules, node.opcode);
  return rule == nullptr ? ValueId::kNone : rule(*this, node);
}

ValueId Folder::fold_constants(const Node& node) {
  absl::InlinedVector<uint64_t, 4> operands;
  for (const ValueId operand : node.operands) {
    const auto constant = bits(operand);
    if (!constant) return ValueId::kNone;
    operands.push_back(*constant);
  }
  if (operands.empty()) return ValueId::kNone;
  if (const CustomOp* const custom = custom_op(node.opcode)) {
    if (!custom->meaning || (custom->row.traits & (kApproximate | kNotSpeculatable)) != 0) {
      return ValueId::kNone;
    }
    uint64_t result = 0;
    try {
      custom->meaning(operands, absl::MakeSpan(&result, 1));
    } catch (...) {
      return ValueId::kNone;  // where the interpreter runs the op, it reports this
    }
    return constant(node.type, result & bits_mask(node.type.scalar));
  }
  const ValueId typed = node.operands[typed_operand(node.opcode)];
  const auto result =
      fold_scalar(node.opcode, kernel_.type(typed).scalar, node.type.scalar, operands);
  return result ? constant(node.type, *result) : ValueId::kNone;
}

ValueId Folder::build(const Node& node) {
  const ValueId result = builder_.create(node.opcode, node.operands, node.type);
  if (node.opcode == Opcode::kExtract || node.opcode == Opcode::kSlice) {
    kernel_.op(kernel_.value(result).def).set_attr(AttrKey::kIndex, node.index);
  }
  return result;
}

ValueId Folder::make(Opcode opcode, std::initializer_list<ValueId> operands, Type type) {
  Node node{.opcode = opcode, .type = type, .operands = operands};
  node.type = infer_results(kernel_, opcode, node.operands, type)[0];
  const ValueId simpler = simplify(node);
  return valid(simpler) ? simpler : build(node);
}

ValueId Folder::make_indexed(Opcode opcode, ValueId operand, int64_t index, Type type) {
  Node node{.opcode = opcode, .type = type, .operands = {operand}, .index = index};
  const ValueId simpler = simplify(node);
  return valid(simpler) ? simpler : build(node);
}

ValueId Folder::make_pack(absl::Span<const ValueId> operands, Type type) {
  Node node{.opcode = Opcode::kPack, .type = type, .operands = {}};
  node.operands.assign(operands.begin(), operands.end());
  const ValueId simpler = simplify(node);
  return valid(simpler) ? simpler : build(node);
}

ValueId Folder::constant(Type type, uint64_t bits) { return builder_.constant(type, bits); }

ValueId Folder::constant_number(Type type, int64_t number) {
  return builder_.constant_int(type, number);
}

ValueId Folder::constant_real(Type type, double value) {
  return constant(type, float_bits(type.scalar, value));
}

ValueId Folder::boolean(Type like, bool value) {
  return constant(like.with_scalar(Scalar::kBool), value ? 1 : 0);
}

std::optional<double> Folder::real(ValueId value) const {
  const auto constant = bits(value);
  if (!constant) return std::nullopt;
  const Scalar scalar = type(value).scalar;
  return is_float(scalar) ? std::optional<double>(float_value(scalar, *constant)) : std::nullopt;
}

bool Folder::is_real(ValueId value, double wanted) const {
  const auto constant = real(value);
  return constant && *constant == wanted && std::signbit(*constant) == std::signbit(wanted);
}

bool Folder::target_has(Opcode opcode, Type type) const {
  return supports(*kernel_.target, info(opcode).targets, type.scalar);
}

std::optional<Node> Folder::definition(ValueId value) const {
  const Op* const op = kernel_.def(value);
  if (op == nullptr || !has(info(*op), kPure) || op->attr(AttrKey::kFtz)) return std::nullopt;
  for (const ValueId operand : op->operands) {
    if (owns_registers(operand)) return std::nullopt;
  }
  return node_of(*op);
}

std::optional<Node> Folder::match(ValueId value, Opcode opcode) const {
  const Op* const op = kernel_.def(value);
  if (op == nullptr || op->opcode != opcode) return std::nullopt;
  return definition(value);
}

}  // namespace heddle::ir
