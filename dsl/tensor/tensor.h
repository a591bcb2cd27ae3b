// Tensors: memory, registers or coordinates under a layout of any shape, as CuTe has them.
//
//   Tensor<const float> tiles = zipped_divide(x, {128, 64});  // ((128,64),(?,?)):((?,1),...)
//   Tensor<const float> tile = tiles(_, block_idx.x);         // _ keeps a mode
//   Tensor<const float> mine = local_partition(tile, threads, thread_idx.x);
//   Tensor<float> sums = make_tensor<float>({4, 2});          // in registers
//   Tensor<float> square = make_smem_tensor<float>(make_layout({32, 32}, {33, 1}));
//   Tensor<Coord> where = make_identity_tensor({x.shape(0), x.shape(1)});
//   mine(i) = sums(i, 0);                                     // elements, as of any view
//
// A tensor is a *view* (a parameter, shared memory, …) with a layout from the tensor's coordinate
// to the view's. Functions that reshape a layout reshape the tensor, and move no data. The view's
// coordinate says where an element lies and whether it lies within the view: the interpreter
// reports accesses outside of the view, or of the tensor, with the tensor's layout and the
// coordinate.
//
// A mistake is an error of the kernel, with its line; tensors that are made from it are not ok()
// either.
#pragma once

#include <utility>
#include <vector>

#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

enum class Storage : uint8_t { kView, kRegisters, kCoordinates };

// A tensor, whatever its elements.
struct AnyTensor {
  Storage storage = Storage::kCoordinates;
  ir::Scalar scalar{};
  Node node = {};       // the view; or a variable of a fragment
  Layout layout = {};   // to the view's coordinate, or the number of the fragment's element
  IntTuple origin = 0;  // what is added to that
  AccessMode mode = {};
  // What slices fixed of the kernel's numbers, each with the extent that it has to be less than.
  std::vector<std::pair<SymInt, SymInt>> fixed = {};
};

AnyTensor whole_view(const Node& view, ir::Scalar scalar, AccessMode mode, SourceLoc loc);
// Of a view with one mode.
AnyTensor view_as(const Node& view, ir::Scalar scalar, AccessMode mode, const Layout& layout,
                  SourceLoc loc);
AnyTensor new_registers(ir::Scalar scalar, const Layout& layout, SourceLoc loc);
// For a tensor's elements, each one's own.
AnyTensor registers_like(const AnyTensor& tensor, ir::Scalar scalar, SourceLoc loc);
AnyTensor new_shared_tensor(ir::Scalar scalar, const Layout& layout, SourceLoc loc);

// The layout in elements of memory.
Layout memory_layout(const AnyTensor& tensor);
AnyTensor sliced(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc);
AnyTensor moved(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc);
AnyTensor tile_of(const AnyTensor& tensor, const Tiler& tiler, const IntTuple& coord,
                  SourceLoc loc);
AnyTensor partition_of(const AnyTensor& tensor, const Layout& threads, const IntTuple& index,
                       SourceLoc loc);
Access element_access(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc);
IntTuple coordinate_at(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc);
std::string to_string(const AnyTensor& tensor);

// What tensors of all element types have in common.
class TensorBase {
 public:
  explicit TensorBase(AnyTensor any) : any_(static_cast<AnyTensor&&>(any)) {}

  // The layout in elements of memory: that of the first tile above is (128,64):(?,1).
  Layout layout() const { return memory_layout(any_); }
  // The shape.
  const IntTuple& shape() const { return any_.layout.shape(); }
  // Whether it was made without a mistake.
  bool ok() const { return any_.layout.ok(); }
  // "tensor<ptr<f32, gmem> o (128,64):(?,1)>"
  std::string to_string() const;

  const AnyTensor& any() const { return any_; }

 protected:
  AnyTensor any_;
};

template <class... A>
inline constexpr bool has_underscore_type = (std::is_same_v<std::remove_cvref_t<A>, Underscore> ||
                                             ...);
template <class A>
concept CoordinatePart = std::is_convertible_v<const A&, IntTuple>;

template <class T>
constexpr ir::Scalar element_scalar() {
  if constexpr (std::is_same_v<std::remove_const_t<T>, Coord>) {
    return scalar_of<int32_t>();
  } else {
    return scalar_of<std::remove_const_t<T>>();
  }
}

}  // namespace detail

// A tensor with a layout of any shape: memory, registers, or coordinates (Tensor<Coord>). It refers
// to its elements; copies of the object name the same ones.
template <class T>
class Tensor<T, -1> : public detail::TensorBase {
 public:
  using element_type = T;

  // All of a view: a parameter, or shared memory, with its own extents and strides.
  template <class U, int kRank>
  requires(std::is_same_v<U, T> || std::is_same_v<const U, T>)
      Tensor(const detail::View<U, kRank>& view, SourceLoc loc = SourceLoc::current())
      : TensorBase(
            detail::whole_view(view.view_node(), detail::element_scalar<T>(), view.mode(), loc)) {}
  // A tensor may be read through a const one.
  template <class U>
  requires std::is_same_v<const U, T> Tensor(const Tensor<U>& other) : TensorBase(other.any()) {}
  explicit Tensor(detail::AnyTensor any) : TensorBase(static_cast<detail::AnyTensor&&>(any)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Elements are copied by copy() (tensor/copy.h).
  Tensor& operator=(const Tensor&) = delete;

  // The element at a coordinate; with `_` in it, the tensor of all elements there. A coordinate is
  // a number for each mode, a tuple for a mode that has modes, or one number for all of them.
  template <detail::CoordinatePart A>
  auto operator()(const A& a, SourceLoc loc = SourceLoc::current()) const {
    return index<detail::has_underscore_type<A>>(IntTuple(a), loc);
  }
  auto operator()(std::initializer_list<IntTuple> coord,
                  SourceLoc loc = SourceLoc::current()) const {
    return index<false>(IntTuple(coord), loc);
  }
  template <detail::CoordinatePart A, detail::CoordinatePart B>
  auto operator()(const A& a, const B& b, SourceLoc loc = SourceLoc::current()) const {
    return index<detail::has_underscore_type<A, B>>({a, b}, loc);
  }
  template <detail::CoordinatePart A, detail::CoordinatePart B, detail::CoordinatePart C>
  auto operator()(const A& a, const B& b, const C& c, SourceLoc loc = SourceLoc::current()) const {
    return index<detail::has_underscore_type<A, B, C>>({a, b, c}, loc);
  }
  template <detail::CoordinatePart A, detail::CoordinatePart B, detail::CoordinatePart C,
            detail::CoordinatePart D>
  auto operator()(const A& a, const B& b, const C& c, const D& d,
                  SourceLoc loc = SourceLoc::current()) const {
    return index<detail::has_underscore_type<A, B, C, D>>({a, b, c, d}, loc);
  }
  // The tensor that a coordinate with `_` at any depth leaves.
  Tensor slice(const IntTuple& coord, SourceLoc loc = SourceLoc::current()) const {
    return Tensor(detail::sliced(any_, coord, loc));
  }
  // The place of an element, for asynchronous copies and address_of().
  auto at(const IntTuple& coord, SourceLoc loc = SourceLoc::current()) const {
    return detail::ElementAddress<T>{detail::element_access(any_, coord, loc)};
  }

  // The same memory under another layout, which is made from this tensor's.
  Tensor with_layout(Layout layout) const {
    detail::AnyTensor any = any_;
    any.layout = static_cast<Layout&&>(layout);
    return Tensor(static_cast<detail::AnyTensor&&>(any));
  }

 private:
  template <bool kSlice>
  auto index(const IntTuple& coord, SourceLoc loc) const {
    if constexpr (kSlice) {
      return slice(coord, loc);
    } else if constexpr (std::is_same_v<std::remove_const_t<T>, Coord>) {
      return detail::coordinate_at(any_, coord, loc);
    } else {
      return detail::element_at<T>(detail::element_access(any_, coord, loc));
    }
  }
};

namespace detail {

template <class X>
struct TensorElement {};
template <class T>
struct TensorElement<Tensor<T>> {
  using type = T;
};
template <class X>
requires requires(const X& x) { x.view_node(); }
struct TensorElement<X> {
  using type = typename X::element_type;
};

// A tensor, or a view that becomes one.
template <class X>
concept TensorLike = requires {
  typename TensorElement<X>::type;
};
template <TensorLike X>
Tensor<typename TensorElement<X>::type> as_tensor(const X& x, SourceLoc loc) {
  if constexpr (requires { x.any(); }) {
    return x;
  } else {
    return {x, loc};
  }
}

}  // namespace detail

// --- Making ----------------------------------------------------------------------------------

// A tensor in the thread's registers. Its content is undefined until written. Coordinates of its
// elements are host numbers.
template <class T>
Tensor<T> make_tensor(const Layout& layout, SourceLoc loc = SourceLoc::current()) {
  return Tensor<T>(detail::new_registers(detail::element_scalar<T>(), layout, loc));
}
template <class T>
Tensor<T> make_tensor(const IntTuple& shape, SourceLoc loc = SourceLoc::current()) {
  return make_tensor<T>(make_layout(shape), loc);
}
template <class T>
Tensor<T> make_tensor(std::initializer_list<IntTuple> shape, SourceLoc loc = SourceLoc::current()) {
  return make_tensor<T>(make_layout(IntTuple(shape)), loc);
}
// A tensor in the block's shared memory, of as many elements as the layout reaches. Under a swizzle
// it is aligned to the swizzle's span, 2^(B+M+|S|) elements, up to 1024 bytes.
template <class T>
Tensor<T> make_smem_tensor(const Layout& layout, SourceLoc loc = SourceLoc::current()) {
  return Tensor<T>(detail::new_shared_tensor(detail::element_scalar<T>(), layout, loc));
}
// A tensor over memory with one index: a Pointer, Shared<T>, Local<T> or Constant<T>.
template <class T>
Tensor<T> make_tensor(const detail::View<T, 1>& view, const Layout& layout,
                      SourceLoc loc = SourceLoc::current()) {
  return Tensor<T>(
      detail::view_as(view.view_node(), detail::element_scalar<T>(), view.mode(), layout, loc));
}
// A tensor in registers with the shape of another, where the first mode is contiguous.
template <class T, detail::TensorLike X>
Tensor<T> make_fragment_like(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Tensor<T>(
      detail::registers_like(detail::as_tensor(x, loc).any(), detail::element_scalar<T>(), loc));
}
template <detail::TensorLike X>
auto make_fragment_like(const X& x, SourceLoc loc = SourceLoc::current()) {
  using T = std::remove_const_t<typename detail::TensorElement<X>::type>;
  return make_fragment_like<T>(x, loc);
}
// The identity tensor: each element is its own coordinate. Partitioned as a tensor of data is, it
// has the coordinates of the thread's elements.
inline Tensor<Coord> make_identity_tensor(const IntTuple& shape) {
  detail::AnyTensor any;
  any.layout = make_identity_layout(shape);
  return Tensor<Coord>(any);
}

// --- Questions -------------------------------------------------------------------------------

// The shape of a tensor or view, its number of elements, and its rank.
template <detail::TensorLike X>
IntTuple shape(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::as_tensor(x, loc).shape();
}
template <detail::TensorLike X>
SymInt size(const X& x, SourceLoc loc = SourceLoc::current()) {
  return size(detail::as_tensor(x, loc).shape(), loc);
}
// The number of elements of one mode.
template <int kMode, detail::TensorLike X>
SymInt size(const X& x, SourceLoc loc = SourceLoc::current()) {
  return size(get(detail::as_tensor(x, loc).shape(), kMode, loc), loc);
}
// How many modes it has.
template <class T>
int rank(const Tensor<T>& x) {
  return rank(x.shape());
}

// --- Other layouts of the same elements --------------------------------------------------------
//
// As the functions of layout.h by these names do it.

// The tensor under a divided, composed or covered layout: see the function of this name for
// layouts.
#define HEDDLE_TENSOR_TILED(name)                                                   \
  template <detail::TensorLike X>                                                   \
  auto name(const X& x, const Tiler& tiler, SourceLoc loc = SourceLoc::current()) { \
    const auto tensor = detail::as_tensor(x, loc);                                  \
    return tensor.with_layout(name(tensor.any().layout, tiler, loc));               \
  }
HEDDLE_TENSOR_TILED(composition)
HEDDLE_TENSOR_TILED(logical_divide)
HEDDLE_TENSOR_TILED(zipped_divide)
HEDDLE_TENSOR_TILED(tiled_divide)
HEDDLE_TENSOR_TILED(flat_divide)
HEDDLE_TENSOR_TILED(cover)
#undef HEDDLE_TENSOR_TILED

// The tensor with its modes flattened, coalesced, filtered, grouped or selected: see the function
// of this name for layouts.
template <detail::TensorLike X>
auto flatten(const X& x, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return tensor.with_layout(flatten(tensor.any().layout));
}
template <detail::TensorLike X>
auto coalesce(const X& x, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return tensor.with_layout(coalesce(tensor.any().layout));
}
template <detail::TensorLike X>
auto filter_zeros(const X& x, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return tensor.with_layout(filter_zeros(tensor.any().layout));
}
template <detail::TensorLike X>
auto group_modes(const X& x, int begin, int end, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return tensor.with_layout(group_modes(tensor.any().layout, begin, end, loc));
}
template <detail::TensorLike X>
auto select(const X& x, std::initializer_list<int> modes, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return tensor.with_layout(select(tensor.any().layout, modes, loc));
}
// The tensor that begins at a coordinate of this one.
template <detail::TensorLike X>
auto domain_offset(const IntTuple& coord, const X& x, SourceLoc loc = SourceLoc::current()) {
  const auto tensor = detail::as_tensor(x, loc);
  return std::remove_const_t<decltype(tensor)>(detail::moved(tensor.any(), coord, loc));
}

// The tile at a coordinate among the tiles; where the coordinate has `_`, all tiles along that
// mode. A step leaves out modes of the tiler and the coordinate, as layout.h says:
//
//   local_tile(a, {128, 128, 8}, {block_m, block_n, _}, {1, _, 1})       // (128,8,k)
template <detail::TensorLike X>
auto local_tile(const X& x, const Tiler& tiler, const IntTuple& coord,
                SourceLoc loc = SourceLoc::current()) {
  using Result = Tensor<typename detail::TensorElement<X>::type>;
  return Result(detail::tile_of(detail::as_tensor(x, loc).any(), tiler, coord, loc));
}
template <detail::TensorLike X>
auto local_tile(const X& x, const Tiler& tiler, const IntTuple& coord, const IntTuple& step,
                SourceLoc loc = SourceLoc::current()) {
  return local_tile(x, dice(step, tiler, loc), dice(step, coord, loc), loc);
}
// The elements of a thread, of number or coordinate `index`: `threads` is the layout of the threads
// over a tile, which is repeated over the tensor. A step leaves out modes of the threads; threads
// that differ in those have the same elements.
template <detail::TensorLike X>
auto local_partition(const X& x, const Layout& threads, const IntTuple& index,
                     SourceLoc loc = SourceLoc::current()) {
  using Result = Tensor<typename detail::TensorElement<X>::type>;
  return Result(detail::partition_of(detail::as_tensor(x, loc).any(), threads, index, loc));
}
template <detail::TensorLike X>
auto local_partition(const X& x, const Layout& threads, const IntTuple& index, const IntTuple& step,
                     SourceLoc loc = SourceLoc::current()) {
  return local_partition(x, dice(step, threads, loc), index, loc);
}

}  // namespace heddle
