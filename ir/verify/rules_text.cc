// Rules of texts with values in them: formats of printf and inline PTX.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/status.h"
#include "heddle/ir/text/format.h"
#include "heddle/ir/verify/rules_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

void require_scalar(RuleContext& c, ValueId value) {
  if (c.kernel().type(value).is_scalar()) return;
  c.error(absl::StrCat(c.quoted(), " takes scalars, and ", c.name(value), " is ",
                       to_string(c.kernel().type(value))),
          "pass elements one by one");
}

// What is printed as a number has to be one.
Status check_number(RuleContext& c, PtxValue value) {
  const size_t results = c.op().results.size();
  const auto number = static_cast<size_t>(value.number);
  if (!value.constant) return OkStatus();
  const auto refused = [&](absl::string_view why) {
    return InvalidArgumentError(
        absl::StrCat("%#", number, " of the PTX of ", c.quoted(), " is ", why));
  };
  if (number < results || number - results >= c.op().operands.size()) {
    return refused("no constant operand");
  }
  const ValueId operand = c.op().operands[number - results];
  if (!c.kernel().constant_bits(operand)) return refused("no constant operand");
  const Scalar scalar = c.kernel().type(operand).scalar;
  const bool has_number = is_integer(scalar) || scalar == Scalar::kF32 || scalar == Scalar::kF64;
  return has_number ? OkStatus()
                    : refused(absl::StrCat(info(scalar).name, ", of which PTX has no numbers"));
}

}  // namespace

void check_printf(RuleContext& c) {
  std::vector<Type> types;
  for (const ValueId operand : c.op().operands) types.push_back(c.kernel().type(operand));
  const Status wrong = check_format(c.text_attr(AttrKey::kMessage), types);
  if (!wrong.ok()) c.error(std::string(wrong.message()), "make the format and the values agree");
}

void check_inline_ptx(RuleContext& c) {
  const auto values = static_cast<int64_t>(c.op().results.size() + c.op().operands.size());
  std::vector<bool> named(static_cast<size_t>(values));
  const auto use = [&](int64_t number) {
    if (number < values) named[static_cast<size_t>(number)] = true;
    return number < values;
  };
  const Status status = for_each_ptx_part(
      c.text_attr(AttrKey::kMessage), [](absl::string_view) {},
      [&](PtxValue value) {
        if (!use(value.number)) {
          return InvalidArgumentError(absl::StrCat("%", value.number,
                                                   " of the inline PTX names none of its ",
                                                   counted(values, "value")));
        }
        return check_number(c, value);
      });
  constexpr char kFix[] =
      "%0, %1, ... are the results and then the inputs, %#1 the number of a constant one; %% is a "
      "percent sign, as in %%tid.x";
  if (!status.ok()) return c.error(std::string(status.message()), kFix);
  for (int64_t i = 0; i < values; ++i) {
    if (named[static_cast<size_t>(i)]) continue;
    c.error(absl::StrCat("the inline PTX does not use %", i), kFix);
  }
  for (const ValueId value : c.op().operands) require_scalar(c, value);
  for (const ValueId value : c.op().results) require_scalar(c, value);
}

void check_custom(RuleContext& c) {
  const CustomOp& custom = *custom_op(c.op().opcode);
  const PtxForm* const form = form_for(c.kernel(), c.op());
  if (form == nullptr && !custom.ptx.empty()) {
    const Scalar type = type_of_t(c.kernel(), c.op());
    std::string types = type == Scalar::kNone ? "" : absl::StrCat(" of ", info(type).name);
    return c.error(absl::StrCat("the op '", custom.row.mnemonic, "' has no PTX", types, " for ",
                                c.kernel().target->name),
                   "give its CustomOp a form for that, or do without the op");
  }
  const Status status = for_each_ptx_part(
      form == nullptr ? "" : form->text, [](absl::string_view) {},
      [&](PtxValue value) { return check_number(c, value); });
  if (!status.ok()) c.error(std::string(status.message()), "pass a host number");
  const Signature& signature = custom.row.signature;
  for (size_t i = 0; i < c.op().operands.size(); ++i) {
    if (signature.operands[i].role == Role::kAny) require_scalar(c, c.op().operands[i]);
  }
  for (size_t i = 0; i < c.op().results.size(); ++i) {
    if (signature.results[i].role == Role::kAny) require_scalar(c, c.op().results[i]);
  }
  if (elements_of(c.kernel(), c.op()) > 1) {
    for (size_t i = 0; i < c.op().results.size(); ++i) {
      const Role role = signature.results[i].role;
      if (role == Role::kT || role == Role::kBoolLikeT || role == Role::kDataLikeT) continue;
      return c.error(absl::StrCat(c.quoted(), " works element by element, and its result ", i + 1,
                                  " is ", to_string(c.kernel().type(c.op().results[i]))),
                     "pass elements one by one");
    }
  }
  if (!custom.check) return;
  if (std::optional<OpFault> fault = custom.check(c.kernel(), c.op())) {
    c.error(std::move(fault->message), std::move(fault->fix));
  }
}

}  // namespace heddle::ir
