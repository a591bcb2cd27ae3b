#include "heddle/dsl/math/divmod.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/launch/divider.h"
#include "heddle/ir/launch/launch_program.h"

namespace heddle {
namespace detail {

bool is_known_at_launch(const Node& node, SourceLoc loc) {
  Trace* const trace = Trace::current();
  return trace != nullptr && !node.is_host() &&
         !ir::unknown_at_launch(trace->kernel(), trace->use(node, loc));
}

Divider make_divider(const Node& divisor, SourceLoc loc) {
  Divider result;
  result.divisor = emit_bitcast(divisor, ir::Scalar::kU32, loc);
  if (!is_known_at_launch(result.divisor, loc)) return result;
  Trace* const trace = Trace::current();
  trace->set_place(loc);
  const ir::Divider made = ir::make_divider(trace->builder(), trace->use(result.divisor, loc));
  result.multiplier = trace->node(made.multiplier);
  result.addend = trace->node(made.addend);
  result.shift = trace->node(made.shift);
  result.at_launch = true;
  return result;
}

Node quotient(const Node& n, const Divider& divider, SourceLoc loc) {
  const CallerLines lines(loc);
  const UInt dividend(emit_bitcast(n, ir::Scalar::kU32, loc));
  if (!divider.at_launch) return (dividend / UInt(divider.divisor)).node();
  Trace* const trace = Trace::current();
  trace->set_place(loc);
  const auto use = [&](const Node& node) { return trace->use(node, loc); };
  return trace->node(
      ir::quotient(trace->builder(), use(dividend.node()),
                   {use(divider.multiplier), use(divider.addend), use(divider.shift)}));
}

}  // namespace detail

FastDivmod::FastDivmod(const Signed& divisor) {
  detail::Node node = divisor.node;
  if (!node.is_host()) {
    node = detail::emit_assume_range(node, {.min = 1, .name = "a divisor"}, divisor.loc);
  } else if (static_cast<int32_t>(node.bits) < 1) {
    detail::report(divisor.loc,
                   absl::StrCat("a FastDivmod by ", static_cast<int32_t>(node.bits)).c_str(),
                   "divide by a positive number");
    node = detail::host_node(int32_t{1});
  }
  divider_ = detail::make_divider(node, divisor.loc);
}

Divmod<uint32_t> FastDivmod::divmod(const Unsigned& n) const {
  const CallerLines lines(n.loc);
  const UInt dividend(n.node), quotient(detail::quotient(n.node, divider_, n.loc));
  return {quotient, dividend - quotient * UInt(divider_.divisor)};
}

Divmod<int32_t> FastDivmod::divmod(const Signed& n) const {
  detail::Node dividend = n.node;
  if (!dividend.is_host())
    dividend = detail::emit_assume_range(dividend, {.min = 0, .name = "a dividend"}, n.loc);
  const auto [quotient, remainder] =
      divmod(Unsigned(UInt(detail::emit_bitcast(dividend, ir::Scalar::kU32, n.loc)), n.loc));
  const auto number = [&n](const UInt& bits) {
    return Int(detail::emit_bitcast(bits.node(), ir::Scalar::kI32, n.loc));
  };
  return {number(quotient), number(remainder)};
}

}  // namespace heddle
