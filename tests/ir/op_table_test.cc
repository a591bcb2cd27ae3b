// Every row of ops.def: the op in the examples of its file is accepted where its target has it, and
// refused when an operand, a type or an attribute is wrong. (That its text reads back is the filetests'.)

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/verify/verifier.h"
#include "support/op_files.h"

namespace heddle::ir {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The line that the op under test is moved to.
constexpr int kHere = 10'000;

// An example's kernel, and beside its ops a check and a number that nothing needs.
struct Instance {
  explicit Instance(const test::OpExample& example)
      : kernel(example.parse()), id(example.find(kernel)) {
    const ValueId x =
        kernel.add_param("x", Type::view(Scalar::kF32, Space::kGlobal, 1), {kDynamic}, {1});
    number_ = kernel.add_param("n", kI32Type);
    Builder b(kernel);
    b.set_insertion_before(kernel.region(kernel.body()).first);
    check_ = b.create(Opcode::kBounds, {x, number_});
    const LocId here = kernel.intern_loc("op.ir", kHere);
    kernel.op(id).loc = here;
    for (const RegionId region : kernel.op(id).regions) {
      kernel.walk(region, [&](OpId inner) { kernel.op(inner).loc = here; });
    }
  }

  Op& op() { return kernel.op(id); }
  // A value that fits a position of no other kind, and its like for positions of that kind.
  ValueId misfit(Role role) const { return role == Role::kCheck ? number_ : check_; }

  Kernel kernel;
  OpId id;

 private:
  ValueId number_, check_;
};

class OpTable : public ::testing::TestWithParam<Opcode> {
 protected:
  void SetUp() override {
    examples_ = test::op_examples(opcode());
    ASSERT_FALSE(examples_.empty());
  }

  Opcode opcode() const { return GetParam(); }
  const OpInfo& row() const { return info(opcode()); }
  const std::vector<test::OpExample>& examples() const { return examples_; }

  // With the fewest optional parts, and with the most.
  Instance smallest() const { return of_size(false); }
  Instance fullest() const { return of_size(true); }

  bool ends_in_checks() const {
    const Signature& s = row().signature;
    if (s.operand_count == 0) return false;
    const Position& last = s.operands[s.operand_count - 1];
    return last.role == Role::kCheck && last.arity == Arity::kMany;
  }

  // What is wrong on the line of the op under test.
  static std::string mistakes_here(const Kernel& kernel) {
    std::string text;
    for (const Diagnostic& wrong : verify(kernel)) {
      if (wrong.place.line == kHere) absl::StrAppend(&text, wrong.message, "\n");
    }
    return text;
  }

 private:
  Instance of_size(bool most) const {
    std::optional<Instance> best;
    for (const test::OpExample& example : examples_) {
      Instance instance(example);
      const auto size = [](Instance& i) {
        return std::pair(i.op().operands.size(), i.op().attrs.size());
      };
      if (!best || (most ? size(instance) > size(*best) : size(instance) < size(*best))) {
        best.emplace(std::move(instance));
      }
    }
    return *std::move(best);
  }

  std::vector<test::OpExample> examples_;
};

TEST_P(OpTable, NeedsATargetThatHasIt) {
  for (const test::OpExample& example : examples()) {
    Instance instance(example);
    for (const Target& target : kTargets) {
      const bool is_tried = example.targets.empty() ||
                            std::count(example.targets.begin(), example.targets.end(), &target) > 0;
      instance.kernel.target = &target;
      const bool has_it = !lacking_type(instance.kernel, instance.op()).has_value();
      const std::string mistakes = mistakes_here(instance.kernel);
      SCOPED_TRACE(absl::StrCat(example.where, " ", target.name));
      if (is_tried) {
        EXPECT_EQ(mistakes.empty(), has_it) << mistakes;
      }
      if (has_it) continue;
      EXPECT_THAT(mistakes, AnyOf(HasSubstr("no GPU has"), HasSubstr("is the first that has")));
    }
  }
}

TEST_P(OpTable, RefusesTheWrongNumberOfOperands) {
  Instance fewer = smallest();
  Op& op = fewer.op();
  if (!op.operands.empty()) {
    // Any number of checks may be none.
    if (ends_in_checks()) op.operands.pop_back();
    op.operands.pop_back();
    EXPECT_NE(mistakes_here(fewer.kernel), "");
  }
  Instance more = fullest();
  more.kernel.op(more.id).operands.push_back(
      more.misfit(ends_in_checks() ? Role::kCheck : Role::kAny));
  EXPECT_NE(mistakes_here(more.kernel), "");
}

TEST_P(OpTable, RefusesOperandsOfTheWrongKind) {
  const Instance right = fullest();
  for (size_t i = 0; i < right.kernel.op(right.id).operands.size(); ++i) {
    Instance instance = fullest();
    const int last = row().signature.operand_count - 1;
    const Role role = row().signature.operands[std::min(static_cast<int>(i), last)].role;
    instance.kernel.op(instance.id).operands[i] = instance.misfit(role);
    // What goes through regions is compared with what comes out of them first.
    const bool regions = has(row(), kRegions) || has(row(), kTerminator);
    EXPECT_THAT(
        mistakes_here(instance.kernel),
        HasSubstr(regions ? "is check" : absl::StrCat("operand ", i + 1, " of '", row().mnemonic)));
  }
}

TEST_P(OpTable, RefusesResultsOfTheWrongNumberOrKind) {
  Instance more = smallest();
  more.kernel.add_result(more.id, kI32Type);
  more.kernel.add_result(more.id, kI32Type);
  EXPECT_NE(mistakes_here(more.kernel), "");
  Instance other = smallest();
  const ValueId result = other.kernel.op(other.id).result();
  if (!valid(result)) return;
  Type& type = other.kernel.value(result).type;
  type = type == Type::check() ? kI32Type : Type::check();
  EXPECT_NE(mistakes_here(other.kernel), "");
}

TEST_P(OpTable, NeedsItsAttributes) {
  for (int i = 0; i < row().attr_count; ++i) {
    const AttrRule& rule = row().attrs[i];
    for (const test::OpExample& example : examples()) {
      Instance instance(example);
      if (!instance.op().attr(rule.key)) continue;
      auto& attrs = instance.op().attrs;
      attrs.erase(std::find_if(attrs.begin(), attrs.end(),
                               [&](const Attr& attr) { return attr.key == rule.key; }));
      const std::string message =
          absl::StrCat("'", row().mnemonic, "' lacks its attribute '", info(rule.key).name, "'");
      if (rule.required) {
        EXPECT_EQ(mistakes_here(instance.kernel), message + "\n") << example.where;
        break;
      }
      // What one optional part needs another for is not missing from its row.
      EXPECT_THAT(mistakes_here(instance.kernel), Not(HasSubstr(message))) << example.where;
    }
  }
}

TEST_P(OpTable, HasNoOtherAttributes) {
  for (int i = 0; i < kAttrKeyCount; ++i) {
    const auto key = static_cast<AttrKey>(i);
    const auto takes = [&](const AttrRule& rule) { return rule.key == key; };
    if (std::any_of(row().attrs.begin(), row().attrs.begin() + row().attr_count, takes)) continue;
    Instance instance = fullest();
    const AttrKind kind = info(key).kind;
    instance.op().set_attr(key, kind == AttrKind::kInts ? instance.kernel.intern_ints({8})
                                : kind == AttrKind::kString
                                    ? static_cast<int64_t>(index_of(instance.kernel.intern("x")))
                                    : 0);
    EXPECT_THAT(
        mistakes_here(instance.kernel),
        HasSubstr(absl::StrCat("'", row().mnemonic, "' has no attribute '", info(key).name, "'")));
  }
}

INSTANTIATE_TEST_SUITE_P(Op, OpTable, ::testing::ValuesIn(test::all_opcodes()),
                         [](const auto& op) { return test::op_test_name(op.param); });

TEST(OpTableRows, AreFoundByTheirMnemonics) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(opcode_from_mnemonic(info(opcode).mnemonic), opcode);
  }
  EXPECT_EQ(opcode_from_mnemonic("frobnicate"), std::nullopt);
}

// What the rest relies on without asking.
TEST(OpTableRows, AreConsistent) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpInfo& row = info(static_cast<Opcode>(i));
    const Signature& s = row.signature;
    SCOPED_TRACE(std::string(row.mnemonic));
    // Only the last position may stand for a varying number.
    for (int j = 0; j + 1 < s.operand_count; ++j) EXPECT_EQ(s.operands[j].arity, Arity::kOne);
    bool has_t = s.result_count > 0 && s.results[0].role == Role::kT;
    for (int j = 0; j < s.operand_count; ++j) has_t |= s.operands[j].role == Role::kT;
    EXPECT_EQ(has_t, row.data_class != DataClass::kNone);
    EXPECT_FALSE(has(row, kPure) && has_side_effect(row));
    EXPECT_FALSE(has(row, kPure) && is_convergent(row));
    if (has(row, kForwards)) {
      ASSERT_EQ(s.operand_count, 1);
      ASSERT_EQ(s.result_count, 1);
      EXPECT_EQ(s.operands[0].role, s.results[0].role);
    }
    if (has(row, kPromise)) {
      EXPECT_TRUE(has(row, kForwards) && !has_side_effect(row));
    }
    if (has(row, kCommutative)) {
      ASSERT_GE(s.operand_count, 2);
      EXPECT_EQ(s.operands[0].role, s.operands[1].role);
    }
    const uint8_t touched = row.effects.reads | row.effects.writes;
    for (int j = 0; j < 8; ++j) {
      if ((touched >> j & 1) == 0) continue;
      ASSERT_LT(j, s.operand_count);
      const Role role = s.operands[j].role;
      EXPECT_TRUE(role == Role::kView || role == Role::kSlot || role == Role::kDescriptor ||
                  role == Role::kTile || role == Role::kTensorMap);
    }
  }
}

}  // namespace
}  // namespace heddle::ir
