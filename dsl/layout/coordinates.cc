// Coordinates and indices, and the strides between them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/dsl/layout/modes_internal.h"

namespace heddle {

using detail::Elements;
using detail::Part;
using detail::TupleBuilder;
using detail::TupleNode;

// --- Sums -----------------------------------------------------------------------------------

namespace {

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

// The sum of two leaves or tuples as coordinates. A basis stride is the coordinate whose element at
// its path is its factor.
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

IntTuple operator+(const IntTuple& a, const IntTuple& b) {
  if (const IntTuple* failure = detail::first_failure({&a, &b})) return *failure;
  TupleBuilder builder;
  add_coordinates(a.node(), 0, b.node(), 0, &builder);
  return builder.build();
}

// --- Indices --------------------------------------------------------------------------------

void detail::IndexSum::add(const SymInt& times, const TupleNode& stride) {
  if (!stride.is_basis()) {
    index_ = index_ + times * stride.value;
  } else {
    coordinate_ = coordinate_ + elem_scale(TupleBuilder::build(stride), times);
  }
}

IntTuple detail::IndexSum::total(const IntTuple& coord, const IntTuple& shape,
                                 const IntTuple& stride, SourceLoc loc) const {
  const bool plain = coordinate_.is_int() && coordinate_.value().is_constant(0);
  if (!plain && !index_.is_constant(0)) {
    return fail(
        loc,
        absl::StrCat("stride ", detail::text(stride), " has plain strides beside basis strides"),
        "let all strides be one or the other");
  }
  const IntTuple result = plain ? IntTuple(index_) : coordinate_;
  if (result.ok() && !(result.is_int() && result.value().is_overflow())) return result;
  return fail(loc,
              absl::StrCat("the index of ", detail::text(coord), " in ", detail::text(shape),
                           " does not fit 64 bits, or may be negative, or a mode has no elements"),
              "use smaller and positive numbers");
}

namespace {

constexpr char kOneForEachMode[] = "give one index, or one for each mode";

IntTuple fail_profile(const IntTuple& shape, const IntTuple& stride, SourceLoc loc) {
  return detail::fail(loc,
                      absl::StrCat("shape ", detail::text(shape), " and stride ",
                                   detail::text(stride), " differ in profile"),
                      "give each mode a stride");
}

// A whole mode starts at 0.
IntTuple from_whole(const IntTuple& coord) {
  if (!has_underscore(coord)) return coord;
  return transform_leaf(coord, [](const IntTuple& x) { return x.is_underscore() ? 0 : x; });
}

// Adds coord's index to *sum; false where the profiles differ.
bool add_index(const TupleNode& coord, const TupleNode& shape, const TupleNode& stride,
               detail::IndexSum* sum) {
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

IntTuple detail::index_of(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                          SourceLoc loc) {
  if (const IntTuple* failure = first_failure({&coord, &shape, &stride})) return *failure;
  IndexSum sum;
  if (!is_congruent(shape, stride)) return fail_profile(shape, stride, loc);
  if (!add_index(coord.node(), shape.node(), stride.node(), &sum)) {
    return fail(loc,
                absl::StrCat("coordinate ", text(coord), " does not fit the shape ", text(shape)),
                has_underscore(coord) ? "give one index, or one for each mode; slice() takes _"
                                      : kOneForEachMode);
  }
  return sum.total(coord, shape, stride, loc);
}

IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc) {
  return detail::index_of(from_whole(coord), shape, stride, loc);
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

namespace {

IntTuple fail_index(const IntTuple& index, const IntTuple& shape, SourceLoc loc) {
  return detail::fail(
      loc,
      absl::StrCat("index ", detail::text(index), " does not fit the shape ", detail::text(shape)),
      kOneForEachMode);
}

// A coordinate made mode by mode: make(i) is that of mode i.
template <class Make>
IntTuple each_mode(int modes, const Make& make, SourceLoc loc) {
  TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < modes; ++i) {
    const IntTuple part = make(i);
    if (!part.ok()) return part;
    builder.add(part);
  }
  builder.close(tuple);
  return builder.build(loc);
}

}  // namespace

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&index, &shape})) return *failure;
  if (!shape.is_tuple()) return index.is_tuple() ? fail_index(index, shape, loc) : index;
  if (index.is_tuple()) {
    if (rank(index) != rank(shape)) return fail_index(index, shape, loc);
    return each_mode(
        rank(shape), [&](int i) { return idx2crd(get(index, i), get(shape, i), loc); }, loc);
  }
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
}

namespace {

// Column-major strides from one on.
IntTuple strides_from(const SymInt& first, const IntTuple& shape) {
  return elem_scale(compact_col_major(shape), first);
}

}  // namespace

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc) {
  if (const IntTuple* failure = detail::first_failure({&index, &shape, &stride})) return *failure;
  if (shape.is_tuple() && stride.is_int() && !stride.node().is_basis()) {
    return idx2crd(index, shape, strides_from(stride.value(), shape), loc);
  }
  if (!is_congruent(shape, stride)) return fail_profile(shape, stride, loc);
  if (shape.is_tuple()) {
    if (index.is_tuple() && rank(index) != rank(shape)) return fail_index(index, shape, loc);
    const auto of = [&](int i) { return index.is_tuple() ? get(index, i) : index; };
    return each_mode(
        rank(shape), [&](int i) { return idx2crd(of(i), get(shape, i), get(stride, i), loc); },
        loc);
  }
  if (index.is_tuple()) return fail_index(index, shape, loc);
  if (shape.value().is_constant(1)) return 0;  // whatever its stride
  if (stride.node().is_basis() || stride.value().least() < 1) {
    return detail::fail(loc,
                        absl::StrCat("the stride ", detail::text(stride), " of ",
                                     detail::text(shape), " elements tells no coordinate"),
                        "use positive strides: idx2crd() divides by them");
  }
  return mod(floor_div(index.value(), stride.value()), shape.value());
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

// --- Slices ---------------------------------------------------------------------------------

bool detail::Slicer::add(const TupleNode& coord, Part part) {
  if (coord.is_int()) return add_index(coord, part.shape(), part.stride(), &fixed_);
  if (!coord.is_tuple()) {
    whole_.add(part);
    return true;
  }
  if (!part.is_tuple() || static_cast<int>(coord.rank) != part.rank()) return false;
  bool fits = true;
  auto at = Elements(coord).begin();
  part.for_each([&](Part mode) {
    fits = fits && add(*at, mode);
    ++at;
  });
  return fits;
}

std::pair<Layout, IntTuple> detail::Slicer::result(const IntTuple& coord, const Layout& layout,
                                                   SourceLoc loc) {
  const Layout whole = whole_.build(loc);
  if (!whole.ok()) return {whole, whole.shape()};
  const IntTuple offset = fixed_.total(coord, layout.shape(), layout.stride(), loc);
  if (!offset.ok()) return {failed_layout(offset), offset};
  if (!layout.is_composed()) return {whole, offset};
  return {moved_layout(layout, offset, whole, loc), 0};
}

std::pair<Layout, IntTuple> slice_and_offset(const IntTuple& coord, const Layout& layout,
                                             SourceLoc loc) {
  if (!layout.ok()) return {layout, layout.shape()};
  if (!coord.ok()) return {detail::failed_layout(coord), coord};
  detail::Slicer slicer;
  // One mode is the layout itself; several are a row.
  const size_t tuple = coord.is_underscore() ? 0 : slicer.whole().open();
  if (!slicer.add(coord.node(), layout)) {
    const auto text = [&] { return detail::call_text("slice", coord, layout); };
    detail::Call call(text, loc);
    call.fail("the profiles differ", "give each mode an index, a tuple of its own profile or _");
    return {call.failure(), call.failure().shape()};
  }
  if (!coord.is_underscore()) slicer.whole().close(tuple);
  return slicer.result(coord, layout, loc);
}

Layout slice(const IntTuple& coord, const Layout& layout, SourceLoc loc) {
  return slice_and_offset(coord, layout, loc).first;
}

// --- Strides --------------------------------------------------------------------------------

namespace {

// Replaces an extent by its stride, and steps that on.
void set_stride(SymInt* extent, SymInt* stride) {
  const SymInt next = *stride * *extent;
  *extent = extent->is_constant(1) ? SymInt(0) : std::move(*stride);
  *stride = next;
}

// The shape with its integers, visited in an order, replaced by strides.
IntTuple compact(const IntTuple& shape, absl::Span<const uint32_t> order) {
  if (!shape.ok()) return shape;
  if (shape.is_int()) return shape.value().is_constant(1) ? 0 : 1;
  TupleBuilder builder;
  builder.add(shape);
  const absl::Span<TupleNode> nodes = builder.nodes();
  SymInt stride = 1;
  for (const uint32_t i : order) {
    if (nodes[i].is_int()) set_stride(&nodes[i].value, &stride);
  }
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
                        absl::StrCat("the order ", detail::text(order), " does not fit the shape ",
                                     detail::text(shape)),
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
  TupleBuilder builder;
  builder.add(shape);
  const absl::Span<TupleNode> nodes = builder.nodes();
  for (const Group& group : groups) {
    SymInt stride = 1;
    for (const Group& other : groups) {
      if (other.key < group.key) stride = stride * other.size;
    }
    const size_t end = group.begin + (&shape.node())[group.begin].span;
    for (size_t i = group.begin; i < end; ++i) {
      if (nodes[i].is_int()) set_stride(&nodes[i].value, &stride);
    }
  }
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
    return detail::fail({}, absl::StrCat("a basis for ", detail::text(shape)),
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
