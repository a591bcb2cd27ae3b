#include "heddle/dsl/view.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/access_internal.h"
#include "heddle/dsl/view_info_internal.h"

namespace heddle::detail {
namespace {

using ir::AttrKey;
using ir::FactKind;
using ir::Opcode;

constexpr char kOutsideMessage[] = "memory of a kernel is reached for outside it";
constexpr char kOutsideFix[] = "copy the buffer to the host and read it there";

ir::ValueId as_index(Trace& trace, ir::ValueId value, ir::Type type) {
  if (trace.kernel().type(value) == type) return value;
  return trace.create(Opcode::kConvert, {value}, type);
}

// The element offset of a coordinate.
ir::ValueId linear_offset(Trace& trace, const ViewInfo& info, ir::ValueId view,
                          absl::Span<const ir::ValueId> coordinates) {
  if (info.unbounded()) return coordinates[0];
  const ir::Type type = info.fits_32() ? ir::kI32Type : ir::kI64Type;
  ir::ValueId offset = ir::ValueId::kNone;
  for (size_t dim = 0; dim < coordinates.size(); ++dim) {
    ir::ValueId term = as_index(trace, coordinates[dim], type);
    const int64_t stride = info.stride(static_cast<int>(dim));
    if (stride == ir::kDynamic) {
      const ir::ValueId factor =
          trace.create(Opcode::kStride, {view}, type, {{AttrKey::kDim, static_cast<int64_t>(dim)}});
      term = trace.create(Opcode::kMul, {term, factor});
    } else if (stride != 1) {
      const uint64_t bits =
          info.fits_32() ? static_cast<uint32_t>(stride) : static_cast<uint64_t>(stride);
      term = trace.create(Opcode::kMul, {term, trace.constant(type, bits)});
    }
    offset = ir::valid(offset) ? trace.create(Opcode::kAdd, {offset, term}) : term;
  }
  return offset;
}

// Reports a vector access whose alignment is not known.
void require_alignment(Trace& trace, const ViewInfo& info, ir::ValueId offset, NodeType type,
                       SourceLoc loc) {
  if (type.count == 1) return;
  const int64_t element = ir::bytes_of(type.scalar);
  const int64_t needed = element * type.count;
  if (info.base_align() >= needed && trace.ints().divisible(offset, type.count)) return;
  const int64_t offset_align = element * ir::power_of_two_in(trace.ints().divisor(offset));
  const int64_t proved =
      offset_align == 0 ? info.base_align() : std::min(info.base_align(), offset_align);
  trace.report(
      loc,
      absl::StrCat("an access to ", type.count, " elements needs an address that is a multiple of ",
                   needed, " bytes, and only ", proved, " can be proved (",
                   info.base_align() < needed ? "the array's start" : "the offset", ")"),
      "choose the width by vector_width(), index in multiples of it, or promise the alignment in "
      "the signature or by assume_aligned()");
}

static_assert(static_cast<int>(Cache::no_allocate) == static_cast<int>(ir::CacheHint::kNoAllocate));
static_assert(static_cast<int>(L2Evict::unchanged) == static_cast<int>(ir::L2Evict::kUnchanged));

AccessAttrs attrs_of(AccessMode mode) {
  AccessAttrs attrs;
  if (mode.is_volatile) attrs.push_back({AttrKey::kVolatile, 1});
  if (mode.cache >= 0) attrs.push_back({AttrKey::kCache, mode.cache});
  add_l2_evict(mode, &attrs);
  return attrs;
}

}  // namespace

void add_l2_evict(AccessMode mode, AccessAttrs* attrs) {
  if (mode.l2_evict < 0) return;
  attrs->push_back({AttrKey::kL2Evict, mode.l2_evict});
  if (mode.percent != 100) attrs->push_back({AttrKey::kPercent, mode.percent});
}

AccessAttrs copy_attrs(Trace& trace, absl::Span<const Access* const> places) {
  AccessAttrs attrs;
  for (const Access* place : places) {
    const ir::Space space = trace.kernel().type(trace.use(place->view, place->loc)).space;
    const AccessMode mode = place->mode;
    if (mode.cache >= 0 || mode.is_volatile) {
      trace.report(place->loc,
                   absl::StrCat("an asynchronous copy of a view with ",
                                mode.is_volatile ? "as_volatile()" : "a Cache"),
                   "leave it out: copies to shared memory take L2Evict alone, and pass L1 by where "
                   "they can");
    } else if (mode.l2_evict >= 0 && space != ir::Space::kGlobal) {
      trace.report(place->loc, absl::StrCat("L2Evict for a place in ", name_of(space), " memory"),
                   "give it to the view of global memory");
    } else {
      add_l2_evict(mode, &attrs);
    }
  }
  return attrs;
}

namespace {

// An element of a fragment in a variable.
Node read_register(const Access& access, NodeType type, SourceLoc loc) {
  const Node all = read_slot(access.view, access.view.type, loc);
  if (all.type.kind == ir::TypeKind::kScalar) return all;
  return emit_part(type, Opcode::kExtract, all, access.element, loc);
}

void write_register(const Access& access, const Node& value, SourceLoc loc) {
  const NodeType type = access.view.type;
  if (type.kind == ir::TypeKind::kScalar) return write_slot(access.view, value, loc);
  const Node all = read_slot(access.view, type, loc);
  std::vector<Node> elements;
  for (int i = 0; i < type.count; ++i) {
    elements.push_back(i == access.element
                           ? value
                           : emit_part(scalar_type(type.scalar), Opcode::kExtract, all, i, loc));
  }
  write_slot(access.view, emit_pack(type, elements.data(), type.count, loc), loc);
}

ir::ValueId offset_of(Trace& trace, const Access& access, ir::ValueId view) {
  if (access.rank == 0) return trace.use(access.offset, access.loc);
  const auto coordinates =
      trace.use(absl::MakeConstSpan(access.coordinates, access.rank), access.loc);
  return linear_offset(trace, ViewInfo(trace, view), view, coordinates);
}

}  // namespace

AccessOperands record_access(Trace& trace, const Access& access, NodeType type, SourceLoc loc) {
  trace.set_place(loc, absl::MakeConstSpan(access.coordinates, access.rank));
  const ir::ValueId view = trace.use(access.view, loc);
  const ViewInfo info(trace, view);
  AccessOperands p{view, offset_of(trace, access, view), ir::ValueId::kNone};
  if (!access.mode.is_aligned) require_alignment(trace, info, p.offset, type, loc);
  if (access.rank == 0) {
    if (access.has_check) p.check = trace.use(access.check, loc);
    return p;
  }
  if (info.unbounded()) return p;
  absl::InlinedVector<ir::ValueId, 6> operands = {view};
  for (int i = 0; i < access.rank; ++i) operands.push_back(trace.use(access.coordinates[i], loc));
  const ir::Attr width{AttrKey::kWidth, type.count};
  p.check = trace.create(Opcode::kBounds, operands, ir::Type::none(),
                         absl::MakeConstSpan(&width, type.count > 1 ? 1 : 0));
  return p;
}

ir::ValueId part_of(Trace& trace, ir::ValueId view, ir::ValueId offset, int count) {
  ir::Type type = trace.kernel().type(view);
  type.rank = 1;
  const ir::ValueId extent = trace.constant(ir::kI32Type, static_cast<uint64_t>(count));
  return trace.create(Opcode::kSubview, {view, offset, extent}, type);
}

Node emit_load(const Access& access, NodeType type, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(type, "load", loc);
  if (access.element >= 0) return read_register(access, type, loc);
  const AccessOperands p = record_access(*trace, access, type, loc);
  absl::InlinedVector<ir::ValueId, 3> operands = {p.view, p.offset};
  if (ir::valid(p.check)) operands.push_back(p.check);
  return trace->node(trace->create(Opcode::kLoad, operands, to_type(type), attrs_of(access.mode)));
}

NodeType elements_type(ir::Scalar scalar, int width, SourceLoc loc) {
  const bool is_vector = width == 2 || width == 4 || width == 8 || width == 16;
  if (width == 1 || is_vector) return fragment_type(scalar, width, loc);
  report(loc, absl::StrCat("an access to ", width, " elements").c_str(),
         "one access takes 1, 2, 4, 8 or 16 elements");
  return fragment_type(scalar, 1, loc);
}

const Node& NamedLoad::read(NodeType type) const {
  if (is_read_) return value_;
  Trace* const trace = Trace::current();
  if (trace == nullptr || trace->serial() != named_.trace) {
    value_ = emit_load(access_, type, access_.loc);
  } else {
    const Trace::At named(*trace, named_);
    value_ = emit_load(access_, type, access_.loc);
  }
  is_read_ = true;
  return value_;
}

void emit_store(const Access& access, const Node& value, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return report(loc, kOutsideMessage, kOutsideFix);
  if (access.element >= 0) return write_register(access, value, loc);
  const AccessOperands p = record_access(*trace, access, value.type, loc);
  absl::InlinedVector<ir::ValueId, 4> operands = {p.view, trace->use(value, loc), p.offset};
  if (ir::valid(p.check)) operands.push_back(p.check);
  trace->create(Opcode::kStore, operands, ir::Type::none(), attrs_of(access.mode));
}

void emit_prefetch(const Access& access, PrefetchTo level) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return report(access.loc, kOutsideMessage, kOutsideFix);
  trace->set_place(access.loc, absl::MakeConstSpan(access.coordinates, access.rank));
  const ir::ValueId view = trace->use(access.view, access.loc);
  const ir::ValueId offset = offset_of(*trace, access, view);
  trace->create(Opcode::kPrefetch, {view, offset}, ir::Type::none(),
                {{AttrKey::kLevel, static_cast<int64_t>(level)}});
}

Node emit_pointer(ir::Scalar scalar, bool read_only, const Node& address, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(scalar_type(scalar), "pointer", loc);
  trace->set_place(loc, absl::MakeConstSpan(&address, 1));
  const ir::ValueId bits =
      trace->create(Opcode::kBitcast, {trace->use(address, loc)}, ir::kI64Type);
  return trace->node(trace->create(Opcode::kPointer, {bits},
                                   ir::Type::view(scalar, ir::Space::kGlobal, 1, read_only)));
}

Node emit_address(const Access& access) {
  Trace* const trace = Trace::current();
  const NodeType type = scalar_type<uint64_t>();
  if (trace == nullptr) return made_outside(type, "address", access.loc);
  trace->set_place(access.loc, absl::MakeConstSpan(access.coordinates, access.rank));
  const ir::ValueId view = trace->use(access.view, access.loc);
  const ir::ValueId offset = offset_of(*trace, access, view);
  const ir::ValueId address = trace->create(Opcode::kAddress, {view, offset});
  return trace->node(trace->create(Opcode::kBitcast, {address}, ir::Type::of(ir::Scalar::kU64)));
}

Node emit_extent(Node view, int dim, bool wide, SourceLoc loc) {
  Trace* const trace = Trace::current();
  const NodeType type = wide ? scalar_type<int64_t>() : scalar_type<int32_t>();
  if (trace == nullptr) return made_outside(type, "extent", loc);
  trace->set_place(loc);
  const ir::ValueId value = trace->use(view, loc);
  const ViewInfo info(*trace, value);
  if (dim < 0 || dim >= info.rank() || info.unbounded()) {
    trace->report(loc,
                  info.unbounded() ? std::string("a Pointer has no extent")
                                   : absl::StrCat("mode ", dim, " of a view with ", info.rank()),
                  info.unbounded() ? "take a Tensor, or pass the length as a parameter"
                                   : "modes count from 0");
    return {.type = type};
  }
  const int64_t extent = info.extent(dim);
  if (extent != ir::kDynamic) {
    return wide ? host_node(extent) : host_node(static_cast<int32_t>(extent));
  }
  if (!wide && trace->kernel().param_index(value) && info.fact(FactKind::kExtentFits32, dim) == 0) {
    trace->report(loc, absl::StrCat("the extent of mode ", dim, " is not known to fit in 31 bits"),
                  "use shape64(), or promise the extent in the signature");
  }
  return trace->node(
      trace->create(Opcode::kExtent, {value}, to_type(type), {{AttrKey::kDim, dim}}));
}

namespace {

Node new_array(Opcode opcode, ir::Space space, ir::Scalar scalar, const int64_t* extents, int rank,
               SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    report(loc, absl::StrCat("a ", name_of(space), " array is declared outside a kernel").c_str(),
           "declare it in the kernel's lambda");
    return {};
  }
  trace->set_place(loc);
  absl::InlinedVector<int64_t, 4> sizes(extents, extents + rank);
  for (int64_t& size : sizes) {
    if (size > 0) continue;
    trace->report(loc, absl::StrCat("a ", name_of(space), " array with an extent of ", size),
                  "extents are positive host numbers");
    size = 1;
  }
  return trace->node(trace->create(opcode, {}, ir::Type::view(scalar, space, rank),
                                   {{AttrKey::kExtents, trace->kernel().intern_ints(sizes)}}));
}

}  // namespace

Node new_shared(ir::Scalar scalar, const int64_t* extents, int rank, SourceLoc loc) {
  return new_array(Opcode::kShared, ir::Space::kShared, scalar, extents, rank, loc);
}

Node new_local(ir::Scalar scalar, const int64_t* extents, int rank, SourceLoc loc) {
  return new_array(Opcode::kLocal, ir::Space::kLocal, scalar, extents, rank, loc);
}

Node new_table(ir::Scalar scalar, const void* data, int64_t count, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr || count == 0) {
    report(loc,
           count == 0 ? "a constant array without elements" : "a constant array outside a kernel",
           "make it in the kernel's lambda, from a host array that is not empty");
    if (trace == nullptr) return {};
  }
  const auto bytes = static_cast<size_t>(count * ir::bytes_of(scalar));
  const std::string digits =
      absl::BytesToHexString(absl::string_view(static_cast<const char*>(data), bytes));
  ir::Kernel& kernel = trace->kernel();
  const int64_t extents[] = {std::max<int64_t>(count, 1)};
  trace->set_place(loc);
  return trace->node(trace->create(
      Opcode::kTable, {}, ir::Type::view(scalar, ir::Space::kConst, 1, /*read_only=*/true),
      {{AttrKey::kExtents, kernel.intern_ints(extents)},
       {AttrKey::kData, static_cast<int64_t>(ir::index_of(kernel.intern(digits)))}}));
}

Node new_dynamic_shared(ir::Scalar scalar, Node count, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    report(loc, "shared memory is declared outside a kernel", "declare it in the kernel's lambda");
    return {};
  }
  trace->set_place(loc);
  return trace->node(trace->create(Opcode::kDynamicShared, {trace->use(count, loc)},
                                   ir::Type::view(scalar, ir::Space::kShared, 1)));
}

int vector_width(Node view, int max_bytes) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return 1;
  const ir::ValueId value = trace->use(view, {});
  const ViewInfo info(*trace, value);
  const int last = info.rank() - 1;
  const int64_t element = ir::bytes_of(trace->kernel().type(value).scalar);
  int64_t width = std::min<int64_t>(max_bytes, info.base_align()) / element;
  if (width <= 1 || info.stride(last) != 1) return 1;
  for (int dim = 0; dim < last; ++dim) width = std::min(width, info.stride_divisor(dim));
  while ((width & (width - 1)) != 0) width &= width - 1;
  return static_cast<int>(std::max<int64_t>(1, width));
}

bool fits_32(Node view) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return false;
  return ViewInfo(*trace, trace->use(view, {})).fits_32();
}

bool extent_fits_32(Node view, int dim) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return false;
  const ViewInfo info(*trace, trace->use(view, {}));
  if (info.extent(dim) != ir::kDynamic) return info.extent(dim) <= INT32_MAX;
  return info.fact(FactKind::kExtentFits32, dim) == 1;
}

int64_t fixed_extent(Node view, int dim, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return 1;
  const ViewInfo info(*trace, trace->use(view, loc));
  if (info.extent(dim) != ir::kDynamic) return info.extent(dim);
  const int64_t extent = info.is_param() ? info.fact(FactKind::kExtent, dim) : -1;
  if (extent >= 0) return extent;
  trace->report(loc, absl::StrCat("the extent of mode ", dim, " is not known while tracing"),
                "give it in the signature, or use shape()");
  return 1;
}

}  // namespace heddle::detail
