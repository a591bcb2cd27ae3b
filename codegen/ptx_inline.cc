// PTX of the user's own: inline PTX, and operations from outside.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/text/format.h"

namespace heddle::codegen {

namespace {

// A constant as PTX spells numbers of its type.
std::string number_text(ir::Scalar scalar, uint64_t bits) {
  if (scalar == ir::Scalar::kF32) return absl::StrFormat("0f%08X", bits);
  if (scalar == ir::Scalar::kF64) return absl::StrFormat("0d%016X", bits);
  if (!ir::is_signed(scalar)) return absl::StrCat(bits);
  return absl::StrCat(ir::number_of(scalar, bits));
}

}  // namespace

// The PTX of one element. Results come in registers of their own: the text may write one before it has read all
// operands, with which the result may share its register.
absl::InlinedVector<Operand, 2> Emitter::emit_text(const Op& op, absl::string_view ptx,
                                                   int element) {
  absl::InlinedVector<Operand, 2> results;
  for (const ValueId result : op.results) results.push_back(fresh(class_of(type(result).scalar)));
  std::string text;
  const Status status = ir::for_each_ptx_part(
      ptx, [&](absl::string_view part) { text.append(part.data(), part.size()); },
      [&](ir::PtxValue value) {
        const auto number = static_cast<size_t>(value.number);
        if (value.constant) {
          const ValueId operand = op.operands[number - results.size()];
          absl::StrAppend(&text, number_text(type(operand).scalar, lane(operand, element).payload));
          return OkStatus();
        }
        Operand named = Operand::b32(0xFFFFFFFF);  // a mask that is not given
        if (number < results.size()) {
          named = results[number];
        } else if (number - results.size() < op.operands.size()) {
          named = lane(op.operands[number - results.size()], element);
        }
        named = in_register(named);
        absl::StrAppend(&text, info(named.reg_class).prefix, named.payload);
        return OkStatus();
      });
  HEDDLE_CHECK(status.ok(), "the verifier lets no wrong inline PTX pass");
  out_->line("\t{");
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    out_->line('\t', line);
  }
  out_->line("\t}");
  return results;
}

// Of vectors and fragments, element by element.
void Emitter::emit_texts(const Op& op, absl::string_view ptx) {
  const int count = ir::elements_of(kernel_, op);
  std::vector<absl::InlinedVector<Operand, 16>> lanes(op.results.size());
  for (int element = 0; element < count; ++element) {
    const auto results = emit_text(op, ptx, element);
    for (size_t i = 0; i < results.size(); ++i) lanes[i].push_back(results[i]);
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (class_of(type(op.results[i]).scalar) == RegClass::kB32 &&
        bytes_of(type(op.results[i]).scalar) == 1) {
      define_bytes(op.results[i],
                   [&](int element) { return lanes[i][static_cast<size_t>(element)]; });
    } else if (ir::info(type(op.results[i]).scalar).bits == 16) {
      define_halves(op.results[i], [&](int element, const Operand& half) {
        move(half, lanes[i][static_cast<size_t>(element)]);
      });
    } else {
      Operand* const d = define(op.results[i]);
      for (size_t element = 0; element < lanes[i].size(); ++element) {
        move(d[element], lanes[i][element]);
      }
    }
  }
}

void Emitter::emit_inline_ptx(const Op& op) {
  emit_texts(op, kernel_.text(static_cast<ir::StringId>(*op.attr(ir::AttrKey::kMessage))));
}

void Emitter::emit_custom(OpId id, const Op& op) {
  const ir::PtxForm* const form = ir::form_for(kernel_, op);
  if (form == nullptr) {
    const bool has_forms = !ir::custom_op(op.opcode)->ptx.empty();
    return error(id,
                 absl::StrCat("the op '", info(op).mnemonic, "' has no PTX",
                              has_forms ? " for this element type and target" : ""),
                 has_forms
                     ? "give its CustomOp a form for them"
                     : "give its CustomOp one; if it is a mark for a pass, run the pass before");
  }
  version_ = std::max(version_, form->needs.ptx_version);
  emit_texts(op, form->text);
}

}  // namespace heddle::codegen
