// Rules of texts with values in them: formats of printf and inline PTX.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/ir/text/format.h"
#include "heddle/ir/verify/rules_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

void require_scalar(RuleContext& c, ValueId value) {
  if (c.kernel().type(value).is_scalar()) return;
  c.error(absl::StrCat("inline PTX takes scalars, and ", c.name(value), " is ",
                       to_string(c.kernel().type(value))),
          "pass elements one by one");
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
      [&](int64_t number) {
        if (use(number)) return OkStatus();
        return InvalidArgumentError(absl::StrCat(
            "%", number, " of the inline PTX names none of its ", counted(values, "value")));
      });
  constexpr char kFix[] =
      "%0, %1, ... are the results and then the inputs; %% is a percent sign, as in %%tid.x";
  if (!status.ok()) return c.error(std::string(status.message()), kFix);
  for (int64_t i = 0; i < values; ++i) {
    if (named[static_cast<size_t>(i)]) continue;
    c.error(absl::StrCat("the inline PTX does not use %", i), kFix);
  }
  for (const ValueId value : c.op().operands) require_scalar(c, value);
  for (const ValueId value : c.op().results) require_scalar(c, value);
}

}  // namespace heddle::ir
