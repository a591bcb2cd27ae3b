#include "heddle/dsl/math/divmod.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/launch/launch_program.h"

namespace heddle {
namespace detail {

bool is_known_at_launch(const Node& node, SourceLoc loc) {
  Trace* const trace = Trace::current();
  return trace != nullptr && !node.is_host() &&
         !ir::unknown_at_launch(trace->kernel(), trace->use(node, loc));
}

// A. D. Robison, "N-bit unsigned division via N-bit multiply-add" (ARITH 2005). With 2^k <= d <
// 2^(k+1) and m = floor(2^(32+k) / d): one of m + 1, and m with m added once, errs by no more than
// 2^k over all n, which rounding down forgives. A power of two takes the largest m there is.
Divider make_divider(const Node& divisor, SourceLoc loc) {
  Divider result;
  result.divisor = emit_bitcast(divisor, ir::Scalar::kU32, loc);
  if (!is_known_at_launch(result.divisor, loc)) return result;
  const CallerLines lines(loc);
  const UInt d(result.divisor);
  const UInt64 wide = cast<uint64_t>(d);
  const UInt k = 31u - cast<uint32_t>(clz(d));
  const UInt64 power = UInt64(1) << (k + 32u);
  const UInt64 down = power / wide;
  const UInt64 rest = power - down * wide;
  const Bool is_power = rest == 0u;
  const Bool rounds_up = (rest != 0u) & (wide - rest <= UInt64(1) << k);
  const UInt64 multiplier =
      select(is_power, UInt64(0xFFFFFFFFu), select(rounds_up, down + 1u, down));
  result.multiplier = at_launch(cast<uint32_t>(multiplier)).node();
  result.addend = at_launch(select(rounds_up, UInt64(0), multiplier)).node();
  result.shift = at_launch(k).node();
  result.at_launch = true;
  return result;
}

Node quotient(const Node& n, const Divider& divider, SourceLoc loc) {
  const CallerLines lines(loc);
  const UInt dividend(emit_bitcast(n, ir::Scalar::kU32, loc));
  if (!divider.at_launch) return (dividend / UInt(divider.divisor)).node();
  const UInt64 product = fma(cast<uint64_t>(dividend), cast<uint64_t>(UInt(divider.multiplier)),
                             UInt64(divider.addend));
  return (cast<uint32_t>(product >> 32u) >> UInt(divider.shift)).node();
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
