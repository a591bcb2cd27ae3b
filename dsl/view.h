// Windows on memory: tensors that a kernel is given, raw pointers, and shared memory.
//
//   Tensor<const float, 2> x;   x(row, col)           // a read; const: no store goes through x
//   Tensor<float, 1> y;         y(row) = total;       y(i) += 1.0f;
//   Shared<float, 2> tile({32, 33});                  // the block's own memory
//   Vec<float, 4> v = x.vec<4>(row, col);             // one 16-byte access from column `col` on
//
// Coordinates count elements and are checked against the extents by the interpreter. Index
// arithmetic is 32-bit where the launch finds that all offsets fit, 64-bit otherwise.
#pragma once

#include "heddle/dsl/struct_view.h"

namespace heddle {

struct Underscore;
template <class T, int Rank = -1>
class Tensor;

// Cache hints of accesses to global memory. They change how fast an access is, never what it does.
enum class Cache : uint8_t {
  l2,             // cached in L2 alone
  streaming,      // likely used once
  last_use,       // reads: will not be used again
  write_through,  // writes: through L2 to memory
  evict_first,    // leaves L1 before other lines
  evict_last,     // leaves L1 after other lines
  no_allocate,    // does not enter L1
};
// L2 eviction priority: when the line that an access to global memory uses leaves L2 again. That is
// before other lines, after them, in the usual order, or as its priority was before.
enum class L2Evict : uint8_t { first, last, normal, unchanged };
// The cache that a prefetch brings a line to.
enum class PrefetchTo : uint8_t { l1, l2 };

namespace detail {

// The type of `width` elements of one access, as a fragment; another number than 1, 2, 4, 8 or 16
// is reported.
NodeType elements_type(ir::Scalar scalar, int width, SourceLoc loc);
void emit_prefetch(const Access& access, PrefetchTo level);
Node emit_pointer(ir::Scalar scalar, bool read_only, const Node& address, SourceLoc loc);
Node emit_address(const Access& access);
Node new_shared(ir::Scalar scalar, const int64_t* extents, int rank, SourceLoc loc);
Node new_local(ir::Scalar scalar, const int64_t* extents, int rank, SourceLoc loc);
Node new_table(ir::Scalar scalar, const void* data, int64_t count, SourceLoc loc);
Node new_dynamic_shared(ir::Scalar scalar, Node count, SourceLoc loc);
// The most elements, a power of two of at most `max_bytes` together, that an access to a multiple
// of that many along the last mode can take at once, by what is known of the argument.
int vector_width(Node view, int max_bytes);
// Whether all offsets in the view, or the extent of a mode, fit in 31 bits, by what is known of the
// argument.
bool fits_32(Node view);
bool extent_fits_32(Node view, int dim);
// The extent of a mode as a host number, which fixes it in the compiled kernel.
int64_t fixed_extent(Node view, int dim, SourceLoc loc);

// The place of an element, which is neither read nor written: what asynchronous copies, atomics and
// prefetches take. `at()` of a view gives it.
template <class T>
struct ElementAddress {
  Access access;
};

// What the indexing of a view of T gives: a value where it is const, else a reference.
template <class T>
auto element_at(const Access& access) {
  if constexpr (std::is_const_v<T>) {
    using V = std::remove_const_t<T>;
    return Value<V>(emit_load(access, scalar_type<V>(), access.loc));
  } else {
    return ElementRef<T>(access);
  }
}

// What reads as a value that is no index: x(a), of a Float a.
template <class I>
inline constexpr bool is_no_index = false;
template <Readable I>
inline constexpr bool is_no_index<I> = !std::is_convertible_v<const I&, Index>;

// A view of memory: what Tensor, Pointer, Shared, Local and Constant have in common.
template <class T, int kRank>
class View {
  static_assert(
      is_scalar<std::remove_const_t<T>>,
      "elements are bool, integers of 8 to 64 bits, float8_e4m3, float8_e5m2, float8_e8m0, "
      "float4_e2m1x2, half, bfloat16, tfloat32, float or double");
  static_assert(kRank >= 1 && kRank <= kMaxRank, "views have one to five modes");

 public:
  using element_type = T;
  // How many modes it has.
  static constexpr int rank() { return kRank; }

  explicit View(Node node) : node_(node) {}

  // The same view with a cache hint on its accesses (with); or with volatile accesses, of which
  // none is merged, moved or left out (as_volatile).
  View with(Cache cache) const {
    View view = *this;
    view.mode_.cache = static_cast<int8_t>(cache);
    return view;
  }
  View as_volatile() const {
    View view = *this;
    view.mode_.is_volatile = true;
    return view;
  }

  // The same view, of which the author promises that vector accesses begin at multiples of their bytes. The
  // interpreter checks it; on a GPU another address is a fault of the running kernel.
  View assume_aligned() const {
    View view = *this;
    view.mode_.is_aligned = true;
    return view;
  }

  // The same view with an L2 eviction priority on `percent` in a hundred of its accesses, which the
  // hardware picks; the others have none. For asynchronous copies too.
  View with(L2Evict evict, int percent = 100) const {
    View view = *this;
    view.mode_.l2_evict = static_cast<int8_t>(evict);
    view.mode_.percent = static_cast<int16_t>(percent);
    return view;
  }

  // The element at a coordinate, one index for each mode: a value where T is const, else a
  // reference.
  auto operator()(const Index& i) const requires(kRank == 1) {
    return element_at<T>(access(i.loc, i));
  }
  auto operator()(const Index& i, const Index& j) const requires(kRank == 2) {
    return element_at<T>(access(j.loc, i, j));
  }
  auto operator()(const Index& i, const Index& j, const Index& k) const requires(kRank == 3) {
    return element_at<T>(access(k.loc, i, j, k));
  }
  auto operator()(const Index& i, const Index& j, const Index& k, const Index& l) const
      requires(kRank == 4) {
    return element_at<T>(access(l.loc, i, j, k, l));
  }
  auto operator()(const Index& i, const Index& j, const Index& k, const Index& l,
                  const Index& m) const requires(kRank == 5) {
    return element_at<T>(access(m.loc, i, j, k, l, m));
  }

  // The element at an index, of a view with one mode.
  auto operator[](const Index& i) const requires(kRank == 1) { return (*this)(i); }

  // A slice: with `_` for a mode, the tensor of all its elements (tensor/tensor.h), as in x(row,
  // _).
  template <class... C>
  requires(sizeof...(C) == kRank && (std::is_same_v<C, Underscore> || ...)) auto operator()(
      const C&... coord) const {
    return Tensor<T, -1>(*this)(coord...);
  }

  template <class... I>
  requires(sizeof...(I) != kRank && (std::is_convertible_v<const I&, Index> && ...)) HEDDLE_MISTAKE(
      "an element is named by one index for each mode: x(i) of a Tensor<T, 1>, x(i, j) of a "
      "Tensor<T, 2>")
  Value<std::remove_const_t<T>> operator()(const I&...) const;
  template <class... I>
  requires((is_no_index<I> || ...) && !(std::is_convertible_v<const I&, Index> && ...))
      HEDDLE_MISTAKE("an index is an integer: convert it, as in x(cast<int>(a))")
  Value<std::remove_const_t<T>> operator()(const I&...) const;
  template <class I>
  requires(kRank != 1) HEDDLE_MISTAKE("[] takes one index, and the view has several modes: x(i, j)")
  Value<std::remove_const_t<T>> operator[](const I&) const;

  // The place of an element, for asynchronous copies, bulk copies and address_of().
  ElementAddress<T> at(const Index& i) const requires(kRank == 1) { return {access(i.loc, i)}; }
  ElementAddress<T> at(const Index& i, const Index& j) const requires(kRank == 2) {
    return {access(j.loc, i, j)};
  }
  ElementAddress<T> at(const Index& i, const Index& j, const Index& k) const requires(kRank == 3) {
    return {access(k.loc, i, j, k)};
  }
  ElementAddress<T> at(const Index& i, const Index& j, const Index& k, const Index& l) const
      requires(kRank == 4) {
    return {access(l.loc, i, j, k, l)};
  }
  ElementAddress<T> at(const Index& i, const Index& j, const Index& k, const Index& l,
                       const Index& m) const requires(kRank == 5) {
    return {access(m.loc, i, j, k, l, m)};
  }

  // Vector access: N elements along the last mode, from a coordinate on. A Vec where T is const,
  // else a reference to one. The address must be known to be a multiple of the access's size.
  template <int N>
  auto vec(const Index& i) const requires(kRank == 1) {
    return vec_at<N>(access(i.loc, i));
  }
  template <int N>
  auto vec(const Index& i, const Index& j) const requires(kRank == 2) {
    return vec_at<N>(access(j.loc, i, j));
  }
  template <int N>
  auto vec(const Index& i, const Index& j, const Index& k) const requires(kRank == 3) {
    return vec_at<N>(access(k.loc, i, j, k));
  }
  template <int N>
  auto vec(const Index& i, const Index& j, const Index& k, const Index& l) const
      requires(kRank == 4) {
    return vec_at<N>(access(l.loc, i, j, k, l));
  }
  template <int N>
  auto vec(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m) const
      requires(kRank == 5) {
    return vec_at<N>(access(m.loc, i, j, k, l, m));
  }

  // Vector access of a width that is a host number, such as vector_width(): 1, 2, 4, 8 or 16
  // elements, as a Fragment or a reference to one.
  auto elements(int width, const Index& i) const requires(kRank == 1) {
    return elements_at(access(i.loc, i), width);
  }
  auto elements(int width, const Index& i, const Index& j) const requires(kRank == 2) {
    return elements_at(access(j.loc, i, j), width);
  }
  auto elements(int width, const Index& i, const Index& j, const Index& k) const
      requires(kRank == 3) {
    return elements_at(access(k.loc, i, j, k), width);
  }
  auto elements(int width, const Index& i, const Index& j, const Index& k, const Index& l) const
      requires(kRank == 4) {
    return elements_at(access(l.loc, i, j, k, l), width);
  }
  auto elements(int width, const Index& i, const Index& j, const Index& k, const Index& l,
                const Index& m) const requires(kRank == 5) {
    return elements_at(access(m.loc, i, j, k, l, m), width);
  }

  // Prefetch: brings the cache line of an element in global memory to a cache. Has no other effect.
  void prefetch(const Index& i, PrefetchTo level = PrefetchTo::l2) const requires(kRank == 1) {
    emit_prefetch(access(i.loc, i), level);
  }
  void prefetch(const Index& i, const Index& j, PrefetchTo level = PrefetchTo::l2) const
      requires(kRank == 2) {
    emit_prefetch(access(j.loc, i, j), level);
  }
  void prefetch(const Index& i, const Index& j, const Index& k,
                PrefetchTo level = PrefetchTo::l2) const requires(kRank == 3) {
    emit_prefetch(access(k.loc, i, j, k), level);
  }
  void prefetch(const Index& i, const Index& j, const Index& k, const Index& l,
                PrefetchTo level = PrefetchTo::l2) const requires(kRank == 4) {
    emit_prefetch(access(l.loc, i, j, k, l), level);
  }
  void prefetch(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m,
                PrefetchTo level = PrefetchTo::l2) const requires(kRank == 5) {
    emit_prefetch(access(m.loc, i, j, k, l, m), level);
  }

  // The extent of a mode, in elements. shape() is 32-bit: a launch with a larger extent is refused.
  // shape64() takes any.
  Int shape(int dim, SourceLoc loc = SourceLoc::current()) const {
    return Int(emit_extent(node_, dim, false, loc));
  }
  Int64 shape64(int dim, SourceLoc loc = SourceLoc::current()) const {
    return Int64(emit_extent(node_, dim, true, loc));
  }

  // What is known of the argument, as host numbers while tracing. vector_width: how many elements,
  // a power of two, one aligned access of at most `max_bytes` can take; 1 where nothing is known.
  // fits_32, extent_fits_32: whether 32-bit indices reach all elements, or all of a mode. The
  // answer becomes a guard of the compiled kernel: arguments with another answer compile it anew.
  int vector_width(int max_bytes = 16) const { return detail::vector_width(node_, max_bytes); }
  bool fits_32() const { return detail::fits_32(node_); }
  bool extent_fits_32(int dim) const { return detail::extent_fits_32(node_, dim); }
  // Specialisation: the argument's extent as a host number while tracing, to unroll loops or size
  // arrays. The kernel is compiled anew for each value that occurs.
  int64_t fixed_shape(int dim, SourceLoc loc = SourceLoc::current()) const {
    return detail::fixed_extent(node_, dim, loc);
  }

  const Node& view_node() const { return node_; }
  AccessMode mode() const { return mode_; }

 private:
  template <class... Indices>
  Access access(SourceLoc loc, const Indices&... indices) const {
    return {
        .view = node_, .coordinates = {indices.node...}, .rank = kRank, .mode = mode_, .loc = loc};
  }
  template <int N>
  static auto vec_at(const Access& access) {
    using V = std::remove_const_t<T>;
    if constexpr (std::is_const_v<T>) {
      return Vec<V, N>(emit_load(access, Vec<V, N>::type(), access.loc));
    } else {
      return VecRef<V, N>(access, Vec<V, N>::type());
    }
  }

  static auto elements_at(const Access& access, int width) {
    using V = std::remove_const_t<T>;
    const NodeType type = elements_type(scalar_of<V>(), width, access.loc);
    // Made where it is returned: a copy would read.
    if constexpr (std::is_const_v<T>) {
      return FragmentRef<V>(access, type).get();
    } else {
      return FragmentRef<V>(access, type);
    }
  }

  Node node_;
  AccessMode mode_;
};

// A view of scalars, or of structs.
template <class T, int kRank>
struct ViewOf {
  using type = View<T, kRank>;
};
template <class T, int kRank>
requires StructElement<std::remove_const_t<T>>
struct ViewOf<T, kRank> {
  using type = StructView<T, kRank>;
};
template <class T, int kRank>
using AnyView = typename ViewOf<T, kRank>::type;

template <class T>
Node new_array_of(bool shared, const int64_t* extents, int rank, SourceLoc loc) {
  if constexpr (StructElement<T>) {
    return new_struct_array(shared, struct_units<T>(), extents, rank, loc);
  } else {
    return shared ? new_shared(scalar_of<T>(), extents, rank, loc)
                  : new_local(scalar_of<T>(), extents, rank, loc);
  }
}

}  // namespace detail

// A kernel's tensor parameter: global memory, extents and strides of the argument. Without a rank,
// Tensor<T> is a tensor with a layout: tensor/tensor.h.
template <class T, int Rank>
class Tensor : public detail::AnyView<T, Rank> {
 public:
  using Base = detail::AnyView<T, Rank>;
  using Base::Base;
};

// A kernel's raw pointer parameter: p(i), with no extent to check against.
template <class T>
class Pointer : public detail::View<T, 1> {
 public:
  using detail::View<T, 1>::View;
};

// Global memory at an address, such as one from a tensor of pointers. It counts as aligned to its
// elements; wider accesses need an address that is known to be a multiple (see assume_divisible).
template <class T>
Pointer<T> pointer(const detail::Arg<uint64_t>& address) {
  return Pointer<T>(detail::emit_pointer(detail::scalar_of<std::remove_const_t<T>>(),
                                         std::is_const_v<T>, address.node, address.loc));
}

// The address of an element. In global memory it is a generic address; in shared memory it counts
// from the start of that, and inline PTX takes its lower 32 bits.
template <class T>
UInt64 address_of(const detail::ElementAddress<T>& place) {
  return UInt64(detail::emit_address(place.access));
}

// An array in the block's shared memory, row-major, with host extents. Its content is undefined
// until written.
template <class T, int Rank = 1>
class Shared : public detail::AnyView<T, Rank> {
 public:
  // An array of `count` elements, or of these extents.
  explicit Shared(int64_t count, SourceLoc loc = SourceLoc::current()) requires(Rank == 1)
      : detail::AnyView<T, Rank>(detail::new_array_of<T>(true, &count, 1, loc)) {}
  explicit Shared(const int64_t (&extents)[Rank], SourceLoc loc = SourceLoc::current())
      : detail::AnyView<T, Rank>(detail::new_array_of<T>(true, extents, Rank, loc)) {}
  explicit Shared(detail::Node node) : detail::AnyView<T, Rank>(node) {}
  template <detail::Readable N>
  HEDDLE_MISTAKE(
      "the extents of a Shared are host numbers: dynamic_shared<T>(n) has as many elements as the "
      "kernel says, of the memory that the launch adds (.shared_bytes)")
  explicit Shared(const N& count);
};

// An array of the thread's own, for indices that the kernel computes. Its content is undefined
// until written. It lies in memory: where all indices are host numbers, a Fragment stays in
// registers.
template <class T, int Rank = 1>
class Local : public detail::AnyView<T, Rank> {
 public:
  // An array of `count` elements, or of these extents.
  explicit Local(int64_t count, SourceLoc loc = SourceLoc::current()) requires(Rank == 1)
      : detail::AnyView<T, Rank>(detail::new_array_of<T>(false, &count, 1, loc)) {}
  explicit Local(const int64_t (&extents)[Rank], SourceLoc loc = SourceLoc::current())
      : detail::AnyView<T, Rank>(detail::new_array_of<T>(false, extents, Rank, loc)) {}
  template <detail::Readable N>
  HEDDLE_MISTAKE(
      "the extents of a Local are host numbers, for it is laid out when the kernel is compiled: "
      "take "
      "the largest that can come")
  explicit Local(const N& count);
};

// A lookup table: a host array that becomes part of the kernel, in constant memory (64 KiB in all).
// Fast where all lanes of a warp read the same element; they take turns where not.
//
//   const Constant<float> weights(std::vector<float>{0.25f, 0.5f, 0.25f});
//   sum += weights(i) * x(row, i);
template <class T>
class Constant : public detail::View<const T, 1> {
 public:
  // A table with the elements of a std::vector, std::array or the like.
  template <class Array>
  requires requires(const Array& array) {
    { *array.data() } -> std::convertible_to<T>;
    array.size();
  }
  explicit Constant(const Array& values, SourceLoc loc = SourceLoc::current())
      : detail::View<const T, 1>(detail::new_table(detail::scalar_of<T>(), values.data(),
                                                   static_cast<int64_t>(values.size()), loc)) {
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*values.data())>, T>,
                  "the array's elements are the table's");
  }
};

// The shared memory that the launch adds (`.shared_bytes`), as `count` elements. Every call gives
// the same memory.
template <class T>
Shared<T> dynamic_shared(detail::Arg<int32_t> count) {
  return Shared<T>(detail::new_dynamic_shared(detail::scalar_of<T>(), count.node, count.loc));
}

}  // namespace heddle
