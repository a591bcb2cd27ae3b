// Comparing what a trace makes where the compiler is not the one that made the expected text.
//
// C++ leaves the order in which the operands of `a(i) + b(i)` and the arguments of a call are evaluated to
// the compiler. GCC and Clang choose differently, so that a trace has the same ops in another order, and
// its values and registers have other numbers. Expected texts come from GCC.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace heddle {

#ifdef __clang__
inline constexpr bool kOrderIsExpected = false;
#else
inline constexpr bool kOrderIsExpected = true;
#endif

// The lines of IR or PTX, sorted, without the numbers of values, registers and labels.
inline std::vector<std::string> lines_in_any_order(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string kept;
    bool in_name = false;
    for (const char c : absl::StripAsciiWhitespace(line)) {
      in_name =
          c == '%' || c == '$' || (in_name && (absl::ascii_isalnum(c) || c == '_' || c == '<'));
      if (!in_name || !absl::ascii_isdigit(c)) kept += c;
    }
    if (!kept.empty()) lines.push_back(std::move(kept));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace heddle
