// Tiling: dividing a layout into tiles, and repeating one.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/internal/modes.h"

namespace heddle {
namespace {

using detail::Elements;
using detail::LayoutBuilder;
using detail::TupleNode;

// A tiler has more modes than the layout.
Layout too_many_modes(const char* name, const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return detail::fail_layout(
      loc,
      absl::StrCat(name, "(", layout.to_string(), ", ", tiler.to_string(), "): the tiler has ",
                   tiler.rank(), " modes and the layout ", rank(layout)),
      "give at most as many modes as there are");
}

// A mode, without what a composed layout has behind.
Layout mode_of(const Layout& layout, int mode) {
  return Layout(get(layout.shape(), mode), get(layout.stride(), mode));
}

// One of the divisions or products by a layout, applied to each mode that the tiler has.
template <class Apply>
Layout by_mode(const char* name, const Layout& layout, const Tiler& tiler, SourceLoc loc,
               const Apply& apply) {
  if (!layout.ok() || tiler.kind() == Tiler::Kind::kUnderscore) return layout;
  if (tiler.kind() == Tiler::Kind::kLayout) {
    return tiler.layout().ok() ? apply(layout, tiler.layout()) : tiler.layout();
  }
  if (tiler.rank() > rank(layout)) return too_many_modes(name, layout, tiler, loc);
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < rank(layout); ++i) {
    Layout mode = mode_of(layout, i);
    if (i < tiler.rank()) mode = by_mode(name, mode, tiler.mode(i), loc, apply);
    if (!mode.ok()) return mode;
    builder.add(mode);
  }
  builder.close(tuple);
  return layout.with_outer(builder.build(loc));
}

// Collects the first modes, and the second ones, of what lies at the tiler's ends.
bool unzip(const Layout& layout, const Tiler& tiler, LayoutBuilder* first, LayoutBuilder* second) {
  if (tiler.kind() != Tiler::Kind::kModes) {
    if (!layout.shape().is_tuple() || rank(layout) != 2) return false;
    first->add(mode_of(layout, 0));
    second->add(mode_of(layout, 1));
    return true;
  }
  const size_t tuple = first->open();
  const size_t other = second->open();
  for (int i = 0; i < rank(layout); ++i) {
    const Layout mode = mode_of(layout, i);
    if (i >= tiler.rank()) {
      second->add(mode);
    } else if (!unzip(mode, tiler.mode(i), first, second)) {
      return false;
    }
  }
  first->close(tuple);
  second->close(other);
  return true;
}

Layout tile_unzip(const char* name, const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  if (!layout.ok() || tiler.kind() != Tiler::Kind::kModes) return layout;
  LayoutBuilder first, second;
  if (!unzip(layout, tiler, &first, &second)) {
    return detail::fail_layout(
        loc, absl::StrCat(name, "(…, ", tiler.to_string(), "): a mode behind _ has no two parts"),
        "divide that mode by its size instead of _");
  }
  return layout.with_outer(concatenate({first.build(loc), second.build(loc)}));
}

// (A,(b,c)) as (A,b,c); ((a,b),(c,d)) as (a,b,c,d).
Layout unpacked(const Layout& layout, bool first_too) {
  if (!layout.ok()) return layout;
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < 2; ++i) {
    const Layout part = mode_of(layout, i);
    if (i == 0 && !first_too) {
      builder.add(part);
    } else {
      for (int j = 0; j < rank(part); ++j) builder.add(get(part, j));
    }
  }
  builder.close(tuple);
  return layout.with_outer(builder.build());
}

Layout divide_by(const Layout& layout, const Layout& tiler, SourceLoc loc) {
  if (tiler.is_composed()) return detail::fail_composed("logical_divide", tiler, loc);
  const Layout rest = complement(tiler, coalesce(layout).shape(), loc);
  if (!rest.ok()) return rest;
  return composition(layout, concatenate({tiler, rest}), loc);
}

Layout multiply_by(const Layout& block, const Layout& tiler, SourceLoc loc) {
  if (tiler.is_composed()) return detail::fail_composed("logical_product", tiler, loc);
  const Layout places = complement(block, size(block, loc) * cosize(tiler, loc), loc);
  if (!places.ok()) return places;
  const Layout repeated = composition(places, tiler, loc);
  if (!repeated.ok()) return repeated;
  return block.with_outer(concatenate({block.outer(), repeated.outer()}));
}

// (a0,b0),(a1,b1)… of two layouts of the same rank.
Layout zip(const Layout& a, const Layout& b) {
  if (!a.shape().is_tuple() && !b.shape().is_tuple()) return concatenate({a, b});
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < rank(a); ++i) {
    const size_t pair = builder.open();
    builder.add(get(a, i));
    builder.add(get(b, i));
    builder.close(pair);
  }
  builder.close(tuple);
  return builder.build();
}

}  // namespace

// --- Divisions ------------------------------------------------------------------------------

Layout logical_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return by_mode("logical_divide", layout, tiler, loc,
                 [&](const Layout& l, const Layout& t) { return divide_by(l, t, loc); });
}

Layout zipped_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return tile_unzip("zipped_divide", logical_divide(layout, tiler, loc), tiler, loc);
}
Layout tiled_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return unpacked(zipped_divide(layout, tiler, loc), false);
}
Layout flat_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return unpacked(zipped_divide(layout, tiler, loc), true);
}

// --- Products -------------------------------------------------------------------------------

Layout logical_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return by_mode("logical_product", block, tiler, loc,
                 [&](const Layout& b, const Layout& t) { return multiply_by(b, t, loc); });
}

Layout zipped_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return tile_unzip("zipped_product", logical_product(block, tiler, loc), tiler, loc);
}
Layout tiled_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return unpacked(zipped_product(block, tiler, loc), false);
}
Layout flat_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return unpacked(zipped_product(block, tiler, loc), true);
}

namespace {

// The product of layouts that are brought to one rank, as its block and its repetition.
std::pair<Layout, Layout> ranked_product(const Layout& block, const Layout& tiler, SourceLoc loc) {
  const int modes = std::max(rank(block), rank(tiler));
  const bool tuples = modes > 1 || block.shape().is_tuple() || tiler.shape().is_tuple();
  const auto padded = [&](const Layout& layout) {
    return tuples && !layout.shape().is_tuple() ? append(concatenate({layout}), Layout(), modes)
                                                : append(layout, Layout(), modes);
  };
  const Layout result = logical_product(padded(block), padded(tiler), loc);
  if (!result.ok()) return {result, result};
  return {mode_of(result, 0), mode_of(result, 1)};
}

}  // namespace

Layout blocked_product(const Layout& block, const Layout& tiler, SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&block, &tiler})) return *failure;
  if (tiler.is_composed()) return detail::fail_composed("blocked_product", tiler, loc);
  const auto [inside, outside] = ranked_product(block, tiler, loc);
  return inside.ok() ? block.with_outer(zip(inside, outside)) : inside;
}

Layout raked_product(const Layout& block, const Layout& tiler, SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&block, &tiler})) return *failure;
  if (tiler.is_composed()) return detail::fail_composed("raked_product", tiler, loc);
  const auto [inside, outside] = ranked_product(block, tiler, loc);
  return inside.ok() ? block.with_outer(zip(outside, inside)) : inside;
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, SourceLoc loc) {
  IntTuple in_order;
  for (int i = 0; i < rank(shape); ++i) in_order = append(in_order, i);
  return tile_to_shape(block, shape, in_order, loc);
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order,
                     SourceLoc loc) {
  if (!block.ok()) return block;
  if (const IntTuple* failure = detail::first_failure({&shape, &order})) {
    return detail::failed_layout(*failure);
  }
  const auto error = [&](const std::string& what, const char* fix) {
    return detail::fail_layout(
        loc,
        absl::StrCat("tile_to_shape(", block.to_string(), ", ", shape.to_string(), "): ", what),
        fix);
  };
  if (rank(block) > rank(shape)) {
    return error("the block has more modes than the shape", "give each of its modes an extent");
  }
  const Layout padded = append(block, Layout(), rank(shape));
  const IntTuple from = product_each(padded.shape()), to = product_each(shape);
  detail::TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < rank(shape); ++i) {
    const SymInt extent = get(to, i).value(), part = get(from, i).value();
    SymInt times;
    if (!divides(part, extent, &times)) {
      return error(absl::StrCat("the block's ", detail::text(part), " elements of mode ", i,
                                " do not divide the shape's ", detail::text(extent)),
                   "choose a shape of whole blocks, or promise it: ?{div=…}");
    }
    builder.add(times);
  }
  builder.close(tuple);
  return blocked_product(padded, make_ordered_layout(builder.build(loc), order, loc), loc);
}

// --- Parts ----------------------------------------------------------------------------------

namespace detail {

Cut cut_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, SourceLoc loc) {
  const Layout tiles = zipped_divide(layout, tiler, loc);
  if (!tiles.ok()) return {tiles, tiles.shape()};
  // What the coordinate does not name stays whole.
  IntTuple rest = coord;
  if (coord.is_tuple()) rest = append(coord, IntTuple(_), rank(get(tiles, 1)));
  return {tiles, IntTuple{repeat(_, rank(get(tiles, 0))), rest}};
}

Cut cut_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                  SourceLoc loc) {
  if (const Layout* failure = first_failure({&layout, &threads})) {
    return {*failure, failure->shape()};
  }
  const Layout tiles = zipped_divide(layout, product_each(threads.shape()), loc);
  if (!tiles.ok()) return {tiles, tiles.shape()};
  // The thread's coordinate in the shape of threads.
  IntTuple coord = index;
  if (index.is_int()) {
    TupleBuilder builder;
    const size_t tuple = builder.open();
    for (int i = 0; i < rank(threads); ++i) {
      // Of each mode, column-major, what its strides say.
      SymInt place = 0, count = 1;
      for (const Mode& mode : modes_of(get(threads, i))) {
        if (mode.shape.is_constant(1) || mode.stride.value.is_constant(0)) continue;
        place = place + mod(floor_div(index.value(), mode.stride.value), mode.shape) * count;
        count = count * mode.shape;
      }
      builder.add(place);
    }
    builder.close(tuple);
    coord = builder.build(loc);
  }
  if (coord.is_tuple()) coord = append(coord, IntTuple(_), rank(get(tiles, 0)));
  return {tiles, IntTuple{coord, repeat(_, rank(get(tiles, 1)))}};
}

}  // namespace detail

Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, SourceLoc loc) {
  const detail::Cut cut = detail::cut_tile(layout, tiler, coord, loc);
  return slice(cut.coord, cut.tiles, loc);
}

Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       SourceLoc loc) {
  const detail::Cut cut = detail::cut_partition(layout, threads, index, loc);
  return slice(cut.coord, cut.tiles, loc);
}

IntTuple make_layout_image_mask(const Layout& blocks, const IntTuple& coord, int mode,
                                SourceLoc loc) {
  if (!blocks.ok()) return blocks.shape();
  if (!coord.ok()) return coord;
  const auto error = [&](const std::string& what) {
    return detail::fail(loc,
                        absl::StrCat("make_layout_image_mask(", blocks.to_string(), ", ",
                                     coord.to_string(), ", ", mode, "): ", what),
                        "a multicast reaches blocks 0 to 15 of a cluster, along one of its modes");
  };
  if (mode < 0 || mode >= rank(coord)) return error(absl::StrCat("there is no mode ", mode));
  IntTuple along;
  for (int i = 0; i < rank(coord); ++i) {
    along = append(along, i == mode ? IntTuple(_) : get(coord, i));
  }
  const auto [line, offset] = slice_and_offset(along, blocks, loc);
  if (!line.ok()) return line.shape();
  const SymInt count = size(line);
  if (!count.is_constant() || count.value() > 16) return error("the mode is not of 1 to 16 blocks");
  int64_t mask = 0;
  for (int64_t i = 0; i < count.value(); ++i) {
    const IntTuple block = line(i) + offset;
    if (!block.ok() || !block.is_int() || !block.value().is_constant() ||
        block.value().value() < 0 || block.value().value() > 15) {
      return error(absl::StrCat("block ", block.to_string()));
    }
    mask |= int64_t{1} << block.value().value();
  }
  return mask;
}

}  // namespace heddle
