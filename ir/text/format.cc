#include "heddle/ir/text/format.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kIntegerLetters = "diuxXoc";
constexpr absl::string_view kFloatLetters = "fFeEgGaA";

bool contains(absl::string_view letters, char c) { return letters.find(c) != letters.npos; }

}  // namespace

Status split_format(absl::string_view format, std::vector<FormatPart>* parts) {
  std::string text;
  const auto end_text = [&] {
    if (!text.empty()) parts->push_back({.text = text});
    text.clear();
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      text.push_back(format[i]);
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      text.push_back(format[++i]);
      continue;
    }
    size_t end = format.find_first_not_of("-+ #0123456789.", i + 1);
    int longs = 0;
    while (end < format.size() && format[end] == 'l' && longs < 2) ++end, ++longs;
    const char letter = end < format.size() ? format[end] : '\0';
    const bool is_float = letter != 0 && contains(kFloatLetters, letter);
    if (letter == 0 || !(is_float || contains(kIntegerLetters, letter)) ||
        (is_float && longs > 0)) {
      const size_t stop = std::min(end, format.size() - 1);
      return InvalidArgumentError(absl::StrCat("'", format.substr(i, stop - i + 1),
                                               "' is no conversion that kernels print"));
    }
    end_text();
    // The host's own long long, whatever the user's length.
    std::string host(format.substr(i, end - i - static_cast<size_t>(longs)));
    absl::StrAppend(&host, longs > 0 ? "ll" : "", std::string(1, letter));
    parts->push_back({.text = std::move(host), .conversion = letter, .is_long = longs > 0});
    i = end;
  }
  end_text();
  return OkStatus();
}

namespace {

std::string quoted(absl::string_view format) {
  return absl::StrCat("\"", absl::CEscape(format), "\"");
}

}  // namespace

Status check_format(absl::string_view format, absl::Span<const Type> types) {
  std::vector<FormatPart> parts;
  if (const Status status = split_format(format, &parts); !status.ok()) return status;
  size_t used = 0;
  for (const FormatPart& part : parts) {
    if (part.conversion == 0) continue;
    if (used == types.size()) {
      return InvalidArgumentError(
          absl::StrCat("the format ", quoted(format), " wants more than the ",
                       counted(static_cast<int64_t>(used), "value"), " that it is given"));
    }
    const Type type = types[used++];
    const bool wants_float = contains(kFloatLetters, part.conversion);
    const bool fits =
        type.is_scalar() && (wants_float ? type.scalar == Scalar::kF64
                                         : is_integer(type.scalar) &&
                                               info(type.scalar).bits == (part.is_long ? 64 : 32));
    if (fits) continue;
    return InvalidArgumentError(absl::StrCat("value ", used, " of the format ", quoted(format),
                                             " is ", to_string(type), ", but '", part.text,
                                             "' prints ",
                                             wants_float    ? "a float"
                                             : part.is_long ? "a 64-bit integer"
                                                            : "a 32-bit integer"));
  }
  if (used == types.size()) return OkStatus();
  return InvalidArgumentError(absl::StrCat("the format ", quoted(format), " prints ",
                                           counted(static_cast<int64_t>(used), "value"),
                                           ", but it is given ", types.size()));
}

Status for_each_ptx_part(absl::string_view ptx, absl::FunctionRef<void(absl::string_view)> text,
                         absl::FunctionRef<Status(PtxValue)> value) {
  while (!ptx.empty()) {
    const size_t percent = std::min(ptx.find('%'), ptx.size());
    if (percent > 0) text(ptx.substr(0, percent));
    ptx.remove_prefix(percent);
    if (ptx.empty()) break;
    const bool constant = ptx.size() > 1 && ptx[1] == '#';
    const size_t begin = constant ? 2 : 1;
    const size_t end = std::min(ptx.find_first_not_of("0123456789", begin), ptx.size());
    int64_t number = 0;
    if (ptx.size() > 1 && ptx[1] == '%') {
      text("%");
      ptx.remove_prefix(2);
    } else if (absl::SimpleAtoi(ptx.substr(begin, end - begin), &number)) {
      if (Status status = value({number, constant}); !status.ok()) return status;
      ptx.remove_prefix(end);
    } else {
      return InvalidArgumentError(
          absl::StrCat("'", ptx.substr(0, 8), "' of the inline PTX is no value"));
    }
  }
  return OkStatus();
}

}  // namespace heddle::ir
