// PTX of the user's own.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/text/format.h"

namespace heddle::codegen {

// Results are written into registers of their own first: the text may write one before it has read
// all operands, with which the result may share its register.
void Emitter::emit_inline_ptx(const Op& op) {
  absl::InlinedVector<Operand, 8> values;
  for (const ValueId result : op.results)
    values.push_back(fresh(layout_of(type(result)).reg_class));
  for (const ValueId operand : op.operands) values.push_back(in_register(elements(operand)[0]));
  std::string text;
  const Status status = ir::for_each_ptx_part(
      kernel_.text(static_cast<ir::StringId>(*op.attr(ir::AttrKey::kMessage))),
      [&](absl::string_view part) { text.append(part.data(), part.size()); },
      [&](int64_t number) {
        const Operand& value = values[static_cast<size_t>(number)];
        absl::StrAppend(&text, info(value.reg_class).prefix, value.payload);
        return OkStatus();
      });
  HEDDLE_CHECK(status.ok(), "the verifier lets no wrong inline PTX pass");
  out_->line("\t{");
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    out_->line('\t', line);
  }
  out_->line("\t}");
  for (size_t i = 0; i < op.results.size(); ++i) {
    const Operand d = define(op.results[i])[0];
    const Type t = type(op.results[i]);
    if (t.scalar != Scalar::kBool && bytes_of(t.scalar) == 1) {
      out_->instruction("and.b32 ", d, ", ", values[i], ", 0xFF");
    } else {
      move(d, values[i]);
    }
  }
}

}  // namespace heddle::codegen
