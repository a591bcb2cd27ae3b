// Shapes, strides and coordinates: integers, and tuples of them to any depth.
//
//   IntTuple shape = {4, {2, 8}};               // braces make a tuple: (4,(2,8))
//   size(shape)                                 // 64
//   IntTuple slice = {_, {0, _}};               // _ stands for a whole mode
//   E({1, 0}, 2)                                // 2@0@1: a stride that counts in a mode
//
// Names and meanings are CuTe's. A mistake gives a tuple that is not ok() and says why; all that is
// computed from it is not ok() either, and keeps the first reason. Inside a kernel's lambda, the
// mistake is also an error of the kernel, with its line.
//
// Tuples are values: cheap to copy, never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>

#include "heddle/dsl/layout/sym_int.h"
#include "heddle/dsl/trace/source_loc.h"

namespace heddle {

// A whole mode, in coordinates and tilers.
struct Underscore {};
inline constexpr Underscore _{};

namespace detail {

// Tuples lie in memory as they are read: a tuple's node, then those of its elements.
struct TupleNode {
  enum class Kind : uint8_t { kInt, kUnderscore, kTuple };
  static constexpr int kMaxPath = 6;

  Kind kind = Kind::kInt;
  uint8_t path_length = 0;      // kInt: of a basis stride
  uint8_t path[kMaxPath] = {};  // kInt: outermost mode first
  uint32_t rank = 0;            // kTuple: elements
  uint32_t span = 1;            // nodes, this one included
  SymInt value;                 // kInt

  bool is_int() const { return kind == Kind::kInt; }
  bool is_tuple() const { return kind == Kind::kTuple; }
  bool is_basis() const { return path_length != 0; }
};

// A tuple's nodes, which lie behind it and are shared by its copies; or, instead, why there are
// none.
struct TupleRep {
  uint32_t uses = 1;  // counted atomically; <atomic> is too much for every kernel to include
  uint32_t count = 0;
  bool symbolic = false;  // some nodes are no host numbers
  const std::string* error = nullptr;

  TupleNode* nodes() { return reinterpret_cast<TupleNode*>(this + 1); }
};

class TupleBuilder;

}  // namespace detail

// A shape, a stride or a coordinate: an integer, `_`, or a tuple of such to any depth. A value:
// cheap to copy, never changed. A mistake gives a tuple that is not ok().
class IntTuple {
 public:
  // From an integer, `_`, an integer of the kernel, or nothing, which is ().
  IntTuple() : IntTuple(std::initializer_list<IntTuple>{}) {}  // ()
  IntTuple(int value) { node_.value = value; }                 // NOLINT: an integer is one
  IntTuple(int64_t value) { node_.value = value; }             // NOLINT
  IntTuple(SymInt value) { node_.value = static_cast<SymInt&&>(value); }  // NOLINT
  template <detail::TracedInteger X>
  IntTuple(const X& x, SourceLoc loc = SourceLoc::current())  // NOLINT
      : IntTuple(SymInt(x, loc)) {}
  IntTuple(Underscore) { node_.kind = detail::TupleNode::Kind::kUnderscore; }  // NOLINT
  // A tuple of these. One tuple in braces is ambiguous: compilers take it as it is or make a tuple
  // of it (CWG 2137); repeat_as_tuple(t, 1) and wrap(t) are clear.
  IntTuple(std::initializer_list<IntTuple> elements);
  IntTuple(const IntTuple& other) : node_(other.node_), rep_(other.rep_) {
    if (rep_ != nullptr) keep();
  }
  IntTuple(IntTuple&& other) noexcept
      : node_(static_cast<detail::TupleNode&&>(other.node_)), rep_(other.rep_) {
    other.rep_ = nullptr;
  }
  IntTuple& operator=(IntTuple other) noexcept {
    node_ = static_cast<detail::TupleNode&&>(other.node_);
    auto* const mine = rep_;
    rep_ = other.rep_;
    other.rep_ = mine;
    return *this;
  }
  ~IntTuple() {
    if (rep_ != nullptr) drop();
  }

  // Which of the three it is.
  bool is_tuple() const { return node().is_tuple(); }
  bool is_underscore() const { return node().kind == detail::TupleNode::Kind::kUnderscore; }
  bool is_int() const { return node().is_int(); }
  // The integer; of a basis stride, its factor.
  const SymInt& value() const { return node().value; }

  // Whether it was made without a mistake.
  bool ok() const { return rep_ == nullptr || rep_->error == nullptr; }
  // Why it is not ok(): what happened, and how to mend it. Empty where it is.
  const std::string& error() const;

  // In CuTe's notation, without spaces: "(4,(?{div=8},_))".
  std::string to_string() const;
  friend bool operator==(const IntTuple& a, const IntTuple& b);
  // Adds coordinates mode by mode; the shorter one has zeros behind it.
  friend IntTuple operator+(const IntTuple& a, const IntTuple& b);

  const detail::TupleNode& node() const { return rep_ == nullptr ? node_ : *rep_->nodes(); }

 private:
  friend class detail::TupleBuilder;
  explicit IntTuple(detail::TupleRep* rep) : rep_(rep) {}
  void keep() const { __atomic_fetch_add(&rep_->uses, 1, __ATOMIC_RELAXED); }
  void drop();

  detail::TupleNode node_;
  detail::TupleRep* rep_ = nullptr;
};

namespace detail {

// A function of one tuple, which gets it twice, or of two.
struct TupleFunction {
  const void* function;
  IntTuple (*call)(const void* function, const IntTuple& a, const IntTuple& b);
};
template <class F>
TupleFunction of_one(const F& f) {
  return {&f, [](const void* function, const IntTuple& a, const IntTuple&) {
            return IntTuple((*static_cast<const F*>(function))(a));
          }};
}
template <class F>
TupleFunction of_two(const F& f) {
  return {&f, [](const void* function, const IntTuple& a, const IntTuple& b) {
            return IntTuple((*static_cast<const F*>(function))(a, b));
          }};
}

// What a function makes of a's leaves, and of what b has there; and of their elements.
IntTuple transform_leaf(const IntTuple& a, const IntTuple& b, const TupleFunction& f,
                        SourceLoc loc);
IntTuple transform_elements(const IntTuple& a, const IntTuple& b, const TupleFunction& f,
                            SourceLoc loc);
// The elements of all elements.
IntTuple joined(const IntTuple& t);

}  // namespace detail

// An IntTuple by what it is used for.
using Shape = IntTuple;
using Stride = IntTuple;
using Coord = IntTuple;

// A basis stride: a step of `factor` in the mode that a path names, outermost mode first. E({1, 0})
// is 1@0@1.
IntTuple E(std::initializer_list<int> path, const SymInt& factor = 1);

// --- Questions -------------------------------------------------------------------------------

// How many elements a tuple has; 1 for an integer.
int rank(const IntTuple& t);
// How many tuples lie around the innermost integer.
int depth(const IntTuple& t);
// The product of all integers.
SymInt size(const IntTuple& t, SourceLoc loc = SourceLoc::current());
inline SymInt product(const IntTuple& t, SourceLoc loc = SourceLoc::current()) {
  return size(t, loc);
}
// Whether it has no unknown integers.
bool is_static(const IntTuple& t);
// Whether it has a `_`.
bool has_underscore(const IntTuple& t);
// Divisibility: for each integer a number that is known to divide it, which is the integer itself
// where it is a host number. For a kernel's arguments, the answer may become a guard of the
// compiled kernel.
IntTuple get_divisibility(const IntTuple& t);
// Whether two shapes fit together. is_congruent: they have the same profile, that is the same
// nesting. is_weakly_congruent: the same nesting down to where `a` has integers. is_compatible: and
// the same sizes there, so that coordinates of a are coordinates of b.
bool is_congruent(const IntTuple& a, const IntTuple& b);
bool is_weakly_congruent(const IntTuple& a, const IntTuple& b);
bool is_compatible(const IntTuple& a, const IntTuple& b);

// --- Parts -----------------------------------------------------------------------------------

// The element at a mode, or at a mode of a mode …: get(t, {1, 0}).
IntTuple get(const IntTuple& t, int mode, SourceLoc loc = SourceLoc::current());
IntTuple get(const IntTuple& t, std::initializer_list<int> path,
             SourceLoc loc = SourceLoc::current());
// The tuple of these modes, in this order.
IntTuple select(const IntTuple& t, std::initializer_list<int> modes,
                SourceLoc loc = SourceLoc::current());
// The first integer, at any depth.
IntTuple front(const IntTuple& t);
// All integers and _ in one tuple without nesting. flatten() leaves an integer as it is; the others
// make a tuple of it, (4) of 4.
IntTuple flatten(const IntTuple& t);
IntTuple flatten_to_tuple(const IntTuple& t);
inline IntTuple get_leaves(const IntTuple& t) { return flatten_to_tuple(t); }
// A tuple as it is; (4) for 4.
IntTuple wrap(const IntTuple& t);
// Without the tuples around a single element: 4 for (4).
IntTuple unwrap(const IntTuple& t);
// Makes one tuple of the elements [begin, end), of which there must be some.
IntTuple group_modes(const IntTuple& t, int begin, int end, SourceLoc loc = SourceLoc::current());
// Adds x at the end (append) or in front (prepend), until the rank is `up_to_rank`; once without it.
// The _ones forms add 1.
IntTuple append(const IntTuple& t, const IntTuple& x, int up_to_rank = -1);
IntTuple prepend(const IntTuple& t, const IntTuple& x, int up_to_rank = -1);
inline IntTuple append_ones(const IntTuple& t, int up_to_rank = -1) {
  return append(t, 1, up_to_rank);
}
inline IntTuple prepend_ones(const IntTuple& t, int up_to_rank = -1) {
  return prepend(t, 1, up_to_rank);
}
// A tuple of x, `times` times: repeat() gives x itself for once, repeat_as_tuple() always a tuple.
// repeat_like() puts x in the place of each integer of t.
IntTuple repeat(const IntTuple& x, int times);
IntTuple repeat_as_tuple(const IntTuple& x, int times);
IntTuple repeat_like(const IntTuple& t, const IntTuple& x);
// Applies a function to each integer and _, and keeps the nesting. With two tuples, it gets each
// integer of a and what b has there.
//
//   transform_leaf(shape, [](const IntTuple& extent) { return round_up(extent, 4); })
template <class F>
IntTuple transform_leaf(const IntTuple& t, F f) {
  return detail::transform_leaf(t, t, detail::of_one(f), {});
}
template <class F>
IntTuple transform_leaf(const IntTuple& a, const IntTuple& b, F f,
                        SourceLoc loc = SourceLoc::current()) {
  return detail::transform_leaf(a, b, detail::of_two(f), loc);
}
// Applies f to each element, or pair of elements, and g to the tuple of the results. (CuTe's g gets
// them as arguments; here the compiler does not know how many there are.)
//
//   const auto tiles = [](const IntTuple& of, const IntTuple& by) { return ceil_div(of, by); };
//   transform_apply(shape, tile, tiles, [](const IntTuple& counts) { return product(counts); })
template <class F, class G>
auto transform_apply(const IntTuple& t, F f, G g) {
  return g(detail::transform_elements(t, t, detail::of_one(f), {}));
}
template <class F, class G>
auto transform_apply(const IntTuple& a, const IntTuple& b, F f, G g,
                     SourceLoc loc = SourceLoc::current()) {
  return g(detail::transform_elements(a, b, detail::of_two(f), loc));
}
// Applies f, which returns tuples, to each element, or pair of elements, and joins the results.
// Where f returns (), the element is dropped.
//
//   filter_tuple(shape, [](const IntTuple& x) { return repeat_as_tuple(x, size(x) == 1 ? 0 : 1); })
template <class F>
IntTuple filter_tuple(const IntTuple& t, F f) {
  return detail::joined(detail::transform_elements(t, t, detail::of_one(f), {}));
}
template <class F>
IntTuple filter_tuple(const IntTuple& a, const IntTuple& b, F f,
                      SourceLoc loc = SourceLoc::current()) {
  return detail::joined(detail::transform_elements(a, b, detail::of_two(f), loc));
}
// Concatenates two tuples.
inline IntTuple tuple_cat(const IntTuple& a, const IntTuple& b) { return detail::joined({a, b}); }
// Gives the integers of a flat tuple the nesting of another.
IntTuple unflatten(const IntTuple& flat, const IntTuple& profile,
                   SourceLoc loc = SourceLoc::current());
// The number of the first element for which f holds, or that is x; rank(t) where there is none.
template <class F>
int find_if(const IntTuple& t, F f) {
  int mode = 0;
  while (mode < rank(t) && !f(get(t, mode))) ++mode;
  return mode;
}
inline int find(const IntTuple& t, const IntTuple& x) {
  return find_if(t, [&](const IntTuple& element) { return element == x; });
}
// The modes of t where the coordinate has _ (slice), or where it has a number (dice), in one tuple.
IntTuple slice(const IntTuple& coord, const IntTuple& t, SourceLoc loc = SourceLoc::current());
IntTuple dice(const IntTuple& coord, const IntTuple& t, SourceLoc loc = SourceLoc::current());

// --- Arithmetic ------------------------------------------------------------------------------

// The product of the integers of each element; or of what stands in the place of each integer of a
// guide.
IntTuple product_each(const IntTuple& t);
IntTuple product_like(const IntTuple& t, const IntTuple& guide,
                      SourceLoc loc = SourceLoc::current());
// Division, element by element: rounded up (ceil_div); or as a layout's shape is divided
// (shape_div), where one of the two numbers has to divide the other. An integer beside a tuple
// divides its elements in turn.
IntTuple ceil_div(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
IntTuple shape_div(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
// Rounds a up to a multiple of b, element by element.
IntTuple round_up(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
// Whether each integer of a is less than that of b, for all values of unknown ones. Where a has
// fewer elements, the others of b do not count.
bool elem_less(const IntTuple& a, const IntTuple& b);
// Each integer times a factor.
IntTuple elem_scale(const IntTuple& t, const SymInt& by);
// Promises that each integer is a multiple of `divisor`, as assume_divisible() does: gives the same
// integers, of which that is known. In a kernel the interpreter checks the promise.
IntTuple assume(const IntTuple& t, int64_t divisor, SourceLoc loc = SourceLoc::current());

// --- Coordinates -----------------------------------------------------------------------------

// The index of a coordinate, column-major within a shape, or by strides. Where these are basis
// strides it is a coordinate. A mode that is left whole (_) starts at 0.
IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape,
                 SourceLoc loc = SourceLoc::current());
IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc = SourceLoc::current());
// The coordinate of an index, the inverse of crd2idx(). Column-major, where the last mode takes
// what is left and _ stays; or by strides, where a mode has index / stride % extent. It is an
// inverse where the strides are positive and compact, in any order. A single stride is that of the
// first element, and the others follow column-major.
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape,
                 SourceLoc loc = SourceLoc::current());
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc = SourceLoc::current());

// A coordinate of one shape as a coordinate of another shape of the same size.
IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to,
                 SourceLoc loc = SourceLoc::current());
// The next coordinate, column-major; the first one after the last.
IntTuple increment_coord(const IntTuple& coord, const IntTuple& shape,
                         SourceLoc loc = SourceLoc::current());

// Compact strides of a shape: column-major, row-major, or in an order, where the mode with the
// least number is contiguous. Modes of one element get stride 0.
IntTuple compact_col_major(const IntTuple& shape);
IntTuple compact_row_major(const IntTuple& shape);
IntTuple compact_order(const IntTuple& shape, const IntTuple& order,
                       SourceLoc loc = SourceLoc::current());
// The unit stride of each mode.
IntTuple make_basis_like(const IntTuple& shape);
// The factor of a basis stride (basis_value), and the part of a tuple that its path names
// (basis_get).
inline IntTuple basis_value(const IntTuple& stride) { return stride.value(); }
IntTuple basis_get(const IntTuple& stride, const IntTuple& t, SourceLoc loc = SourceLoc::current());

}  // namespace heddle
