// The language reference: every op of the table has a meaning, a spelling and an example, and
// dsl/REFERENCE.md is what the command prints.
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/tools/command/reference/example.h"
#include "heddle/tools/command/reference/op_comments.h"
#include "heddle/tools/command/reference/page.h"
#include "heddle/tools/command/reference/spelling.h"
#include "support/matchers.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using ir::Opcode;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Opcode> all_ops() {
  std::vector<Opcode> ops;
  for (int i = 0; i < ir::kOpcodeCount; ++i) ops.push_back(static_cast<Opcode>(i));
  return ops;
}

TEST(OpComments, BelongToTheRowsBelow) {
  const std::vector<OpSection> sections = parse_op_comments(R"(// Legend.
HEDDLE_OP(name, "not a row")

// --- First ------------

// Two lines,
//   one meaning.
HEDDLE_OP(A, "a", "T -> T",
          more)
HEDDLE_ELEMENTWISE(B, "b.c", "x")

HEDDLE_OP(C, "c", "x")
// Its own.
HEDDLE_OP(D, "d", "x")

// --- Second ---

// Of nobody.

HEDDLE_OP(E, "e", "x")
)");
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[0].title, "First");
  std::vector<std::string> meanings, mnemonics;
  for (const OpSection& section : sections) {
    for (const OpComment& op : section.ops) {
      mnemonics.push_back(op.mnemonic);
      meanings.push_back(op.meaning);
      EXPECT_EQ(op.elementwise, op.mnemonic == "b.c");
    }
  }
  EXPECT_THAT(mnemonics, ElementsAre("a", "b.c", "c", "d", "e"));
  EXPECT_THAT(meanings, ElementsAre("Two lines,\n  one meaning.", "Two lines,\n  one meaning.", "",
                                    "Its own.", ""));
}

TEST(OpComments, EveryRowHasOne) {
  std::vector<std::string> mnemonics, expected;
  for (const OpSection& section : parse_op_comments(ops_def())) {
    EXPECT_FALSE(section.ops.empty()) << section.title;
    for (const OpComment& op : section.ops) {
      mnemonics.push_back(op.mnemonic);
      EXPECT_NE(op.meaning, "") << op.mnemonic << ": fix: a comment right above its row in ops.def";
    }
  }
  for (const Opcode op : all_ops()) expected.emplace_back(ir::info(op).mnemonic);
  EXPECT_EQ(mnemonics, expected);
}

TEST(Spellings, EveryOpHasOneOrAReason) {
  for (const Opcode op : all_ops()) {
    const Spelling spelling = spelling_of(op);
    EXPECT_NE(spelling.text.empty(), spelling.why_none.empty())
        << ir::info(op).mnemonic << ": fix: a row in tools/command/reference/spellings.def";
  }
}

// Every name before a parenthesis is one of the headers'.
TEST(Spellings, NameWhatTheHeadersHave) {
  std::set<std::string> names = {"if", "for"};
  const std::regex name("[A-Za-z_][A-Za-z_0-9]*");
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(HEDDLE_TEST_DATA_DIR "/../dsl")) {
    if (file.path().extension() != ".h" && file.path().extension() != ".def") continue;
    const std::string text = slurp(file.path().string());
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
      names.insert(it->str());
    }
  }
  const std::regex call("([A-Za-z_][A-Za-z_0-9]*)\\(");
  for (const Opcode op : all_ops()) {
    const std::string text = spelling_of(op).text;
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
      const std::string word = (*it)[1];
      // As redux_add, which a macro makes of redux_##name.
      const std::string pasted = word.substr(0, word.find_last_of('_') + 1);
      EXPECT_TRUE(names.count(word) != 0 || (!pasted.empty() && names.count(pasted) != 0))
          << ir::info(op).mnemonic << " is said to be " << text << ", and no header in dsl/ has "
          << word << "; fix: a row in tools/command/reference/spellings.def";
    }
  }
}

TEST(Examples, EveryOpHasOne) {
  for (const Opcode op : all_ops()) {
    const StatusOr<OpExample> example = example_of(op);
    ASSERT_THAT(example, IsOk());
    EXPECT_NE(example->ir, "") << ir::info(op).mnemonic;
    EXPECT_TRUE(example->why_none.empty() || example->ptx.empty()) << ir::info(op).mnemonic;
  }
}

TEST(Examples, ShowTheLinesOfTheOp) {
  const StatusOr<OpExample> example = example_of(Opcode::kAdd);
  ASSERT_THAT(example, IsOk());
  EXPECT_EQ(example->ir, "%r = add %a, %b : f32");
  ASSERT_EQ(example->ptx.size(), 1u);
  EXPECT_THAT(example->ptx[0], HasSubstr("add.rn.f32 "));
}

TEST(Reference, SaysWhatTheTableSays) {
  const StatusOr<std::string> page = reference_page();
  ASSERT_THAT(page, IsOk());
  for (const char* const line :
       {"\n## Arithmetic\n", "\n### `fma`\n", "\n- C++: `fma(a, b, c)`\n",
        "\n- Signature: `a:T b:T c:T -> T`, element by element\n", "T = bf16: sm_90 and up",
        "\n- Targets: sm_90a\n", "\n| `pow(x, y)` | x^y | ",
        "; `scope` (optional): `block` `cluster` `gpu` `system`\n",
        "convergent: the threads of a block that take part arrive together"}) {
    EXPECT_THAT(*page, HasSubstr(line));
  }
}

TEST(Reference, IsUpToDate) {
  const StatusOr<std::string> page = reference_page();
  ASSERT_THAT(page, IsOk());
  EXPECT_TRUE(slurp(absl::StrCat(HEDDLE_TEST_DATA_DIR, "/../dsl/REFERENCE.md")) == *page)
      << "dsl/REFERENCE.md is not what the tables say; fix: heddle reference --out "
         "dsl/REFERENCE.md";
}

TEST(Reference, GoesToAFileOrToTheScreen) {
  const StatusOr<std::string> page = reference_page();
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(heddle_command({"reference"}).out, *page);
  const std::string path = testing::TempDir() + "/REFERENCE.md";
  const Outcome written = heddle_command({"reference", "--out", path});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(slurp(path), *page);
  expect_misused(heddle_command({"reference", "--out", "/nowhere/page.md"}),
                 HasSubstr("/nowhere/page.md"));
}

}  // namespace
}  // namespace heddle::tools
