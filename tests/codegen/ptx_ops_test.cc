// Every op of the table, for every element type and shape that it admits, on every target: PTX that
// ptxas takes, or an error that names the first target that has it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/op_recipes.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::Role;
using ir::Scalar;
using ir::Type;
using ir::ValueId;

// Not for the emitter: promote-vars removes them before.
bool is_gone(Opcode opcode) {
  return opcode == Opcode::kVar || opcode == Opcode::kVarLoad || opcode == Opcode::kVarStore;
}

// In how many ways its attribute is tried.
int variants_of(const ir::OpInfo& row) {
  if (row.attr_count == 0) return 1;
  switch (row.attrs[0].key) {
    case AttrKey::kAxis:
      return 3;
    case AttrKey::kWidth:
      return 2;
    case AttrKey::kRounding:
      return ir::kRoundingCount;
    case AttrKey::kOp:
      return 6;  // those of redux
    default:
      return 1;
  }
}

bool is_exact_conversion(Scalar from, Scalar to) {
  if (to == Scalar::kE8M0) return from != Scalar::kF32;
  if (ir::info(to).storage_only) return true;
  if (is_float(from)) return !(is_integer(to) || (from == Scalar::kF64 && to == Scalar::kF32));
  return !(to == Scalar::kF32 || (to == Scalar::kF64 && ir::info(from).bits == 64));
}

// One op whose T is `type`, operands made by their roles; `from` is the source of conversions.
void build_by_signature(OpKernel& k, Opcode opcode, Type type, Scalar from, int axis) {
  const ir::OpInfo& row = ir::info(opcode);
  std::vector<ValueId> operands;
  for (int i = 0; i < row.signature.operand_count; ++i) {
    switch (row.signature.operands[i].role) {
      case Role::kT:
        operands.push_back(k.data(type));
        break;
      case Role::kDataLikeT:
        operands.push_back(k.data(type.with_scalar(from)));
        break;
      case Role::kBool:
        operands.push_back(k.data(ir::kBoolType));
        break;
      case Role::kI32:
        operands.push_back(k.data(ir::kI32Type));
        break;
      case Role::kU32:
        operands.push_back(k.data(ir::kU32Type));
        break;
      default:
        FAIL() << row.mnemonic << " needs a recipe";
    }
  }
  std::vector<ir::Attr> attrs;
  for (int i = 0; i < row.attr_count; ++i) {
    const AttrKey key = row.attrs[i].key;
    if (key == AttrKey::kAxis) attrs.push_back({key, axis});
    if (key == AttrKey::kBits) attrs.push_back({key, 1});
    if (key == AttrKey::kWidth) attrs.push_back({key, axis == 0 ? 32 : 8});
    if (key == AttrKey::kRounding || key == AttrKey::kOp) attrs.push_back({key, axis});
    if (key == AttrKey::kLikely) attrs.push_back({key, 1});
  }
  const auto build = [&] {
    const ir::OpId op = k.b().create_op(opcode, operands, type, attrs);
    for (const ValueId result : k.kernel().op(op).results) k.keep(result);
  };
  build();
  const auto is_ftz = [](const ir::AttrRule& rule) { return rule.key == AttrKey::kFtz; };
  if (std::any_of(row.attrs.begin(), row.attrs.end(), is_ftz) && type.scalar == Scalar::kF32) {
    attrs.push_back({AttrKey::kFtz, 1});
    build();
  }
}

struct Case {
  std::string name;
  std::string group;  // cases of a group share a kernel: each kernel costs ptxas milliseconds
  Recipe build;
  bool supported;
};

std::vector<Case> cases_for(const ir::Target& target) {
  std::vector<Case> cases;
  const Recipes by_hand = recipes();
  for (const auto& [name, recipe] : by_hand.by_name) {
    const std::string group = name.substr(0, name.find('_'));
    cases.push_back({name, group, recipe, name != "wgmma" || target.name == "sm_90a"});
  }
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (is_gone(opcode) || by_hand.ops.contains(opcode)) continue;
    const ir::OpInfo& row = ir::info(opcode);
    std::string mnemonic(row.mnemonic);
    std::replace(mnemonic.begin(), mnemonic.end(), '.', '_');
    const bool converts =
        row.signature.operand_count == 1 && row.signature.operands[0].role == Role::kDataLikeT;
    for (const Scalar scalar : kAllScalars) {
      const bool has_type = row.data_class != ir::DataClass::kNone;
      if (has_type ? !admits(row.data_class, scalar) : scalar != Scalar::kI32) continue;
      for (const Scalar from : kAllScalars) {
        if (!converts && from != Scalar::kI32) continue;
        const bool bools = from == Scalar::kBool || scalar == Scalar::kBool;
        const bool same_bits = ir::info(from).bits == ir::info(scalar).bits;
        if (opcode == Opcode::kBitcast && (bools || !same_bits)) continue;
        const bool is_word = !ir::info(from).storage_only && ir::info(from).bits >= 32;
        if (opcode == Opcode::kConvertRounded && (!is_word || is_exact_conversion(from, scalar))) {
          continue;
        }
        for (const Type type :
             {Type::of(scalar), Type::vector(scalar, 2), Type::fragment(scalar, 3)}) {
          if (!has_type && !type.is_scalar()) continue;
          for (int axis = 0; axis < variants_of(row); ++axis) {
            // A magnitude goes up or toward zero, and to nearest as well as down it does not.
            if (opcode == Opcode::kConvertRounded && scalar == Scalar::kE8M0 && axis % 2 == 0) {
              continue;
            }
            cases.push_back({absl::StrCat(mnemonic, "_", ir::info(scalar).name, "_",
                                          converts ? ir::info(from).name : "", "_",
                                          static_cast<int>(type.kind), "_", axis),
                             absl::StrCat(ir::info(scalar).name, "_", static_cast<int>(type.kind)),
                             [=](OpKernel& k) { build_by_signature(k, opcode, type, from, axis); },
                             supports(target, row.targets, scalar) &&
                                 (!converts || supports(target, row.targets, from))});
          }
        }
      }
    }
  }
  return cases;
}

class EveryOp : public testing::TestWithParam<const ir::Target*> {};

TEST_P(EveryOp, IsPrintedOrRefused) {
  const ir::Target& target = *GetParam();
  int refused = 0;
  for (const Case& c : cases_for(target)) {
    OpKernel k("k", target, false);
    c.build(k);
    k.keep(k.thread());  // a kernel has an effect
    const absl::Status status = emit_ptx(k.kernel()).status();
    const ir::Diagnostics wrong = verify(k.kernel(), ir::Stage::kEmittable);
    EXPECT_EQ(wrong.empty(), c.supported) << c.name << ": " << ir::to_string(wrong);
    EXPECT_EQ(status.ok(), c.supported) << c.name << ": " << status;
    if (c.supported || status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.name;
    const std::string message(status.message());
    EXPECT_THAT(message, testing::HasSubstr("op.cc:7: error: "));
    EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr(" is the first that has"),
                                        testing::HasSubstr("no GPU has ")));
    EXPECT_THAT(message, testing::HasSubstr("fix: "));
  }
  EXPECT_GT(refused, 0);  // exp2 of f64 at least
}

TEST_P(EveryOp, Assembles) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const ir::Target& target = *GetParam();
  PtxBatch batch;
  for (const bool constants : {false, true}) {
    std::map<std::string, OpKernel> kernels;
    for (const Case& c : cases_for(target)) {
      if (!c.supported) continue;
      const std::string name = absl::StrCat("k", constants ? "_constant_" : "_", c.group);
      OpKernel& k = kernels.try_emplace(c.group, name, target, constants).first->second;
      k.b().set_loc(k.kernel().intern_loc(c.name, 1));
      c.build(k);
    }
    for (auto& [group, k] : kernels) {
      k.keep(k.thread());
      PtxOptions options;
      options.line_info = false;
      options.device_checks = true;
      const absl::StatusOr<PtxModule> module = emit_ptx(k.kernel(), options);
      ASSERT_TRUE(module.ok()) << group << ": " << module.status();
      batch.add(*module);
    }
  }
  const absl::StatusOr<Assembly> assembly =
      assemble_for(batch.text(), target.name, batch.entries(), 1);
  if (absl::IsUnimplemented(assembly.status())) {
    GTEST_SKIP() << "SKIPPED: this ptxas does not know " << target.name;
  }
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_EQ(assembly->entries.size(), batch.entries().size());
}

std::vector<const ir::Target*> all_targets() {
  std::vector<const ir::Target*> targets;
  for (const ir::Target& target : ir::kTargets) targets.push_back(&target);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryOp, testing::ValuesIn(all_targets()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace heddle::codegen
