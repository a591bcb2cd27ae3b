// Structs in memory: tensors, shared and local arrays of plain structs of values.
//
//   struct Particle { Float x, y, z; Int cell; };
//   Tensor<const Particle, 1> in;  Shared<Particle> near(64);
//   Particle p = in(i);            // one 16-byte load, where struct and memory are so aligned
//   near(thread_idx.x) = p;
//
// A struct lies in memory as the C++ struct of the host's types does: members in order, each
// aligned to its size (a Vec<float, 4> to 16 bytes), the whole to its largest member. It moves in
// as few accesses as its size and alignment allow: members of one size are fastest, others are put
// together from parts.
#pragma once

#include "heddle/dsl/element.h"

namespace heddle::detail {

// What may be an element of memory by itself, or as a struct.
template <class T>
concept StructElement = PlainStruct<T> && is_traced<T>();

// How a struct is moved: as so many scalars of a type.
struct StructUnits {
  ir::Scalar scalar;
  int unit_bytes;
  int count;
};
StructUnits struct_units(const Node* leaves, int count);
template <StructElement S>
StructUnits struct_units() {
  NodeList leaves;
  leaves.append(blank<S>());
  return struct_units(leaves.data(), leaves.size());
}

// Reads or writes the leaves, whose types they have, of a struct at a place: a coordinate of the
// view of units, but for its last mode.
[[gnu::cold]] void load_struct(const Access& access, Node* leaves, int count);
// At the point where it was named.
[[gnu::cold]] void load_struct(const Access& access, const Point& named, Node* leaves, int count);
[[gnu::cold]] void store_struct(const Access& access, const Node* leaves, int count);
// Arrays of structs.
Node new_struct_array(bool shared, StructUnits units, const int64_t* extents, int rank,
                      SourceLoc loc);

// One struct: stores where it is assigned; a name is the value at that point.
template <StructElement S>
class StructRef {
 public:
  using whole_type = S;

  explicit StructRef(const Access& access) : access_(access), named_(here()) {}
  StructRef(const StructRef& other)
      : access_(other.access_), named_(other.named_), leaves_(other.read()) {}
  void operator=(const S& value) && {
    NodeList leaves;
    leaves.append(value);
    store_struct(access_, leaves.data(), leaves.size());
  }
  void operator=(const StructRef& other) && {
    store_struct(access_, other.read().data(), other.read().size());
  }
  HEDDLE_NAMED_ELEMENT void operator=(const S& value) &;
  HEDDLE_NAMED_ELEMENT void operator=(const StructRef& other) &;

  S get() const {
    S value = blank<S>();
    read().write_to(value);
    return value;
  }
  operator S() const { return get(); }

 private:
  const NodeList& read() const {
    if (leaves_.size() == 0) {
      leaves_.append(blank<S>());
      load_struct(access_, named_, leaves_.data(), leaves_.size());
    }
    return leaves_;
  }
  Access access_;
  Point named_;
  mutable NodeList leaves_;
};

// A view of structs: what Tensor and Shared are where T is a struct of values. It lies over a view
// of the members' scalars, which has one mode more.
template <class T, int kRank>
class StructView {
  using S = std::remove_const_t<T>;
  static_assert(kRank >= 1 && kRank < kMaxRank, "views of structs have one to four modes");

 public:
  using element_type = T;
  // How many modes it has.
  static constexpr int rank() { return kRank; }

  explicit StructView(Node units) : node_(units) {}

  // The element at a coordinate: a struct of values where T is const, else a reference to one.
  template <class... I>
  requires(sizeof...(I) == kRank && (std::is_convertible_v<const I&, Index> && ...)) auto
  operator()(const I&... i) const {
    return at(SourceLoc{}, Index(i)...);
  }
  auto operator[](const Index& i) const requires(kRank == 1) { return at(i.loc, i); }

  // The extent of a mode, in structs.
  Int shape(int dim, SourceLoc loc = SourceLoc::current()) const {
    return Int(emit_extent(node_, dim, false, loc));
  }

  const Node& view_node() const { return node_; }

 private:
  template <class... I>
  auto at(SourceLoc loc, const I&... i) const {
    Access access;
    access.view = node_;
    access.loc = loc;
    for (const Index& index : {i...}) {
      access.coordinates[access.rank++] = index.node;
      if (access.loc.file == nullptr) access.loc = index.loc;
    }
    if constexpr (std::is_const_v<T>) {
      S value = blank<S>();
      NodeList leaves;
      leaves.append(value);
      load_struct(access, leaves.data(), leaves.size());
      leaves.write_to(value);
      return value;
    } else {
      return StructRef<S>(access);
    }
  }
  Node node_;
};

#undef HEDDLE_NAMED_ELEMENT

}  // namespace heddle::detail
