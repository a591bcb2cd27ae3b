#include "heddle/dsl/tensor/tma_atom.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/mma/smem_layout.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle::detail {
namespace {

// The mode of the view that mode `mode` of a tensor runs along, one by one; -1 where it is none.
int view_mode(const AnyTensor& tensor, int mode, int view_rank) {
  if (rank(tensor.layout) != view_rank) return -1;
  const IntTuple step = get(tensor.layout.stride(), mode);
  if (!step.ok() || step.is_tuple()) return -1;
  for (int i = 0; i < view_rank; ++i) {
    if (number_at(step, i, view_rank).is_constant(1)) return i;
  }
  return -1;
}

// A tile's modes in another order.
Layout in_order(const Layout& tile, absl::Span<const int> order) {
  IntTuple shape, stride;
  for (const int mode : order) {
    shape = append(shape, get(tile.shape(), mode));
    stride = append(stride, get(tile.stride(), mode));
  }
  return tile.with_outer(Layout(shape, stride));
}

// Calls use(place) with where each box of a part of a tile, of so many elements along each mode, begins.
template <class Use>
void for_places(const TmaBoxes& boxes, const int64_t (&part)[kMaxRank], const Use& use) {
  int64_t count = 1;
  for (int mode = 0; mode < boxes.modes; ++mode) count *= part[mode] / boxes.box[mode];
  for (int64_t number = 0; number < count; ++number) {
    int64_t place[kMaxRank] = {}, rest = number, beside = count;
    for (int mode = 0; mode < boxes.modes; ++mode) {
      beside /= part[mode] / boxes.box[mode];
      place[mode] = rest / beside * boxes.box[mode];
      rest %= beside;
    }
    use(place);
  }
}

// Whether all boxes begin at multiples of 128 bytes, if the tile does.
bool are_aligned(const Layout& tile, const TmaBoxes& boxes, int64_t element_bytes) {
  bool all = true;
  for_places(boxes, boxes.tile, [&](const int64_t(&place)[kMaxRank]) {
    IntTuple coord;
    for (int mode = 0; mode < boxes.modes; ++mode) coord = append(coord, place[mode]);
    const IntTuple at = tile(boxes.modes == 1 ? get(coord, 0) : coord);
    all &= at.is_int() && at.value().is_constant() && at.value().value() * element_bytes % 128 == 0;
  });
  return all;
}

}  // namespace

TmaBoxes make_tma_boxes(const AnyTensor& global, const AnyTensor& shared, int slices,
                        const BoxOptions& options, SourceLoc loc) {
  TmaBoxes boxes;
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    report(loc, "a TMA atom outside a kernel", "write it in the lambda");
    return boxes;
  }
  const auto wrong = [&](const AnyTensor& tensor, const std::string& what, const char* fix) {
    fail(loc, absl::StrCat("make_tma_atom: ", to_string(tensor), " ", what), fix);
    return boxes;
  };
  if (!global.layout.ok() || !shared.layout.ok()) return boxes;  // reported where it was made
  boxes.modes = rank(shared.layout);
  const int view_rank = trace->kernel().type(trace->use(global.node, loc)).rank;
  if (boxes.modes > view_rank) {
    return wrong(shared, absl::StrCat("has more modes than the tensor's ", view_rank),
                 "slice it until as many are left");
  }
  if (global.scalar != shared.scalar) {
    return wrong(global, "has elements of another type than the tile",
                 "the copy engine converts nothing: make both of one type");
  }
  int of_view[kMaxRank];
  std::fill(std::begin(of_view), std::end(of_view), -1);
  for (int mode = 0; mode < boxes.modes; ++mode) {
    boxes.mode[mode] = view_mode(global, mode, view_rank);
    if (boxes.mode[mode] < 0) {
      return wrong(global, "has not the modes of a parameter",
                   "pass the parameter, or select() of its modes in another order");
    }
    of_view[boxes.mode[mode]] = mode;
  }
  // The tile's modes as the view has them, from the slowest to the fastest but for the contiguous one.
  std::vector<int> order;
  std::copy_if(std::begin(of_view), std::end(of_view), std::back_inserter(order),
               [](int mode) { return mode >= 0; });
  const Layout tile = in_order(shared.layout, order);
  const SmemBox box = box_of(tile, shared.scalar, loc);
  if (!box.ok()) return boxes;
  boxes.bytes = ir::bytes_of(shared.scalar);
  int contiguous = 0, slowest = -1;
  for (size_t at = 0; at < order.size(); ++at) {
    const int mode = order[at];
    boxes.tile[mode] = size(get(shared.layout.shape(), mode)).value();
    boxes.box[mode] = box.extent(static_cast<int>(at));
    boxes.bytes *= boxes.tile[mode];
    if (box.contiguous == static_cast<int>(at)) {
      contiguous = mode;
    } else if (slowest < 0 && boxes.tile[mode] > 1) {
      slowest = mode;
    }
  }
  // Slices are cut where boxes lie one behind the other.
  boxes.sliced = slowest < 0 ? contiguous : slowest;
  int64_t& cut = boxes.box[boxes.sliced];
  const int64_t slice = boxes.tile[boxes.sliced] / std::max(slices, 1);
  if (slices < 1 || boxes.tile[boxes.sliced] % slices != 0 ||
      (slice % cut != 0 && cut % slice != 0)) {
    return wrong(shared, absl::StrCat("cannot be cut into ", slices, " equal slices of boxes"),
                 "let as many blocks share it as divide its rows");
  }
  boxes.slices = slices;
  cut = std::min(cut, slice);
  if (!are_aligned(shared.layout, boxes, ir::bytes_of(shared.scalar))) {
    return wrong(
        shared, "has boxes at places that are no multiples of 128 bytes",
        "make_smem_layout() makes layouts for the copy engine; slices of less than 8 lines "
        "are too few");
  }
  int extents[kMaxRank] = {1, 1, 1, 1, 1};
  for (int mode = 0; mode < boxes.modes; ++mode) {
    extents[boxes.mode[mode]] = static_cast<int>(boxes.box[mode]);
  }
  BoxOptions with_swizzle = options;
  with_swizzle.swizzle = box.swizzle;
  boxes.map = new_tensor_map(global.node, extents, view_rank, with_swizzle, loc).node;
  const ir::Kernel& kernel = trace->kernel();
  const ir::Op* const map = kernel.def(trace->use(boxes.map, loc));
  if (map == nullptr || map->opcode != ir::Opcode::kTensorMap) return boxes;  // reported
  if (kernel.ints(*map->attr(ir::AttrKey::kModes))[0] != boxes.mode[contiguous]) {
    return wrong(global, "is not contiguous along the mode that the tile is contiguous along",
                 "the copy engine transposes nothing: give the tile the tensor's major");
  }
  boxes.rank = view_rank;
  return boxes;
}

namespace {

// Whether a tensor is a tile of an atom's extents; if not, that is reported.
bool is_tile(const TmaBoxes& boxes, const AnyTensor& tile, const char* what, SourceLoc loc) {
  const absl::Span<const int64_t> extents(boxes.tile, static_cast<size_t>(boxes.modes));
  bool same = rank(tile.layout) == boxes.modes;
  for (int mode = 0; same && mode < boxes.modes; ++mode) {
    same = size(get(tile.layout.shape(), mode)).is_constant(boxes.tile[mode]);
  }
  if (!same) {
    fail(loc,
         absl::StrCat(what, ": ", to_string(tile), " beside a TMA atom of tiles of ",
                      absl::StrJoin(extents, " x ")),
         "cut tensors into tiles of the atom's extents");
  }
  return same;
}

// use(place, box) for each box of a tile, or of its slice, with its place in the tile.
template <class Use>
void for_boxes(const TmaBoxes& boxes, const AnyTensor& global, const SymInt& slice, SourceLoc loc,
               const Use& use) {
  int64_t part[kMaxRank];
  std::copy(std::begin(boxes.tile), std::end(boxes.tile), std::begin(part));
  part[boxes.sliced] /= boxes.slices;
  for_places(boxes, part, [&](const int64_t(&first)[kMaxRank]) {
    IntTuple place;
    for (int mode = 0; mode < boxes.modes; ++mode) {
      const bool is_sliced = mode == boxes.sliced && boxes.slices > 1;
      place = append(place, is_sliced ? first[mode] + slice * part[mode] : SymInt(first[mode]));
    }
    if (boxes.modes == 1) place = get(place, 0);
    const IntTuple there = global.layout(place, loc);
    absl::InlinedVector<Arg<int32_t>, 5> coordinates;
    for (int mode = 0; mode < boxes.rank; ++mode) {
      const SymInt at =
          number_at(global.origin, mode, boxes.rank) + number_at(there, mode, boxes.rank);
      coordinates.emplace_back(Int(materialize(at, /*wide=*/false, loc)), loc);
    }
    use(place, BoxPlace{boxes.map, coordinates.data(), boxes.rank, global.mode});
  });
}

// Whether a tile is of the tensor that the atom was made of, its modes along the same ones; if not, that is
// reported.
bool is_of_tensor(const TmaBoxes& boxes, const AnyTensor& tile, const char* what, SourceLoc loc) {
  Trace* const trace = Trace::current();
  const ir::Op* const map = trace->kernel().def(trace->use(boxes.map, loc));
  bool same = map->view() == trace->use(tile.node, loc);
  for (int mode = 0; same && mode < boxes.modes; ++mode) {
    if (boxes.tile[mode] == 1) continue;
    const IntTuple& stride = tile.layout.stride();
    const IntTuple step = boxes.modes == 1 && !stride.is_tuple() ? stride : get(stride, mode);
    // Modes of modes are those of a tensor that was cut otherwise.
    same = step.is_tuple() || number_at(step, boxes.mode[mode], boxes.rank).is_constant(1);
  }
  if (!same) {
    fail(loc,
         absl::StrCat(what, ": ", to_string(tile),
                      " is no tile of the tensor that its TMA atom is made of"),
         "cut tiles from that tensor, with its modes in the same order");
  }
  return same;
}

// Whether a tile's copy can be emitted; if not, that is or was reported.
bool is_right(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
              bool is_for_cluster, SourceLoc loc) {
  if (boxes.rank == 0 || !global.layout.ok() || !shared.layout.ok()) return false;
  if (!is_tile(boxes, global, "copy", loc) || !is_tile(boxes, shared, "copy", loc)) return false;
  if (!is_of_tensor(boxes, global, "copy", loc)) return false;
  if (boxes.slices > 1 && !is_for_cluster) {
    fail(loc,
         absl::StrCat("copy: a TMA atom of ", boxes.slices,
                      " slices without the blocks that share them"),
         "give with() the blocks and the slice, or make an atom without slices");
    return false;
  }
  return true;
}

// In the order of TmaReduction.
constexpr AtomicKind kReductions[] = {AtomicKind::kAdd, AtomicKind::kMin, AtomicKind::kMax,
                                      AtomicKind::kAnd, AtomicKind::kOr,  AtomicKind::kXor,
                                      AtomicKind::kInc, AtomicKind::kDec};

}  // namespace

void emit_tma_load(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                   const TmaTarget& target, SourceLoc loc) {
  if (!is_right(boxes, global, shared, target.ranks != nullptr, loc)) return;
  for_boxes(boxes, global, target.slice, loc, [&](const IntTuple& place, const BoxPlace& box) {
    emit_tma_load(element_access(shared, place, loc), shared.scalar, box,
                  {*target.words, *target.index}, target.ranks);
  });
}

void emit_tma_store(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                    const TmaReduction* reduction, SourceLoc loc) {
  if (!is_right(boxes, global, shared, false, loc)) return;
  const AtomicKind* const op =
      reduction == nullptr ? nullptr : &kReductions[static_cast<size_t>(*reduction)];
  for_boxes(boxes, global, 0, loc, [&](const IntTuple& place, const BoxPlace& box) {
    emit_tma_store(box, element_access(shared, place, loc), shared.scalar, op);
  });
}

void emit_tile_prefetch(const TmaBoxes& boxes, const AnyTensor& global, const SymInt& slice,
                        SourceLoc loc) {
  if (boxes.rank == 0 || !global.layout.ok() || !is_tile(boxes, global, "prefetch", loc) ||
      !is_of_tensor(boxes, global, "prefetch", loc)) {
    return;
  }
  for_boxes(boxes, global, slice, loc,
            [](const IntTuple&, const BoxPlace& box) { emit_tma_prefetch(box); });
}

}  // namespace heddle::detail
