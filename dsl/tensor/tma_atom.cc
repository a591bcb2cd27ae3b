#include "heddle/dsl/tensor/tma_atom.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/mma/smem_layout.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle::detail {
namespace {

// The mode of a tile whose elements are neighbours in memory.
int contiguous_mode(const Layout& tile, SourceLoc loc) {
  return tile.outer()({0, 1}, loc).value().is_constant(1) ? 1 : 0;
}

// The mode of the view that mode `mode` of a tensor runs along, one by one; -1 where it is none.
int view_mode(const AnyTensor& tensor, int mode, int view_rank) {
  const IntTuple& stride = tensor.layout.stride();
  if (!stride.is_tuple()) return -1;
  const IntTuple step = get(stride, mode);
  if (!step.ok() || step.is_tuple()) return -1;
  for (int i = 0; i < view_rank; ++i) {
    if (number_at(step, i, view_rank).is_constant(1)) return i;
  }
  return -1;
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
  if (rank(shared.layout) != 2) {
    return wrong(shared, "has other modes than (rows, columns)", "slice it until two are left");
  }
  const SmemBox box = box_of(shared.layout, shared.scalar, loc);
  if (!box.ok()) return boxes;
  if (global.scalar != shared.scalar) {
    return wrong(global, "has elements of another type than the tile",
                 "the copy engine converts nothing: make both of one type");
  }
  const int view_rank = trace->kernel().type(trace->use(global.node, loc)).rank;
  boxes.bytes = ir::bytes_of(shared.scalar);
  for (int mode = 0; mode < 2; ++mode) {
    boxes.tile[mode] = size(get(shared.layout.shape(), mode)).value();
    boxes.box[mode] = box.extent(mode);
    boxes.bytes *= boxes.tile[mode];
    boxes.mode[mode] = rank(global.layout) == view_rank ? view_mode(global, mode, view_rank) : -1;
    if (boxes.mode[mode] < 0) {
      return wrong(global, "has not the modes of a parameter",
                   "pass the parameter, or select() of its modes in another order");
    }
  }
  // Slices are cut where boxes lie one behind the other.
  const int contiguous = contiguous_mode(shared.layout, loc);
  boxes.sliced = 1 - contiguous;
  int64_t& cut = boxes.box[boxes.sliced];
  const int64_t slice = boxes.tile[boxes.sliced] / std::max(slices, 1);
  if (slices < 1 || boxes.tile[boxes.sliced] % slices != 0 ||
      (slice % cut != 0 && cut % slice != 0)) {
    return wrong(shared, absl::StrCat("cannot be cut into ", slices, " equal slices of boxes"),
                 "let as many blocks share it as divide its rows");
  }
  boxes.slices = slices;
  cut = std::min(cut, slice);
  int extents[kMaxRank] = {1, 1, 1, 1, 1};
  for (int mode = 0; mode < 2; ++mode) {
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
  if (rank(tile.layout) == 2 && size(get(tile.layout.shape(), 0)).is_constant(boxes.tile[0]) &&
      size(get(tile.layout.shape(), 1)).is_constant(boxes.tile[1])) {
    return true;
  }
  fail(loc,
       absl::StrCat(what, ": ", to_string(tile), " beside a TMA atom of tiles of ", boxes.tile[0],
                    " x ", boxes.tile[1]),
       "cut tensors into tiles of the atom's extents");
  return false;
}

// use(place, box) for each box of a tile, or of its slice, with its place in the tile.
template <class Use>
void for_boxes(const TmaBoxes& boxes, const AnyTensor& global, const SymInt& slice, SourceLoc loc,
               const Use& use) {
  const int64_t extent = boxes.tile[boxes.sliced] / boxes.slices;
  for (int64_t i = 0; i < boxes.tile[0] / boxes.box[0]; ++i) {
    for (int64_t j = 0; j < boxes.tile[1] / boxes.box[1]; ++j) {
      SymInt at[2] = {i * boxes.box[0], j * boxes.box[1]};
      if (boxes.slices > 1) {
        if (at[boxes.sliced].value() >= extent) continue;
        at[boxes.sliced] = at[boxes.sliced] + slice * extent;
      }
      const IntTuple place = {at[0], at[1]};
      const IntTuple there = global.layout(place, loc);
      absl::InlinedVector<Arg<int32_t>, 5> coordinates;
      for (int mode = 0; mode < boxes.rank; ++mode) {
        const SymInt number =
            number_at(global.origin, mode, boxes.rank) + number_at(there, mode, boxes.rank);
        coordinates.emplace_back(Int(materialize(number, /*wide=*/false, loc)), loc);
      }
      use(place, BoxPlace{boxes.map, coordinates.data(), boxes.rank, global.mode});
    }
  }
}

}  // namespace

void emit_tma_copy(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                   const TmaTarget* load, SourceLoc loc) {
  if (boxes.rank == 0 || !global.layout.ok() || !shared.layout.ok()) return;  // reported
  if (!is_tile(boxes, global, "copy", loc) || !is_tile(boxes, shared, "copy", loc)) return;
  const SymInt slice = load == nullptr ? SymInt(0) : load->slice;
  for_boxes(boxes, global, slice, loc, [&](const IntTuple& place, const BoxPlace& box) {
    const Access access = element_access(shared, place, loc);
    if (load != nullptr) {
      emit_tma_load(access, shared.scalar, box, {*load->words, *load->index}, load->ranks);
    } else {
      emit_tma_store(box, access, shared.scalar, nullptr);
    }
  });
}

void emit_tile_prefetch(const TmaBoxes& boxes, const AnyTensor& global, const SymInt& slice,
                        SourceLoc loc) {
  if (boxes.rank == 0 || !global.layout.ok() || !is_tile(boxes, global, "prefetch", loc)) return;
  for_boxes(boxes, global, slice, loc,
            [](const IntTuple&, const BoxPlace& box) { emit_tma_prefetch(box); });
}

}  // namespace heddle::detail
