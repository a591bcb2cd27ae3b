// Division, rounding, comparison and scaling of the tuples of int_tuple.h.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle {

using detail::Elements;
using detail::TupleBuilder;
using detail::TupleNode;

namespace {

struct Division {
  const char* name;
  // Whether a and b must divide one another.
  bool even;
};

// a / b into *out; false, and *what, where that is no division.
bool divide(const TupleNode& a, const TupleNode& b, Division kind, TupleBuilder* out,
            std::string* what) {
  if (a.is_tuple() && b.is_tuple()) {
    if (kind.even ? a.rank != b.rank : a.rank < b.rank) {
      *what = absl::StrCat(detail::text(a), " has ", a.rank, " modes and ", detail::text(b),
                           " has ", b.rank);
      return false;
    }
    const size_t tuple = out->open();
    auto by = Elements(b).begin();
    const auto end = Elements(b).end();
    for (const TupleNode& child : Elements(a)) {
      if (by != end) {
        if (!divide(child, *by, kind, out, what)) return false;
        ++by;
      } else {
        out->add(child);
      }
    }
    out->close(tuple);
    return true;
  }
  if (a.is_tuple()) {
    // The divisor is used up from the left.
    SymInt rest = b.value;
    const size_t tuple = out->open();
    for (const TupleNode& child : Elements(a)) {
      TupleNode by;
      by.value = rest;
      if (!divide(child, by, kind, out, what)) return false;
      TupleBuilder next;
      TupleNode whole;
      whole.value = detail::product(child);
      if (!divide(by, whole, kind, &next, what)) return false;
      const IntTuple quotient = next.build();
      if (!quotient.ok()) {
        *what = absl::StrCat("the size of ", detail::text(child), " does not fit 64 bits");
        return false;
      }
      rest = quotient.value();
    }
    out->close(tuple);
    return true;
  }
  const SymInt by = detail::product(b);
  if (by.is_constant(0)) {
    *what = absl::StrCat("a division of ", detail::text(a), " by 0");
    return false;
  }
  if (kind.even && !divides(by, a.value) && !divides(a.value, by)) {
    *what = absl::StrCat(detail::text(a.value), " and ", detail::text(by),
                         " do not divide one another");
    return false;
  }
  out->add(ceil_div(a.value, by));
  return true;
}

IntTuple divided(const IntTuple& a, const IntTuple& b, Division kind, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&a, &b})) return *failure;
  TupleBuilder builder;
  std::string what;
  if (!divide(a.node(), b.node(), kind, &builder, &what)) {
    return detail::fail(
        loc, absl::StrCat(kind.name, "(", detail::text(a), ", ", detail::text(b), "): ", what),
        kind.even ? "choose sizes of which one divides the other" : "divide by a positive shape");
  }
  return builder.build(loc);
}

}  // namespace

IntTuple ceil_div(const IntTuple& a, const IntTuple& b, SourceLoc loc) {
  return divided(a, b, {"ceil_div", false}, loc);
}
IntTuple shape_div(const IntTuple& a, const IntTuple& b, SourceLoc loc) {
  return divided(a, b, {"shape_div", true}, loc);
}

IntTuple round_up(const IntTuple& a, const IntTuple& b, SourceLoc loc) {
  const IntTuple count = ceil_div(a, b, loc);
  if (!count.ok()) return count;
  if (!a.is_tuple()) return count.value() * detail::product(b.node());
  if (!b.is_tuple()) {
    return detail::fail(loc,
                        absl::StrCat("round_up(", detail::text(a), ", ", detail::text(b),
                                     "): a tuple is rounded by a tuple"),
                        "give a number for each mode");
  }
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < rank(a); ++i) {
    const IntTuple mode = i < rank(b) ? round_up(get(a, i), get(b, i), loc) : get(a, i);
    if (!mode.ok()) return mode;
    builder.add(mode);
  }
  builder.close(tuple);
  return builder.build(loc);
}

namespace {

bool less(const TupleNode& a, const TupleNode& b) {
  if (!a.is_tuple() || !b.is_tuple()) {
    return a.is_int() && b.is_int() && always_less(a.value, b.value);
  }
  if (a.rank > b.rank) return false;
  auto other = Elements(b).begin();
  for (const TupleNode& child : Elements(a)) {
    if (!less(child, *other)) return false;
    ++other;
  }
  return true;
}

}  // namespace

bool elem_less(const IntTuple& a, const IntTuple& b) { return less(a.node(), b.node()); }

IntTuple elem_scale(const IntTuple& t, const SymInt& by) {
  if (!t.ok()) return t;
  TupleBuilder builder;
  builder.add(t);
  for (TupleNode& node : builder.nodes()) {
    if (node.is_int()) node.value = node.value * by;
  }
  return builder.build();
}

namespace {

IntTuple assumed(const SymInt& number, int64_t divisor, SourceLoc loc) {
  if (number.is_constant()) {
    if (number.value() % divisor == 0) return number;
    return detail::fail(loc,
                        absl::StrCat("assume: ", number.value(), " is no multiple of ", divisor),
                        "promise what holds");
  }
  if (number.is_overflow()) return number;
  if (detail::Trace::current() == nullptr) {
    // Rounded up to a multiple of what is known and promised it is itself, and shows its divisor.
    const int64_t known = std::max<int64_t>(number.divisor_if_known(), 1);
    int64_t all = 0;
    if (__builtin_mul_overflow(known / std::gcd(known, divisor), divisor, &all)) return number;
    const SymInt rounded = ceil_div(number, all) * all;
    return rounded.is_overflow() ? number : rounded;
  }
  return detail::promised_multiple(number, divisor, loc);
}

}  // namespace

IntTuple assume(const IntTuple& t, int64_t divisor, SourceLoc loc) {
  if (divisor < 1) {
    return detail::fail(loc, absl::StrCat("assume: a divisor of ", divisor), "give one from 1 on");
  }
  return transform_leaf(t, [&](const IntTuple& x) {
    return x.is_int() && !x.node().is_basis() ? assumed(x.value(), divisor, loc) : x;
  });
}

}  // namespace heddle
