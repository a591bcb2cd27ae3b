#include "heddle/dsl/layout/calculator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "heddle/dsl/layout/calculator_internal.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle {
namespace {

using detail::as_layout;
using detail::as_tiler;
using detail::as_tuple;
using detail::failed;
using detail::is_layout_like;
using detail::is_tiler_like;
using detail::is_tuple;
using Value = LayoutValue;

constexpr auto* error = &detail::calculator_error;
constexpr auto* call = &detail::call_calculator;

// Recursive descent. After the first mistake everything is that mistake, with the column of what it
// is in.
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  Value run() {
    Value value = composition_chain();
    skip_space();
    if (!failed(value) && at_ < text_.size()) return expected("the end");
    return value;
  }

 private:
  static constexpr int kMostNested = 100;

  // A mistake says where the innermost part starts that it is in.
  Value located(size_t start, Value value) {
    if (!failed(value) || std::exchange(has_column_, true)) return value;
    const std::string text = to_string(value);
    return detail::TupleBuilder::failed(absl::StrCat(
        absl::StripPrefix(text, "error: "), " (in what starts at column ", start + 1, ")"));
  }

  Value composition_chain() {
    skip_space();
    const size_t start = at_;
    return located(start, composition());
  }

  // a, a o b, a o offset o b
  Value composition() {
    Value first = layout_or_tuple();
    if (failed(first) || !take_o()) return first;
    const Value second = layout_or_tuple();
    if (failed(second)) return second;
    if (!take_o()) {
      if (std::holds_alternative<Swizzle>(first)) {
        return call("make_composed_layout", {first, IntTuple(0), second});
      }
      return call("composition", {first, second});
    }
    const Value third = layout_or_tuple();
    if (failed(third)) return third;
    return call("make_composed_layout", {first, second, third});
  }

  // a, a:b
  Value layout_or_tuple() {
    Value shape = applied();
    if (failed(shape) || !take(':')) return shape;
    const Value stride = applied();
    if (failed(stride)) return stride;
    if (!is_tuple(shape) || !is_tuple(stride)) return expected("a shape and a stride around ':'");
    return call("make_layout", {shape, stride});
  }

  // a, a(coord)
  Value applied() {
    Value value = primary();
    while (!failed(value) && take('(')) {
      std::vector<Value> coords;
      if (const Value list = elements(')', &coords); failed(list)) return list;
      IntTuple coord;
      for (const Value& c : coords) {
        if (!is_tuple(c)) return error("a coordinate with " + to_string(c), "give integers and _");
        coord = append(coord, as_tuple(c));
      }
      if (coords.size() == 1) coord = as_tuple(coords[0]);
      if (const auto* swizzle = std::get_if<Swizzle>(&value)) {
        if (!coord.is_int() || coord.node().is_basis())
          return error("a swizzle of " + coord.to_string(), "give an integer");
        value = IntTuple((*swizzle)(coord.value()));
      } else if (!is_layout_like(value)) {
        return error(to_string(value) + " is no layout", "evaluate layouts");
      } else {
        const Layout layout = as_layout(value);
        if (has_underscore(coord)) {
          value = slice(coord, layout, {});
        } else {
          value = layout(coord, {});
        }
      }
    }
    return value;
  }

  Value primary() {
    skip_space();
    if (at_ >= text_.size()) return expected("an expression");
    if (++nested_ > kMostNested)
      return error("brackets nest too deeply", "simplify the expression");
    const size_t start = at_;
    Value value = located(start, unnested());
    --nested_;
    return value;
  }

  Value unnested() {
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      return tuple();
    }
    if (c == '<') {
      ++at_;
      std::vector<Value> modes;
      if (Value list = elements('>', &modes); failed(list)) return list;
      return tiler(modes);
    }
    if (c == '?' || c == '-' || absl::ascii_isdigit(c)) return leaf();
    if (c == '_' && at_ + 1 < text_.size() && absl::ascii_isdigit(text_[at_ + 1])) {
      ++at_;  // CuTe's _4, a static 4
      return leaf();
    }
    if (c == '_') {
      ++at_;
      return IntTuple(_);
    }
    const absl::string_view name = word();
    if (name.empty()) return expected("an expression");
    if (name == "S" && take('<')) return swizzle();
    if (!take('(')) return expected("'('");
    std::vector<Value> arguments;
    if (Value list = elements(')', &arguments); failed(list)) return list;
    return call(name, arguments);
  }

  // What stands in brackets: a tuple; where one thing that is no tuple does, that thing.
  Value tuple() {
    std::vector<Value> parts;
    if (Value list = elements(')', &parts); failed(list)) return list;
    if (parts.size() == 1 && !is_tuple(parts[0])) return parts[0];
    if (!std::all_of(parts.begin(), parts.end(), &is_tuple)) return tiler(parts);
    detail::TupleBuilder builder;
    const size_t open = builder.open();
    for (const Value& part : parts) builder.add(as_tuple(part));
    builder.close(open);
    return builder.build();
  }

  Value tiler(const std::vector<Value>& modes) {
    std::vector<Tiler> tilers;
    for (const Value& mode : modes) {
      if (!is_tiler_like(mode)) {
        return error("a tiler with " + to_string(mode), "give layouts, numbers and _");
      }
      tilers.push_back(as_tiler(mode));
    }
    return Tiler(std::move(tilers));
  }

  // Up to the closing bracket.
  Value elements(char close, std::vector<Value>* out) {
    if (take(close)) return IntTuple(0);
    for (;;) {
      Value element = composition_chain();
      if (failed(element)) return element;
      out->push_back(std::move(element));
      if (take(close)) return IntTuple(0);
      if (!take(',')) return expected(absl::StrCat("',' or '", std::string(1, close), "'"));
      if (close == ')' && take(close)) return IntTuple(0);  // (4,)
    }
  }

  // 4, ?, ?{div=8}, and with @ behind them
  Value leaf() {
    SymInt value;
    if (take('?')) {
      int64_t divisor = 1;
      if (take('{')) {
        // The width that CuTe DSL may say is of no consequence here.
        if (take_word("i32") || take_word("i64")) {
        }
        if (take_word("div")) {
          if (!take('=') || !integer(&divisor) || divisor < 1)
            return expected("a positive divisor");
        }
        if (!take('}')) return expected("'}'");
      }
      value = SymInt::unknown(divisor);
    } else {
      int64_t number = 0;
      if (!integer(&number)) return expected("a number that fits 64 bits");
      value = number;
    }
    detail::TupleNode node;
    node.value = value;
    while (take('@')) {
      int64_t mode = 0;
      if (!integer(&mode) || mode < 0 || mode > 255 ||
          node.path_length == detail::TupleNode::kMaxPath) {
        return expected("a mode");
      }
      node.path[node.path_length++] = static_cast<uint8_t>(mode);
    }
    std::reverse(node.path, node.path + node.path_length);
    return detail::TupleBuilder::build(node);
  }

  Value swizzle() {
    int64_t numbers[3];
    for (int i = 0; i < 3; ++i) {
      if (!integer(&numbers[i]) || !take(i < 2 ? ',' : '>')) return expected("S<bits,base,shift>");
      if (numbers[i] < -62 || numbers[i] > 62)
        return error("a swizzle of more than 62 bits", "use less");
    }
    const Swizzle swizzle(static_cast<int>(numbers[0]), static_cast<int>(numbers[1]),
                          static_cast<int>(numbers[2]));
    if (!swizzle.ok()) return detail::TupleBuilder::failed(swizzle.error());
    return swizzle;
  }

  // --- Text ---

  void skip_space() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::string_view word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || text_[end] == '_')) ++end;
    const absl::string_view result = text_.substr(at_, end - at_);
    at_ = end;
    return result;
  }
  bool take_word(absl::string_view wanted) {
    const size_t before = at_;
    if (word() == wanted) return true;
    at_ = before;
    return false;
  }
  // The o between layouts. Spaces may be left out in front of a number or a swizzle.
  bool take_o() {
    const size_t before = at_;
    const absl::string_view found = word();
    const bool is_o = !found.empty() && found[0] == 'o' &&
                      (found.size() == 1 || absl::ascii_isdigit(found[1]) || found == "oS");
    if (!is_o) {
      at_ = before;
      return false;
    }
    at_ -= found.size() - 1;
    return true;
  }
  bool integer(int64_t* value) {
    skip_space();
    size_t end = at_ + (at_ < text_.size() && text_[at_] == '-' ? 1 : 0);
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    const absl::string_view digits = text_.substr(at_, end - at_);
    if (!absl::SimpleAtoi(digits, value)) return false;
    at_ = end;
    return true;
  }
  Value expected(const std::string& what) {
    skip_space();
    has_column_ = true;
    return error(
        absl::StrCat(
            "expected ", what, " at column ", at_ + 1,
            at_ < text_.size()
                ? absl::StrCat(", where '", absl::CHexEscape(text_.substr(at_, 12)), "' stands")
                : ", where the expression ends"),
        "see heddle layout --help");
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int nested_ = 0;
  bool has_column_ = false;  // the mistake says where it is
};

}  // namespace

LayoutValue evaluate_layout(std::string_view expression) {
  return Parser({expression.data(), expression.size()}).run();
}

std::string SlicedLayout::to_string() const {
  return absl::StrCat("(", layout.to_string(), ",", offset.to_string(), ")");
}

std::string to_string(const LayoutValue& value) {
  return std::visit([](const auto& v) { return v.to_string(); }, value);
}

std::string evaluate(std::string_view expression) { return to_string(evaluate_layout(expression)); }

Layout parse_layout(std::string_view text) {
  const LayoutValue value = evaluate_layout(text);
  if (is_layout_like(value)) return as_layout(value);
  const IntTuple none = detail::TupleBuilder::failed(
      absl::StrCat(to_string(value), " is no layout; write shape:stride"));
  return Layout(none, none);
}

IntTuple parse_int_tuple(std::string_view text) {
  const LayoutValue value = evaluate_layout(text);
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return *tuple;
  return detail::TupleBuilder::failed(
      absl::StrCat(to_string(value), " is no tuple; write (a,b,…)"));
}

}  // namespace heddle
