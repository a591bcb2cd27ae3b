#include "heddle/dsl/layout/int_tuple.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle {

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

void IntTuple::drop() {
  // The last one needs no locked instruction.
  if (__atomic_load_n(&rep_->uses, __ATOMIC_ACQUIRE) != 1 &&
      __atomic_fetch_sub(&rep_->uses, 1, __ATOMIC_ACQ_REL) != 1) {
    return;
  }
  if (rep_->symbolic) std::destroy_n(rep_->nodes(), rep_->count);
  delete rep_->error;
  ::operator delete(rep_);
}

const std::string& IntTuple::error() const {
  static const std::string& none = *new std::string;
  return ok() ? none : *rep_->error;
}

std::string IntTuple::to_string() const { return detail::without_names(detail::text(*this)); }

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
    detail::fail(loc, absl::StrCat("the size of ", detail::text(t), " does not fit 64 bits"),
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

IntTuple get_divisibility(const IntTuple& t) {
  return transform_leaf(
      t, [](const IntTuple& x) { return x.is_int() ? IntTuple(x.value().divisor()) : x; });
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
    return detail::fail(loc, absl::StrCat("mode ", mode, " of ", detail::text(t)),
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

IntTuple flatten_to_tuple(const IntTuple& t) { return flatten(wrap(t)); }

IntTuple wrap(const IntTuple& t) { return t.is_tuple() ? t : repeat_as_tuple(t, 1); }
IntTuple unwrap(const IntTuple& t) { return t.is_tuple() && rank(t) == 1 ? unwrap(get(t, 0)) : t; }

IntTuple group_modes(const IntTuple& t, int begin, int end, SourceLoc loc) {
  if (!t.ok()) return t;
  if (begin < 0 || begin >= end || end > rank(t)) {
    return detail::fail(loc,
                        absl::StrCat("group_modes(", detail::text(t), ", ", begin, ", ", end,
                                     "): modes ", begin, " up to ", end, " of ", rank(t)),
                        "group at least one of the modes that there are: begin < end");
  }
  TupleBuilder builder;
  const size_t tuple = builder.open();
  size_t group = 0;
  int mode = 0;
  for (const TupleNode& child : Elements(t)) {
    if (mode == begin) group = builder.open();
    builder.add(child);
    if (++mode == end) builder.close(group);
  }
  builder.close(tuple);
  return builder.build();
}

namespace {

IntTuple extended(const IntTuple& t, const IntTuple& x, int up_to_rank, bool in_front) {
  if (const IntTuple* failure = detail::first_failure({&t, &x})) return *failure;
  const int times = up_to_rank < 0 ? 1 : up_to_rank - rank(t);
  if (times <= 0) return t;
  const IntTuple others = repeat_as_tuple(x, times);
  return in_front ? tuple_cat(others, t) : tuple_cat(t, others);
}

}  // namespace

IntTuple append(const IntTuple& t, const IntTuple& x, int up_to_rank) {
  return extended(t, x, up_to_rank, false);
}
IntTuple prepend(const IntTuple& t, const IntTuple& x, int up_to_rank) {
  return extended(t, x, up_to_rank, true);
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

// The tuple with something in the place of each integer or _: replace(node, what `beside` has
// there, builder) adds it. False where that has other profiles.
template <class Replace>
bool add_replaced(const TupleNode& node, const TupleNode& beside, const Replace& replace,
                  TupleBuilder* out) {
  if (!node.is_tuple()) {
    replace(node, beside, out);
    return true;
  }
  if (!beside.is_tuple() || beside.rank != node.rank) return false;
  const size_t tuple = out->open();
  auto other = Elements(beside).begin();
  for (const TupleNode& child : Elements(node)) {
    if (!add_replaced(child, *other, replace, out)) return false;
    ++other;
  }
  out->close(tuple);
  return true;
}
template <class Replace>
void add_replaced(const TupleNode& node, const Replace& replace, TupleBuilder* out) {
  const auto alone = [&](const TupleNode& leaf, const TupleNode&, TupleBuilder* to) {
    replace(leaf, to);
  };
  add_replaced(node, node, alone, out);
}

// What a function makes of nodes, and the first mistake in that.
class Transformation {
 public:
  explicit Transformation(const detail::TupleFunction& f) : f_(f) {}

  void add(const TupleNode& a, const TupleNode& b, TupleBuilder* out) {
    const IntTuple result = f_.call(f_.function, TupleBuilder::build(a), TupleBuilder::build(b));
    if (!result.ok() && failure_.ok()) failure_ = result;
    out->add(result);
  }
  IntTuple result(TupleBuilder* builder) const {
    return failure_.ok() ? builder->build() : failure_;
  }

 private:
  const detail::TupleFunction& f_;
  IntTuple failure_ = 0;
};

}  // namespace

IntTuple repeat_like(const IntTuple& t, const IntTuple& x) {
  if (const IntTuple* failure = detail::first_failure({&t, &x})) return *failure;
  TupleBuilder builder;
  add_replaced(
      t.node(), [&](const TupleNode&, TupleBuilder* out) { out->add(x); }, &builder);
  return builder.build();
}

IntTuple detail::transform_leaf(const IntTuple& a, const IntTuple& b, const TupleFunction& f,
                                SourceLoc loc) {
  if (const IntTuple* failure = first_failure({&a, &b})) return *failure;
  Transformation transformation(f);
  TupleBuilder builder;
  const auto replace = [&](const TupleNode& x, const TupleNode& y, TupleBuilder* out) {
    transformation.add(x, y, out);
  };
  if (add_replaced(a.node(), b.node(), replace, &builder)) return transformation.result(&builder);
  return fail(loc,
              absl::StrCat("transform_leaf(", text(a), ", ", text(b), "): the profiles differ"),
              "give a second tuple that the first is weakly congruent to");
}

IntTuple detail::transform_elements(const IntTuple& a, const IntTuple& b, const TupleFunction& f,
                                    SourceLoc loc) {
  if (const IntTuple* failure = first_failure({&a, &b})) return *failure;
  if (!a.is_tuple()) {
    return transform_elements(repeat_as_tuple(a, 1), repeat_as_tuple(b, 1), f, loc);
  }
  if (rank(a) != rank(b)) {
    return fail(
        loc, absl::StrCat(text(a), " has ", rank(a), " elements and ", text(b), " has ", rank(b)),
        "give two tuples of a rank");
  }
  Transformation transformation(f);
  TupleBuilder builder;
  const size_t tuple = builder.open();
  auto other = Elements(b).begin();
  for (const TupleNode& child : Elements(a)) {
    transformation.add(child, *other, &builder);
    ++other;
  }
  builder.close(tuple);
  return transformation.result(&builder);
}

IntTuple detail::joined(const IntTuple& t) {
  if (!t.ok()) return t;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const TupleNode& element : Elements(t)) {
    for (const TupleNode& part : Elements(element)) builder.add(part);
  }
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
                      absl::StrCat("unflatten(", detail::text(flat), ", ", detail::text(profile),
                                   "): the profile has ", taken, " integers"),
                      "give as many elements");
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
    return detail::fail(loc,
                        absl::StrCat(name, "(", detail::text(coord), ", ", detail::text(t),
                                     "): the profiles differ"),
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

// --- Products --------------------------------------------------------------------------------

IntTuple product_each(const IntTuple& t) {
  if (!t.ok()) return t;
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (const TupleNode& child : Elements(t)) builder.add(detail::product(child));
  builder.close(tuple);
  return builder.build();
}

IntTuple product_like(const IntTuple& t, const IntTuple& guide, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&t, &guide})) return *failure;
  TupleBuilder builder;
  const auto add = [](const TupleNode&, const TupleNode& part, TupleBuilder* out) {
    out->add(detail::product(part));
  };
  if (add_replaced(guide.node(), t.node(), add, &builder)) return builder.build(loc);
  return detail::fail(loc,
                      absl::StrCat("product_like(", detail::text(t), ", ", detail::text(guide),
                                   "): the profiles differ"),
                      "give a guide that is weakly congruent");
}

}  // namespace heddle
