#include "heddle/dsl/tensor/tiled_copy.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/cuda/async.h"
#include "heddle/dsl/cuda/matrix.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/tensor/runs_internal.h"

namespace heddle {

namespace {

Layout failed(const Layout& a, const Layout& b) { return a.ok() ? b : a; }

// A layout as another shape of the same size.
Layout with_shape(const Layout& layout, const IntTuple& shape, SourceLoc loc) {
  return composition(layout, make_layout(shape), loc);
}

}  // namespace

TiledCopy::TiledCopy(const CopyAtom& atom, const Layout& tv, const IntTuple& tiler, SourceLoc loc)
    : atom_(atom), tv_(tv), tiler_(tiler) {
  if (!atom.ok() || !tv.ok()) return;
  const Layout& reference = atom.reference();
  const SymInt threads = size(get(reference, 0)), values = size(get(reference, 1));
  if (rank(tv) == 2 && is_static(tv) && divides(threads, size(get(tv, 0))) &&
      divides(values, size(get(tv, 1)))) {
    return;
  }
  tv_ = detail::fail_layout(
      loc,
      absl::StrCat("TiledCopy: an atom of ", threads.value(), " threads with ", values.value(),
                   " values each over ", tv.to_string()),
      "the layout is (threads,values) of host numbers, both multiples of the atom's");
}

// The tiling is by the atom's reference layout. What a thread of one side has is what threads of
// the reference have at the same elements.
Layout TiledCopy::side_tv(const Layout& side, SourceLoc loc) const {
  const Layout& reference = atom_.reference();
  const Layout to_reference = composition(right_inverse(reference, loc), side, loc);
  const Layout atoms =
      zipped_divide(tv_, Tiler({size(get(reference, 0)), size(get(reference, 1))}), loc);
  if (!to_reference.ok() || !atoms.ok()) return failed(to_reference, atoms);
  // ((atom thread,atom value),(rest thread,rest value)), and so ((threads),(values)).
  const Layout atom = composition(get(atoms, 0), to_reference, loc), rest = get(atoms, 1);
  if (!atom.ok()) return atom;
  const Layout zipped =
      make_layout(make_layout(get(atom, 0), get(rest, 0)), make_layout(get(atom, 1), get(rest, 1)));
  return coalesce(zipped, {1, {1, 1}}, loc);
}

Layout TiledCopy::layout_S_tv(SourceLoc loc) const { return side_tv(atom_.source(), loc); }
Layout TiledCopy::layout_D_tv(SourceLoc loc) const { return side_tv(atom_.destination(), loc); }

Layout TiledCopy::tidfrg(const Layout& layout, const Layout& side, SourceLoc loc) const {
  if (!layout.ok() || !ok()) return layout.ok() ? failed(tv_, atom_.source()) : layout;
  const Layout tiles = zipped_divide(layout, Tiler(tiler_), loc);
  const Layout thread_values = side_tv(side, loc);
  if (!tiles.ok() || !thread_values.ok()) return failed(tiles, thread_values);
  const Layout tile = composition(get(tiles, 0), thread_values, loc);
  if (!tile.ok()) return tile;
  return layout.with_outer(
      make_layout(get(tile, 0).outer(), get(tile, 1).outer(), get(tiles, 1).outer()));
}

Layout TiledCopy::tidfrg_S(const Layout& layout, SourceLoc loc) const {
  return tidfrg(layout, atom_.source(), loc);
}
Layout TiledCopy::tidfrg_D(const Layout& layout, SourceLoc loc) const {
  return tidfrg(layout, atom_.destination(), loc);
}

Layout TiledCopy::retile(const Layout& layout, SourceLoc loc) const {
  if (!layout.ok() || !ok()) return layout.ok() ? failed(tv_, atom_.source()) : layout;
  const SymInt values = size(get(layout, 0), loc), threads = size(get(tv_, 0));
  const SymInt atom_values = size(get(atom_.reference(), 1));
  // (m,n) to the number of the fragment: which of the first `values` of all threads lie together.
  const Layout tile = with_shape(right_inverse(tv_, loc), tiler_, loc);
  const SymInt together = threads * values;
  if (!together.is_constant()) return layout;
  const Layout fragments = recast_layout(tile, 1, static_cast<int>(together.value()), loc);
  // (atom values,other values) to (v,m,n) of the fragments.
  const Layout order =
      zipped_divide(logical_product(make_layout(values), right_inverse(fragments, loc), loc),
                    Tiler(make_layout(atom_values)), loc);
  if (!order.ok()) return order;
  const IntTuple whole = prepend(product_each(fragments.shape()), values);
  const Layout tiles = zipped_divide(layout, Tiler(whole), loc);
  if (!tiles.ok()) return tiles;
  const Layout mine = composition(get(tiles, 0), order, loc);
  if (!mine.ok()) return mine;
  // Of the rest, the values' mode is gone.
  return slice({_, append(IntTuple{0}, _, rank(layout))}, make_layout(mine, get(tiles, 1)), loc);
}

namespace detail {
namespace {

// Elements of each thread, of a side's (thread, value).
int values_of(const Layout& side) { return static_cast<int>(size(get(side, 1)).value()); }

// Whether matrices go between such tensors, as many on both sides.
bool match(const CopyAtom& atom, const AnyTensor& memory, const AnyTensor& registers,
           const char* name, int64_t rows, int64_t fragments, SourceLoc loc) {
  if (memory.storage == Storage::kView && registers.storage == Storage::kRegisters &&
      memory.scalar == atom.scalar() && registers.scalar == atom.scalar() && rows == fragments) {
    return true;
  }
  fail(loc,
       absl::StrCat("copy: ", name, " between ", to_string(memory), " and ", to_string(registers)),
       absl::StrCat("it moves elements of ", ir::info(atom.scalar()).name,
                    " between shared memory and registers, both partitioned by the tiled copy"));
  return false;
}

void copy_async_atoms(const CopyAtom& atom, const Predicate& predicate, const AnyTensor& from,
                      const AnyTensor& to, SourceLoc loc) {
  const int width = values_of(atom.source());
  const int64_t count = static_size(from, "copy", loc);
  const auto space = [](const AnyTensor& tensor) {
    return Trace::current()->kernel().type(Trace::current()->use(tensor.node, {})).space;
  };
  if (from.storage != Storage::kView || to.storage != Storage::kView ||
      space(from) != ir::Space::kGlobal || space(to) != ir::Space::kShared ||
      from.scalar != to.scalar) {
    fail(loc, absl::StrCat("copy: CopyAsync from ", to_string(from), " to ", to_string(to)),
         "cp.async goes from global to shared memory, between equal element types");
    return;
  }
  if (count == 0) return;
  const Runs sources(from, count, predicate, width, loc), places(to, count, {}, width, loc);
  if (sources.width() != width || places.width() != width) return;
  for (int64_t run = 0; run < sources.count(); ++run) {
    const auto guard = condition(predicate, sources.number(run, 0), loc);
    emit_copy_async(access_to(to, places, run, loc), access_to(from, sources, run, loc),
                    from.scalar, width, guard ? &*guard : nullptr);
  }
}

// Of each row of a matrix, the lane that gives its address has all elements.
void load_matrices(const CopyAtom& atom, const AnyTensor& from, const AnyTensor& to,
                   SourceLoc loc) {
  const int row = values_of(atom.source());
  const int own = values_of(atom.destination());
  const int64_t count = static_size(from, "copy", loc), values = static_size(to, "copy", loc);
  if (count == 0 || values == 0) return;
  if (!match(atom, from, to, "LdMatrix", count / row, values / own, loc)) return;
  const Runs rows(from, count, {}, row, loc);
  if (rows.width() != row) return;
  Nodes all;
  for (int64_t run = 0; run < rows.count(); ++run) {
    const Node loaded = emit_ldmatrix(access_to(from, rows, run, loc), from.scalar, atom.matrices(),
                                      atom.transpose());
    const Nodes lane = elements_of(loaded, loc);
    all.insert(all.end(), lane.begin(), lane.end());
  }
  scatter_elements(to, {}, all, loc);
}

void store_matrices(const CopyAtom& atom, const AnyTensor& from, const AnyTensor& to,
                    SourceLoc loc) {
  const int row = values_of(atom.destination());
  const int own = values_of(atom.source());
  const int64_t count = static_size(to, "copy", loc), values = static_size(from, "copy", loc);
  if (count == 0 || values == 0) return;
  if (!match(atom, to, from, "StMatrix", count / row, values / own, loc)) return;
  const Runs rows(to, count, {}, row, loc);
  if (rows.width() != row) return;
  const Nodes all = gather_elements(from, {}, nullptr, loc);
  for (int64_t run = 0; run < rows.count(); ++run) {
    const Node matrices =
        fragment_of(from.scalar, absl::MakeConstSpan(all.data() + run * own, own), loc);
    emit_stmatrix(access_to(to, rows, run, loc), matrices, atom.transpose());
  }
}

}  // namespace

void copy_tiled(const CopyAtom& atom, const Predicate& predicate, const AnyTensor& from,
                const AnyTensor& to, SourceLoc loc) {
  if (!atom.ok() || !from.layout.ok() || !to.layout.ok()) return;
  const bool predicated = predicate.flags != nullptr || predicate.within != nullptr;
  if (predicated && atom.matrices() > 0) {
    fail(loc, "copy_if: a warp moves matrices together, and none of their elements can be left out",
         "pad the tile in shared memory, and copy() all of it");
    return;
  }
  switch (atom.kind()) {
    case CopyAtom::Kind::kUniversal:
      return copy_tensors(predicate, from, to, loc, values_of(atom.source()));
    case CopyAtom::Kind::kAsync:
      return copy_async_atoms(atom, predicate, from, to, loc);
    case CopyAtom::Kind::kLdMatrix:
      return load_matrices(atom, from, to, loc);
    case CopyAtom::Kind::kStMatrix:
      return store_matrices(atom, from, to, loc);
  }
}

}  // namespace detail
}  // namespace heddle
