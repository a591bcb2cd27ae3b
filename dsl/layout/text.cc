// What layouts' numbers look like, in results and in messages.
//
// In a message's parts each unknown number carries, between marks, what it is: ?<4:7>{div=8} with
// control characters for the brackets. Where a message has several they get names in turn:
// ?a{div=8}.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/polynomial_internal.h"

namespace heddle::detail {
namespace {

constexpr char kBegin = '\x01', kEnd = '\x02';

// The same text for the same numbers only.
void append_identity(const SymInt& value, std::string* out) {
  if (value.is_constant()) return absl::StrAppend(out, value.value());
  for (const Term& term : value.polynomial().terms) {
    absl::StrAppend(out, "+", term.numerator, "/", term.denominator);
    for (const SymbolRef& symbol : term.symbols) {
      absl::StrAppend(out, "*", static_cast<int>(symbol->kind), ":", symbol->node.bits, ":",
                      symbol->serial);
      if (symbol->kind == SymbolKind::kUnknown || symbol->kind == SymbolKind::kTraced) continue;
      absl::StrAppend(out, "(");
      append_identity(symbol->a, out);
      absl::StrAppend(out, ",");
      append_identity(symbol->b, out);
      absl::StrAppend(out, ")");
    }
  }
}

// Puts replacement(what stands between them) in the place of marks.
template <class Replacement>
std::string with_marks_replaced(const std::string& text, const Replacement& replacement) {
  std::string result;
  size_t at = 0;
  for (size_t begin; (begin = text.find(kBegin, at)) != std::string::npos;) {
    const size_t end = text.find(kEnd, begin);
    if (end == std::string::npos) break;  // no mark of ours: what a message quotes may be anything
    result.append(text, at, begin - at);
    result += replacement(text.substr(begin + 1, end - begin - 1));
    at = end + 1;
  }
  return result.append(text, at);
}

// a to z, then a1 and so on.
std::string letter(size_t i) {
  std::string name(1, static_cast<char>('a' + i % 26));
  if (i >= 26) absl::StrAppend(&name, i / 26);
  return name;
}

}  // namespace

std::string text(const SymInt& value) {
  if (value.is_overflow()) return "overflow";
  if (value.is_constant()) return absl::StrCat(value.value());
  std::string result{'?', kBegin};
  append_identity(value, &result);
  result += kEnd;
  const int64_t divisor = value.divisor_if_known();
  if (divisor > 1) absl::StrAppend(&result, "{div=", divisor, "}");
  return result;
}

std::string text(const TupleNode& node) {
  std::string result;
  if (node.is_tuple()) {
    const char* separator = "(";
    for (const TupleNode& child : Elements(node)) {
      absl::StrAppend(&result, std::exchange(separator, ","), text(child));
    }
    return result + (node.rank == 0 ? "()" : ")");
  }
  if (!node.is_int()) return "_";
  result = text(node.value);
  for (int i = node.path_length; i > 0; --i) {
    absl::StrAppend(&result, "@", static_cast<int>(node.path[i - 1]));
  }
  return result;
}

std::string text(const IntTuple& t) {
  return t.ok() ? text(t.node()) : absl::StrCat("error: ", t.error());
}

std::string text(const Layout& layout) {
  if (!layout.ok()) return text(layout.shape());
  const std::string outer = absl::StrCat(text(layout.shape()), ":", text(layout.stride()));
  if (!layout.is_composed()) return outer;
  const std::string inner =
      layout.inner() != nullptr ? text(*layout.inner()) : layout.swizzle().to_string();
  return absl::StrCat(inner, " o ", text(layout.offset()), " o ", outer);
}

std::string text(const Tiler& tiler) {
  if (tiler.kind() == Tiler::Kind::kUnderscore) return "_";
  if (tiler.kind() == Tiler::Kind::kLayout) return text(tiler.layout());
  std::string result = "<";
  for (int i = 0; i < tiler.rank(); ++i) {
    absl::StrAppend(&result, i == 0 ? "" : ",", text(tiler.mode(i)));
  }
  return result + ">";
}

std::string without_names(std::string text) {
  return with_marks_replaced(text, [](const std::string&) { return std::string(); });
}

void name_unknowns(std::string* what, std::string* fix) {
  std::vector<std::string> met;
  const auto meet = [&](const std::string& number) {
    const auto known = std::find(met.begin(), met.end(), number);
    const auto index = static_cast<size_t>(known - met.begin());
    if (known == met.end()) met.push_back(number);
    return letter(index);
  };
  std::string named_what = with_marks_replaced(*what, meet);
  std::string named_fix = with_marks_replaced(*fix, meet);
  *what = met.size() > 1 ? std::move(named_what) : without_names(std::move(*what));
  *fix = met.size() > 1 ? std::move(named_fix) : without_names(std::move(*fix));
}

}  // namespace heddle::detail
