#include "heddle/dsl/tensor/tma_atom.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle::detail {
namespace {

constexpr int64_t kMostBox = 256;  // elements of a box along a mode
constexpr int kChunkBytes = 16;    // what a swizzle moves about

// Finds the boxes of a tile: the contiguous mode's extent is that of the swizzle's rows, or, of
// plain rows, of the longest one; the other mode's is the greatest for which rows lie densely.
class Boxes {
 public:
  Boxes(const AnyTensor& shared, SourceLoc loc)
      : layout_(shared.layout), bytes_(ir::bytes_of(shared.scalar)), shared_(shared), loc_(loc) {}

  bool find() {
    if (!layout_.ok()) return false;  // reported where it was made
    if (rank(layout_) != 2 || !is_static(layout_.outer())) {
      return wrong("has no two modes of host numbers", "slice it until (rows,columns) are left");
    }
    const Swizzle rows = recast(layout_.swizzle(), 8 * bytes_, 8, loc_);
    if (layout_.inner() != nullptr || rows.bits() > 3 ||
        (rows.bits() != 0 && rows != Swizzle(rows.bits(), 4, 3))) {
      return wrong("is swizzled as no box is",
                   "swizzle chunks of 16 bytes in rows of 32, 64 or 128 bytes, or not at all");
    }
    for (int mode = 1; mode >= 0; --mode) {
      if (extent(mode) == 1 || index(mode, 1) == 1) contiguous_ = mode;
    }
    if (contiguous_ < 0) {
      return wrong("has no contiguous mode", "let neighbours along one mode be neighbours in memory");
    }
    swizzle_ = rows.bits() == 0 ? 0 : kChunkBytes << rows.bits();
    width_ = swizzle_ != 0 ? swizzle_ / bytes_ : longest_row();
    height_ = std::min(kMostBox, extent(1 - contiguous_));
    while (height_ > 0 && !(extent(1 - contiguous_) % height_ == 0 && is_dense())) --height_;
    if (extent(contiguous_) % width_ != 0 || height_ == 0) {
      return wrong(absl::StrCat("has no rows of ", width_, " elements one behind the other"),
                   "let a row of a swizzle's width, or of all elements where there is none, lie "
                   "behind the other");
    }
    return true;
  }

  int64_t extent(int mode) const { return size(get(layout_.shape(), mode)).value(); }
  int swizzle() const { return static_cast<int>(swizzle_); }
  int contiguous() const { return contiguous_; }
  // Of a box.
  int64_t box(int mode) const { return mode == contiguous_ ? width_ : height_; }

  bool wrong(std::string what, std::string fix) const {
    fail(loc_, absl::StrCat("make_tma_atom: the tile ", to_string(shared_), " ", what),
         std::move(fix));
    return false;
  }

 private:
  // Where the element i along a mode lies, before the swizzle, from the first one on.
  int64_t index(int mode, int64_t i) const {
    const IntTuple at = mode == 0 ? IntTuple{i, 0} : IntTuple{0, i};
    return layout_.outer()(at, loc_).value().value();
  }
  int64_t longest_row() const {
    int64_t width = std::min(kMostBox, extent(contiguous_));
    while (extent(contiguous_) % width != 0 || index(contiguous_, width - 1) != width - 1) --width;
    return width;
  }
  // Whether the first box's elements lie as a box does.
  bool is_dense() const {
    const IntTuple box = contiguous_ == 0 ? IntTuple{width_, height_} : IntTuple{height_, width_};
    const Layout part = composition(layout_.outer(), Tiler(box), loc_);
    if (!part.ok()) return false;
    return coalesce(make_layout(get(part, contiguous_), get(part, 1 - contiguous_))) ==
           make_layout(IntTuple(width_ * height_), IntTuple(1));
  }

  const Layout& layout_;
  const int64_t bytes_;
  const AnyTensor& shared_;
  const SourceLoc loc_;
  int contiguous_ = -1;
  int64_t swizzle_ = 0, width_ = 0, height_ = 0;
};

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
  Trace* const trace = Trace::current();
  TmaBoxes boxes;
  if (trace == nullptr) {
    report(loc, "a TMA atom outside a kernel", "write it in the lambda");
    return boxes;
  }
  Boxes found(shared, loc);
  if (!global.layout.ok() || !found.find()) return boxes;
  const int view_rank = trace->kernel().type(trace->use(global.node, loc)).rank;
  const auto fail_tensor = [&](const char* what, const char* fix) {
    fail(loc, absl::StrCat("make_tma_atom: ", to_string(global), " ", what), fix);
    return boxes;
  };
  if (global.scalar != shared.scalar) {
    return fail_tensor("has elements of another type than the tile",
                       "the copy engine converts nothing: make both of one type");
  }
  if (rank(global.layout) < 2 || rank(global.layout) != view_rank) {
    return fail_tensor("is no parameter of two modes or more",
                       "pass the parameter, or select() of its modes in another order");
  }
  int extents[kMaxRank] = {1, 1, 1, 1, 1};
  boxes.bytes = ir::bytes_of(shared.scalar);
  for (int mode = 0; mode < 2; ++mode) {
    boxes.mode[mode] = view_mode(global, mode, view_rank);
    boxes.tile[mode] = found.extent(mode);
    boxes.box[mode] = found.box(mode);
    boxes.bytes *= boxes.tile[mode];
    if (boxes.mode[mode] < 0) {
      return fail_tensor("has modes that are none of the parameter's",
                         "pass the parameter, or select() of its modes in another order");
    }
  }
  // Slices are cut where boxes lie one behind the other in memory.
  boxes.sliced = 1 - found.contiguous();
  if (boxes.box[boxes.sliced] % slices != 0 && boxes.tile[boxes.sliced] % slices == 0) {
    boxes.sliced = found.contiguous();
  }
  const int64_t slice = boxes.tile[boxes.sliced] / slices;
  if (slices < 1 || boxes.tile[boxes.sliced] % slices != 0 ||
      (slice % boxes.box[boxes.sliced] != 0 &&
       (boxes.sliced == found.contiguous() || boxes.box[boxes.sliced] % slice != 0))) {
    found.wrong(absl::StrCat("cannot be cut into ", slices, " equal slices of whole boxes"),
                "let as many blocks share it as divide its rows");
    return boxes;
  }
  boxes.slices = slices;
  boxes.box[boxes.sliced] = std::min(boxes.box[boxes.sliced], slice);
  for (int mode = 0; mode < 2; ++mode) {
    extents[boxes.mode[mode]] = static_cast<int>(boxes.box[mode]);
  }
  BoxOptions with_swizzle = options;
  with_swizzle.swizzle = found.swizzle();
  boxes.map = new_tensor_map(global.node, extents, view_rank, with_swizzle, loc).node;
  const ir::Kernel& kernel = trace->kernel();
  const ir::Op* const map = kernel.def(trace->use(boxes.map, loc));
  if (map == nullptr || map->opcode != ir::Opcode::kTensorMap) return boxes;  // reported
  if (kernel.ints(*map->attr(ir::AttrKey::kModes))[0] != boxes.mode[found.contiguous()]) {
    return fail_tensor("is not contiguous along the tile's contiguous mode",
                       "the copy engine transposes nothing: give the tile the tensor's major");
  }
  boxes.rank = view_rank;
  return boxes;
}

void emit_tma_copy(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                   const TmaTarget* load, SourceLoc loc) {
  if (boxes.rank == 0 || !global.layout.ok() || !shared.layout.ok()) return;  // reported
  for (const AnyTensor* const tile : {&global, &shared}) {
    if (rank(tile->layout) == 2 && size(get(tile->layout.shape(), 0)).is_constant(boxes.tile[0]) &&
        size(get(tile->layout.shape(), 1)).is_constant(boxes.tile[1])) {
      continue;
    }
    fail(loc,
         absl::StrCat("copy: ", to_string(*tile), " beside a TMA atom of tiles of ", boxes.tile[0],
                      " x ", boxes.tile[1]),
         "cut both tensors into tiles of the atom's extents");
    return;
  }
  const int64_t slice = boxes.tile[boxes.sliced] / boxes.slices;
  for (int64_t i = 0; i < boxes.tile[0] / boxes.box[0]; ++i) {
    for (int64_t j = 0; j < boxes.tile[1] / boxes.box[1]; ++j) {
      SymInt at[2] = {i * boxes.box[0], j * boxes.box[1]};
      if (boxes.slices > 1) {
        if (at[boxes.sliced].value() >= slice) continue;
        at[boxes.sliced] = at[boxes.sliced] + load->slice * slice;
      }
      const IntTuple place = {at[0], at[1]};
      const IntTuple there = global.layout(place, loc);
      absl::InlinedVector<Arg<int32_t>, 5> coordinates;
      for (int mode = 0; mode < boxes.rank; ++mode) {
        const SymInt number = number_at(global.origin, mode, boxes.rank) +
                              number_at(there, mode, boxes.rank);
        coordinates.emplace_back(Int(materialize(number, /*wide=*/false, loc)), loc);
      }
      const BoxPlace box{boxes.map, coordinates.data(), boxes.rank};
      const Access access = element_access(shared, place, loc);
      if (load != nullptr) {
        emit_tma_load(access, shared.scalar, box, {*load->words, *load->index}, load->ranks);
      } else {
        emit_tma_store(box, access, shared.scalar, nullptr);
      }
    }
  }
}

}  // namespace heddle::detail
