#include "heddle/dsl/tensor/im2col_atom.h"

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"
#include "heddle/dsl/tensor/tile_boxes_internal.h"

namespace heddle::detail {

namespace {

constexpr int kPixelsThenChannels[] = {0, 1};

}  // namespace

Im2colBoxes make_im2col_boxes(const Node& view, const AnyTensor& shared, const int* lower,
                              const int* upper, int rank, const BoxOptions& options,
                              SourceLoc loc) {
  Im2colBoxes boxes;
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    report(loc, "an im2col atom outside a kernel", "write it in the lambda");
    return boxes;
  }
  if (!shared.layout.ok()) return boxes;  // reported where it was made
  const auto wrong = [&](const std::string& why, const char* fix) {
    fail(loc, absl::StrCat("make_im2col_atom: ", to_string(shared), " ", why), fix);
    return boxes;
  };
  if (heddle::rank(shared.layout) != 2) {
    return wrong("is no tile of pixels and channels", "slice it until two modes are left");
  }
  if (trace->kernel().type(trace->use(view, loc)).scalar != shared.scalar) {
    return wrong("has elements of another type than the images",
                 "the copy engine converts nothing: make both of one type");
  }
  if (!find_boxes(shared, kPixelsThenChannels, 1, "make_im2col_atom", loc, &boxes)) return boxes;
  if (boxes.contiguous != 1) {
    return wrong("is contiguous along its pixels",
                 "the copy engine transposes nothing: make it K-major, along the channels");
  }
  if (boxes.grid.counts[0] != 1) {
    return wrong("has more pixels than a box", "take tiles of at most 256 pixels");
  }
  const int extents[] = {static_cast<int>(boxes.grid.box[1]), static_cast<int>(boxes.grid.box[0])};
  BoxOptions with_swizzle = options;
  with_swizzle.swizzle = boxes.swizzle;
  boxes.map = new_im2col_map(view, extents, lower, upper, rank, with_swizzle, loc).node;
  boxes.rank = rank;
  return boxes;
}

void emit_im2col_tile(const Im2colBoxes& boxes, const AnyTensor& shared, const Arg<int32_t>* at,
                      const Arg<int32_t>* offsets, const BulkBarrier& barrier, SourceLoc loc) {
  if (boxes.rank == 0 || !shared.layout.ok()) return;
  if (!fills(boxes, shared, kPixelsThenChannels, loc)) return;
  for (int64_t number = 0; number < boxes.grid.count(); ++number) {
    const IntTuple place = boxes.grid.first(number);
    absl::InlinedVector<Arg<int32_t>, kMaxRank> first(at, at + boxes.rank);
    first.back() = Arg<int32_t>(
        Int(first.back().node) + static_cast<int>(number_at(place, 1, 2).value()), loc);
    emit_tma_load_im2col(element_access(shared, place, loc), shared.scalar, boxes.map, first.data(),
                         offsets, boxes.rank, barrier);
  }
}

}  // namespace heddle::detail
