// Shapes, strides and coordinates: integers, and tuples of them to any depth.
//
//   IntTuple shape = {4, {2, 8}};               // braces make a tuple: (4,(2,8))
//   size(shape)                                 // 64
//   IntTuple slice = {_, {0, _}};               // _ stands for a whole mode
//   E({1, 0}, 2)                                // 2@0@1: a stride that counts in a mode
//
// Names and meanings are CuTe's. A mistake gives a tuple that is not ok() and says why; what is
// computed from it is not either, and keeps the first reason. Inside a kernel's lambda the mistake
// is also one of the kernel's errors, with its line.
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

class IntTuple {
 public:
  IntTuple() : IntTuple(std::initializer_list<IntTuple>{}) {}  // ()
  IntTuple(int value) { node_.value = value; }                 // NOLINT: an integer is one
  IntTuple(int64_t value) { node_.value = value; }             // NOLINT
  IntTuple(SymInt value) { node_.value = static_cast<SymInt&&>(value); }  // NOLINT
  template <detail::TracedInteger X>
  IntTuple(const X& x, SourceLoc loc = SourceLoc::current())  // NOLINT
      : IntTuple(SymInt(x, loc)) {}
  IntTuple(Underscore) { node_.kind = detail::TupleNode::Kind::kUnderscore; }  // NOLINT
  // Of a single tuple in braces compilers make that tuple itself or one around it (CWG 2137):
  // repeat_as_tuple(t, 1) and wrap(t) say which.
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

  bool is_tuple() const { return node().is_tuple(); }
  bool is_underscore() const { return node().kind == detail::TupleNode::Kind::kUnderscore; }
  bool is_int() const { return node().is_int(); }
  // Of an integer; of a basis stride, its factor.
  const SymInt& value() const { return node().value; }

  bool ok() const { return rep_ == nullptr || rep_->error == nullptr; }
  // Why it is not ok(): what happened, and how to mend it. Empty where it is.
  const std::string& error() const;

  // In CuTe's notation, without spaces: "(4,(?{div=8},_))".
  std::string to_string() const;
  friend bool operator==(const IntTuple& a, const IntTuple& b);
  // Of coordinates: a shorter one has zeros behind it.
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

using Shape = IntTuple;
using Stride = IntTuple;
using Coord = IntTuple;

// A stride of a mode, outermost first: E({1, 0}) is 1@0@1.
IntTuple E(std::initializer_list<int> path, const SymInt& factor = 1);

// --- Questions -------------------------------------------------------------------------------

// Elements of a tuple; 1 of an integer.
int rank(const IntTuple& t);
// Tuples around the innermost integer.
int depth(const IntTuple& t);
// The product of all integers.
SymInt size(const IntTuple& t, SourceLoc loc = SourceLoc::current());
inline SymInt product(const IntTuple& t, SourceLoc loc = SourceLoc::current()) {
  return size(t, loc);
}
// No unknown integers; no `_`.
bool is_static(const IntTuple& t);
bool has_underscore(const IntTuple& t);
// What is known to divide each integer, whatever it will be: itself where it is a host number. Of
// a kernel's arguments the answer may become a condition of the compiled variant.
IntTuple get_divisibility(const IntTuple& t);
// The same profile; the same down to where `a` has integers; and of the same sizes there, so that
// coordinates of a are coordinates of b.
bool is_congruent(const IntTuple& a, const IntTuple& b);
bool is_weakly_congruent(const IntTuple& a, const IntTuple& b);
bool is_compatible(const IntTuple& a, const IntTuple& b);

// --- Parts -----------------------------------------------------------------------------------

// The element at a mode, or at a mode of a mode …: get(t, {1, 0}).
IntTuple get(const IntTuple& t, int mode, SourceLoc loc = SourceLoc::current());
IntTuple get(const IntTuple& t, std::initializer_list<int> path,
             SourceLoc loc = SourceLoc::current());
IntTuple select(const IntTuple& t, std::initializer_list<int> modes,
                SourceLoc loc = SourceLoc::current());
// The first integer.
IntTuple front(const IntTuple& t);
// All integers and _ in a row: flatten() leaves 4 as it is, the others make (4) of it.
IntTuple flatten(const IntTuple& t);
IntTuple flatten_to_tuple(const IntTuple& t);
inline IntTuple get_leaves(const IntTuple& t) { return flatten_to_tuple(t); }
// (4) of 4; 4 of (4).
IntTuple wrap(const IntTuple& t);
IntTuple unwrap(const IntTuple& t);
// Elements [begin, end), which are some, become one.
IntTuple group_modes(const IntTuple& t, int begin, int end, SourceLoc loc = SourceLoc::current());
// With x added at an end, up to the rank that is asked for: once where none is.
IntTuple append(const IntTuple& t, const IntTuple& x, int up_to_rank = -1);
IntTuple prepend(const IntTuple& t, const IntTuple& x, int up_to_rank = -1);
inline IntTuple append_ones(const IntTuple& t, int up_to_rank = -1) {
  return append(t, 1, up_to_rank);
}
inline IntTuple prepend_ones(const IntTuple& t, int up_to_rank = -1) {
  return prepend(t, 1, up_to_rank);
}
// x, `times` times: itself where that is once; as a tuple always; in the place of each integer.
IntTuple repeat(const IntTuple& x, int times);
IntTuple repeat_as_tuple(const IntTuple& x, int times);
IntTuple repeat_like(const IntTuple& t, const IntTuple& x);
// What a function makes of each integer and _, in its place; with two tuples, of each integer of a
// and of what b has there.
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
// What g makes of the tuple of what f makes of each element, or pair of elements. CuTe's g gets
// these as arguments; here their number is not known to the compiler.
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
// The elements of all that f makes of the elements, or of pairs of them: those of () are none.
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
// The elements of both.
inline IntTuple tuple_cat(const IntTuple& a, const IntTuple& b) { return detail::joined({a, b}); }
// The integers of a flat tuple with the profile of another.
IntTuple unflatten(const IntTuple& flat, const IntTuple& profile,
                   SourceLoc loc = SourceLoc::current());
// The first element for which a function holds, or that is x; rank(t) where there is none.
template <class F>
int find_if(const IntTuple& t, F f) {
  int mode = 0;
  while (mode < rank(t) && !f(get(t, mode))) ++mode;
  return mode;
}
inline int find(const IntTuple& t, const IntTuple& x) {
  return find_if(t, [&](const IntTuple& element) { return element == x; });
}
// What a coordinate leaves whole (where it has _), and what it fixes, as one row of modes.
IntTuple slice(const IntTuple& coord, const IntTuple& t, SourceLoc loc = SourceLoc::current());
IntTuple dice(const IntTuple& coord, const IntTuple& t, SourceLoc loc = SourceLoc::current());

// --- Arithmetic ------------------------------------------------------------------------------

// The product of each element; of what lies below each integer of a guide.
IntTuple product_each(const IntTuple& t);
IntTuple product_like(const IntTuple& t, const IntTuple& guide,
                      SourceLoc loc = SourceLoc::current());
// Element by element; an integer divides, or is divided into, all of a tuple's in turn.
IntTuple ceil_div(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
IntTuple shape_div(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
// a, made a multiple of b, element by element.
IntTuple round_up(const IntTuple& a, const IntTuple& b, SourceLoc loc = SourceLoc::current());
// Whether each integer of a is less than that of b, whatever unknown ones will be. What a shorter
// a lacks is no obstacle.
bool elem_less(const IntTuple& a, const IntTuple& b);
// Each integer times a factor.
IntTuple elem_scale(const IntTuple& t, const SymInt& by);
// The same integers, which the author promises to be multiples of a number: an unknown one is then
// known to be; in a kernel the interpreter checks it, as it does assume_divisible().
IntTuple assume(const IntTuple& t, int64_t divisor, SourceLoc loc = SourceLoc::current());

// --- Coordinates -----------------------------------------------------------------------------

// The index of a coordinate, column-major within a shape, or by strides. Where these are basis
// strides it is a coordinate. A mode that is left whole (_) starts at 0.
IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape,
                 SourceLoc loc = SourceLoc::current());
IntTuple crd2idx(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc = SourceLoc::current());
// And back: column-major, where the last mode takes what is left and _ stays; or by strides, where
// a mode has index / stride % extent. These have to be positive and compact, in any order, for the
// coordinate to be the one that crd2idx() makes the index of; a single stride is that of the first
// element, column-major from there.
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape,
                 SourceLoc loc = SourceLoc::current());
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc = SourceLoc::current());

// A coordinate of one shape as one of another of the same size; and the next coordinate,
// column-major, which after the last is the first.
IntTuple crd2crd(const IntTuple& coord, const IntTuple& from, const IntTuple& to,
                 SourceLoc loc = SourceLoc::current());
IntTuple increment_coord(const IntTuple& coord, const IntTuple& shape,
                         SourceLoc loc = SourceLoc::current());

// Column-major strides, row-major strides, and strides in the order that another tuple's numbers
// have. Modes of one element get 0.
IntTuple compact_col_major(const IntTuple& shape);
IntTuple compact_row_major(const IntTuple& shape);
IntTuple compact_order(const IntTuple& shape, const IntTuple& order,
                       SourceLoc loc = SourceLoc::current());
// The unit stride of each mode.
IntTuple make_basis_like(const IntTuple& shape);
// The factor of a basis stride, and the part of a tuple that it names.
inline IntTuple basis_value(const IntTuple& stride) { return stride.value(); }
IntTuple basis_get(const IntTuple& stride, const IntTuple& t, SourceLoc loc = SourceLoc::current());

}  // namespace heddle
