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

// What accesses to global memory ask of the caches; never what they do.
enum class Cache : uint8_t {
  l2,             // keep it in L2 alone
  streaming,      // likely used once
  last_use,       // reads: will not be used again
  write_through,  // writes: through L2 to memory
  evict_first,    // leaves L1 before others, after others, does not enter it
  evict_last,
  no_allocate,
};
// When the line that an access to global memory brings to L2, or finds there, leaves it again:
// before others, after others, in its turn, or when it would have anyhow.
enum class L2Evict : uint8_t { first, last, normal, unchanged };
// Where a prefetch brings a line to.
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

// Where an element lies, neither read nor written.
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

template <class T, int kRank>
class View {
  static_assert(
      is_scalar<std::remove_const_t<T>>,
      "elements are bool, integers of 8 to 64 bits, float8_e4m3, float8_e5m2, float8_e8m0, "
      "float4_e2m1x2, half, bfloat16, float or double");
  static_assert(kRank >= 1 && kRank <= kMaxRank, "views have one to five modes");

 public:
  using element_type = T;
  static constexpr int rank() { return kRank; }

  explicit View(Node node) : node_(node) {}

  // The same view, whose accesses give the caches a hint, or happen as they are written: each one,
  // in order, and again if it stands in a loop.
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

  // The same view, which asks that of `percent` in a hundred accesses, picked by the hardware; the
  // others leave L2's order alone. For asynchronous copies too.
  View with(L2Evict evict, int percent = 100) const {
    View view = *this;
    view.mode_.l2_evict = static_cast<int8_t>(evict);
    view.mode_.percent = static_cast<int16_t>(percent);
    return view;
  }

  // The element at a coordinate.
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

  // As an array's, where there is one mode.
  auto operator[](const Index& i) const requires(kRank == 1) { return (*this)(i); }

  // With a `_`, the tensor of all elements there (tensor/tensor.h): x(row, _).
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

  // A place, for what takes one: an asynchronous copy, for instance.
  ElementAddress<T> at(const Index& i) const requires(kRank == 1) { return {access(i.loc, i)}; }
  ElementAddress<T> at(const Index& i, const Index& j) const requires(kRank == 2) {
    return {access(j.loc, i, j)};
  }
  ElementAddress<T> at(const Index& i, const Index& j, const Index& k) const requires(kRank == 3) {
    return {access(k.loc, i, j, k)};
  }

  // N elements from a coordinate on along the last mode, in one access: a Vec where T is const,
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

  // The same for a width that is known while tracing, such as vector_width(): a Fragment, or a
  // reference to one.
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

  // Brings the line near that holds an element, in global memory; changes nothing.
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

  // Elements in a mode. shape() is 32-bit: a launch with a larger extent is refused. shape64()
  // takes any.
  Int shape(int dim, SourceLoc loc = SourceLoc::current()) const {
    return Int(emit_extent(node_, dim, false, loc));
  }
  Int64 shape64(int dim, SourceLoc loc = SourceLoc::current()) const {
    return Int64(emit_extent(node_, dim, true, loc));
  }

  // While tracing: how many elements, a power of two, one aligned access can take (1 where nothing
  // is known), and whether 32-bit indices reach everything. What they answer becomes a guard of the
  // compiled kernel.
  int vector_width(int max_bytes = 16) const { return detail::vector_width(node_, max_bytes); }
  bool fits_32() const { return detail::fits_32(node_); }
  bool extent_fits_32(int dim) const { return detail::extent_fits_32(node_, dim); }
  // While tracing: the argument's extent as a host number, to unroll or size arrays by. The kernel
  // is compiled anew for each value that it meets.
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

// Global memory at an address, from wherever the program has it: a tensor of pointers, say. Of
// accesses wider than an element it is only known to be aligned where the address is (see
// assume_divisible).
template <class T>
Pointer<T> pointer(const detail::Arg<uint64_t>& address) {
  return Pointer<T>(detail::emit_pointer(detail::scalar_of<std::remove_const_t<T>>(),
                                         std::is_const_v<T>, address.node, address.loc));
}

// The address of an element: of one in global memory as every address is written, of one in shared
// memory within that (inline PTX takes its lower 32 bits).
template <class T>
UInt64 address_of(const detail::ElementAddress<T>& place) {
  return UInt64(detail::emit_address(place.access));
}

// An array in the block's shared memory, row-major, with host extents. Its content is undefined
// until written.
template <class T, int Rank = 1>
class Shared : public detail::AnyView<T, Rank> {
 public:
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
