// Each op has a file in tests/filetests/ops/ that shows all of it: an example, every type that some GPU
// has it for, each attribute and each optional operand.
#include "support/op_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

// The type that T of the op's row stands for; nullopt where it has none.
std::optional<Scalar> type_of_t(const Kernel& kernel, const Op& op) {
  const Signature& s = info(op).signature;
  for (int i = 0; i < s.operand_count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (s.operands[at].role == Role::kT) return kernel.type(op.operands[at]).scalar;
  }
  if (s.result_count > 0 && s.results[0].role == Role::kT) return kernel.type(op.result()).scalar;
  return std::nullopt;
}

class OpFile : public ::testing::TestWithParam<Opcode> {};

TEST_P(OpFile, ShowsAllOfTheOp) {
  const OpInfo& row = info(GetParam());
  const std::vector<test::OpExample> examples = test::op_examples(GetParam());
  ASSERT_FALSE(examples.empty()) << "fix: write tests/filetests/ops/" << row.mnemonic
                                 << ".ir, its smallest example first";
  std::set<AttrKey> attrs;
  std::set<Scalar> types;
  size_t most_operands = 0;
  for (const test::OpExample& example : examples) {
    const Kernel kernel = example.parse();
    kernel.walk([&](OpId id) {
      const Op& op = kernel.op(id);
      if (op.opcode != GetParam()) return;
      for (const Attr& attr : op.attrs) attrs.insert(attr.key);
      if (const std::optional<Scalar> t = type_of_t(kernel, op)) types.insert(*t);
      most_operands = std::max(most_operands, op.operands.size());
    });
    (void)example.find(kernel);
  }
  for (int i = 0; i < row.attr_count; ++i) {
    const AttrKey key = row.attrs[static_cast<size_t>(i)].key;
    // Rules are functions, which the text form does not have.
    if (key == AttrKey::kRule) continue;
    EXPECT_TRUE(attrs.contains(key)) << row.mnemonic << ".ir shows no " << info(key).name;
  }
  EXPECT_GE(most_operands, size_t{row.signature.operand_count})
      << row.mnemonic << ".ir shows no op with its optional operands";
  if (types.empty()) return;
  for (int i = 1; i < kScalarCount; ++i) {
    const auto type = static_cast<Scalar>(i);
    if (!admits(row.data_class, type)) continue;
    if (first_supporting(row.targets, type) == nullptr || types.contains(type)) continue;
    // Those that convert.rounded and bitcast do not take, though their rows admit them.
    if (GetParam() == Opcode::kBitcast && type == Scalar::kBool) continue;
    if (GetParam() == Opcode::kConvertRounded &&
        (info(type).storage_only || type == Scalar::kBool)) {
      continue;
    }
    ADD_FAILURE() << row.mnemonic << ".ir shows no " << info(type).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Op, OpFile, ::testing::ValuesIn(test::all_opcodes()),
                         [](const auto& op) { return test::op_test_name(op.param); });

TEST(OpFiles, BelongToAnOp) {
  for (const auto& entry : std::filesystem::directory_iterator(test::op_folder())) {
    EXPECT_TRUE(opcode_from_mnemonic(entry.path().stem().string()).has_value())
        << entry.path().filename() << " is the file of no op of ir/ops.def";
  }
}

}  // namespace
}  // namespace heddle::ir
