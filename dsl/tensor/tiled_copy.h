// Tiled copies: an atom over the threads of a block and the values of each.
//
//   const auto atom = make_copy_atom<float>(CopyUniversal{128});
//   const Layout threads = make_layout({8, 16}, {16, 1});
//   const TiledCopy tiled = make_tiled_copy(atom, threads, make_layout({1, 4}));   // values of each
//   const ThrCopy mine = tiled.get_slice(thread_idx.x);
//   auto from = mine.partition_S(x_tile);                  // (values,rest…): this thread's part
//   auto to = mine.partition_D(shared_tile);
//   copy(tiled, from, to);                                 // or copy_if with a predicate in front
//
// Names and meanings are CuTe's. Each access has exactly the atom's width; where that is not
// possible, it is an error of the kernel that says why. copy(from, to) without an atom finds the
// widest access.
#pragma once

#include "heddle/dsl/contract.h"
#include "heddle/dsl/tensor/copy.h"
#include "heddle/dsl/tensor/copy_atom.h"

namespace heddle {

class ThrCopy;

// A tiled copy: a copy atom, laid over the threads of a block and the values of each.
class TiledCopy {
 public:
  // `tv` is the layout from (thread, value) to the index in a tile of these extents.
  TiledCopy(const CopyAtom& atom, const Layout& tv, const IntTuple& tiler,
            SourceLoc loc = SourceLoc::current());

  const CopyAtom& atom() const { return atom_; }
  // Its layout from (thread, value) to the index in the tile, and the tile's extents.
  const Layout& layout_tv() const { return tv_; }
  const IntTuple& tiler() const { return tiler_; }
  // How many threads take part.
  int64_t threads() const { return size(get(tv_, 0)).value(); }
  // Whether it was made without a mistake.
  bool ok() const { return atom_.ok() && tv_.ok(); }

  // The part of one thread, by its number. It is an error of the kernel where the block has fewer
  // threads than take part.
  ThrCopy get_slice(const IntTuple& thread, SourceLoc loc = SourceLoc::current()) const;

  // A layout as (threads,values,rest…), from the source's side (tidfrg_S) or the destination's
  // (tidfrg_D). retile: the layout (values,modes…) of registers that were partitioned for another
  // copy, as this copy takes them.
  Layout tidfrg_S(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout tidfrg_D(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout retile(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  // The layout from (thread, value) to the index in the tile, of either side: what a picture shows.
  Layout layout_S_tv(SourceLoc loc = SourceLoc::current()) const;
  Layout layout_D_tv(SourceLoc loc = SourceLoc::current()) const;

 private:
  Layout side_tv(const Layout& side, SourceLoc loc) const;
  Layout tidfrg(const Layout& layout, const Layout& side, SourceLoc loc) const;

  CopyAtom atom_;
  Layout tv_;
  IntTuple tiler_;
};

// The part of one thread in a tiled copy; get_slice() makes it.
class ThrCopy {
 public:
  // For get_slice().
  ThrCopy(const TiledCopy& tiled, const IntTuple& thread) : tiled_(tiled), thread_(thread) {}

  // The thread's elements of a tensor, (values,rest…), as source (partition_S) or destination
  // (partition_D).
  template <detail::TensorLike X>
  auto partition_S(const X& x, SourceLoc loc = SourceLoc::current()) const {
    const auto tensor = detail::as_tensor(x, loc);
    return part(tensor.with_layout(tiled_.tidfrg_S(tensor.any().layout, loc)), rank(tensor.shape()),
                loc);
  }
  template <detail::TensorLike X>
  auto partition_D(const X& x, SourceLoc loc = SourceLoc::current()) const {
    const auto tensor = detail::as_tensor(x, loc);
    return part(tensor.with_layout(tiled_.tidfrg_D(tensor.any().layout, loc)), rank(tensor.shape()),
                loc);
  }
  // Registers that were partitioned for another copy or product, as this copy takes them.
  template <class T>
  Tensor<T> retile(const Tensor<T>& x, SourceLoc loc = SourceLoc::current()) const {
    return x.with_layout(tiled_.retile(x.any().layout, loc));
  }

 private:
  template <class T>
  Tensor<T> part(const Tensor<T>& tiles, int modes, SourceLoc loc) const {
    if (!tiles.ok()) return tiles;
    return tiles.slice({thread_, _, repeat_as_tuple(_, modes)}, loc);
  }

  TiledCopy tiled_;
  IntTuple thread_;
};

inline ThrCopy TiledCopy::get_slice(const IntTuple& thread, SourceLoc loc) const {
  if (ok()) detail::require_threads(threads(), "a TiledCopy", loc);
  return {*this, thread};
}

// Makes a tiled copy of threads in the order of `threads`, each with values in the order of
// `values`. The tile is the raked product of the two.
inline TiledCopy make_tiled_copy(const CopyAtom& atom, const Layout& threads, const Layout& values,
                                 SourceLoc loc = SourceLoc::current()) {
  const auto [tile, tv] = make_layout_tv(threads, values, loc);
  return TiledCopy(atom, tv, tile, loc);
}

namespace detail {

void copy_tiled(const CopyAtom& atom, const Predicate& predicate, const AnyTensor& from,
                const AnyTensor& to, SourceLoc loc);

}  // namespace detail

// Copies between tensors that were partitioned by the tiled copy, or as (values,rest…) of an atom.
// Data of an asynchronous copy have arrived after copy_async_wait() (async.h).
template <detail::TensorLike From, detail::Writable To>
void copy(const CopyAtom& atom, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  detail::copy_tiled(atom, {}, detail::as_tensor(from, loc).any(), detail::as_tensor(to, loc).any(),
                     loc);
}
template <detail::TensorLike From, detail::Writable To>
void copy(const TiledCopy& tiled, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  copy(tiled.atom(), from, to, loc);
}
// Copies where a predicate holds, which belongs to the source's partition. An access happens as a
// whole or not at all. Where it does not happen, an asynchronous copy fills the destination with
// zeros; other copies leave it as it is.
template <detail::TensorLike From, detail::Writable To>
void copy_if(const TiledCopy& tiled, const Tensor<const bool>& predicate, const From& from,
             const To& to, SourceLoc loc = SourceLoc::current()) {
  detail::copy_tiled(tiled.atom(), {.flags = &predicate.any()}, detail::as_tensor(from, loc).any(),
                     detail::as_tensor(to, loc).any(), loc);
}
template <detail::TensorLike From, detail::Writable To>
void copy_if(const TiledCopy& tiled, const Within& predicate, const From& from, const To& to,
             SourceLoc loc = SourceLoc::current()) {
  detail::copy_tiled(tiled.atom(), {.within = &predicate}, detail::as_tensor(from, loc).any(),
                     detail::as_tensor(to, loc).any(), loc);
}

}  // namespace heddle
