#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tile_boxes_internal.h"
#include "heddle/ir/type.h"

namespace heddle::detail {

namespace {

// A tile's modes in another order.
Layout in_order(const Layout& tile, absl::Span<const int> order) {
  IntTuple shape, stride;
  for (const int mode : order) {
    shape = append(shape, get(tile.shape(), mode));
    stride = append(stride, get(tile.stride(), mode));
  }
  return tile.with_outer(Layout(shape, stride));
}

}  // namespace

int64_t TileBoxes::bytes() const {
  int64_t bytes = ir::bytes_of(scalar);
  for (int mode = 0; mode < grid.modes; ++mode) bytes *= grid.extent(mode);
  return bytes;
}

bool find_boxes(const AnyTensor& shared, absl::Span<const int> order, int slices, const char* what,
                SourceLoc loc, TileBoxes* boxes) {
  const Layout tile = in_order(shared.layout, order);
  const SmemBox box = box_of(tile, shared.scalar, loc);
  if (!box.ok()) return false;
  const auto wrong = [&](const std::string& why, const char* fix) {
    fail(loc, absl::StrCat(what, ": ", to_string(shared), " ", why), fix);
    return false;
  };
  const BoxGrid in_order_of_view(tile, box);
  int slowest = -1;
  BoxGrid grid;
  grid.modes = in_order_of_view.modes;
  for (size_t at = 0; at < order.size(); ++at) {
    const int mode = order[at];
    grid.box[mode] = in_order_of_view.box[at];
    grid.counts[mode] = in_order_of_view.counts[at];
    if (box.contiguous == static_cast<int>(at)) {
      boxes->contiguous = mode;
    } else if (slowest < 0 && grid.extent(mode) > 1) {
      slowest = mode;
    }
  }
  // Slices are cut where boxes lie one behind the other.
  const int sliced = slowest < 0 ? boxes->contiguous : slowest;
  const int64_t extent = grid.extent(sliced), slice = extent / std::max(slices, 1);
  if (slices < 1 || extent % slices != 0 ||
      (slice % grid.box[sliced] != 0 && grid.box[sliced] % slice != 0)) {
    return wrong(absl::StrCat("cannot be cut into ", slices, " equal slices of boxes"),
                 "let as many blocks share it as divide its rows");
  }
  grid.box[sliced] = std::min(grid.box[sliced], slice);
  grid.counts[sliced] = extent / grid.box[sliced];
  if (!grid.are_aligned(shared.layout, shared.scalar)) {
    return wrong("has boxes at places that are no multiples of 128 bytes",
                 "slices of less than 8 lines are too few");
  }
  boxes->tile = shared.layout;
  boxes->scalar = shared.scalar;
  boxes->grid = grid;
  boxes->swizzle = box.swizzle;
  boxes->sliced = sliced;
  boxes->slices = slices;
  return true;
}

bool fills(const TileBoxes& boxes, const AnyTensor& shared, absl::Span<const int> order,
           SourceLoc loc) {
  // Other stages of the same array differ in where they begin.
  if (shared.scalar == boxes.scalar && shared.layout.swizzle() == boxes.tile.swizzle() &&
      shared.layout.outer() == boxes.tile.outer()) {
    return true;
  }
  TileBoxes found;
  if (shared.scalar == boxes.scalar &&
      !find_boxes(shared, order, boxes.slices, "copy", loc, &found)) {
    return false;
  }
  if (shared.scalar == boxes.scalar && found.grid == boxes.grid && found.swizzle == boxes.swizzle &&
      found.contiguous == boxes.contiguous) {
    return true;
  }
  fail(loc,
       absl::StrCat("copy: ", to_string(shared), " beside a TMA atom of tiles of ",
                    boxes.tile.to_string(), " of ", ir::info(boxes.scalar).name,
                    ", whose boxes lie otherwise"),
       "make the atom of the tile that it copies, or of one with the same layout");
  return false;
}

}  // namespace heddle::detail
