// Rules of tensor maps and of the copies that take them.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/launch/tensor_map.h"
#include "heddle/ir/verify/rules_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

constexpr int64_t kMaxBox = 256;      // elements along a dimension
constexpr int64_t kBoxMultiple = 16;  // bytes along the first
constexpr int64_t kMaxSharedBytes = 227 * 1024;
constexpr int64_t kMaxPixels = 1024;
// Of the bounds of images of one, two and three dimensions.
constexpr int64_t kMostOfBounds[] = {32767, 127, 15};

// Reports what no tensor can be described by; whether one can.
bool check_described(RuleContext& c) {
  const ValueId view = c.op().view();
  const std::optional<int> param = c.kernel().param_index(view);
  const bool known = param && !c.kernel().params()[static_cast<size_t>(*param)].unbounded;
  if (!known || c.type(view).space != Space::kGlobal) {
    c.error(absl::StrCat("a tensor map describes a parameter with extents, and ", c.name(view),
                         " is none"),
            "make the map of the whole tensor, and say by coordinates where a box lies");
    return false;
  }
  if (c.type(view).scalar == Scalar::kBool) {
    c.error("there are no tensor maps of bool", "pass the tensor as one of uint8_t");
    return false;
  }
  const auto modes = c.kernel().ints(*c.attr(AttrKey::kModes));
  const int rank = c.type(view).rank;
  std::vector<int64_t> sorted(modes.begin(), modes.end());
  std::sort(sorted.begin(), sorted.end());
  bool each = static_cast<int>(sorted.size()) == rank && rank <= kMaxTensorMapRank;
  for (size_t i = 0; each && i < sorted.size(); ++i) each = sorted[i] == static_cast<int64_t>(i);
  if (!each) {
    c.error(absl::StrCat("the modes [", absl::StrJoin(modes, ", "),
                         "] of this tensor map are not each of ", c.name(view), "'s ",
                         counted(static_cast<size_t>(rank), "mode"), " once"),
            "name each mode, the contiguous one first");
    return false;
  }
  const Type wanted = Type::tensor_map(c.type(view).scalar, rank);
  if (c.result_type() == wanted) return true;
  c.error(absl::StrCat(c.result_text(), ", but the view makes it ", to_string(wanted)));
  return false;
}

// A copy between a box and a view of the block's own shared memory.
void check_box_copy(RuleContext& c, ValueId shared) {
  const Type map = c.type(c.op().map());
  const Type type = c.type(shared);
  if (type.space != Space::kShared || type.scalar != map.scalar) {
    c.error(absl::StrCat(c.quoted(), " copies between a tensor of ", info(map.scalar).name,
                         " and the same in the block's own shared memory, and ", c.name(shared),
                         " is ", to_string(type)),
            "give it a shared array of the tensor's elements");
  }
}

void check_box_load(RuleContext& c) {
  check_box_copy(c, c.op().dst());
  const Type barrier = c.type(c.op().barrier());
  if (barrier.space == Space::kShared && barrier.scalar == Scalar::kU64) return;
  c.error(absl::StrCat("an mbarrier is a u64 in the block's own shared memory, and ",
                       c.name(c.op().barrier()), " is ", to_string(barrier)),
          "declare a shared array of u64 for it");
}

// An im2col map, or one of tiles, as the op wants.
bool check_kind(RuleContext& c, bool im2col) {
  const Op& map = described_map(c.kernel(), c.op().map());
  if (map.attr(AttrKey::kLower).has_value() == im2col) return true;
  c.error(absl::StrCat(c.quoted(), " takes a tensor map of ", im2col ? "im2col" : "boxes",
                       ", and this is one of ", im2col ? "boxes" : "im2col"),
          im2col ? "give the map lower and upper bounds of pixels, or copy by tma.load"
                 : "copy by tma.load_im2col, or make a map without lower and upper bounds");
  return false;
}

void check_coordinates(RuleContext& c) {
  if (!check_kind(c, /*im2col=*/false)) return;
  const int rank = c.type(c.op().map()).rank;
  const size_t given = c.op().coordinates().size();
  if (static_cast<int>(given) == rank) return;
  c.error(absl::StrCat("a box of a tensor of ", counted(static_cast<size_t>(rank), "dimension"),
                       " is at as many coordinates, and here are ", given),
          "give one for each dimension of the map, the contiguous one first");
}

bool check_box(RuleContext& c, absl::Span<const int64_t> box) {
  const int rank = c.result_type().rank;
  const auto in_range = [](int64_t n) { return n >= 1 && n <= kMaxBox; };
  if (static_cast<int>(box.size()) == rank && std::all_of(box.begin(), box.end(), in_range)) {
    return true;
  }
  c.error(absl::StrCat("the box [", absl::StrJoin(box, ", "), "] of this tensor map is not ",
                       counted(static_cast<size_t>(rank), "extent"), " of 1 to ", kMaxBox),
          "copy a larger tile in several boxes");
  return false;
}

bool check_im2col(RuleContext& c, absl::Span<const int64_t> box) {
  const int rank = c.result_type().rank;
  if (rank < 3) {
    c.error(
        absl::StrCat("an im2col map has channels, 1 to 3 dimensions of images, and images, and ",
                     c.name(c.op().view()), " has ", counted(static_cast<size_t>(rank), "mode")),
        "give it a tensor of 3 to 5 modes");
    return false;
  }
  if (box.size() != 2 || box[0] < 1 || box[0] > kMaxBox || box[1] < 1 || box[1] > kMaxPixels) {
    c.error(absl::StrCat("the box [", absl::StrJoin(box, ", "), "] of this im2col map is not 1 to ",
                         kMaxBox, " channels and 1 to ", kMaxPixels, " pixels"),
            "copy a larger tile in several boxes");
    return false;
  }
  const int64_t most = kMostOfBounds[rank - 3];
  for (const AttrKey key : {AttrKey::kLower, AttrKey::kUpper}) {
    const auto bounds = c.attr(key) ? c.kernel().ints(*c.attr(key)) : absl::Span<const int64_t>();
    const auto in_range = [&](int64_t n) { return n >= -most - 1 && n <= most; };
    if (static_cast<int>(bounds.size()) == rank - 2 &&
        std::all_of(bounds.begin(), bounds.end(), in_range)) {
      continue;
    }
    c.error(absl::StrCat(
                "the bounds [", absl::StrJoin(bounds, ", "), "] of this im2col map are not ",
                counted(static_cast<size_t>(rank - 2), "number"), " of ", -most - 1, " to ", most),
            "give lower and upper bounds of each dimension of an image");
    return false;
  }
  return true;
}

}  // namespace

void check_tensor_map(RuleContext& c) {
  if (!check_described(c)) return;
  const auto box = c.kernel().ints(*c.attr(AttrKey::kBox));
  const bool im2col = c.attr(AttrKey::kLower) || c.attr(AttrKey::kUpper);
  if (!(im2col ? check_im2col(c, box) : check_box(c, box))) return;
  const BoxShape shape = box_shape(c.kernel(), c.op());
  const int64_t row = box[0] * bytes_of(shape.scalar);
  if (row % kBoxMultiple != 0) {
    return c.error(absl::StrCat("the first dimension of this box has ", row,
                                " bytes, and must have a multiple of ", kBoxMultiple),
                   "choose another box");
  }
  if (shape.swizzle != 0 && row != shape.swizzle) {
    return c.error(
        absl::StrCat("the first dimension of this box has ", row, " bytes, and under a swizzle of ",
                     shape.swizzle, " must have as many"),
        "copy a wider tile in several boxes");
  }
  if (shape.nan_fill && (!is_float(shape.scalar) || bytes_of(shape.scalar) < 2)) {
    return c.error(absl::StrCat("elements of ", info(shape.scalar).name, " cannot be NaN"),
                   "leave nan_fill out");
  }
  if (shape.box_bytes() > kMaxSharedBytes) {
    c.error(
        absl::StrCat("this box has ", shape.box_bytes(), " bytes, more than shared memory holds"),
        "choose a smaller one");
  }
}

void check_tensor_map_replace(RuleContext& c) {
  const Op& op = c.op();
  const Type map = c.type(op.map());
  const Op* const base = c.kernel().def(op.map());
  if (base == nullptr || base->opcode != Opcode::kTensorMap) {
    return c.error(absl::StrCat(c.name(op.map()), " is no parameter's tensor map"),
                   "make each map from one of a parameter");
  }
  if (!check_kind(c, /*im2col=*/false)) return;
  if (c.result_type() != map) {
    c.error(absl::StrCat(c.result_text(), ", but the map makes it ", to_string(map)));
  }
  const Type tensor = c.type(op.view());
  if (tensor.space != Space::kGlobal || tensor.scalar != map.scalar) {
    c.error(absl::StrCat("a map of ", info(map.scalar).name,
                         " in global memory cannot become one of ", to_string(tensor)),
            "take a map of the same elements");
  }
  if (c.type(op.src()).space != Space::kShared || c.type(op.dst()).space != Space::kGlobal) {
    c.error(
        absl::StrCat("a map is put together in the block's own shared memory and lies in global "
                     "memory, not in ",
                     to_string(c.type(op.src())), " and ", to_string(c.type(op.dst()))),
        "give it 128 bytes of each");
  }
  require_writable(c, op.dst(), "tensor map");
  const size_t wanted = 2 * static_cast<size_t>(map.rank) - 1;
  if (op.numbers().size() != wanted) {
    c.error(absl::StrCat("a map of ", counted(static_cast<size_t>(map.rank), "dimension"),
                         " takes ", wanted, " numbers, and here are ", op.numbers().size()),
            "give the extents, and the strides of all dimensions but the first");
  }
  for (const ValueId number : op.numbers()) {
    if (c.type(number) == kI64Type) continue;
    c.error(absl::StrCat("extents and strides of a map are i64, and ", c.name(number), " is ",
                         to_string(c.type(number))),
            "convert it");
  }
}

void check_tma_load(RuleContext& c) {
  check_coordinates(c);
  check_box_load(c);
}

void check_tma_load_im2col(RuleContext& c) {
  if (!check_kind(c, /*im2col=*/true)) return;
  const int rank = c.type(c.op().map()).rank;
  const size_t wanted = 2 * static_cast<size_t>(rank) - 2;
  if (c.op().coordinates().size() != wanted) {
    c.error(
        absl::StrCat("a box of an im2col map of ", counted(static_cast<size_t>(rank), "dimension"),
                     " is at as many coordinates and ", rank - 2, " offsets, and here are ",
                     c.op().coordinates().size(), " numbers"),
        "give a coordinate for each dimension, then an offset for each of an image");
  }
  check_box_load(c);
}

void check_tma_store(RuleContext& c) {
  check_coordinates(c);
  check_box_copy(c, c.op().src());
  require_writable(c, root_of(c.kernel(), c.op().map()), "store of a box");
}

void check_tma_reduce(RuleContext& c) {
  check_tma_store(c);
  const auto op = c.enum_attr(AttrKey::kOp, AtomicOp::kAdd);
  const Scalar scalar = c.type(c.op().map()).scalar;
  if (has_bulk_reduction(op, scalar, Space::kGlobal)) return;
  c.error(
      absl::StrCat("a reduction of boxes by ", kAtomicOpNames[static_cast<size_t>(op)], " takes ",
                   bulk_reduction_types(op, Space::kGlobal), ", not ", info(scalar).name),
      "use atomics");
}

void check_tma_prefetch(RuleContext& c) { check_coordinates(c); }

}  // namespace heddle::ir
