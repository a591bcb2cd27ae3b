// Tiling: dividing a layout into tiles, and repeating one.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/codomain_internal.h"

namespace heddle {
namespace {

using detail::Call;
using detail::Composer;
using detail::Extents;
using detail::LayoutBuilder;
using detail::Modes;
using detail::Part;

// Divides or multiplies a part by a layout, and adds the tile to one, the rest to the other.
using Apply = bool (*)(Part part, const Layout& tiler, Call* call, LayoutBuilder* tile,
                       LayoutBuilder* rest);

bool divide_by(Part part, const Layout& tiler, Call* call, LayoutBuilder* tile,
               LayoutBuilder* rest) {
  if (tiler.is_composed()) return call->fail_composed(tiler);
  Composer composer(part, "the layout", "the tiler", call,
                    "; or divide cover(layout, tiler), which has whole tiles");
  const Modes modes = detail::filtered(tiler);
  if (detail::has_basis(modes)) {
    LayoutBuilder builder;
    const IntTuple shape = detail::TupleBuilder::build(part.shape());
    if (!detail::complement_of_coordinates(modes, shape, call, &builder)) return false;
    const Layout others = builder.build(call->loc());
    if (!others.ok()) return call->fail(others.shape());
    return composer.add(tiler, tile) && composer.add(others, rest);
  }
  Extents extents;
  for (const detail::Mode& mode : detail::coalesced(part)) {
    extents.push_back(mode.shape);
  }
  Modes others;
  return detail::complement_of(modes, extents, call, &others) && composer.add(tiler, tile) &&
         composer.add(others, rest);
}

// Where a tiler puts copies of a block.
bool places_of(Part block, Part tiler, Call* call, Layout* result) {
  const SymInt all = detail::product(block.shape()) * detail::cosize_of(tiler);
  Modes places;
  if (!detail::complement_of(detail::filtered(block), {all}, call, &places)) return false;
  *result = detail::layout_of(places, call->loc());
  return result->ok() || call->fail(result->shape());
}

bool multiply_by(Part block, const Layout& tiler, Call* call, LayoutBuilder* tile,
                 LayoutBuilder* rest) {
  if (tiler.is_composed()) return call->fail_composed(tiler);
  Layout places;
  if (!places_of(block, tiler, call, &places)) return false;
  tile->add(block);
  return Composer(places, "what the block leaves out", "the tiler", call).add(tiler, rest);
}

// (tile,rest) in each mode that the tiler has.
bool logical(Part part, const Tiler& tiler, Apply apply, Call* call, LayoutBuilder* out) {
  if (tiler.kind() == Tiler::Kind::kUnderscore) {
    out->add(part);
    return true;
  }
  const size_t tuple = out->open();
  if (tiler.kind() == Tiler::Kind::kLayout) {
    if (!tiler.layout().ok()) return call->fail(tiler.layout().shape());
    if (!apply(part, tiler.layout(), call, out, out)) return false;
  } else {
    if (tiler.rank() > part.rank()) return call->fail_rank(tiler, part);
    int mode = 0;
    bool done = true;
    part.for_each([&](Part next) {
      if (mode >= tiler.rank()) return out->add(next);
      done = done && logical(next, tiler.mode(mode++), apply, call, out);
    });
    if (!done) return false;
  }
  out->close(tuple);
  return true;
}

// All tiles in one, all rests in the other.
bool zipped(Part part, const Tiler& tiler, Apply apply, Call* call, LayoutBuilder* tile,
            LayoutBuilder* rest) {
  if (tiler.kind() == Tiler::Kind::kUnderscore) {
    if (!part.is_tuple() || part.rank() != 2) {
      return call->fail("a mode behind _ has no two parts",
                        "divide that mode by its size instead of _");
    }
    tile->add(part.mode(0));
    rest->add(part.mode(1));
    return true;
  }
  if (tiler.kind() == Tiler::Kind::kLayout) {
    if (!tiler.layout().ok()) return call->fail(tiler.layout().shape());
    return apply(part, tiler.layout(), call, tile, rest);
  }
  if (tiler.rank() > part.rank()) return call->fail_rank(tiler, part);
  const size_t tiles = tile->open(), rests = rest->open();
  int mode = 0;
  bool done = true;
  part.for_each([&](Part next) {
    if (mode >= tiler.rank()) return rest->add(next);
    done = done && zipped(next, tiler.mode(mode++), apply, call, tile, rest);
  });
  tile->close(tiles);
  rest->close(rests);
  return done;
}

// The modes one by one; a single one as it is.
void add_modes(Part part, LayoutBuilder* out) {
  if (part.rank() == 1) return out->add(part);
  part.for_each([&](Part mode) { out->add(mode); });
}

// How the modes of a division or product lie.
enum class Form { kLogical, kZipped, kTiled, kFlat };

Layout tiled(const Layout& layout, const Tiler& tiler, Apply apply, Form form, Call* call) {
  if (!layout.ok()) return layout;
  if (form <= Form::kZipped && tiler.kind() == Tiler::Kind::kUnderscore) return layout;
  LayoutBuilder result;
  if (form == Form::kLogical) {
    logical(layout, tiler, apply, call, &result);
    return layout.with_outer(call->result(&result));
  }
  LayoutBuilder rest;
  const size_t tuple = result.open();
  if (!zipped(layout, tiler, apply, call, &result, &rest)) return call->failure();
  const Layout others = rest.build(call->loc());
  if (!others.ok()) return others;
  if (form == Form::kZipped) {
    result.add(others);
  } else {
    add_modes(others, &result);
  }
  result.close(tuple);
  const Layout whole = result.build(call->loc());
  // The tile's modes join the others.
  if (form != Form::kFlat || !whole.ok()) return layout.with_outer(whole);
  LayoutBuilder flat;
  const size_t all = flat.open();
  bool first = true;
  Part(whole).for_each([&](Part mode) {
    if (!std::exchange(first, false)) return flat.add(mode);
    add_modes(mode, &flat);
  });
  flat.close(all);
  return layout.with_outer(flat.build(call->loc()));
}

Layout tiled(const char* name, const Layout& layout, const Tiler& tiler, Apply apply, Form form,
             SourceLoc loc) {
  const auto text = [&] { return detail::call_text(name, layout, tiler); };
  Call call(text, loc);
  return tiled(layout, tiler, apply, form, &call);
}

}  // namespace

// --- Divisions ------------------------------------------------------------------------------

Layout logical_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return tiled("logical_divide", layout, tiler, &divide_by, Form::kLogical, loc);
}
Layout zipped_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return tiled("zipped_divide", layout, tiler, &divide_by, Form::kZipped, loc);
}
Layout tiled_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return tiled("tiled_divide", layout, tiler, &divide_by, Form::kTiled, loc);
}
Layout flat_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  return tiled("flat_divide", layout, tiler, &divide_by, Form::kFlat, loc);
}

// --- Products -------------------------------------------------------------------------------

namespace {

// A swizzled tiler moves whole copies of the block: so does a swizzle of where these lie.
Layout product(const char* name, const Layout& block, const Tiler& tiler, Form form,
               SourceLoc loc) {
  const auto text = [&] { return detail::call_text(name, block, tiler); };
  Call call(text, loc);
  const Layout& by = tiler.layout();
  const bool swizzled = tiler.kind() == Tiler::Kind::kLayout && by.is_composed() &&
                        by.inner() == nullptr && by.offset() == IntTuple(0);
  if (!swizzled || !block.ok() || block.is_composed()) {
    return tiled(block, tiler, &multiply_by, form, &call);
  }
  Layout places;
  if (!places_of(block, by, &call, &places)) return call.failure();
  const Layout moved = detail::swizzled_first(places, by.swizzle(), &call);
  return moved.ok() ? moved.with_outer(tiled(block, by.outer(), &multiply_by, form, &call)) : moved;
}

}  // namespace

Layout logical_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return product("logical_product", block, tiler, Form::kLogical, loc);
}
Layout zipped_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return product("zipped_product", block, tiler, Form::kZipped, loc);
}
Layout tiled_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return product("tiled_product", block, tiler, Form::kTiled, loc);
}
Layout flat_product(const Layout& block, const Tiler& tiler, SourceLoc loc) {
  return product("flat_product", block, tiler, Form::kFlat, loc);
}

namespace {

// The product of layouts that are brought to one rank, with the block's and the tiler's modes in
// turn. As in CuTe there is a tuple of pairs for single modes too: ((4,32)) of 32 and 4.
Layout interleaved(const Layout& block, const Layout& tiler, bool block_first, Call* call) {
  if (const Layout* failure = detail::first_failure({&block, &tiler})) return *failure;
  const int modes = std::max(rank(block), rank(tiler));
  const bool tuples = modes > 1 || (block.shape().is_tuple() && tiler.shape().is_tuple());
  const auto padded = [&](const Layout& layout) {
    if (rank(layout) == modes) return layout;
    LayoutBuilder builder;
    const size_t tuple = builder.open();
    Part(layout).for_each([&](Part mode) { builder.add(mode); });
    for (int i = rank(layout); i < modes; ++i) builder.add(detail::mode_of(1, 0));
    builder.close(tuple);
    return layout.with_outer(builder.build(call->loc()));
  };
  LayoutBuilder inside, outside;
  if (!multiply_by(padded(block), padded(tiler), call, &inside, &outside)) return call->failure();
  const Layout first = (block_first ? inside : outside).build(call->loc());
  const Layout second = (block_first ? outside : inside).build(call->loc());
  if (const Layout* failure = detail::first_failure({&first, &second})) return *failure;
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < modes; ++i) {
    const size_t pair = builder.open();
    builder.add(tuples ? Part(first).mode(i) : first);
    builder.add(tuples ? Part(second).mode(i) : second);
    builder.close(pair);
  }
  builder.close(tuple);
  return block.with_outer(builder.build(call->loc()));
}

IntTuple in_order(int modes) {
  detail::TupleBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < modes; ++i) builder.add(SymInt(i));
  builder.close(tuple);
  return builder.build();
}

}  // namespace

Layout blocked_product(const Layout& block, const Layout& tiler, SourceLoc loc) {
  const auto text = [&] { return detail::call_text("blocked_product", block, tiler); };
  Call call(text, loc);
  return interleaved(block, tiler, true, &call);
}

Layout raked_product(const Layout& block, const Layout& tiler, SourceLoc loc) {
  const auto text = [&] { return detail::call_text("raked_product", block, tiler); };
  Call call(text, loc);
  return interleaved(block, tiler, false, &call);
}

std::pair<IntTuple, Layout> make_layout_tv(const Layout& threads, const Layout& values,
                                           SourceLoc loc) {
  const auto text = [&] { return detail::call_text("make_layout_tv", threads, values); };
  Call call(text, loc);
  const Layout tile = interleaved(threads, values, false, &call);
  const Layout inverse = right_inverse(tile, loc);
  if (!inverse.ok()) return {inverse.shape(), inverse};
  const Layout shape = make_layout({size(threads), size(values)});
  if (inverse.is_composed()) return {product_each(tile.shape()), composition(inverse, shape, loc)};
  LayoutBuilder builder;
  Composer(inverse, "the tile's inverse", "what each thread has", &call).add(shape, &builder);
  return {product_each(tile.shape()), call.result(&builder)};
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, SourceLoc loc) {
  return tile_to_shape(block, shape, in_order(rank(shape)), loc);
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order,
                     SourceLoc loc) {
  if (!block.ok()) return block;
  if (const IntTuple* failure = detail::first_failure({&shape, &order})) {
    return detail::failed_layout(*failure);
  }
  const auto text = [&] { return detail::call_text("tile_to_shape", block, shape); };
  Call call(text, loc);
  if (rank(block) > rank(shape)) {
    call.fail("the block has more modes than the shape", "give each of its modes an extent");
    return call.failure();
  }
  detail::TupleBuilder builder;
  const size_t tuple = builder.open();
  int i = 0;
  for (const detail::TupleNode& mode : detail::Elements(shape)) {
    const SymInt extent = detail::product(mode);
    const SymInt part = i < rank(block) ? detail::product(Part(block).mode(i).shape()) : SymInt(1);
    SymInt times;
    if (!divides(part, extent, &times)) {
      call.fail(absl::StrCat("the block's ", detail::text(part), " elements of mode ", i,
                             " do not divide the shape's ", detail::text(extent)),
                "choose a shape of whole blocks, or promise it: ?{div=…}");
      return call.failure();
    }
    builder.add(times);
    ++i;
  }
  builder.close(tuple);
  return interleaved(block, make_ordered_layout(builder.build(loc), order, loc), true, &call);
}

// --- Parts ----------------------------------------------------------------------------------

namespace detail {
namespace {

// A divided layout at a coordinate of its tiles or their rests, which may be shorter: all of the
// other part stays whole, and so does what the coordinate does not name.
Cut cut_at(const Layout& tiles, int part, const IntTuple& coord, Call* call) {
  if (!tiles.ok()) return {tiles, tiles.shape()};
  if (!coord.ok()) return {failed_layout(coord), coord};
  const TupleNode& cut = element(tiles.shape().node(), part);
  if (coord.is_tuple() && rank(coord) > rank_of(cut)) {
    call->fail(
        absl::StrCat("the coordinate ", detail::text(coord), " does not fit ", detail::text(cut)),
        "give each mode an index, a tuple of its own profile or _");
    return {call->failure(), call->failure().shape()};
  }
  const IntTuple at = coord.is_tuple() ? append(coord, IntTuple(_), rank_of(cut)) : coord;
  const IntTuple whole = repeat(_, rank_of(element(tiles.shape().node(), 1 - part)));
  return {tiles, part == 0 ? IntTuple{at, whole} : IntTuple{whole, at}};
}

// A thread's coordinate among threads: in each mode, column-major, what its strides say.
IntTuple place_of(const SymInt& thread, const Layout& threads, SourceLoc loc) {
  TupleBuilder builder;
  const size_t tuple = builder.open();
  Part(threads).for_each([&](Part part) {
    SymInt place = 0, count = 1;
    for (const Mode& mode : modes_of(part)) {
      if (mode.shape.is_constant(1) || mode.stride.value.is_constant(0)) continue;
      place = place + mod(floor_div(thread, mode.stride.value), mode.shape) * count;
      count = count * mode.shape;
    }
    builder.add(std::move(place));
  });
  builder.close(tuple);
  return builder.build(loc);
}

}  // namespace

Cut cut_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, SourceLoc loc) {
  const auto written = [&] { return call_text("local_tile", layout, tiler, coord); };
  Call call(written, loc);
  if (layout.ok() && tiler.kind() == Tiler::Kind::kUnderscore) {
    call.fail("_ is no tile", "give a tile, with _ for modes that stay whole");
    return {call.failure(), call.failure().shape()};
  }
  return cut_at(tiled(layout, tiler, &divide_by, Form::kZipped, &call), 1, coord, &call);
}

Cut cut_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                  SourceLoc loc) {
  if (const Layout* failure = first_failure({&layout, &threads})) {
    return {*failure, failure->shape()};
  }
  const auto written = [&] { return call_text("local_partition", layout, threads, index); };
  Call call(written, loc);
  const Layout tiles =
      tiled(layout, product_each(threads.shape()), &divide_by, Form::kZipped, &call);
  return cut_at(tiles, 0, index.is_int() ? place_of(index.value(), threads, loc) : index, &call);
}

}  // namespace detail

Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, SourceLoc loc) {
  const detail::Cut cut = detail::cut_tile(layout, tiler, coord, loc);
  return slice(cut.coord, cut.tiles, loc);
}

Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                  const IntTuple& step, SourceLoc loc) {
  return local_tile(layout, dice(step, tiler, loc), dice(step, coord, loc), loc);
}

Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       SourceLoc loc) {
  const detail::Cut cut = detail::cut_partition(layout, threads, index, loc);
  return slice(cut.coord, cut.tiles, loc);
}

Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       const IntTuple& step, SourceLoc loc) {
  return local_partition(layout, dice(step, threads, loc), index, loc);
}

Tiler dice(const IntTuple& step, const Tiler& tiler, SourceLoc loc) {
  if (!step.ok()) return detail::failed_layout(step);
  if (tiler.kind() == Tiler::Kind::kLayout) return dice(step, tiler.layout(), loc);
  if (!step.is_tuple() || tiler.kind() != Tiler::Kind::kModes || rank(step) != tiler.rank()) {
    return detail::fail_layout(loc,
                               detail::call_text("dice", step, tiler) + ": the profiles differ",
                               "give a number for each mode, or _ to leave it out");
  }
  std::vector<Tiler> modes;
  int i = 0;
  for (const detail::TupleNode& mode : detail::Elements(step)) {
    const Tiler& tile = tiler.mode(i++);
    if (mode.is_tuple()) {
      modes.push_back(dice(detail::TupleBuilder::build(mode), tile, loc));
      if (!modes.back().ok()) return modes.back();
    } else if (mode.is_int()) {
      modes.push_back(tile);
    }
  }
  return Tiler(std::move(modes));
}

IntTuple make_layout_image_mask(const Layout& blocks, const IntTuple& coord, int mode,
                                SourceLoc loc) {
  if (!blocks.ok()) return blocks.shape();
  if (!coord.ok()) return coord;
  const auto error = [&](const std::string& what) {
    return detail::fail(loc,
                        absl::StrCat("make_layout_image_mask(", detail::text(blocks), ", ",
                                     detail::text(coord), ", ", mode, "): ", what),
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
      return error(absl::StrCat("block ", detail::text(block)));
    }
    mask |= int64_t{1} << block.value().value();
  }
  return mask;
}

}  // namespace heddle
