#include "heddle/dsl/layout/int_tuple.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/internal/trace.h"
#include "heddle/dsl/internal/tuple_builder.h"

namespace heddle {
namespace detail {

// --- Nodes ----------------------------------------------------------------------------------

const TupleNode& element(const TupleNode& node, int mode) {
  auto at = Elements(node).begin();
  for (int i = 0; i < mode; ++i) ++at;
  return *at;
}

bool same_leaf(const TupleNode& a, const TupleNode& b) {
  return a.kind == b.kind && a.path_length == b.path_length &&
         std::equal(a.path, a.path + a.path_length, b.path) && (!a.is_int() || a.value == b.value);
}

bool congruent(const TupleNode& a, const TupleNode& b) {
  if (a.span != b.span) return false;
  for (uint32_t i = 0; i < a.span; ++i) {
    if ((&a)[i].is_tuple() != (&b)[i].is_tuple() || (&a)[i].rank != (&b)[i].rank) return false;
  }
  return true;
}

SymInt product(const TupleNode& node) {
  if (!node.is_tuple()) return node.value;
  SymInt result = 1;
  for (uint32_t i = 1; i < node.span; ++i) {
    if ((&node)[i].is_int()) result = result * (&node)[i].value;
  }
  return result;
}

std::string text(const SymInt& value) {
  if (value.is_overflow()) return "overflow";
  if (value.is_constant()) return absl::StrCat(value.value());
  const int64_t divisor = value.divisor();
  return divisor == 1 ? "?" : absl::StrCat("?{div=", divisor, "}");
}

void append_text(const TupleNode& node, std::string* out) {
  if (node.is_tuple()) {
    absl::StrAppend(out, "(");
    const char* separator = "";
    for (const TupleNode& child : Elements(node)) {
      absl::StrAppend(out, separator);
      append_text(child, out);
      separator = ",";
    }
    absl::StrAppend(out, ")");
  } else if (!node.is_int()) {
    absl::StrAppend(out, "_");
  } else {
    absl::StrAppend(out, text(node.value));
    for (int i = node.path_length; i > 0; --i) {
      absl::StrAppend(out, "@", static_cast<int>(node.path[i - 1]));
    }
  }
}

std::string text(const TupleNode& node) {
  std::string result;
  append_text(node, &result);
  return result;
}

// --- Making ---------------------------------------------------------------------------------

void TupleBuilder::add_scaled(const TupleNode& leaf, const SymInt& factor) {
  TupleNode& node = nodes_.emplace_back(leaf);
  node.value = leaf.value * factor;
}

size_t TupleBuilder::open() {
  nodes_.emplace_back().kind = TupleNode::Kind::kTuple;
  return nodes_.size() - 1;
}

void TupleBuilder::close(size_t tuple) {
  uint32_t rank = 0;
  for (size_t i = tuple + 1; i < nodes_.size(); i += nodes_[i].span) ++rank;
  nodes_[tuple].rank = rank;
  nodes_[tuple].span = static_cast<uint32_t>(nodes_.size() - tuple);
}

IntTuple TupleBuilder::build(SourceLoc loc) {
  if (nodes_.size() > kMostNodes) {
    return fail(loc, absl::StrCat("a tuple of more than ", kMostNodes, " numbers"),
                "use fewer modes");
  }
  for (const TupleNode& node : nodes_) {
    if (node.value.is_overflow()) {
      return fail(loc, "a layout's number does not fit 64 bits", "use smaller shapes and strides");
    }
  }
  if (!nodes_.front().is_tuple()) return build(nodes_.front());
  auto* const rep = new TupleRep;
  rep->nodes.assign(std::make_move_iterator(nodes_.begin()), std::make_move_iterator(nodes_.end()));
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple TupleBuilder::build(const TupleNode& node) {
  if (!node.is_tuple()) {
    IntTuple leaf(0);
    leaf.node_ = node;
    return leaf;
  }
  auto* const rep = new TupleRep;
  rep->nodes.assign(&node, &node + node.span);
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple TupleBuilder::failed(std::string error) {
  auto* const rep = new TupleRep;
  rep->nodes.emplace_back();
  rep->error = std::move(error);
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple fail(SourceLoc loc, std::string what, const std::string& fix) {
  std::string error = absl::StrCat(what, "; ", fix);
  if (Trace* const trace = Trace::current()) trace->report(loc, std::move(what), fix);
  return TupleBuilder::failed(std::move(error));
}

namespace {

// The sum of two leaves or tuples as coordinates. A basis stride is the coordinate whose element at
// its path is its factor.
void add_coordinates(const TupleNode& a, int skip_a, const TupleNode& b, int skip_b,
                     TupleBuilder* out);

// How many elements a coordinate has; 0 for the number 0, which is a coordinate of any rank.
int coordinate_rank(const TupleNode& node, int skip) {
  if (node.is_tuple()) return static_cast<int>(node.rank);
  return node.path_length > skip ? node.path[skip] + 1 : 0;
}

const TupleNode& zero_node() {
  static const TupleNode& zero = *new TupleNode;
  return zero;
}

// An element of a coordinate, and how much of its path is used up.
const TupleNode& coordinate_element(const TupleNode& node, int* skip, int mode) {
  if (mode >= coordinate_rank(node, *skip)) {
    *skip = 0;
    return zero_node();
  }
  if (node.is_tuple()) {
    *skip = 0;
    return element(node, mode);
  }
  if (node.path[*skip] != mode) {
    *skip = 0;
    return zero_node();
  }
  ++*skip;
  return node;
}

void add_coordinates(const TupleNode& a, int skip_a, const TupleNode& b, int skip_b,
                     TupleBuilder* out) {
  const int rank_a = coordinate_rank(a, skip_a), rank_b = coordinate_rank(b, skip_b);
  const int rank = std::max(rank_a, rank_b);
  if (rank == 0) return out->add(a.value + b.value);
  // A number is no coordinate, but for 0.
  for (const auto& [node, own_rank] : {std::pair(&a, rank_a), std::pair(&b, rank_b)}) {
    if (own_rank == 0 && !node->value.is_constant(0)) return out->add(SymInt::overflow());
  }
  const size_t tuple = out->open();
  for (int mode = 0; mode < rank; ++mode) {
    int next_a = skip_a, next_b = skip_b;
    const TupleNode& x = coordinate_element(a, &next_a, mode);
    const TupleNode& y = coordinate_element(b, &next_b, mode);
    add_coordinates(x, next_a, y, next_b, out);
  }
  out->close(tuple);
}

}  // namespace
}  // namespace detail

using detail::Elements;
using detail::TupleBuilder;
using detail::TupleNode;

// --- IntTuple -------------------------------------------------------------------------------

IntTuple::IntTuple(std::initializer_list<IntTuple> elements) {
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const IntTuple& element : elements) {
    if (!element.ok()) {
      *this = element;
      return;
    }
    builder.add(element);
  }
  builder.close(tuple);
  *this = builder.build();
}

void IntTuple::keep() const { ++rep_->uses; }
void IntTuple::drop() {
  if (--rep_->uses == 0) delete rep_;
}
const TupleNode& IntTuple::first_of_rep() const { return rep_->nodes.front(); }

const std::string& IntTuple::error() const {
  static const std::string& none = *new std::string;
  return rep_ == nullptr ? none : rep_->error;
}

std::string IntTuple::to_string() const {
  return ok() ? detail::text(node()) : absl::StrCat("error: ", error());
}

bool operator==(const IntTuple& a, const IntTuple& b) {
  const TupleNode& x = a.node();
  const TupleNode& y = b.node();
  if (!a.ok() || !b.ok() || !detail::congruent(x, y)) return false;
  for (uint32_t i = 0; i < x.span; ++i) {
    if (!detail::same_leaf((&x)[i], (&y)[i])) return false;
  }
  return true;
}

IntTuple E(std::initializer_list<int> path, const SymInt& factor) {
  if (path.size() > TupleNode::kMaxPath) {
    return detail::fail({}, absl::StrCat("a basis stride of ", path.size(), " modes"),
                        absl::StrCat("there are at most ", int{TupleNode::kMaxPath}));
  }
  TupleNode node;
  node.value = factor;
  for (const int mode : path) {
    if (mode < 0 || mode > 255) {
      return detail::fail({}, absl::StrCat("a basis stride of mode ", mode), "modes are 0 to 255");
    }
    node.path[node.path_length++] = static_cast<uint8_t>(mode);
  }
  return TupleBuilder::build(node);
}

// --- Questions ------------------------------------------------------------------------------

int rank(const IntTuple& t) { return detail::rank_of(t.node()); }

namespace {

int depth_of(const TupleNode& node) {
  if (!node.is_tuple()) return 0;
  int deepest = 0;
  for (const TupleNode& child : Elements(node)) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

bool weakly_congruent(const TupleNode& a, const TupleNode& b) {
  if (!a.is_tuple()) return true;
  if (!b.is_tuple() || a.rank != b.rank) return false;
  auto other = Elements(b).begin();
  for (const TupleNode& child : Elements(a)) {
    if (!weakly_congruent(child, *other)) return false;
    ++other;
  }
  return true;
}

bool compatible(const TupleNode& a, const TupleNode& b) {
  if (!a.is_tuple()) return a.value == detail::product(b);
  if (!b.is_tuple() || a.rank != b.rank) return false;
  auto other = Elements(b).begin();
  for (const TupleNode& child : Elements(a)) {
    if (!compatible(child, *other)) return false;
    ++other;
  }
  return true;
}

}  // namespace

int depth(const IntTuple& t) { return depth_of(t.node()); }

SymInt size(const IntTuple& t, SourceLoc loc) {
  if (!t.ok()) return SymInt::overflow();
  const SymInt result = detail::product(t.node());
  if (result.is_overflow() && t.ok()) {
    detail::fail(loc, absl::StrCat("the size of ", t.to_string(), " does not fit 64 bits"),
                 "use a smaller shape");
  }
  return result;
}

bool is_static(const IntTuple& t) {
  const TupleNode& node = t.node();
  return std::all_of(&node, &node + node.span,
                     [](const TupleNode& n) { return !n.is_int() || n.value.is_constant(); });
}

bool has_underscore(const IntTuple& t) {
  const TupleNode& node = t.node();
  return std::any_of(&node, &node + node.span,
                     [](const TupleNode& n) { return n.kind == TupleNode::Kind::kUnderscore; });
}

bool is_congruent(const IntTuple& a, const IntTuple& b) {
  return detail::congruent(a.node(), b.node());
}
bool is_weakly_congruent(const IntTuple& a, const IntTuple& b) {
  return weakly_congruent(a.node(), b.node());
}
bool is_compatible(const IntTuple& a, const IntTuple& b) { return compatible(a.node(), b.node()); }

// --- Parts ----------------------------------------------------------------------------------

IntTuple get(const IntTuple& t, int mode, SourceLoc loc) {
  if (!t.ok()) return t;
  if (mode < 0 || mode >= rank(t)) {
    return detail::fail(loc, absl::StrCat("mode ", mode, " of ", t.to_string()),
                        rank(t) == 0 ? std::string("it has none")
                                     : absl::StrCat("it has modes 0 to ", rank(t) - 1));
  }
  return TupleBuilder::build(detail::element(t.node(), mode));
}

IntTuple get(const IntTuple& t, std::initializer_list<int> path, SourceLoc loc) {
  IntTuple at = t;
  for (const int mode : path) at = get(at, mode, loc);
  return at;
}

IntTuple select(const IntTuple& t, std::initializer_list<int> modes, SourceLoc loc) {
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const int mode : modes) {
    const IntTuple part = get(t, mode, loc);
    if (!part.ok()) return part;
    builder.add(part);
  }
  builder.close(tuple);
  return builder.build();
}

IntTuple front(const IntTuple& t) {
  if (!t.ok()) return t;
  const TupleNode* node = &t.node();
  while (node->is_tuple() && node->rank > 0) ++node;
  return TupleBuilder::build(*node);
}

IntTuple flatten(const IntTuple& t) {
  if (!t.ok() || !t.is_tuple()) return t;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (uint32_t i = 1; i < t.node().span; ++i) {
    const TupleNode& node = (&t.node())[i];
    if (!node.is_tuple()) builder.add(node);
  }
  builder.close(tuple);
  return builder.build();
}

IntTuple wrap(const IntTuple& t) { return t.is_tuple() ? t : IntTuple{t}; }
IntTuple unwrap(const IntTuple& t) { return t.is_tuple() && rank(t) == 1 ? unwrap(get(t, 0)) : t; }

IntTuple group_modes(const IntTuple& t, int begin, int end, SourceLoc loc) {
  if (!t.ok()) return t;
  if (begin < 0 || begin > end || end > rank(t)) {
    return detail::fail(
        loc,
        absl::StrCat("modes ", begin, " to ", end, " of ", t.to_string(), ", which has ", rank(t)),
        "group modes that there are");
  }
  TupleBuilder builder;
  const size_t tuple = builder.open();
  size_t group = 0;
  int mode = 0;
  for (const TupleNode& child : Elements(t)) {
    if (mode == begin && begin < end) group = builder.open();
    builder.add(child);
    if (++mode == end && begin < end) builder.close(group);
  }
  builder.close(tuple);
  return builder.build();
}

IntTuple append(const IntTuple& t, const IntTuple& x, int up_to_rank) {
  if (const IntTuple* failure = detail::first_failure({&t, &x})) return *failure;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const TupleNode& child : Elements(t)) builder.add(child);
  const int times = up_to_rank < 0 ? 1 : up_to_rank - rank(t);
  if (up_to_rank >= 0 && times <= 0) return t;
  for (int i = 0; i < times && builder.count() <= TupleBuilder::kMostNodes; ++i) builder.add(x);
  builder.close(tuple);
  return builder.build();
}

IntTuple prepend(const IntTuple& t, const IntTuple& x, int up_to_rank) {
  if (const IntTuple* failure = detail::first_failure({&t, &x})) return *failure;
  const int times = up_to_rank < 0 ? 1 : up_to_rank - rank(t);
  if (up_to_rank >= 0 && times <= 0) return t;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < times && builder.count() <= TupleBuilder::kMostNodes; ++i) builder.add(x);
  for (const TupleNode& child : Elements(t)) builder.add(child);
  builder.close(tuple);
  return builder.build();
}

IntTuple repeat_as_tuple(const IntTuple& x, int times) {
  if (!x.ok()) return x;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < times && builder.count() <= TupleBuilder::kMostNodes; ++i) builder.add(x);
  builder.close(tuple);
  return builder.build();
}

IntTuple repeat(const IntTuple& x, int times) { return times == 1 ? x : repeat_as_tuple(x, times); }

namespace {

// The tuple with something in the place of each integer or _: replace(node, builder) adds it.
template <class Replace>
void add_replaced(const TupleNode& node, const Replace& replace, TupleBuilder* out) {
  if (!node.is_tuple()) return replace(node, out);
  const size_t tuple = out->open();
  for (const TupleNode& child : Elements(node)) add_replaced(child, replace, out);
  out->close(tuple);
}

}  // namespace

IntTuple repeat_like(const IntTuple& t, const IntTuple& x) {
  if (const IntTuple* failure = detail::first_failure({&t, &x})) return *failure;
  TupleBuilder builder;
  add_replaced(
      t.node(), [&](const TupleNode&, TupleBuilder* out) { out->add(x); }, &builder);
  return builder.build();
}

IntTuple tuple_cat(const IntTuple& a, const IntTuple& b) {
  if (const IntTuple* failure = detail::first_failure({&a, &b})) return *failure;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const TupleNode& child : Elements(a)) builder.add(child);
  for (const TupleNode& child : Elements(b)) builder.add(child);
  builder.close(tuple);
  return builder.build();
}

IntTuple unflatten(const IntTuple& flat, const IntTuple& profile, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&flat, &profile})) return *failure;
  int taken = 0;
  TupleBuilder builder;
  add_replaced(
      profile.node(),
      [&](const TupleNode&, TupleBuilder* out) {
        if (taken < rank(flat)) out->add(detail::element(flat.node(), taken));
        ++taken;
      },
      &builder);
  if (taken == rank(flat)) return builder.build();
  return detail::fail(loc,
                      absl::StrCat("unflatten(", flat.to_string(), ", ", profile.to_string(),
                                   "): the profile has ", taken, " integers"),
                      "give as many elements");
}

int find(const IntTuple& t, const IntTuple& x) {
  int mode = 0;
  for (const TupleNode& child : Elements(t)) {
    if (TupleBuilder::build(child) == x) return mode;
    ++mode;
  }
  return mode;
}

namespace {

// Adds what the coordinate leaves whole, or what it fixes, all in one row; false where the profiles
// differ.
bool add_part(const TupleNode& coord, const TupleNode& t, bool whole, TupleBuilder* out) {
  if (!coord.is_tuple()) {
    if (!coord.is_int() == whole) out->add(t);
    return true;
  }
  if (!t.is_tuple() || coord.rank != t.rank) return false;
  auto element = Elements(t).begin();
  for (const TupleNode& child : Elements(coord)) {
    if (!add_part(child, *element, whole, out)) return false;
    ++element;
  }
  return true;
}

IntTuple part(const IntTuple& coord, const IntTuple& t, bool whole, const char* name,
              SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&coord, &t})) return *failure;
  TupleBuilder builder;
  if (!coord.is_tuple()) {
    if (!coord.is_int() == whole) return t;
    return {};
  }
  const size_t tuple = builder.open();
  if (!add_part(coord.node(), t.node(), whole, &builder)) {
    return detail::fail(
        loc,
        absl::StrCat(name, "(", coord.to_string(), ", ", t.to_string(), "): the profiles differ"),
        "give each mode an index, a tuple of its own profile or _");
  }
  builder.close(tuple);
  return builder.build();
}

}  // namespace

IntTuple slice(const IntTuple& coord, const IntTuple& t, SourceLoc loc) {
  return part(coord, t, true, "slice", loc);
}
IntTuple dice(const IntTuple& coord, const IntTuple& t, SourceLoc loc) {
  return part(coord, t, false, "dice", loc);
}

// --- Arithmetic -----------------------------------------------------------------------------

IntTuple product_each(const IntTuple& t) {
  if (!t.ok()) return t;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const TupleNode& child : Elements(t)) builder.add(detail::product(child));
  builder.close(tuple);
  return builder.build();
}

namespace {

bool add_products(const TupleNode& t, const TupleNode& guide, TupleBuilder* out) {
  if (!guide.is_tuple()) {
    out->add(detail::product(t));
    return true;
  }
  if (!t.is_tuple() || t.rank != guide.rank) return false;
  const size_t tuple = out->open();
  auto element = Elements(t).begin();
  for (const TupleNode& child : Elements(guide)) {
    if (!add_products(*element, child, out)) return false;
    ++element;
  }
  out->close(tuple);
  return true;
}

}  // namespace

IntTuple product_like(const IntTuple& t, const IntTuple& guide, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&t, &guide})) return *failure;
  TupleBuilder builder;
  if (add_products(t.node(), guide.node(), &builder)) return builder.build(loc);
  return detail::fail(loc,
                      absl::StrCat("product_like(", t.to_string(), ", ", guide.to_string(),
                                   "): the profiles differ"),
                      "give a guide that is weakly congruent");
}

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
      rest = next.build().value();
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
        loc, absl::StrCat(kind.name, "(", a.to_string(), ", ", b.to_string(), "): ", what),
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
                        absl::StrCat("round_up(", a.to_string(), ", ", b.to_string(),
                                     "): a tuple is rounded by a tuple"),
                        "give a number for each mode");
  }
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < rank(a); ++i) {
    builder.add(i < rank(b) ? round_up(get(a, i), get(b, i), loc) : get(a, i));
  }
  builder.close(tuple);
  return builder.build(loc);
}

bool elem_less(const IntTuple& a, const IntTuple& b) {
  if (!detail::congruent(a.node(), b.node())) return false;
  for (uint32_t i = 0; i < a.node().span; ++i) {
    const TupleNode& x = (&a.node())[i];
    if (x.is_int() && !always_less(x.value, (&b.node())[i].value)) return false;
  }
  return true;
}

IntTuple operator+(const IntTuple& a, const IntTuple& b) {
  if (const IntTuple* failure = detail::first_failure({&a, &b})) return *failure;
  TupleBuilder builder;
  detail::add_coordinates(a.node(), 0, b.node(), 0, &builder);
  return builder.build();
}

IntTuple elem_scale(const IntTuple& t, const SymInt& by) {
  if (!t.ok()) return t;
  absl::InlinedVector<TupleNode, 12> nodes(&t.node(), &t.node() + t.node().span);
  for (TupleNode& node : nodes) {
    if (node.is_int()) node.value = node.value * by;
  }
  TupleBuilder builder;
  builder.add(nodes.front());
  return builder.build();
}

// --- Coordinates ----------------------------------------------------------------------------

namespace {

// An index, and, where there are basis strides, a coordinate.
struct IndexSum {
  SymInt index = 0;
  IntTuple coordinate = 0;

  void add(const SymInt& times, const TupleNode& stride) {
    if (!stride.is_basis()) {
      index = index + times * stride.value;
    } else {
      coordinate = coordinate + elem_scale(TupleBuilder::build(stride), times);
    }
  }
};

// Adds coord's index to *sum; false where the profiles differ.
bool add_index(const TupleNode& coord, const TupleNode& shape, const TupleNode& stride,
               IndexSum* sum) {
  if (coord.is_tuple()) {
    if (!shape.is_tuple() || coord.rank != shape.rank) return false;
    auto s = Elements(shape).begin();
    auto d = Elements(stride).begin();
    for (const TupleNode& child : Elements(coord)) {
      if (!add_index(child, *s, *d, sum)) return false;
      ++s;
      ++d;
    }
    return true;
  }
  if (!coord.is_int()) return false;
  if (!shape.is_tuple()) {
    sum->add(coord.value, stride);
    return true;
  }
  SymInt rest = coord.value;
  auto d = Elements(stride).begin();
  uint32_t left = shape.rank;
  for (const TupleNode& child : Elements(shape)) {
    TupleNode part;
    if (--left == 0) {
      part.value = rest;
    } else {
      const SymInt count = detail::product(child);
      part.value = mod(rest, count);
      rest = floor_div(rest, count);
    }
    if (!add_index(part, child, *d, sum)) return false;
    ++d;
  }
  return true;
}

}  // namespace

IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&coord, &shape, &stride})) return *failure;
  IndexSum sum;
  if (!is_congruent(shape, stride)) {
    return detail::fail(loc,
                        absl::StrCat("shape ", shape.to_string(), " and stride ",
                                     stride.to_string(), " differ in profile"),
                        "give each mode a stride");
  }
  if (!add_index(coord.node(), shape.node(), stride.node(), &sum)) {
    return detail::fail(loc,
                        absl::StrCat("coordinate ", coord.to_string(), " does not fit the shape ",
                                     shape.to_string()),
                        "give one index, or one for each mode");
  }
  const bool plain = sum.coordinate.is_int() && sum.coordinate.value().is_constant(0);
  if (!plain && !sum.index.is_constant(0)) {
    return detail::fail(
        loc, absl::StrCat("stride ", stride.to_string(), " has plain strides beside basis strides"),
        "let all strides be one or the other");
  }
  const IntTuple result = plain ? IntTuple(sum.index) : sum.coordinate;
  if (result.ok() && !(result.is_int() && result.value().is_overflow())) return result;
  return detail::fail(
      loc,
      absl::StrCat("the index of ", coord.to_string(), " in ", shape.to_string(),
                   " does not fit 64 bits, or may be negative, or a mode has no elements"),
      "use smaller and positive numbers");
}

IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape, SourceLoc loc) {
  if (coord.is_int()) return coord;
  // Column-major with true strides, for modes of one element may be left by coordinates.
  TupleBuilder builder;
  SymInt stride = 1;
  absl::InlinedVector<std::pair<size_t, const TupleNode*>, 8> open;
  for (uint32_t i = 0; i < shape.node().span; ++i) {
    const TupleNode& node = (&shape.node())[i];
    while (!open.empty() && &node == open.back().second) {
      builder.close(open.back().first);
      open.pop_back();
    }
    if (node.is_tuple()) {
      open.emplace_back(builder.open(), &node + node.span);
    } else {
      builder.add(stride);
      stride = stride * node.value;
    }
  }
  for (; !open.empty(); open.pop_back()) builder.close(open.back().first);
  return crd2idx(coord, shape, builder.build(loc), loc);
}

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&index, &shape})) return *failure;
  if (!shape.is_tuple()) {
    if (index.is_int()) return index;
  } else if (index.is_int()) {
    TupleBuilder builder;
    const size_t tuple = builder.open();
    SymInt rest = index.value();
    int left = rank(shape);
    for (const TupleNode& child : Elements(shape)) {
      const SymInt count = detail::product(child);
      const SymInt part = --left == 0 ? rest : mod(rest, count);
      if (left != 0) rest = floor_div(rest, count);
      builder.add(idx2crd(part, TupleBuilder::build(child), loc));
    }
    builder.close(tuple);
    return builder.build(loc);
  } else if (index.is_tuple() && rank(index) == rank(shape)) {
    TupleBuilder builder;
    const size_t tuple = builder.open();
    for (int i = 0; i < rank(shape); ++i) {
      const IntTuple part = idx2crd(get(index, i), get(shape, i), loc);
      if (!part.ok()) return part;
      builder.add(part);
    }
    builder.close(tuple);
    return builder.build(loc);
  }
  return detail::fail(
      loc, absl::StrCat("index ", index.to_string(), " does not fit the shape ", shape.to_string()),
      "give one index, or one for each mode");
}

IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to, SourceLoc loc) {
  const IntTuple index = crd2idx(coord, from, loc);
  return index.ok() ? idx2crd(index, to, loc) : index;
}

IntTuple increment_coord(const IntTuple& coord, const IntTuple& shape, SourceLoc loc) {
  const IntTuple index = crd2idx(coord, shape, loc);
  if (!index.ok()) return index;
  return idx2crd(mod(index.value() + 1, size(shape, loc)), shape, loc);
}

// --- Strides --------------------------------------------------------------------------------

namespace {

// The shape with its integers, visited in an order, replaced by strides.
template <class Order>
IntTuple compact(const IntTuple& shape, const Order& order) {
  if (!shape.ok()) return shape;
  absl::InlinedVector<TupleNode, 12> nodes(&shape.node(), &shape.node() + shape.node().span);
  SymInt stride = 1;
  for (const uint32_t i : order) {
    if (!nodes[i].is_int()) continue;
    const SymInt extent = nodes[i].value;
    nodes[i].value = extent.is_constant(1) ? SymInt(0) : stride;
    stride = stride * extent;
  }
  TupleBuilder builder;
  builder.add(nodes.front());
  return builder.build();
}

absl::InlinedVector<uint32_t, 12> positions(const IntTuple& t) {
  absl::InlinedVector<uint32_t, 12> order(t.node().span);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

void add_basis(const TupleNode& shape, TupleNode* basis, TupleBuilder* out) {
  if (!shape.is_tuple()) return out->add(*basis);
  const size_t tuple = out->open();
  uint8_t mode = 0;
  for (const TupleNode& child : Elements(shape)) {
    if (basis->path_length < TupleNode::kMaxPath) basis->path[basis->path_length] = mode++;
    ++basis->path_length;
    add_basis(child, basis, out);
    --basis->path_length;
  }
  out->close(tuple);
}

}  // namespace

IntTuple compact_col_major(const IntTuple& shape) { return compact(shape, positions(shape)); }

IntTuple compact_row_major(const IntTuple& shape) {
  auto order = positions(shape);
  std::reverse(order.begin(), order.end());
  return compact(shape, order);
}

IntTuple compact_order(const IntTuple& shape, const IntTuple& order, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&shape, &order})) return *failure;
  if (!is_weakly_congruent(order, shape)) {
    return detail::fail(loc,
                        absl::StrCat("the order ", order.to_string(), " does not fit the shape ",
                                     shape.to_string()),
                        "give each mode a number");
  }
  // What lies below one number of the order is column-major, and starts where all of smaller
  // numbers end: those of equal numbers start at the same place. Unknown numbers come last, in
  // order.
  struct Group {
    int64_t key;
    size_t begin;
    SymInt size;
  };
  absl::InlinedVector<Group, 8> groups;
  int64_t unknown = INT64_MAX / 2;
  const auto collect = [&](const auto& self, const TupleNode& by, const TupleNode& of) -> void {
    if (!by.is_tuple()) {
      const int64_t key = by.value.is_constant() ? by.value.value() : unknown++;
      groups.push_back({key, static_cast<size_t>(&of - &shape.node()), detail::product(of)});
      return;
    }
    auto child = Elements(of).begin();
    for (const TupleNode& next : Elements(by)) {
      self(self, next, *child);
      ++child;
    }
  };
  collect(collect, order.node(), shape.node());
  absl::InlinedVector<TupleNode, 12> nodes(&shape.node(), &shape.node() + shape.node().span);
  for (const Group& group : groups) {
    SymInt stride = 1;
    for (const Group& other : groups) {
      if (other.key < group.key) stride = stride * other.size;
    }
    const size_t end = group.begin + (&shape.node())[group.begin].span;
    for (size_t i = group.begin; i < end; ++i) {
      if (!nodes[i].is_int()) continue;
      const SymInt extent = nodes[i].value;
      nodes[i].value = extent.is_constant(1) ? SymInt(0) : stride;
      stride = stride * extent;
    }
  }
  TupleBuilder builder;
  builder.add(nodes.front());
  return builder.build(loc);
}

IntTuple make_basis_like(const IntTuple& shape) {
  if (!shape.ok()) return shape;
  const TupleNode& top = shape.node();
  if (std::any_of(&top, &top + top.span, [](const TupleNode& n) { return n.rank > 256; })) {
    return detail::fail({}, absl::StrCat("a basis for a shape of more than 256 modes"),
                        "group some of them");
  }
  if (depth(shape) > TupleNode::kMaxPath) {
    return detail::fail({}, absl::StrCat("a basis for ", shape.to_string()),
                        absl::StrCat("shapes may be ", int{TupleNode::kMaxPath}, " tuples deep"));
  }
  TupleNode basis;
  basis.value = 1;
  TupleBuilder builder;
  add_basis(shape.node(), &basis, &builder);
  return builder.build();
}

IntTuple basis_get(const IntTuple& stride, const IntTuple& t, SourceLoc loc) {
  IntTuple at = t;
  for (int i = 0; i < stride.node().path_length; ++i) at = get(at, stride.node().path[i], loc);
  return at;
}

}  // namespace heddle
