// References to elements: what y(i), y.vec<4>(i) and y.elements(width, i) of a tensor or array
// give.
//
//   y(i) = y(j);                      // stores, and reads nothing of y(i)
//   y(i) += v;  y.vec<4>(i) *= 2.0f;
//   auto a = y(0);                    // the value at this point of the program, as in CUDA C++
//
// Naming an element records no operation. When it is read, at whatever later line, the load is
// placed where the element was named. An element that is only written is never read.
#pragma once

#include "heddle/dsl/index.h"
#include "heddle/dsl/vec.h"

namespace heddle {
namespace detail {

inline constexpr int kMaxRank = 5;

// How the elements of a view are accessed.
struct AccessMode {
  int8_t cache = -1;     // a Cache; -1: as usual
  int8_t l2_evict = -1;  // an L2Evict; -1: as usual
  int16_t percent = 100;
  bool is_volatile = false;
  bool is_aligned = false;  // known or promised: the address, to the bytes of one access
};

// A place in a view, ready to be read or written: a coordinate; or, of a tensor with a layout of
// its own, the offset that was found for one, and its check.
struct Access {
  Node view;
  Node coordinates[kMaxRank] = {};
  int rank = 0;  // of the coordinate; 0 where there is an offset
  AccessMode mode = {};
  SourceLoc loc;
  Node offset = {};
  Node check = {};  // if has_check
  bool has_check = false;
  int element = -1;  // in registers: which; `view` is their variable
};

// The extent of a mode; `wide`: as an i64, of any size.
Node emit_extent(Node view, int dim, bool wide, SourceLoc loc);

// An element of the vector or fragment in a variable, or the scalar in one.
inline Access element_of_slot(const Node& slot, int element, SourceLoc loc) {
  Access access;
  access.view = slot;
  access.loc = loc;
  access.element = element;
  return access;
}

[[gnu::cold]] Node emit_load(const Access& access, NodeType type, SourceLoc loc);
[[gnu::cold]] void emit_store(const Access& access, const Node& value, SourceLoc loc);

// A value of the element, or of so many neighbours, that is loaded once, at the point where the
// access was named.
class NamedLoad {
 public:
  explicit NamedLoad(const Access& access) : access_(access), named_(here()) {}
  const Access& access() const { return access_; }
  [[gnu::cold]] const Node& read(NodeType type) const;
  void store(const Node& value, SourceLoc loc) const { emit_store(access_, value, loc); }

 private:
  Access access_;
  Point named_;
  mutable Node value_ = {};
  mutable bool is_read_ = false;
};

#define HEDDLE_UPDATES(HEDDLE_UPDATE) \
  HEDDLE_UPDATE(+)                    \
  HEDDLE_UPDATE(-)                    \
  HEDDLE_UPDATE(*)                    \
  HEDDLE_UPDATE(/)                    \
  HEDDLE_UPDATE(%)                    \
  HEDDLE_UPDATE(&)                    \
  HEDDLE_UPDATE(|)                    \
  HEDDLE_UPDATE(^)

#define HEDDLE_NAMED_ELEMENT                                                                     \
  HEDDLE_MISTAKE(                                                                                \
      "an element that has a name is the value that it had there, and never changes: assign to " \
      "the "                                                                                     \
      "place itself, y(i) = v, or keep a Var<T>")

// The result of arithmetic on elements, which promotes small integers, as one of T's again.
template <class T, class V>
Node stored_as(const V& value, SourceLoc loc) {
  if constexpr (is_promoted<T>) {
    return emit_as(scalar_type<T>(), op::kConvert, value.node(), loc);
  } else {
    return value.node();
  }
}

// A reference to one element of a view, such as y(i): read where it is used, stored where it is
// assigned.
template <class T>
class ElementRef : public Operators<T> {
  using Operand = Arg<std::conditional_t<is_promoted<T>, int32_t, T>>;

 public:
  using value_type = T;

  explicit ElementRef(const Access& access) : load_(access) {}
  // A copy is one of the value.
  ElementRef(const ElementRef& other) : load_(other.loaded()) {}

  void operator=(const Arg<T>& value) && { load_.store(value.node, value.loc); }
  void operator=(const ElementRef& other) && {
    load_.store(other.read_node({}), load_.access().loc);
  }
  HEDDLE_NAMED_ELEMENT void operator=(const Arg<T>& value) &;
  HEDDLE_NAMED_ELEMENT void operator=(const ElementRef& other) &;

#define HEDDLE_UPDATE(op)                                                 \
  void operator op##=(const Operand& b)&& {                               \
    load_.store(stored_as<T>(Value<T>(*this, b.loc) op b, b.loc), b.loc); \
  }                                                                       \
  HEDDLE_NAMED_ELEMENT void operator op##=(const Operand& b)&;
  HEDDLE_UPDATES(HEDDLE_UPDATE)
#undef HEDDLE_UPDATE
  void operator<<=(const ShiftCount& n) && {
    load_.store(stored_as<T>(Value<T>(*this, n.loc) << n, n.loc), n.loc);
  }
  void operator>>=(const ShiftCount& n) && {
    load_.store(stored_as<T>(Value<T>(*this, n.loc) >> n, n.loc), n.loc);
  }

  HEDDLE_MISTAKE(
      "an element has no C++ address: pass the element itself, as in atomic_add(y(i), 1), or the "
      "place "
      "y.at(i); address_of(y.at(i)) is its address in the kernel")
  void operator&() const;

  Node read_node(SourceLoc) const { return load_.read(scalar_type<T>()); }
  const Access& access() const { return load_.access(); }

 private:
  const NamedLoad& loaded() const {
    load_.read(scalar_type<T>());
    return load_;
  }
  NamedLoad load_;
};

// A reference to neighbouring elements, such as y.vec<4>(i): one access that reads or stores a Vec
// or a Fragment.
template <class Whole>
class GroupRef : public GroupOperators<Whole, typename Whole::element_type>, public NoTracedIndex {
  using T = typename Whole::element_type;
  using Operand = GroupOperand<Whole>;

 public:
  using whole_type = Whole;

  // `type` is the Whole's.
  GroupRef(const Access& access, NodeType type) : load_(access), type_(type) {}
  // A copy is one of the values.
  GroupRef(const GroupRef& other) : load_(other.loaded()), type_(other.type_) {}

  void operator=(const Operand& value) && { store(value); }
  void operator=(const GroupRef& other) && { store(other.get()); }
  HEDDLE_NAMED_ELEMENT void operator=(const Operand& value) &;
  HEDDLE_NAMED_ELEMENT void operator=(const GroupRef& other) &;

#define HEDDLE_UPDATE(op)                                                 \
  void operator op##=(const Operand& b)&& { store({get() op b, b.loc}); } \
  HEDDLE_NAMED_ELEMENT void operator op##=(const Operand& b)&;
  HEDDLE_UPDATES(HEDDLE_UPDATE)
#undef HEDDLE_UPDATE

  // The values; read once, at the point where the access was named.
  Whole get() const {
    const Node& loaded = load_.read(memory_type());
    return Whole(regrouped(loaded, type_, access().loc));
  }
  operator Whole() const { return get(); }
  // Elements.
  int size() const { return type_.count; }
  using NoTracedIndex::operator[];
  // Element `index`, a host number.
  Value<T> operator[](HostIndex index) const { return get()[index]; }
  // For `auto [a, b] = y.vec<2>(i)`.
  template <std::size_t kIndex>
  Value<T> get() const {
    return get().get(static_cast<int>(kIndex));
  }
  // Element-by-element conversion, as by cast<To>().
  template <class To>
  auto as(SourceLoc loc = SourceLoc::current()) const {
    return get().template as<To>(loc);
  }
  const Access& access() const { return load_.access(); }

 private:
  // Of what one access moves: a vector, or a scalar where there is one element.
  NodeType memory_type() const {
    return type_.count == 1 ? scalar_type<T>() : vector_type(scalar_of<T>(), type_.count);
  }
  void store(const Operand& value) const {
    load_.store(regrouped(spread(value.node, type_, value.loc), memory_type(), value.loc),
                access().loc);
  }
  const NamedLoad& loaded() const {
    load_.read(memory_type());
    return load_;
  }
  NamedLoad load_;
  NodeType type_;
};

template <class T, int N>
using VecRef = GroupRef<Vec<T, N>>;
template <class T>
using FragmentRef = GroupRef<Fragment<T>>;

}  // namespace detail
}  // namespace heddle

template <class T, int N>
struct std::tuple_size<heddle::detail::VecRef<T, N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t kIndex, class T, int N>
struct std::tuple_element<kIndex, heddle::detail::VecRef<T, N>> {
  using type = heddle::Value<T>;
};
