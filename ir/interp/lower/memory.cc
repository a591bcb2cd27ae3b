// Views, bounds and accesses.
#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/lower/lowering.h"
#include "heddle/ir/interp/watch.h"
#include "heddle/ir/launch/abi.h"

namespace heddle::ir::interp {
namespace {

// The number that an op on a barrier brings along.
ValueId mbarrier_number(const Op& op) {
  switch (op.opcode) {
    case Opcode::kMbarrierInit:
    case Opcode::kMbarrierArrive:
      return op.count();
    case Opcode::kMbarrierExpectTx:
    case Opcode::kMbarrierAnnounceTx:
      return op.bytes();
    case Opcode::kMbarrierWait:
    case Opcode::kMbarrierTest:
      return op.parity();
    default:
      return ValueId::kNone;
  }
}

// How it orders: kRelaxedOrder, kBlockScope.
uint32_t order_of(const Op& op) {
  const bool block = op.attr(AttrKey::kScope) == static_cast<int64_t>(MemoryScope::kBlock);
  return (is_relaxed(op) ? kRelaxedOrder : 0) | (block ? kBlockScope : 0);
}

}  // namespace

void Lowering::watch_access(ValueId view, Operand a, Operand b, uint32_t rows) {
  const Space space = type(view).space;
  if (!watched_ || (space != Space::kShared && space != Space::kSharedCluster)) return;
  emit(watched_access_handler(),
       {.a = a, .b = b, .count = rows, .aux = static_cast<uint32_t>(code_->accesses.size() - 1)});
}

void Lowering::watch_op(const Op& op) {
  if (!watched_) return;
  emit(watched_handler(op.opcode), {.aux = static_cast<uint32_t>(op.attr_or(AttrKey::kGroups, 0))});
}

uint32_t Lowering::view_name(ValueId value, absl::string_view otherwise) {
  const StringId hint = kernel_.value(value).name;
  return text(valid(hint) ? kernel_.text(hint) : otherwise);
}

ViewInfo Lowering::param_view(int param, const ParamLayout& layout) {
  const Param& declared = kernel_.params()[param];
  ViewInfo view;
  view.name = view_name(declared.value, absl::StrCat("argument ", param));
  const std::string name = code_->texts[view.name];
  const auto source = [&](SlotKind kind, int64_t known, int dim) {
    IndexSource result;
    if (declared.unbounded) {
      // A raw pointer: nothing is known of what lies behind it, so every index is in bounds.
      result.value = std::numeric_limits<int64_t>::max();
    } else if (known != kDynamic) {
      result.value = known;
    } else {
      result.kind = IndexSource::Kind::kParam;
      result.value = layout.find(kind, param, dim)->offset;
      result.what =
          absl::StrCat(kind == SlotKind::kExtent ? "extent " : "stride ", dim, " of '", name, "'");
    }
    return result;
  };
  for (int dim = 0; dim < type(declared.value).rank; ++dim) {
    const bool unbounded = declared.unbounded;
    view.extents.push_back(source(SlotKind::kExtent, unbounded ? 0 : declared.extents[dim], dim));
    view.strides.push_back(source(SlotKind::kStride, unbounded ? 0 : declared.strides[dim], dim));
  }
  view.unbounded = declared.unbounded;
  return view;
}

IndexSource Lowering::row_major_stride(const ViewInfo& view, size_t dim) {
  IndexSource stride;
  stride.value = 1;
  for (size_t i = dim + 1; i < view.extents.size(); ++i) {
    const IndexSource& extent = view.extents[i];
    if (extent.kind == IndexSource::Kind::kConst && stride.kind == IndexSource::Kind::kConst) {
      stride.value *= extent.value;
      continue;
    }
    IndexSource product{
        .kind = IndexSource::Kind::kReg, .reg = new_index_reg(/*wide=*/true), .wide = true};
    emit(elementwise_handler(Opcode::kMul, Scalar::kI64),
         {.dst = product.reg, .a = index_operand(stride, true), .b = index_operand(extent, true)});
    stride = product;
  }
  return stride;
}

Operand Lowering::index_operand(const IndexSource& source, bool wide) {
  switch (source.kind) {
    case IndexSource::Kind::kConst:
      return constant_index(source.value, wide);
    case IndexSource::Kind::kParam:
      return wide ? initial(InitKind::kParam, Scalar::kI64, 1, static_cast<uint64_t>(source.value))
                  : initial(InitKind::kParamNarrowed, Scalar::kI32, 1,
                            static_cast<uint64_t>(source.value), source.what);
    case IndexSource::Kind::kReg: {
      if (source.wide == wide) return source.reg;
      const Operand converted = new_index_reg(wide);
      emit(convert_handler(source.wide ? Scalar::kI64 : Scalar::kI32,
                           wide ? Scalar::kI64 : Scalar::kI32),
           {.dst = converted, .a = source.reg});
      return converted;
    }
    case IndexSource::Kind::kRowMajor:
      break;
  }
  check_failed(__FILE__, __LINE__, "source.kind", "a row-major stride is computed by its view");
}

void Lowering::lower_view(const Op& op) {
  const Type t = type(op.result());
  Bound bound;
  ViewInfo view;
  const auto constant = [](int64_t value) { return IndexSource{.value = value}; };
  const auto operand_source = [this](ValueId value) {
    if (const auto known = kernel_.constant_int(value)) return IndexSource{.value = *known};
    return IndexSource{.kind = IndexSource::Kind::kReg,
                       .reg = reg(value),
                       .wide = type(value).scalar == Scalar::kI64};
  };
  const auto attr_name = [&](absl::string_view otherwise) {
    const std::optional<int64_t> name = op.attr(AttrKey::kName);
    return name ? kernel_.text(StringId{static_cast<uint32_t>(*name)}) : otherwise;
  };
  if (op.opcode == Opcode::kSubview) {
    const Bound& base = bound_[op.view()];
    bound.array = base.array;
    view.name = view_name(op.result(), code_->texts[views_[base.view].name]);
    if (kernel_.constant_int(op.offset()) == 0) {
      bound.reg = base.reg;
    } else {
      bound.reg = new_reg(Type::of(Scalar::kU64));
      emit(address_handler(type(op.offset()).scalar == Scalar::kI64),
           {.dst = bound.reg,
            .a = base.reg,
            .b = reg(op.offset()),
            .aux = static_cast<uint32_t>(bytes_of(t.scalar))});
    }
    for (const ValueId extent : op.extents()) view.extents.push_back(operand_source(extent));
  } else if (op.opcode == Opcode::kLocal || op.opcode == Opcode::kTable) {
    const bool local = op.opcode == Opcode::kLocal;
    view.name = view_name(op.result(), attr_name(local ? "a local array" : "a constant array"));
    uint64_t where = local ? static_cast<uint64_t>(locals_.offset[current_]) : code_->tables.size();
    if (!local) {
      const StringId data{static_cast<uint32_t>(*op.attr(AttrKey::kData))};
      code_->tables.push_back(absl::HexStringToBytes(kernel_.text(data)));
    }
    bound.reg = initial(local ? InitKind::kLocal : InitKind::kTable, Scalar::kU64, 1, where);
    uint64_t bytes = static_cast<uint64_t>(bytes_of(t.scalar));
    for (const int64_t extent : kernel_.ints(*op.attr(AttrKey::kExtents))) {
      view.extents.push_back(constant(extent));
      bytes *= static_cast<uint64_t>(extent);
    }
    // In a loop each trip has an array of its own, as in C++, if in the same place.
    if (local && options_.checks && depth_ > 0) {
      emit(begin_local_handler(), {.a = bound.reg, .aux = static_cast<uint32_t>(bytes)});
    }
  } else if (op.opcode == Opcode::kMapShared) {
    const Bound& own = bound_[op.view()];
    bound.array = own.array;
    view = views_[own.view];
    bound.reg = new_reg(Type::of(Scalar::kU64));
    emit(map_shared_handler(), {.dst = bound.reg, .a = own.reg, .b = reg(op.rank())});
  } else if (op.opcode == Opcode::kPointer) {
    view.name = view_name(op.result(), attr_name("what a pointer points to"));
    require_defined(op.address(), DefinedUse::kAddress);
    bound.reg = reg(op.address());
    view.unbounded = true;
    view.extents.push_back(constant(std::numeric_limits<int64_t>::max()));
  } else if (op.opcode == Opcode::kShared) {
    const OpId id = current_;
    view.name = view_name(op.result(), attr_name("shared memory"));
    bound.reg =
        initial(InitKind::kShared, Scalar::kU64, 1, static_cast<uint64_t>(shared_.offset[id]));
    SharedArray array = {.name = view.name,
                         .offset = static_cast<uint64_t>(shared_.offset[id]),
                         .bytes = static_cast<uint64_t>(array_bytes(kernel_, id)),
                         .place = static_cast<uint64_t>(places_.offset[id])};
    if (watched_ && op.attr(AttrKey::kRegion)) {
      array.region = static_cast<uint32_t>(*op.attr(AttrKey::kRegion));
    }
    for (const int64_t extent : kernel_.ints(*op.attr(AttrKey::kExtents))) {
      view.extents.push_back(constant(extent));
    }
    bound.array = static_cast<uint32_t>(code_->shared_arrays.size());
    code_->shared_arrays.push_back(array);
  } else {
    view.name = view_name(op.result(), attr_name("dynamic shared memory"));
    bound.reg = initial(InitKind::kDynamicShared, Scalar::kU64, 1, 0);
    view.extents.push_back(operand_source(op.count()));
  }
  view.strides.clear();
  for (size_t dim = 0; dim < view.extents.size(); ++dim) {
    view.strides.push_back({.kind = IndexSource::Kind::kRowMajor});
  }
  bound.view = static_cast<uint32_t>(views_.size());
  views_.push_back(std::move(view));
  bound_.at(op.result()) = bound;
  emit_poison(op.result(), op.operands);
}

void Lowering::lower_index_query(const Op& op) {
  const ViewInfo view = views_[bound_[op.view()].view];
  const size_t dim = static_cast<size_t>(op.attr_or(AttrKey::kDim, 0));
  const bool wide = type(op.result()).scalar == Scalar::kI64;
  IndexSource source = op.opcode == Opcode::kExtent ? view.extents[dim] : view.strides[dim];
  if (source.kind == IndexSource::Kind::kRowMajor) source = row_major_stride(view, dim);
  const Operand found = index_operand(source, wide);
  if (!poisoned(op.result())) return bind(op.result(), found);
  bind(op.result(), new_reg(type(op.result())));
  emit(copy_handler(wide ? 8 : 4, /*blended=*/false), {.dst = reg(op.result()), .a = found});
  emit_poison(op.result(), op.operands);
}

void Lowering::lower_bounds(const Op& op) {
  const ViewInfo view = views_[bound_[op.view()].view];
  const auto rank = static_cast<size_t>(type(op.view()).rank);
  PendingBounds pending;
  pending.view_name = view.name;
  pending.view_modes = view.unbounded ? 0 : rank;
  pending.run_mode = static_cast<size_t>(op.attr_or(AttrKey::kDim, type(op.view()).rank - 1));
  pending.width = static_cast<int>(op.attr_or(AttrKey::kWidth, 1));
  if (const auto tensor = op.attr(AttrKey::kTensor)) {
    pending.tensor = text(kernel_.text(StringId{static_cast<uint32_t>(*tensor)}));
  }
  Bound bound;
  bound.reg = new_reg(kBoolType);
  const auto test = [&](ValueId coordinate, ExtentKind kind, Operand limit, PendingIndex extent,
                        uint32_t width) {
    const bool wide = type(coordinate).scalar == Scalar::kI64;
    emit(bounds_handler(wide, kind), {.dst = bound.reg,
                                      .a = reg(coordinate),
                                      .b = limit,
                                      .count = width,
                                      .aux = pending.coordinates.empty() ? 0u : 1u});
    pending.coordinates.push_back({reg(coordinate), wide});
    pending.extents.push_back(extent);
  };
  for (size_t dim = 0; dim < pending.view_modes; ++dim) {
    const ValueId coordinate = op.coordinates()[dim];
    const IndexSource& extent = view.extents[dim];
    ExtentKind kind = ExtentKind::kWide;
    Operand limit;
    if (extent.kind == IndexSource::Kind::kReg) {
      kind = extent.wide ? ExtentKind::kWide : ExtentKind::kNarrow;
      limit = extent.reg;
    } else if (type(coordinate).scalar == Scalar::kI64) {
      limit = index_operand(extent, true);
    } else {
      kind = ExtentKind::kClamped;
      limit = clamped_operand(extent);
    }
    test(coordinate, kind, limit,
         extent.kind == IndexSource::Kind::kReg
             ? PendingIndex{extent.reg, extent.wide}
             : PendingIndex{index_operand(extent, true), /*wide=*/true},
         dim == pending.run_mode ? static_cast<uint32_t>(pending.width) : 1);
  }
  for (size_t i = rank; i + 1 < op.coordinates().size(); i += 2) {
    const ValueId extent = op.coordinates()[i + 1];
    const bool wide = type(extent).scalar == Scalar::kI64;
    test(op.coordinates()[i], wide ? ExtentKind::kWide : ExtentKind::kNarrow, reg(extent),
         {reg(extent), wide}, 1);
  }
  if (pending.coordinates.empty()) bound.reg = initial(InitKind::kConst, Scalar::kBool, 1, 1);
  if (!pending.coordinates.empty() || pending.tensor != kNone) {
    bound.bounds = static_cast<uint32_t>(bounds_.size());
    bounds_.push_back(std::move(pending));
  }
  bound_.at(op.result()) = bound;
  emit_poison(op.result(), op.operands);
}

Operand Lowering::clamped_operand(const IndexSource& extent) {
  if (extent.kind == IndexSource::Kind::kParam) {
    return initial(InitKind::kParamClamped, Scalar::kU32, 1, static_cast<uint64_t>(extent.value));
  }
  const int64_t clamped =
      std::min<int64_t>(std::max<int64_t>(extent.value, 0), std::numeric_limits<uint32_t>::max());
  return initial(InitKind::kConst, Scalar::kU32, 1, static_cast<uint64_t>(clamped));
}

void Lowering::attach_check(Access* access, ValueId value) {
  const Bound& check = bound_[value];
  access->ok = table_operand(check.reg);
  if (check.bounds == kNone) return;
  const PendingBounds& pending = bounds_[check.bounds];
  access->bounds = static_cast<uint32_t>(code_->bounds.size());
  BoundsCheck& entry = code_->bounds.emplace_back();
  entry.view_name = pending.view_name;
  entry.tensor = pending.tensor;
  entry.view_modes = pending.view_modes;
  entry.run_mode = pending.run_mode;
  entry.width = pending.width;
  for (const PendingIndex& index : pending.coordinates) {
    entry.coordinates.push_back({table_operand(index.reg), index.wide});
  }
  for (const PendingIndex& index : pending.extents) {
    entry.extents.push_back({table_operand(index.reg), index.wide});
  }
}

void Lowering::lower_copy(const Op& op) {
  const Scalar scalar = type(op.dst()).scalar;
  const auto bytes = static_cast<uint32_t>(*op.attr(AttrKey::kWidth) * bytes_of(scalar));
  const ValueId condition = op.opcode == Opcode::kCopyAsyncIf ? op.condition() : ValueId::kNone;
  require_defined(op.dst(), DefinedUse::kAddress);
  require_defined(op.src(), DefinedUse::kAddress);
  require_defined(condition, DefinedUse::kIf);
  emit(copy_handler_async(options_.checks),
       {.a = reg(op.src()),
        .b = reg(op.dst()),
        .c = reg(condition),
        .aux = static_cast<uint32_t>(code_->accesses.size())},
       {.bytes = bytes, .load = true});
  // The source's access comes first; of the checks, the destination's.
  for (const bool store : {false, true}) {
    const ValueId view = store ? op.dst() : op.src();
    const size_t check = store ? 0 : 1;
    Access access;
    access.space = type(view).space;
    access.scalar = scalar;
    access.store = access.exclusive = store;
    access.bytes = bytes;
    access.view_name = views_[bound_[view].view].name;
    access.offset.reg = table_operand(constant_index(0, /*wide=*/false));
    if (options_.checks && check < op.checks().size()) attach_check(&access, op.checks()[check]);
    code_->accesses.push_back(access);
  }
}

void Lowering::lower_shared_begin(const Op& op) {
  if (watched_) emit(watched_handler(op.opcode), {.aux = bound_[op.view()].array});
}

void Lowering::lower_mbarrier(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kAddress);
  const Operand address = new_reg(Type::of(Scalar::kU64));
  emit(address_handler(type(op.offset()).scalar == Scalar::kI64),
       {.dst = address, .a = reg(op.view()), .b = reg(op.offset()), .aux = 8});
  const bool tests = op.opcode == Opcode::kMbarrierTest;
  if (tests) bind(op.result(), new_reg(type(op.result())));
  const bool copies = watched_ && op.opcode == Opcode::kCopyArrive;
  emit(copies ? watched_handler(op.opcode) : mbarrier_handler(op.opcode),
       {.dst = tests ? reg(op.result()) : Operand{},
        .a = address,
        .b = reg(mbarrier_number(op)),
        .count = order_of(op),
        .aux = bound_[op.view()].array});
  // Of a test, whatever it gives: races that it hides by that are missed, none is made up.
  const auto order = static_cast<MemoryOrder>(
      op.attr_or(AttrKey::kOrder, static_cast<int64_t>(MemoryOrder::kAcquire)));
  const bool waits = tests || op.opcode == Opcode::kMbarrierWait;
  if (options_.checks && waits && order != MemoryOrder::kRelaxed) emit(order_handler(), {});
}

void Lowering::lower_bulk(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kAddress);
  const ValueId barrier = op.opcode == Opcode::kBulkStore ? ValueId::kNone : op.barrier();
  const ValueId mask = op.opcode == Opcode::kBulkLoad ? op.mask() : ValueId::kNone;
  const bool from_global = type(op.src()).space == Space::kGlobal;
  const bool to_global = type(op.dst()).space == Space::kGlobal;
  Access access;
  access.store = !from_global;
  access.space = from_global || to_global ? Space::kGlobal : Space::kSharedCluster;
  access.scalar = type(op.dst()).scalar;
  access.view_name = views_[bound_[access.store ? op.dst() : op.src()].view].name;
  if (op.opcode == Opcode::kBulkReduce) {
    access.step = atomic_step(static_cast<AtomicOp>(*op.attr(AttrKey::kOp)), access.scalar);
    if (access.step == nullptr) return unimplemented(info(access.scalar).name);
  }
  access.to_array = bound_[op.dst()].array;
  access.from_array = bound_[op.src()].array;
  access.mbarrier_array = bound_[barrier].array;
  emit(bulk_handler(options_.checks), {.dst = reg(barrier),
                                       .a = reg(op.src()),
                                       .b = reg(op.dst()),
                                       .c = reg(op.bytes()),
                                       .aux = static_cast<uint32_t>(code_->accesses.size())});
  access.offset.reg = table_operand(constant_index(0, /*wide=*/false));
  if (valid(mask)) access.ranks = table_operand(reg(mask));
  code_->accesses.push_back(access);
}

void Lowering::lower_store_async(const Op& op) {
  require_defined(op.view(), DefinedUse::kAddress);
  require_defined(op.offset(), DefinedUse::kAddress);
  require_defined(op.barrier(), DefinedUse::kAddress);
  require_defined(op.check(), DefinedUse::kBounds);
  require_defined(op.value(), DefinedUse::kStored);
  const Type value = type(op.value());
  const int size = bytes_of(value.scalar);
  Access access;
  access.space = type(op.view()).space;
  access.scalar = value.scalar;
  access.store = true;
  access.bytes = static_cast<uint32_t>(value.bytes());
  access.view_name = views_[bound_[op.view()].view].name;
  access.mbarrier_array = bound_[op.barrier()].array;
  access.offset.wide = type(op.offset()).scalar == Scalar::kI64;
  const Operand places = new_reg(Type::of(Scalar::kU64));
  emit(address_handler(access.offset.wide), {.dst = places,
                                             .a = bound_[op.view()].reg,
                                             .b = reg(op.offset()),
                                             .aux = static_cast<uint32_t>(size)});
  emit(store_async_handler(),
       {.a = places,
        .b = reg(op.barrier()),
        .c = reg(op.value()),
        .count = value.count,
        .aux = static_cast<uint32_t>(code_->accesses.size())},
       {.bytes = access.bytes, .store = true});
  access.offset.reg = table_operand(reg(op.offset()));
  if (options_.checks && valid(op.check())) attach_check(&access, op.check());
  code_->accesses.push_back(access);
}

void Lowering::lower_matrices(const Op& op) {
  const bool store = op.opcode == Opcode::kStMatrix;
  const ValueId view = op.view(), offset = op.offset(), check = op.check();
  const ValueId stored = store ? op.value() : ValueId::kNone;
  require_defined(view, DefinedUse::kAddress);
  require_defined(offset, DefinedUse::kAddress);
  require_defined(check, DefinedUse::kBounds);
  require_defined(stored, DefinedUse::kStored);
  const Type fragment = type(store ? stored : op.result());
  const int size = bytes_of(fragment.scalar);
  Access access;
  access.space = type(view).space;
  access.scalar = fragment.scalar;
  access.store = store;
  access.ordinary = true;
  access.bytes = 16;
  access.view_name = views_[bound_[view].view].name;
  access.offset.wide = type(offset).scalar == Scalar::kI64;
  const Operand rows = new_reg(Type::of(Scalar::kU64));
  emit(address_handler(access.offset.wide),
       {.dst = rows, .a = bound_[view].reg, .b = reg(offset), .aux = static_cast<uint32_t>(size)});
  if (!store) bind(op.result(), new_reg(fragment));
  emit(matrix_handler(size, store, op.attr_or(AttrKey::kTranspose, 0) != 0),
       {.dst = store ? Operand{} : reg(op.result()),
        .a = rows,
        .c = reg(stored),
        .count = static_cast<uint32_t>(*op.attr(AttrKey::kCount)),
        .aux = static_cast<uint32_t>(code_->accesses.size())},
       {.bytes = static_cast<uint32_t>(fragment.bytes()), .load = !store, .store = store});
  access.offset.reg = table_operand(reg(offset));
  if (options_.checks && valid(check)) attach_check(&access, check);
  code_->accesses.push_back(access);
  watch_access(view, rows, {}, 8 * static_cast<uint32_t>(*op.attr(AttrKey::kCount)));
}

void Lowering::lower_access(const Op& op) {
  const bool store = op.opcode == Opcode::kStore || op.opcode == Opcode::kAtomicStore;
  const bool swap = op.opcode == Opcode::kAtomicCas;
  const bool atomic = swap || op.opcode == Opcode::kAtomic;
  const ValueId view = op.view(), offset = op.offset(), check = op.check();
  const ValueId value = store || atomic ? op.value() : ValueId::kNone;
  const ValueId expected = swap ? op.expected() : ValueId::kNone;
  const Type element = type(store ? value : op.result());
  const Space space = type(view).space;
  if (space == Space::kNone || space == Space::kParam) {
    return unimplemented(absl::StrCat("accesses to ", name_of(space), " memory"));
  }
  require_defined(view, DefinedUse::kAddress);
  require_defined(offset, DefinedUse::kAddress);
  require_defined(check, DefinedUse::kBounds);
  require_defined(expected, DefinedUse::kStored);
  require_defined(value, DefinedUse::kStored);

  Access access;
  access.space = space;
  access.scalar = element.scalar;
  access.store = store;
  access.exclusive = op.opcode == Opcode::kStore && op.attr_or(AttrKey::kVolatile, 0) == 0 &&
                     space != Space::kLocal;
  access.ordinary = (op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore) &&
                    op.attr_or(AttrKey::kVolatile, 0) == 0;
  access.atomic = atomic;
  if (atomic && !swap) {
    access.step = atomic_step(static_cast<AtomicOp>(*op.attr(AttrKey::kOp)), element.scalar);
    if (access.step == nullptr) return unimplemented(to_string(element));
  }
  access.bytes = static_cast<uint32_t>(element.bytes());
  access.view_name = views_[bound_[view].view].name;
  access.offset.wide = type(offset).scalar == Scalar::kI64;
  if (!store) bind(op.result(), new_reg(element));
  const auto order = static_cast<MemoryOrder>(op.attr_or(AttrKey::kOrder, 0));
  if (options_.checks && order != MemoryOrder::kRelaxed) emit(order_handler(), {});
  if (watched_ && order != MemoryOrder::kRelaxed) emit(memory_order_handler(), {});
  emit(access_handler(access, options_.checks),
       {.dst = store ? Operand{} : reg(op.result()),
        .a = bound_[view].reg,
        .b = reg(offset),
        .c = reg(value),
        .count = element.count,
        .aux = static_cast<uint32_t>(code_->accesses.size())},
       {.bytes = access.bytes, .load = !store, .store = store || atomic});
  access.offset.reg = table_operand(reg(offset));
  if (swap) access.compare = table_operand(reg(expected));
  if (options_.checks && valid(check)) attach_check(&access, check);
  code_->accesses.push_back(access);
  // Loads that are atomic or volatile may meet what they wait for.
  if (store || atomic || access.ordinary) watch_access(view, bound_[view].reg, reg(offset), 0);
  // An acquire is complete behind the load.
  if (watched_ && order != MemoryOrder::kRelaxed) emit(memory_order_handler(), {});
}

}  // namespace heddle::ir::interp
