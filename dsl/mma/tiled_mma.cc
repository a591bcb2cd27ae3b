#include "heddle/dsl/mma/tiled_mma.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/contract.h"
#include "heddle/dsl/layout/modes_internal.h"

namespace heddle {

namespace {

Layout failed(const Layout& a, const Layout& b) { return a.ok() ? b : a; }

int64_t extent(const Layout& atoms, int mode) { return size(get(atoms, mode)).value(); }

}  // namespace

TiledMma::TiledMma(const MmaAtom& atom, const Layout& atoms, const Tiler& permutation,
                   SourceLoc loc)
    : atom_(atom), atoms_(atoms), threads_(atoms), permutation_(permutation) {
  if (!atom.ok() || !atoms.ok()) return;
  const auto wrong = [&](const std::string& what, const char* fix) {
    threads_ =
        detail::fail_layout(loc, absl::StrCat("TiledMma of ", atom.to_string(), ": ", what), fix);
  };
  const bool is_flat = rank(atoms) == 3 && depth(atoms) == 1 && is_static(atoms);
  if (!is_flat || !(cosize(atoms) == size(atoms)) || size(atoms).value() < 1) {
    wrong(absl::StrCat("atoms ", atoms.to_string()),
          "the layout of atoms is (m,n,k) of host numbers, to each number below its size");
    return;
  }
  if (permutation.kind() != Tiler::Kind::kModes || permutation.rank() != 3 || !permutation.ok()) {
    wrong(absl::StrCat("the permutation ", permutation.to_string()),
          "it has a tiler, a number or _ for each of m, n and k");
    return;
  }
  threads_ = Layout(prepend(atoms.shape(), atom.threads()),
                    prepend(elem_scale(atoms.stride(), atom.threads()), 1));
  IntTuple tile;
  for (int mode = 0; mode < 3; ++mode) {
    const int64_t covered = size(get(atom.shape_mnk(), mode)).value() * extent(atoms, mode);
    const Tiler& permuted = permutation.mode(mode);
    SymInt wanted = covered;
    if (permuted.kind() == Tiler::Kind::kLayout) wanted = size(permuted.layout());
    if (permuted.kind() == Tiler::Kind::kModes || !wanted.is_constant() || wanted.value() <= 0 ||
        wanted.value() % covered != 0) {
      wrong(absl::StrCat("the permutation ", permuted.to_string(), " of mode ", mode),
            "its size is a multiple of what the atoms cover, without it, along that mode");
      return;
    }
    tile = append(tile, wanted.value());
  }
  tile_ = tile;
}

Layout TiledMma::thrfrg(const Layout& layout, const Operand& operand, SourceLoc loc) const {
  if (!layout.ok() || !ok()) return layout.ok() ? failed(threads_, atom_.layout_A()) : layout;
  const int row = operand.modes[0], column = operand.modes[1];
  const Layout permuted = logical_divide(
      layout.outer(), Tiler({permutation_.mode(row), permutation_.mode(column)}), loc);
  const IntTuple mnk = atom_.shape_mnk();
  const Layout tiles = zipped_divide(permuted, Tiler({get(mnk, row), get(mnk, column)}), loc);
  if (!tiles.ok()) return tiles;
  const Layout atom = composition(get(tiles, 0), *operand.atom, loc);
  const Layout rest = zipped_divide(
      get(tiles, 1), Tiler({SymInt(extent(atoms_, row)), SymInt(extent(atoms_, column))}), loc);
  if (!atom.ok() || !rest.ok()) return failed(atom, rest);
  return layout.with_outer(make_layout(make_layout(get(atom, 0), get(rest, 0)),
                                       make_layout(get(atom, 1), get(rest, 1))));
}

Layout TiledMma::thrfrg_A(const Layout& layout, SourceLoc loc) const {
  return thrfrg(layout, operand_a(), loc);
}
Layout TiledMma::thrfrg_B(const Layout& layout, SourceLoc loc) const {
  return thrfrg(layout, operand_b(), loc);
}
Layout TiledMma::thrfrg_C(const Layout& layout, SourceLoc loc) const {
  return thrfrg(layout, operand_c(), loc);
}

// Threads that differ in the mode which an operand does not have hold the same elements of it.
Layout TiledMma::layout_tv(const Operand& operand, SourceLoc loc) const {
  if (!ok()) return failed(threads_, atom_.layout_A());
  const IntTuple tile = {get(tile_, operand.modes[0]), get(tile_, operand.modes[1])};
  const Layout tv = thrfrg(make_layout(tile), operand, loc);
  if (!tv.ok()) return tv;
  std::vector<Layout> modes;
  for (int mode = 0; mode < 3; ++mode) {
    modes.push_back(mode == operand.modes[0]   ? get(tv, {0, 1, 0})
                    : mode == operand.modes[1] ? get(tv, {0, 1, 1})
                                               : make_layout(extent(atoms_, mode), 0));
  }
  const Layout vmnk = make_layout(get(tv, {0, 0}), modes[0], modes[1], modes[2]);
  const Layout threads = composition(vmnk, right_inverse(threads_, loc), loc);
  if (!threads.ok()) return threads;
  return coalesce(make_layout(threads, get(tv, 1)), {1, 1}, loc);
}

Layout TiledMma::layout_A_tv(SourceLoc loc) const { return layout_tv(operand_a(), loc); }
Layout TiledMma::layout_B_tv(SourceLoc loc) const { return layout_tv(operand_b(), loc); }
Layout TiledMma::layout_C_tv(SourceLoc loc) const { return layout_tv(operand_c(), loc); }

ThrMma TiledMma::get_slice(const IntTuple& thread, SourceLoc loc) const {
  if (ok()) detail::require_threads(threads(), "a TiledMma", loc);
  return {*this, thread, loc};
}

namespace {

// The coordinate (m,n,k) of an atom's number.
IntTuple atom_at(const SymInt& number, const Layout& atoms) {
  IntTuple coord;
  const int64_t count = size(atoms).value();
  for (int mode = 0; mode < 3; ++mode) {
    const int64_t size = extent(atoms, mode), stride = get(atoms.stride(), mode).value().value();
    SymInt at = size == 1 ? SymInt(0) : floor_div(number, stride);
    if (size * stride < count && size > 1) at = mod(at, size);
    coord = append(coord, at);
  }
  return coord;
}

}  // namespace

ThrMma::ThrMma(const TiledMma& mma, const IntTuple& thread, SourceLoc loc)
    : mma_(mma), thread_(thread) {
  if (!mma.ok() || !thread.ok()) return;
  if (!thread.is_int()) {
    thread_ = mma.thr_layout_vmnk()(thread, loc);
    if (!thread_.ok()) return;
  }
  const SymInt& number = thread_.value();
  const int64_t together = mma.atom().threads();
  const bool alone = mma.threads() == together;
  const SymInt lane = alone ? number : mod(number, together);
  const SymInt atom = alone ? SymInt(0) : floor_div(number, together);
  vmnk_ = prepend(atom_at(atom, mma.atoms_), lane);
}

detail::AnyTensor ThrMma::part_of(const detail::AnyTensor& tensor, const TiledMma::Operand& operand,
                                  SourceLoc loc) const {
  detail::AnyTensor part = tensor;
  part.layout = mma_.thrfrg(tensor.layout, operand, loc);
  if (!part.layout.ok() || !vmnk_.ok() || !thread_.ok()) return part;
  // All threads have all of a tile in shared memory.
  const IntTuple lane = operand.in_smem ? IntTuple(0) : get(vmnk_, 0);
  const IntTuple threads = {lane,
                            {get(vmnk_, 1 + operand.modes[0]), get(vmnk_, 1 + operand.modes[1])}};
  return detail::sliced(part, {threads, {_, repeat_as_tuple(_, rank(tensor.layout))}}, loc);
}

TiledMma make_tiled_mma(const MmaAtom& atom, const Layout& atoms, const Tiler& permutation,
                        SourceLoc loc) {
  return TiledMma(atom, atoms, permutation, loc);
}

namespace {

// (values,(modes…)) as (values,modes…).
IntTuple fragment_shape(const Layout& thrfrg) {
  if (!thrfrg.ok()) return thrfrg.shape();
  const IntTuple fragment = get(thrfrg.shape(), 1);
  return prepend(get(fragment, 1), get(fragment, 0));
}

}  // namespace

IntTuple partition_shape_A(const TiledMma& mma, const IntTuple& mk, SourceLoc loc) {
  return fragment_shape(mma.thrfrg_A(make_layout(mk), loc));
}
IntTuple partition_shape_B(const TiledMma& mma, const IntTuple& nk, SourceLoc loc) {
  return fragment_shape(mma.thrfrg_B(make_layout(nk), loc));
}
IntTuple partition_shape_C(const TiledMma& mma, const IntTuple& mn, SourceLoc loc) {
  return fragment_shape(mma.thrfrg_C(make_layout(mn), loc));
}

namespace {

// An instruction takes whole lines of a tile that is contiguous along its rows.
Layout smem_layout_of(ir::Scalar scalar, bool in_smem, int rows, const IntTuple& shape, Major major,
                      SourceLoc loc) {
  return detail::make_smem_layout(scalar, shape, major,
                                  {.part = in_smem && major == Major::mn ? int64_t{rows} : 0}, loc);
}

}  // namespace

Layout make_smem_layout_A(const TiledMma& mma, const IntTuple& shape, Major major, SourceLoc loc) {
  const MmaAtom& atom = mma.atom();
  if (!atom.ok()) return atom.layout_A();
  return smem_layout_of(atom.a(), atom.a_in_smem(), atom.m(), shape, major, loc);
}
Layout make_smem_layout_B(const TiledMma& mma, const IntTuple& shape, Major major, SourceLoc loc) {
  const MmaAtom& atom = mma.atom();
  if (!atom.ok()) return atom.layout_A();
  return smem_layout_of(atom.b(), atom.b_in_smem(), atom.n(), shape, major, loc);
}

TiledCopy make_tiled_copy_A(const CopyAtom& atom, const TiledMma& mma, SourceLoc loc) {
  const IntTuple& mnk = mma.tile_mnk();
  return TiledCopy(atom, mma.layout_A_tv(loc), mma.ok() ? select(mnk, {0, 2}) : IntTuple(1), loc);
}
TiledCopy make_tiled_copy_B(const CopyAtom& atom, const TiledMma& mma, SourceLoc loc) {
  const IntTuple& mnk = mma.tile_mnk();
  return TiledCopy(atom, mma.layout_B_tv(loc), mma.ok() ? select(mnk, {1, 2}) : IntTuple(1), loc);
}
TiledCopy make_tiled_copy_C(const CopyAtom& atom, const TiledMma& mma, SourceLoc loc) {
  const IntTuple& mnk = mma.tile_mnk();
  return TiledCopy(atom, mma.layout_C_tv(loc), mma.ok() ? select(mnk, {0, 1}) : IntTuple(1), loc);
}

}  // namespace heddle
