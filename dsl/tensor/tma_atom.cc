#include "heddle/dsl/tensor/tma_atom.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"
#include "heddle/dsl/tensor/tile_boxes_internal.h"

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

// How the modes of a tile stand in the view's order, slowest but for the contiguous one first.
absl::InlinedVector<int, kMaxRank> view_order(const TmaBoxes& boxes, int modes) {
  absl::InlinedVector<int, kMaxRank> order(static_cast<size_t>(modes));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return boxes.mode[a] < boxes.mode[b]; });
  return order;
}

}  // namespace

AtomicKind atomic_kind(TmaReduction op) {
  // In its order.
  constexpr AtomicKind kKinds[] = {AtomicKind::kAdd, AtomicKind::kMin, AtomicKind::kMax,
                                   AtomicKind::kAnd, AtomicKind::kOr,  AtomicKind::kXor,
                                   AtomicKind::kInc, AtomicKind::kDec};
  return kKinds[static_cast<size_t>(op)];
}

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
  const int modes = rank(shared.layout);
  const int view_rank = trace->kernel().type(trace->use(global.node, loc)).rank;
  if (modes > view_rank) {
    return wrong(shared, absl::StrCat("has more modes than the tensor's ", view_rank),
                 "slice it until as many are left");
  }
  if (global.scalar != shared.scalar) {
    return wrong(global, "has elements of another type than the tile",
                 "the copy engine converts nothing: make both of one type");
  }
  for (int mode = 0; mode < modes; ++mode) {
    boxes.mode[mode] = view_mode(global, mode, view_rank);
    const bool is_twice = std::count(boxes.mode, boxes.mode + mode, boxes.mode[mode]) != 0;
    if (boxes.mode[mode] < 0 || is_twice) {
      return wrong(
          global,
          is_twice ? "has two modes along one of a parameter" : "has not the modes of a parameter",
          "pass the parameter, or select() of its modes in another order");
    }
  }
  if (!find_boxes(shared, view_order(boxes, modes), slices, "make_tma_atom", loc, &boxes)) {
    return boxes;
  }
  int extents[kMaxRank] = {1, 1, 1, 1, 1};
  for (int mode = 0; mode < modes; ++mode) {
    extents[boxes.mode[mode]] = static_cast<int>(boxes.grid.box[mode]);
  }
  BoxOptions with_swizzle = options;
  with_swizzle.swizzle = boxes.swizzle;
  boxes.map = new_tensor_map(global.node, extents, view_rank, with_swizzle, loc).node;
  const ir::Kernel& kernel = trace->kernel();
  const ir::Op* const map = kernel.def(trace->use(boxes.map, loc));
  if (map == nullptr || map->opcode != ir::Opcode::kTensorMap) return boxes;  // reported
  if (kernel.ints(*map->attr(ir::AttrKey::kModes))[0] != boxes.mode[boxes.contiguous]) {
    return wrong(global, "is not contiguous along the mode that the tile is contiguous along",
                 "the copy engine transposes nothing: give the tile the tensor's major");
  }
  boxes.rank = view_rank;
  return boxes;
}

namespace {

// Whether a tensor is a tile of an atom's extents; if not, that is reported.
bool is_tile(const TmaBoxes& boxes, const AnyTensor& tile, const char* what, SourceLoc loc) {
  const int modes = boxes.grid.modes;
  absl::InlinedVector<int64_t, kMaxRank> extents;
  bool same = rank(tile.layout) == modes;
  for (int mode = 0; mode < modes; ++mode) {
    extents.push_back(boxes.grid.extent(mode));
    same = same && size(get(tile.layout.shape(), mode)).is_constant(extents.back());
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
  BoxGrid part = boxes.grid;
  part.counts[boxes.sliced] /= boxes.slices;
  const SymInt origin = boxes.slices == 1 ? SymInt(0) : slice * part.extent(boxes.sliced);
  for (int64_t number = 0; number < part.count(); ++number) {
    const IntTuple place = part.first(number, origin, boxes.sliced);
    const IntTuple there = global.layout(place, loc);
    absl::InlinedVector<Arg<int32_t>, 5> coordinates;
    for (int mode = 0; mode < boxes.rank; ++mode) {
      const SymInt at =
          number_at(global.origin, mode, boxes.rank) + number_at(there, mode, boxes.rank);
      coordinates.emplace_back(Int(materialize(at, /*wide=*/false, loc)), loc);
    }
    use(place, BoxPlace{boxes.map, coordinates.data(), boxes.rank, global.mode});
  }
}

// Whether a tile is of the tensor that the atom was made of, its modes along the same ones; if not, that is
// reported.
bool is_of_tensor(const TmaBoxes& boxes, const AnyTensor& tile, const char* what, SourceLoc loc) {
  Trace* const trace = Trace::current();
  const ir::ValueId view = trace->use(tile.node, loc), value = trace->use(boxes.map, loc);
  const ir::Op* const map = trace->kernel().def(value);
  if (map == nullptr || map->opcode != ir::Opcode::kTensorMap) return false;  // reported
  bool same = map->view() == view;
  for (int mode = 0; same && mode < boxes.grid.modes; ++mode) {
    if (boxes.grid.extent(mode) == 1) continue;
    const IntTuple& stride = tile.layout.stride();
    const IntTuple step = boxes.grid.modes == 1 && !stride.is_tuple() ? stride : get(stride, mode);
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
  if (!is_of_tensor(boxes, global, "copy", loc) ||
      !fills(boxes, shared, view_order(boxes, boxes.grid.modes), loc))
    return false;
  if (boxes.slices > 1 && !is_for_cluster) {
    fail(loc,
         absl::StrCat("copy: a TMA atom of ", boxes.slices,
                      " slices without the blocks that share them"),
         "give with() the blocks and the slice, or make an atom without slices");
    return false;
  }
  return true;
}

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
  const AtomicKind op = reduction == nullptr ? AtomicKind::kAdd : atomic_kind(*reduction);
  for_boxes(boxes, global, 0, loc, [&](const IntTuple& place, const BoxPlace& box) {
    emit_tma_store(box, element_access(shared, place, loc), shared.scalar,
                   reduction == nullptr ? nullptr : &op);
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
