// The kernels of tests/filetests/ops/, one file for each op, for tests that take every op of the table
// through some part of Heddle.
//
//   for (const OpExample& example : op_examples(Opcode::kAdd)) {
//     const ir::Kernel kernel = example.parse();        // "add.ir:3 $T = i32"
//     kernel.op(example.find(kernel)) …                 // the add in it
//   }
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "heddle/ir/check.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/text/parser.h"
#include "heddle/runtime/testing/case_text.h"
#include "heddle/runtime/testing/expectations.h"

namespace heddle::test {

inline const std::string& op_folder() {
  static const std::string folder = HEDDLE_TEST_DATA_DIR "/filetests/ops";
  return folder;
}

// An instance of a case that is right: no error is expected of it.
struct OpExample {
  ir::Opcode opcode{};
  std::string where;  // for messages: "add.ir:3 $T = i32"
  std::string text;
  std::vector<const ir::Target*> targets;  // that the case names; none: those that the table says

  ir::Kernel parse() const {
    StatusOr<ir::Kernel> kernel = ir::parse(text, "op.ir", {.text_as_source = true});
    HEDDLE_CHECK(kernel.ok(), absl::StrCat(where, ": ", kernel.status().message()));
    return *std::move(kernel);
  }

  // The op itself in its kernel.
  ir::OpId find(const ir::Kernel& kernel) const {
    ir::OpId found = ir::OpId::kNone;
    kernel.walk([&](ir::OpId id) {
      if (!ir::valid(found) && kernel.op(id).opcode == opcode) found = id;
    });
    HEDDLE_CHECK(ir::valid(found), absl::StrCat(where, " lacks the op"));
    return found;
  }
};

// Those of an op's file; none where it has no file.
inline std::vector<OpExample> op_examples(ir::Opcode opcode) {
  std::vector<OpExample> examples;
  const std::string file = absl::StrCat(ir::info(opcode).mnemonic, ".ir");
  std::stringstream text;
  text << std::ifstream(absl::StrCat(op_folder(), "/", file)).rdbuf();
  const std::string whole = text.str();
  std::vector<filetest::Fault> faults;
  for (const filetest::CaseText& part : filetest::split_cases(whole)) {
    for (const filetest::Instance& instance : filetest::instances_of(part, faults)) {
      const filetest::Expectations wanted = filetest::read_expectations(instance.text, faults);
      if (wanted.kernel_line == 0 || !wanted.errors.empty()) continue;
      examples.push_back({opcode, absl::StrCat(file, ":", part.first_line, " ", instance.values),
                          instance.text, wanted.targets});
    }
  }
  EXPECT_TRUE(faults.empty()) << file << ":" << faults[0].line << ": " << faults[0].text;
  return examples;
}

// Of a test of that op: "add_rounded".
inline std::string op_test_name(ir::Opcode opcode) {
  return absl::StrReplaceAll(ir::info(opcode).mnemonic, {{".", "_"}});
}

inline std::vector<ir::Opcode> all_opcodes() {
  std::vector<ir::Opcode> all;
  for (int i = 0; i < ir::kOpcodeCount; ++i) all.push_back(static_cast<ir::Opcode>(i));
  return all;
}

}  // namespace heddle::test
