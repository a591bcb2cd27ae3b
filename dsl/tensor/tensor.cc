#include "heddle/dsl/tensor/tensor.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/access_internal.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"
#include "heddle/dsl/view_info_internal.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

namespace {

constexpr char kOutside[] = "a tensor of a kernel is made or used outside it";
constexpr char kOutsideFix[] = "write it in the kernel's lambda";

AnyTensor failed(ir::Scalar scalar, const Layout& layout) {
  return {.scalar = scalar, .layout = layout};
}
// The kernel that uses it, or the next one, says so.
AnyTensor outside(ir::Scalar scalar, SourceLoc loc) {
  report(loc, kOutside, kOutsideFix);
  return failed(scalar, fail_layout(loc, kOutside, kOutsideFix));
}

// An op on a view that gives a number: the extent or stride of a mode.
SymInt view_number(Opcode opcode, const Node& view, int dim, SourceLoc loc) {
  const uint64_t key =
      uint64_t{view.id} << 16 | static_cast<uint64_t>(dim) << 8 | static_cast<uint64_t>(opcode);
  return Trace::current()->view_number(key, [&] {
    const ir::Attr attr{AttrKey::kDim, dim};
    return traced_int(record(opcode, absl::MakeConstSpan(&view, 1), scalar_type<int64_t>(),
                             absl::MakeConstSpan(&attr, 1), loc),
                      loc);
  });
}

// --- Text -------------------------------------------------------------------------------------

absl::string_view space_name(const AnyTensor& tensor, Trace* trace) {
  if (tensor.storage == Storage::kRegisters) return "rmem";
  if (trace == nullptr) return "gmem";
  switch (trace->kernel().type(trace->use(tensor.node, {})).space) {
    case ir::Space::kShared:
    case ir::Space::kSharedCluster:
      return "smem";
    case ir::Space::kLocal:
      return "lmem";
    case ir::Space::kConst:
      return "cmem";
    default:
      return "gmem";
  }
}

// A coordinate for messages of the interpreter: '%' stands for what the kernel computes.
struct CoordinateText {
  std::string text;
  absl::InlinedVector<std::pair<SymInt, SymInt>, 4> traced;  // with the extent there
};

void append(const TupleNode& coord, const TupleNode& shape, CoordinateText* out) {
  if (coord.is_tuple()) {
    const char* separator = "(";
    int mode = 0;
    for (const TupleNode& child : Elements(coord)) {
      absl::StrAppend(&out->text, separator);
      append(child, element(shape, mode++), out);
      separator = ",";
    }
    absl::StrAppend(&out->text, ")");
  } else if (coord.value.is_constant()) {
    absl::StrAppend(&out->text, coord.value.value());
  } else {
    absl::StrAppend(&out->text, "%");
    out->traced.emplace_back(coord.value, product(shape));
  }
}

// Calls visit(number, extent) for each number of a coordinate, until one is false; false then, and
// where the profiles differ.
template <class Visit>
bool visit_numbers(const TupleNode& coord, const TupleNode& shape, const Visit& visit) {
  if (!coord.is_tuple()) return visit(coord, product(shape));
  if (!shape.is_tuple() || shape.rank != coord.rank) return false;
  int mode = 0;
  for (const TupleNode& child : Elements(coord)) {
    if (!visit_numbers(child, element(shape, mode++), visit)) return false;
  }
  return true;
}

// Whether each number of the coordinate may lie in the shape.
bool may_contain(const TupleNode& shape, const TupleNode& coord) {
  return visit_numbers(coord, shape, [](const TupleNode& number, const SymInt& extent) {
    return number.is_int() && number.value.most() >= 0 && !always_at_most(extent, number.value);
  });
}

// Collects the numbers of a slice that the kernel computes; false where a host number is none of
// its mode. Where profiles differ, slicing itself says so.
bool fix(const TupleNode& coord, const TupleNode& shape,
         std::vector<std::pair<SymInt, SymInt>>* fixed) {
  bool ok = true;
  visit_numbers(coord, shape, [&](const TupleNode& number, const SymInt& extent) {
    if (!number.is_int()) return true;
    if (number.value.is_constant() && extent.is_constant()) {
      return ok = number.value.value() >= 0 && number.value.value() < extent.value();
    }
    // Where nothing can be the matter, nothing is checked; of an empty tensor its view's check
    // tells.
    if (!always_less(number.value, extent)) fixed->emplace_back(number.value, extent);
    return true;
  });
  return ok;
}

// A number for each mode, by which they are ordered as their strides are, and by their places where
// strides are equal, unknown or of a coordinate: registers of different modes never fall together.
IntTuple distinct_order(const Layout& layout) {
  const TupleNode& shape = layout.shape().node();
  const TupleNode& stride = layout.stride().node();
  absl::InlinedVector<uint32_t, 8> leaves;
  for (uint32_t i = 0; i < shape.span; ++i) {
    if ((&shape)[i].is_int()) leaves.push_back(i);
  }
  const auto key = [&](uint32_t leaf) {
    const TupleNode& node = (&stride)[leaf];
    return node.is_basis() || !node.value.is_constant() ? INT64_MAX : node.value.value();
  };
  std::stable_sort(leaves.begin(), leaves.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  absl::InlinedVector<TupleNode, 12> nodes(&shape, &shape + shape.span);
  for (size_t rank = 0; rank < leaves.size(); ++rank) {
    nodes[leaves[rank]].value = static_cast<int64_t>(rank);
  }
  return TupleBuilder::build(nodes.front());
}

// Extents that do not fit 32 bits want coordinates of 64.
bool is_wide(const ViewInfo& info, int mode) {
  if (info.unbounded()) return false;
  const int64_t extent = info.extent(mode);
  if (extent != ir::kDynamic) return extent > INT32_MAX;
  return info.is_param() && info.fact(ir::FactKind::kExtentFits32, mode) == 0;
}

// One more than the greatest index of memory under a layout.
SymInt memory_reach(const Layout& layout, SourceLoc loc) {
  if (!layout.is_composed()) return cosize(layout, loc);
  if (layout.inner() != nullptr) return memory_reach(*layout.inner(), loc);
  const SymInt reach = cosize(layout.outer(), loc) + layout.offset().value();
  if (layout.swizzle().bits() == 0) return reach;
  const int64_t block = layout.swizzle().span();
  return ceil_div(reach, block) * block;
}

// Aligns an array of shared memory to what the swizzle of a layout covers, in bytes, so that it
// does to addresses what it does to indices: that is how TMA and wgmma read it. Theirs cover 1024
// at most.
void align_to_swizzle(ir::Kernel& kernel, ir::ValueId view, const Layout& layout) {
  constexpr int64_t kMost = 1024;
  if (layout.inner() != nullptr) return align_to_swizzle(kernel, view, *layout.inner());
  const ir::OpId def = kernel.value(view).def;
  if (!ir::valid(def) || layout.swizzle().bits() == 0) return;
  ir::Op& array = kernel.op(def);
  if (array.opcode != Opcode::kShared) return;
  const int64_t covered =
      std::min(kMost, layout.swizzle().span()) * ir::bytes_of(kernel.type(view).scalar);
  const int64_t align = std::min(kMost, covered);
  if (align > array.attr_or(AttrKey::kAlign, 16)) array.set_attr(AttrKey::kAlign, align);
}

// Whether the indices of a tensor without known extents fit 31 bits.
bool reaches_32(const AnyTensor& tensor, int rank) {
  return (number_at(tensor.origin, 0, rank) + memory_reach(tensor.layout, {})).most() <= INT32_MAX;
}

}  // namespace

SymInt number_at(const IntTuple& coord, int mode, int rank) {
  if (rank == 1 && coord.is_int() && !coord.node().is_basis()) return coord.value();
  const IntTuple all = coord + IntTuple(0);  // basis strides become tuples
  if (!all.is_tuple()) return all.value();
  if (mode >= heddle::rank(all)) return 0;
  return get(all, mode).value();
}

// --- Making -----------------------------------------------------------------------------------

AnyTensor whole_view(const Node& view, ir::Scalar scalar, AccessMode access, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return outside(scalar, loc);
  const ViewInfo info(*trace, trace->use(view, loc));
  if (info.unbounded()) {
    return failed(scalar, fail_layout(loc, "a Pointer has no extents, which a tensor needs",
                                      "give it a layout: make_tensor(pointer, make_layout(…))"));
  }
  LayoutBuilder builder;
  const size_t tuple = info.rank() > 1 ? builder.open() : 0;
  for (int dim = 0; dim < info.rank(); ++dim) {
    const int64_t extent = info.extent(dim);
    SymInt size = extent;
    if (extent == ir::kDynamic) {
      // Asked here so that what is known of the extent says so.
      if (info.is_param()) info.fact(ir::FactKind::kExtentFits32, dim);
      size = view_number(Opcode::kExtent, view, dim, loc);
    }
    Mode mode = mode_of(size, 1);
    if (info.rank() > 1) {
      mode.stride.path_length = 1;
      mode.stride.path[0] = static_cast<uint8_t>(dim);
    }
    builder.add(mode);
  }
  if (info.rank() > 1) builder.close(tuple);
  return {.storage = Storage::kView,
          .scalar = scalar,
          .node = view,
          .layout = builder.build(loc),
          .origin = 0,
          .mode = access};
}

AnyTensor view_as(const Node& view, ir::Scalar scalar, AccessMode mode, const Layout& layout,
                  SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return outside(scalar, loc);
  if (!layout.ok()) return failed(scalar, layout);
  const ViewInfo info(*trace, trace->use(view, loc));
  const int64_t extent = info.unbounded() ? ir::kDynamic : info.extent(0);
  const SymInt reach = memory_reach(layout, loc);
  if (extent != ir::kDynamic && always_less(extent, reach)) {
    return failed(scalar,
                  fail_layout(loc,
                              absl::StrCat("make_tensor: ", layout.to_string(), " reaches over ",
                                           text(reach), " elements, and the array has ", extent),
                              "make the array as large as cosize(layout)"));
  }
  align_to_swizzle(trace->kernel(), trace->use(view, loc), layout);
  return {.storage = Storage::kView,
          .scalar = scalar,
          .node = view,
          .layout = layout,
          .origin = 0,
          .mode = mode};
}

AnyTensor new_registers(ir::Scalar scalar, const Layout& layout, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return outside(scalar, loc);
  if (!layout.ok()) return failed(scalar, layout);
  const SymInt reach = cosize(layout, loc);
  if (!is_static(layout) || !reach.is_constant() || reach.value() < 1 ||
      reach.value() > kMaxFragment) {
    return failed(
        scalar,
        fail_layout(
            loc, absl::StrCat("make_tensor: registers of layout ", layout.to_string()),
            absl::StrCat(
                "registers are laid out by host numbers, 1 to ", kMaxFragment,
                " of them; what is larger, or known later, lies in shared memory or a Local")));
  }
  const int count = static_cast<int>(reach.value());
  const NodeType type = fragment_type(scalar, count, loc);
  // Not read before it is written; if it is, the interpreter says so.
  const Node undefined = record(Opcode::kUndef, {}, type, {}, loc);
  return {.storage = Storage::kRegisters,
          .scalar = scalar,
          .node = new_slot(undefined, loc),
          .layout = layout};
}

AnyTensor registers_like(const AnyTensor& tensor, ir::Scalar scalar, SourceLoc loc) {
  const Layout layout = memory_layout(tensor).outer();
  if (!layout.ok() || !is_static(layout.shape())) return new_registers(scalar, layout, loc);
  const int modes = rank(layout);
  if (modes < 2) return new_registers(scalar, make_layout(layout.shape()), loc);
  // The first mode's lie together, the others' as they lie in memory.
  const Layout first = make_layout(get(layout, 0).shape());
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 1; i < modes; ++i) builder.add(get(layout, i));
  builder.close(tuple);
  const Layout others = builder.build(loc);
  return new_registers(
      scalar,
      tiled_product(first, make_ordered_layout(others.shape(), distinct_order(others), loc), loc),
      loc);
}

AnyTensor new_shared_tensor(ir::Scalar scalar, const Layout& layout, SourceLoc loc) {
  if (!layout.ok()) return failed(scalar, layout);
  const SymInt reach = memory_reach(layout, loc);
  if (!is_static(layout) || !reach.is_constant()) {
    return failed(scalar, fail_layout(loc,
                                      absl::StrCat("make_smem_tensor: shared memory of layout ",
                                                   layout.to_string()),
                                      "the layout of shared memory is made of host numbers; "
                                      "dynamic_shared<T>() takes others"));
  }
  const int64_t extent = reach.value();
  Trace* const trace = Trace::current();
  if (trace == nullptr) return outside(scalar, loc);
  const Node array = new_shared(scalar, &extent, 1, loc);
  align_to_swizzle(trace->kernel(), trace->use(array, loc), layout);
  return {.storage = Storage::kView, .scalar = scalar, .node = array, .layout = layout};
}

// --- Layouts ----------------------------------------------------------------------------------

absl::InlinedVector<SymInt, kMaxRank> view_strides(Trace& trace, const Node& view, SourceLoc loc) {
  const ViewInfo info(trace, trace.use(view, loc));
  absl::InlinedVector<SymInt, kMaxRank> strides;
  for (int mode = 0; mode < info.rank(); ++mode) {
    const int64_t stride = info.stride(mode);
    strides.push_back(stride == ir::kDynamic ? view_number(Opcode::kStride, view, mode, loc)
                                             : SymInt(stride));
  }
  return strides;
}

Layout memory_layout(const AnyTensor& tensor) {
  Trace* const trace = Trace::current();
  if (tensor.storage != Storage::kView || !tensor.layout.ok() || trace == nullptr) {
    return tensor.layout;
  }
  const auto strides = view_strides(*trace, tensor.node, {});
  // There are none where the view is another kernel's, which is reported.
  if (strides.empty() || (strides.size() == 1 && strides[0].is_constant(1))) return tensor.layout;
  const TupleNode& first = tensor.layout.stride().node();
  absl::InlinedVector<TupleNode, 12> nodes(&first, &first + first.span);
  for (TupleNode& node : nodes) {
    if (!node.is_int()) continue;
    node.value = node.value * strides[node.is_basis() ? node.path[0] : 0];
    node.path_length = 0;
  }
  return tensor.layout.with_outer(
      Layout(tensor.layout.shape(), TupleBuilder::build(nodes.front())));
}

AnyTensor sliced(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  AnyTensor result = tensor;
  if (!tensor.layout.ok()) return result;
  if (!fix(coord.node(), tensor.layout.shape().node(), &result.fixed)) {
    result.layout =
        fail_layout(loc,
                    absl::StrCat("the slice ", coord.to_string(), " of ", to_string(tensor),
                                 " fixes what is not in its shape"),
                    "each number counts from 0 and is less than the extent of its mode");
    return result;
  }
  auto [layout, offset] = slice_and_offset(coord, tensor.layout, loc);
  result.layout = std::move(layout);
  if (result.layout.ok()) result.origin = tensor.origin + offset;
  return result;
}

AnyTensor moved(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  AnyTensor result = tensor;
  if (!tensor.layout.ok()) return result;
  const IntTuple by = crd2idx(coord, tensor.layout.shape(), tensor.layout.stride(), loc);
  if (!by.ok()) return failed(tensor.scalar, failed_layout(by));
  if (tensor.layout.is_composed()) {
    result.layout = moved_layout(tensor.layout, by, tensor.layout.outer(), loc);
  } else {
    result.origin = tensor.origin + by;
  }
  return result;
}

namespace {

AnyTensor part_of(const AnyTensor& tensor, const Cut& cut, SourceLoc loc) {
  AnyTensor tiles = tensor;
  tiles.layout = cut.tiles;
  return sliced(tiles, cut.coord, loc);
}

}  // namespace

AnyTensor tile_of(const AnyTensor& tensor, const Tiler& tiler, const IntTuple& coord,
                  SourceLoc loc) {
  return part_of(tensor, cut_tile(tensor.layout, tiler, coord, loc), loc);
}

AnyTensor partition_of(const AnyTensor& tensor, const Layout& threads, const IntTuple& index,
                       SourceLoc loc) {
  return part_of(tensor, cut_partition(tensor.layout, threads, index, loc), loc);
}

std::string to_string(const AnyTensor& tensor) {
  if (!tensor.layout.ok()) return "no tensor";
  if (tensor.storage == Storage::kCoordinates) {
    return absl::StrCat("tensor<", tensor.origin.to_string(), " o ", tensor.layout.to_string(),
                        ">");
  }
  return absl::StrCat("tensor<ptr<", ir::info(tensor.scalar).name, ", ",
                      space_name(tensor, Trace::current()), "> o ",
                      memory_layout(tensor).to_string(), ">");
}

std::string TensorBase::to_string() const { return detail::to_string(any_); }

// --- Elements ---------------------------------------------------------------------------------

IntTuple coordinate_at(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  if (!check_coordinate(tensor, coord, loc)) return 0;
  return tensor.origin + tensor.layout(coord, loc);
}

bool check_coordinate(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  if (!tensor.layout.ok() || !coord.ok()) return false;
  if (may_contain(tensor.layout.shape().node(), coord.node())) return true;
  fail(loc,
       absl::StrCat("coordinate ", coord.to_string(), " is not in the shape ",
                    tensor.layout.shape().to_string(), " of ", to_string(tensor)),
       has_underscore(coord) ? "an element has numbers alone; slice() takes a coordinate with _"
                             : "each number counts from 0 and is less than the extent of its mode");
  return false;
}

Access element_access(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  return run_access(tensor, {coord, 1}, loc);
}

void fail_unnamed_registers(const AnyTensor& tensor, SourceLoc loc) {
  fail(loc,
       absl::StrCat("the registers of ", to_string(tensor),
                    " are named by an index that the kernel computes"),
       "unroll with a host loop, whose index is a host number, or keep the elements in a Local or "
       "Shared array");
}

namespace {

Access register_access(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc) {
  Access access{.view = tensor.node, .loc = loc, .element = 0};
  const IntTuple index = tensor.origin + tensor.layout(coord, loc);
  if (index.is_int() && index.value().is_constant()) {
    access.element = static_cast<int>(index.value().value());
    return access;
  }
  fail_unnamed_registers(tensor, loc);
  return access;
}

// What the slices of a tensor fixed, and what a coordinate adds: computed apart, the host's numbers
// last, so that accesses share all but these.
Node sum_of(const SymInt& fixed, const SymInt& added, bool wide, bool exact, SourceLoc loc) {
  if (added.is_constant() || fixed.is_constant()) {
    return materialize(fixed + added, wide, loc, exact);
  }
  const int64_t constant = fixed.constant_part() + added.constant_part();
  const Node sum = emit(Opcode::kAdd, materialize(fixed - fixed.constant_part(), wide, loc, exact),
                        materialize(added - added.constant_part(), wide, loc, exact), loc);
  return constant == 0 ? sum : emit(Opcode::kAdd, sum, materialize(constant, wide, loc), loc);
}

// The check of a coordinate: in the view and, where the kernel computes it, in the tensor's shape.
Node record_bounds(Trace& trace, const AnyTensor& tensor, const Run& run,
                   absl::Span<const Node> coordinates, SourceLoc loc) {
  CoordinateText at;
  append(run.coord.node(), tensor.layout.shape().node(), &at);
  absl::InlinedVector<Node, 8> operands = {tensor.node};
  operands.insert(operands.end(), coordinates.begin(), coordinates.end());
  std::string message =
      absl::StrCat(run.tensor == nullptr ? to_string(tensor) : *run.tensor, " at ", at.text);
  for (const auto& one : tensor.fixed) {
    at.traced.push_back(one);
    absl::StrAppend(&message, ", sliced at %");
  }
  for (const auto& [number, extent] : at.traced) {
    const bool wide = number.most() > INT32_MAX || extent.most() > INT32_MAX;
    operands.push_back(materialize(number, wide, loc));
    operands.push_back(materialize(extent, wide, loc));
  }
  absl::InlinedVector<ir::Attr, 3> attrs;
  if (run.width > 1) {
    attrs.push_back({AttrKey::kWidth, run.width});
    if (run.mode + 1 != static_cast<int>(coordinates.size())) {
      attrs.push_back({AttrKey::kDim, run.mode});
    }
  }
  attrs.push_back({AttrKey::kTensor, text_attr(message.c_str())});
  const ir::ValueId check =
      trace.create(Opcode::kBounds, trace.use(operands, loc), ir::Type::none(), attrs);
  return trace.node(check);
}

// What was reported leaves a place of no consequence: the kernel does not compile.
Access nowhere(ir::Scalar scalar, SourceLoc loc) {
  Access access;
  access.view = emit_pointer(scalar, false, host_node(uint64_t{0}), loc);
  access.loc = loc;
  access.offset = host_node(int32_t{0});
  return access;
}

}  // namespace

Access run_access(const AnyTensor& tensor, const Run& run, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr || !check_coordinate(tensor, run.coord, loc)) {
    return nowhere(tensor.scalar, loc);
  }
  Access access{.view = tensor.node, .mode = tensor.mode, .loc = loc, .offset = {}};
  if (tensor.storage == Storage::kRegisters) return register_access(tensor, run.coord, loc);

  trace->set_place(loc);
  const ViewInfo info(*trace, trace->use(tensor.node, loc));
  const int rank = info.rank();
  if (rank == 0) return nowhere(tensor.scalar, loc);  // a view of another kernel
  const bool composed = tensor.layout.is_composed();
  const IntTuple here = tensor.layout(run.coord, loc);
  const auto strides = view_strides(*trace, tensor.node, loc);
  const bool wide_offset = info.unbounded() ? !reaches_32(tensor, rank) : !info.fits_32();
  SymInt base = 0, step = 0;
  absl::InlinedVector<Node, kMaxRank> coordinates;
  for (int mode = 0; mode < rank; ++mode) {
    const bool wide = is_wide(info, mode) || (info.unbounded() && wide_offset);
    SymInt from = composed ? SymInt(0) : number_at(tensor.origin, mode, rank);
    const SymInt by = number_at(here, mode, rank);
    coordinates.push_back(sum_of(from, by, wide, wide_offset, loc));
    // A coordinate of 32 bits is extended as a whole, which costs less than its parts.
    if (wide_offset && !wide && !from.is_constant()) {
      from = traced_int(materialize(from, wide, loc), loc);
    }
    base = base + from * strides[static_cast<size_t>(mode)];
    step = step + by * strides[static_cast<size_t>(mode)];
  }
  access.offset = sum_of(base, step, wide_offset, wide_offset, loc);
  access.check = record_bounds(*trace, tensor, run, coordinates, loc);
  access.has_check = true;
  return access;
}

}  // namespace heddle::detail
