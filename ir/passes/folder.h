// The inside of `fold`: what its rules see of the kernel and how they build what they put in place
// of an op. fold.cc drives; fold_arithmetic.cc, fold_logic.cc and fold_shape.cc hold the rules.
//
// A rule looks at one op and its operands' definitions and gives a value that equals the result in
// every bit, for every input that ops.def specifies; or kNone. It may build new ops through make(),
// which applies the rules to them in turn, so each rule must lead to something simpler.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {

// An op as rules see it: a copy, since building new ops moves the originals about.
struct Node {
  Opcode opcode;
  Type type;  // the result's
  absl::InlinedVector<ValueId, 4> operands;
  int64_t index = 0;  // attribute of extract and slice

#define HEDDLE_OPERAND(name, enumerator)                                 \
  ValueId name() const { return operands[at(OperandName::enumerator)]; } \
  ValueId& name() { return operands[at(OperandName::enumerator)]; }
#define HEDDLE_OPERANDS(...)
#include "heddle/ir/operands.def"

 private:
  size_t at(OperandName name) const {
    const int i = operand_index(opcode, name);
    HEDDLE_CHECK(i >= 0, "the op has no operand of that name");
    return static_cast<size_t>(i);
  }
};

class Folder {
 public:
  explicit Folder(PassContext& context);

  bool run();

  // --- For rules: looking ---

  const Kernel& kernel() const { return kernel_; }
  IntAnalysis& ints() { return ints_; }
  Type type(ValueId value) const { return kernel_.type(value); }
  // The bits of each element of a constant.
  std::optional<uint64_t> bits(ValueId value) const { return kernel_.constant_bits(value); }
  // The same as a number, sign-extended by its type; integers and bools.
  std::optional<int64_t> number(ValueId value) const { return kernel_.constant_int(value); }
  // The same as a double; floats.
  std::optional<double> real(ValueId value) const;
  bool is_real(ValueId value, double wanted) const;  // tells -0 from +0
  // Whether the kernel's target has an op for a type: a rule must not put in what it lacks.
  bool target_has(Opcode opcode, Type type) const;
  // The definition of a value, where it is such an op. Its operands live longer if the rule uses
  // them, so those whose registers some op takes over are left alone.
  std::optional<Node> match(ValueId value, Opcode opcode) const;
  // Likewise, for any op.
  std::optional<Node> definition(ValueId value) const;

  // --- For rules: building, in front of the op at hand ---

  ValueId make(Opcode opcode, std::initializer_list<ValueId> operands, Type type = Type::none());
  ValueId make_indexed(Opcode opcode, ValueId operand, int64_t index, Type type);
  ValueId make_pack(absl::Span<const ValueId> operands, Type type);
  ValueId constant(Type type, uint64_t bits);
  ValueId constant_number(Type type, int64_t number);
  ValueId constant_real(Type type, double value);
  ValueId boolean(Type like, bool value);

 private:
  // --- The walk ---
  void visit_region(RegionId region);
  // The op to look at next.
  OpId visit(OpId id);
  void visit_regions(OpId id);
  OpId visit_if(OpId id);
  OpId visit_for(OpId id);
  OpId visit_while(OpId id);
  void simplify_op(OpId id);

  // --- Control flow ---
  // Puts a region's ops in place of the op that owns it; the first of them, or what follows.
  OpId inline_region(OpId owner, RegionId region, absl::Span<const ValueId> results);
  void replace_invariant(OpId loop);
  void forward_results(OpId if_op);

  // --- Values ---
  Node node_of(const Op& op) const;
  bool is_specified(const Node& node);
  ValueId simplify(Node& node);
  ValueId fold_constants(const Node& node);
  ValueId build(const Node& node);
  void replace(ValueId from, ValueId to);
  bool owns_registers(ValueId value) const {
    return kernel_.type(value).kind == TypeKind::kFragment && tied_[value] != 0;
  }

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder builder_;
  IdMap<ValueId, uint8_t> tied_;
  Replacements replaced_;
  bool late_ = false;  // a value was replaced after the walk had passed uses of it
  bool changed_ = false;
};

// The rules, by the op that they are for. All of them take ops whose operands are not all constant.
using FoldRule = ValueId (*)(Folder& f, const Node& n);

ValueId fold_add(Folder& f, const Node& n);  // fold_arithmetic.cc
ValueId fold_sub(Folder& f, const Node& n);
ValueId fold_mul(Folder& f, const Node& n);
ValueId fold_div(Folder& f, const Node& n);
ValueId fold_rem(Folder& f, const Node& n);
ValueId fold_min(Folder& f, const Node& n);
ValueId fold_max(Folder& f, const Node& n);
ValueId fold_neg(Folder& f, const Node& n);
ValueId fold_abs(Folder& f, const Node& n);
ValueId fold_fma(Folder& f, const Node& n);

ValueId fold_and(Folder& f, const Node& n);  // fold_logic.cc
ValueId fold_or(Folder& f, const Node& n);
ValueId fold_xor(Folder& f, const Node& n);
ValueId fold_not(Folder& f, const Node& n);
ValueId fold_shl(Folder& f, const Node& n);
ValueId fold_shr(Folder& f, const Node& n);
ValueId fold_comparison(Folder& f, const Node& n);
ValueId fold_select(Folder& f, const Node& n);

ValueId fold_convert(Folder& f, const Node& n);  // fold_shape.cc
ValueId fold_bitcast(Folder& f, const Node& n);
ValueId fold_pack(Folder& f, const Node& n);
ValueId fold_extract(Folder& f, const Node& n);
ValueId fold_slice(Folder& f, const Node& n);
ValueId fold_splat(Folder& f, const Node& n);
ValueId fold_at_launch(Folder& f, const Node& n);

// Small questions that several rules ask.
constexpr int element_bits(Type type) {
  return type.scalar == Scalar::kBool ? 1 : info(type.scalar).bits;
}
constexpr uint64_t all_ones(Type type) { return ~uint64_t{0} >> (64 - element_bits(type)); }
// The exponent, where a constant is a positive power of two as its type reads it.
std::optional<int> exponent_of_two(const Folder& f, ValueId value);
// Whether value * factor, exactly, is a number of the type.
bool product_fits(Folder& f, ValueId value, int64_t factor);
// Whether no element is negative as its type reads it: all unsigned ones.
bool never_negative(Folder& f, ValueId value);

}  // namespace heddle::ir
