// Texts with values in them: formats of printf and inline PTX.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// A piece of a format: text as it is, with %% as %, or one conversion such as "%-8.3f".
struct FormatPart {
  std::string text;
  char conversion = 0;   // the letter that ends it; 0: text
  bool is_long = false;  // l or ll: 64 bits
};

// kInvalidArgument for a conversion that is not known: d i u x X o c take integers, with l or ll
// those of 64 bits; f F e E g G a A take f64. A * for width or precision, %n and %s are not known.
Status split_format(absl::string_view format, std::vector<FormatPart>* parts);

// Whether values of these types fit, one conversion each: i32, u32, i64, u64 and f64.
Status check_format(absl::string_view format, absl::Span<const Type> types);

// A value that inline PTX names: %1, or %#1 where it wants its number.
struct PtxValue {
  int64_t number = 0;
  bool constant = false;
};
// Takes inline PTX apart: text as it is, with %% as %, and what stands behind single percent signs.
// kInvalidArgument for a % before anything else, or as `value` says.
Status for_each_ptx_part(absl::string_view ptx, absl::FunctionRef<void(absl::string_view)> text,
                         absl::FunctionRef<Status(PtxValue)> value);

}  // namespace heddle::ir
