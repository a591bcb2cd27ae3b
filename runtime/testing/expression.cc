#include "heddle/runtime/testing/expression.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/text/literal.h"

namespace heddle::filetest {

std::string expression(const ir::Kernel& kernel, ir::ValueId value) {
  const ir::Op* const op = kernel.def(value);
  if (op == nullptr) return absl::StrCat("%", kernel.text(kernel.value(value).name));
  const ir::Type type = kernel.type(value);
  if (const auto bits = kernel.constant_bits(value)) {
    return absl::StrCat(ir::literal_to_string(type.scalar, *bits), type.is_scalar() ? "" : "...");
  }
  std::string text(ir::info(*op).mnemonic);
  if (op->opcode == ir::Opcode::kConvert || op->opcode == ir::Opcode::kBitcast) {
    absl::StrAppend(&text, ".", ir::to_string(type));
  }
  for (const ir::AttrKey key : {ir::AttrKey::kAxis, ir::AttrKey::kIndex, ir::AttrKey::kDim}) {
    if (const auto attr = op->attr(key)) absl::StrAppend(&text, "#", *attr);
  }
  const auto append = [&](std::string* out, ir::ValueId operand) {
    absl::StrAppend(out, expression(kernel, operand));
  };
  return absl::StrCat(text, "(", absl::StrJoin(op->operands, ", ", append), ")");
}

}  // namespace heddle::filetest
