#include "heddle/tools/command/reference/spelling.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/op_table_internal.h"

namespace heddle::tools {
namespace {

Spelling function_named(const ir::OpInfo& row) {
  std::string text = absl::StrCat(absl::StrReplaceAll(row.mnemonic, {{".", "_"}}), "(");
  for (int i = 0; i < row.signature.operand_count; ++i) {
    const ir::OperandName name = row.signature.operands[static_cast<size_t>(i)].name;
    absl::StrAppend(&text, i == 0 ? "" : ", ", name_of(name));
  }
  return {text + ")", ""};
}

}  // namespace

// An op that stands there twice does not compile.
Spelling spelling_of(ir::Opcode opcode) {
  using ir::Opcode;
  switch (opcode) {
#define HEDDLE_SPELLING(op, text) \
  case Opcode::k##op:             \
    return {text, ""};
#define HEDDLE_NO_SPELLING(op, why) \
  case Opcode::k##op:               \
    return {"", why};
#include "heddle/tools/command/reference/spellings.def"
    default:
      break;
  }
  if (!ir::kIsElementwise[static_cast<size_t>(opcode)]) return {};
  return function_named(ir::info(opcode));
}

}  // namespace heddle::tools
