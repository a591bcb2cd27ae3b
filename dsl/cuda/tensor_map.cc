#include "heddle/dsl/cuda/tensor_map.h"

#include <algorithm>

#include "heddle/dsl/access_internal.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/launch/tensor_map.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

namespace {

Trace* current(SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) report(loc, "a tensor map outside a kernel", "write it in the lambda");
  return trace;
}

// The modes of a parameter as dimensions of its map: the contiguous one, as far as the launch knows,
// and then the others from the last to the first.
absl::InlinedVector<int64_t, 5> dimensions(ir::Kernel& kernel, ir::ValueId view, int rank) {
  const std::optional<int> param = kernel.param_index(view);
  int contiguous = rank - 1;
  for (int mode = rank - 1; param && mode >= 0; --mode) {
    const ir::Fact fact{ir::FactKind::kUnitStride, static_cast<uint16_t>(*param),
                        static_cast<uint8_t>(mode)};
    if (kernel.params()[static_cast<size_t>(*param)].strides[static_cast<size_t>(mode)] == 1 ||
        kernel.fact(fact) == 1) {
      contiguous = mode;
      break;
    }
  }
  absl::InlinedVector<int64_t, 5> modes = {contiguous};
  for (int mode = rank - 1; mode >= 0; --mode) {
    if (mode != contiguous) modes.push_back(mode);
  }
  return modes;
}

constexpr int64_t kBoxAlignment = 128;
constexpr int64_t kSwizzleRows = 8;

// Lets a shared array start at a multiple of so many bytes.
void align_to(ir::Kernel& kernel, ir::ValueId array, int64_t align) {
  const ir::OpId root = kernel.value(ir::root_of(kernel, array)).def;
  if (!ir::valid(root) || kernel.op(root).opcode != Opcode::kShared) return;
  for (ir::Attr& attr : kernel.op(root).attrs) {
    if (attr.key != AttrKey::kAlign) continue;
    attr.value = std::max(attr.value, align);
    return;
  }
  kernel.op(root).attrs.push_back({AttrKey::kAlign, align});
}

// The place of a box in shared memory.
ir::ValueId box_in(Trace& trace, const Access& place, ir::Scalar scalar, ir::ValueId map) {
  const AccessOperands p = record_access(trace, place, scalar_type(scalar), place.loc);
  const int64_t swizzle = ir::described_map(trace.kernel(), map).attr_or(AttrKey::kSwizzle, 0);
  align_to(trace.kernel(), p.view, std::max(kBoxAlignment, swizzle * kSwizzleRows));
  return part_of(trace, p.view, p.offset);
}

// The map's coordinates, in its own order of dimensions.
void append_coordinates(Trace& trace, const BoxPlace& box, SourceLoc loc,
                        absl::InlinedVector<ir::ValueId, 11>* operands) {
  const ir::Kernel& kernel = trace.kernel();
  const ir::ValueId map = trace.use(box.map, loc);
  if (kernel.type(map).kind != ir::TypeKind::kTensorMap) return;  // reported
  for (const int64_t mode : kernel.ints(*ir::described_map(kernel, map).attr(AttrKey::kModes))) {
    operands->push_back(trace.use(box.at[mode].node, loc));
  }
}

// A map of a parameter.
TensorMapInfo record_map(Trace& trace, ir::ValueId view, absl::InlinedVector<ir::Attr, 7> attrs,
                         const BoxOptions& options) {
  const ir::Kernel& kernel = trace.kernel();
  if (options.swizzle != 0) attrs.push_back({AttrKey::kSwizzle, options.swizzle});
  if (options.nan_fill) attrs.push_back({AttrKey::kNanFill, 1});
  if (options.promotion != 0) attrs.push_back({AttrKey::kPromotion, options.promotion});
  const ir::Type type = kernel.type(view);
  const ir::ValueId map =
      trace.create(Opcode::kTensorMap, {view}, ir::Type::tensor_map(type.scalar, type.rank), attrs);
  return {trace.node(map), ir::box_shape(kernel, *kernel.def(map)).box_bytes()};
}

// The operands of a load up to the coordinates: where to, the map, and the barrier.
absl::InlinedVector<ir::ValueId, 11> begin_load(Trace& trace, const Access& to, ir::Scalar scalar,
                                                const Node& map, const BulkBarrier& barrier) {
  const ir::ValueId from = trace.use(map, to.loc);
  const ir::ValueId dst = box_in(trace, to, scalar, from);
  const ir::ValueId words = trace.use(barrier.words, to.loc);
  return {dst, from, part_of(trace, words, trace.use(barrier.index, to.loc))};
}

}  // namespace

TensorMapInfo new_tensor_map(const Node& view, const int* box, int rank, const BoxOptions& options,
                             SourceLoc loc) {
  Trace* const trace = current(loc);
  if (trace == nullptr) return {};
  trace->set_place(loc);
  ir::Kernel& kernel = trace->kernel();
  const ir::ValueId value = trace->use(view, loc);
  const absl::InlinedVector<int64_t, 5> modes = dimensions(kernel, value, rank);
  absl::InlinedVector<int64_t, 5> extents;
  for (const int64_t mode : modes) extents.push_back(box[mode]);
  return record_map(
      *trace, value,
      {{AttrKey::kModes, kernel.intern_ints(modes)}, {AttrKey::kBox, kernel.intern_ints(extents)}},
      options);
}

TensorMapInfo new_im2col_map(const Node& view, const int* box, const int* lower, const int* upper,
                             int rank, const BoxOptions& options, SourceLoc loc) {
  Trace* const trace = current(loc);
  if (trace == nullptr) return {};
  trace->set_place(loc);
  ir::Kernel& kernel = trace->kernel();
  const ir::ValueId value = trace->use(view, loc);
  absl::InlinedVector<int64_t, 5> modes, lowest, highest;
  for (int mode = rank - 1; mode >= 0; --mode) modes.push_back(mode);
  for (int i = rank - 3; i >= 0; --i) {
    lowest.push_back(lower[i]);
    highest.push_back(upper[i]);
  }
  const int64_t extents[] = {box[0], box[1]};
  return record_map(*trace, value,
                    {{AttrKey::kModes, kernel.intern_ints(modes)},
                     {AttrKey::kBox, kernel.intern_ints(extents)},
                     {AttrKey::kLower, kernel.intern_ints(lowest)},
                     {AttrKey::kUpper, kernel.intern_ints(highest)}},
                    options);
}

void emit_tma_load_im2col(const Access& to, ir::Scalar scalar, const Node& map,
                          const Arg<int32_t>* at, const Arg<int32_t>* offsets, int rank,
                          const BulkBarrier& barrier) {
  Trace* const trace = current(to.loc);
  if (trace == nullptr) return;
  absl::InlinedVector<ir::ValueId, 11> operands = begin_load(*trace, to, scalar, map, barrier);
  for (int mode = rank - 1; mode >= 0; --mode)
    operands.push_back(trace->use(at[mode].node, to.loc));
  for (int i = rank - 3; i >= 0; --i) operands.push_back(trace->use(offsets[i].node, to.loc));
  trace->builder().create_op(Opcode::kTmaLoadIm2col, operands);
}

Node emit_map_replace(const MapReplacement& replacement) {
  const SourceLoc loc = replacement.start.loc;
  Trace* const trace = current(loc);
  if (trace == nullptr) return replacement.map;
  ir::Kernel& kernel = trace->kernel();
  const auto start_of = [&](const Access& place, ir::Scalar scalar) {
    const AccessOperands p = record_access(*trace, place, scalar_type(scalar), place.loc);
    return part_of(*trace, p.view, p.offset);
  };
  const ir::ValueId map = trace->use(replacement.map, loc);
  const ir::ValueId staging = start_of(replacement.staging, ir::Scalar::kU64);
  align_to(kernel, staging, ir::kTensorMapAlign);
  absl::InlinedVector<ir::ValueId, 13> operands = {map, staging,
                                                   start_of(replacement.place, ir::Scalar::kU64),
                                                   start_of(replacement.start, replacement.scalar)};
  const absl::Span<const int64_t> modes =
      kernel.ints(*ir::described_map(kernel, map).attr(AttrKey::kModes));
  for (const int64_t mode : modes) {
    operands.push_back(trace->use(replacement.extents[mode].node, loc));
  }
  for (const int64_t mode : modes.subspan(1)) {
    operands.push_back(trace->use(replacement.strides[mode].node, loc));
  }
  return trace->node(trace->create(Opcode::kTensorMapReplace, operands, kernel.type(map)));
}

void emit_tma_load(const Access& to, ir::Scalar scalar, const BoxPlace& box,
                   const BulkBarrier& barrier, const Node* ranks) {
  Trace* const trace = current(to.loc);
  if (trace == nullptr) return;
  absl::InlinedVector<ir::ValueId, 11> operands = begin_load(*trace, to, scalar, box.map, barrier);
  if (ranks != nullptr) operands.push_back(trace->use(*ranks, to.loc));
  append_coordinates(*trace, box, to.loc, &operands);
  AccessAttrs attrs;
  add_l2_evict(box.mode, &attrs);
  trace->builder().create_op(ranks != nullptr ? Opcode::kTmaLoadMulticast : Opcode::kTmaLoad,
                             operands, ir::Type::none(), attrs);
}

void emit_tma_store(const BoxPlace& box, const Access& from, ir::Scalar scalar,
                    const AtomicKind* reduction) {
  Trace* const trace = current(from.loc);
  if (trace == nullptr) return;
  const ir::ValueId map = trace->use(box.map, from.loc);
  const ir::ValueId src = box_in(*trace, from, scalar, map);
  absl::InlinedVector<ir::ValueId, 11> operands = {map, src};
  append_coordinates(*trace, box, from.loc, &operands);
  AccessAttrs attrs;
  add_l2_evict(box.mode, &attrs);
  if (reduction != nullptr) attrs.push_back({AttrKey::kOp, static_cast<int64_t>(*reduction)});
  trace->builder().create_op(reduction != nullptr ? Opcode::kTmaReduce : Opcode::kTmaStore,
                             operands, ir::Type::none(), attrs);
}

void emit_tma_prefetch(const BoxPlace& box) {
  const SourceLoc loc = box.at[0].loc;
  Trace* const trace = current(loc);
  if (trace == nullptr) return;
  trace->set_place(loc);
  absl::InlinedVector<ir::ValueId, 11> operands = {trace->use(box.map, loc)};
  append_coordinates(*trace, box, loc, &operands);
  trace->builder().create_op(Opcode::kTmaPrefetch, operands);
}

}  // namespace heddle::detail
