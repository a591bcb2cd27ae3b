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
// Names and meanings are CuTe's. An access has just the atom's width, or it is an error that says
// why it cannot: copy(from, to) without an atom finds the widest by itself.
#pragma once

#include "heddle/dsl/contract.h"
#include "heddle/dsl/tensor/copy.h"
#include "heddle/dsl/tensor/copy_atom.h"

namespace heddle {

class ThrCopy;

class TiledCopy {
 public:
  // `tv`: (thread, value) to the index in a tile of these extents.
  TiledCopy(const CopyAtom& atom, const Layout& tv, const IntTuple& tiler,
            SourceLoc loc = SourceLoc::current());

  const CopyAtom& atom() const { return atom_; }
  const Layout& layout_tv() const { return tv_; }
  const IntTuple& tiler() const { return tiler_; }
  // Threads that take part.
  int64_t threads() const { return size(get(tv_, 0)).value(); }
  bool ok() const { return atom_.ok() && tv_.ok(); }

  // A thread's view of it, by its number. A block of fewer threads than take part is an error.
  ThrCopy get_slice(const IntTuple& thread, SourceLoc loc = SourceLoc::current()) const;

  // A layout as (threads,values,rest…), from the source's or the destination's side;
  // (values,modes…) of registers that were partitioned for another copy, as this one takes them.
  Layout tidfrg_S(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout tidfrg_D(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout retile(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  // The side's (thread, value) to the index in the tile: what a picture shows.
  Layout layout_S_tv(SourceLoc loc = SourceLoc::current()) const;
  Layout layout_D_tv(SourceLoc loc = SourceLoc::current()) const;

 private:
  Layout side_tv(const Layout& side, SourceLoc loc) const;
  Layout tidfrg(const Layout& layout, const Layout& side, SourceLoc loc) const;

  CopyAtom atom_;
  Layout tv_;
  IntTuple tiler_;
};

class ThrCopy {
 public:
  ThrCopy(const TiledCopy& tiled, const IntTuple& thread) : tiled_(tiled), thread_(thread) {}

  // This thread's elements of a tensor, (values,rest…), as source and as destination.
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

// Threads in the order of `threads`, each with values in the order of `values`: the tile is the
// raked product of both.
inline TiledCopy make_tiled_copy(const CopyAtom& atom, const Layout& threads, const Layout& values,
                                 SourceLoc loc = SourceLoc::current()) {
  const auto [tile, tv] = make_layout_tv(threads, values, loc);
  return TiledCopy(atom, tv, tile, loc);
}

namespace detail {

void copy_tiled(const CopyAtom& atom, const Predicate& predicate, const AnyTensor& from,
                const AnyTensor& to, SourceLoc loc);

}  // namespace detail

// Between tensors that were partitioned by the tiled copy, or for one thread's atoms. What an
// asynchronous copy brings is there behind copy_async_wait() (async.h).
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
// An access happens as a whole or not at all. The predicate is of the source's partition; of an
// asynchronous copy that does not happen the destination is filled with zeros, else it stays.
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
