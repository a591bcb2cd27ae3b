// Views: where they start, how they are laid out, and addresses in them.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::AttrKey;
using ir::Opcode;
using ir::SlotKind;

namespace {

// Modulo 2^64, as addresses are.
int64_t plus_elements(int64_t bytes, int64_t elements, int size) {
  return static_cast<int64_t>(static_cast<uint64_t>(bytes) +
                              static_cast<uint64_t>(elements) * static_cast<uint64_t>(size));
}

int log2_of(int size) {
  int log = 0;
  while (1 << log < size) ++log;
  return log;
}

}  // namespace

Emitter::View& Emitter::add_view(ValueId value) {
  view_index_[ir::index_of(value)] = static_cast<int>(views_.size());
  return views_.emplace_back();
}

void Emitter::emit_shared(OpId id, const Op& op) {
  View& view = add_view(op.result());
  view.in_arena = true;
  view.bytes = shared_.offset[id];
}

void Emitter::emit_local(OpId id, const Op& op) {
  View& view = add_view(op.result());
  view.base = entry(Entry::kLocals);
  view.bytes = locals_.offset[id];
}

void Emitter::emit_table(const Op& op) {
  const auto data = static_cast<ir::StringId>(*op.attr(AttrKey::kData));
  const auto known = std::find(tables_.begin(), tables_.end(), data);
  const auto index = known - tables_.begin();
  if (known == tables_.end()) tables_.push_back(data);
  const Operand d = fresh(RegClass::kB64);
  out_->instruction("mov.u64 ", d, ", ", table_name(static_cast<size_t>(index)));
  add_view(op.result()).base = d;
}

std::string Emitter::table_name(size_t index) const {
  return absl::StrCat(name_, "_table_", index);
}

void Emitter::emit_dynamic_shared(const Op& op) {
  View& view = add_view(op.result());
  view.in_arena = true;
  view.bytes = shared_.dynamic_offset();
  view.extents.push_back(op.count());
}

void Emitter::emit_subview(OpId id, const Op& op) {
  const int size = bytes_of(type(op.result()).scalar);
  const SplitOffset& offset = plan_.offset(id);
  View view = view_of(op.view());
  view.extents.assign(op.extents().begin(), op.extents().end());
  if (!offset.terms.empty()) view.base = moved_base(base_of(view), offset, size);
  view.bytes = plus_elements(view.bytes, offset.addend, size);
  add_view(op.result()) = std::move(view);
}

void Emitter::emit_map_shared(const Op& op) {
  View view = view_of(op.view());
  const Operand rank = in_register(elements(op.rank())[0]);
  const Operand d = fresh(RegClass::kB32);
  out_->instruction("mapa.shared::cluster.u32 ", d, ", ", base_of(view), ", ", rank);
  view.base = d;
  view.in_arena = false;
  add_view(op.result()) = std::move(view);
}

void Emitter::emit_pointer(const Op& op) {
  const Operand d = fresh(RegClass::kB64);
  out_->instruction("cvta.to.global.u64 ", d, ", ", in_register(elements(op.address())[0]));
  add_view(op.result()).base = d;
}

void Emitter::emit_address(OpId id, const Op& op) {
  const Address at = address(id, op.view());
  const Operand d = define(op.result())[0];
  if (type(op.view()).space != ir::Space::kGlobal) {
    return out_->instruction("cvt.u64.u32 ", d, ", ", near_address(at));
  }
  generic_address(at, d);
}

// A register with an address in shared memory's window.
Operand Emitter::near_address(const Address& at) {
  const Operand near = fresh(RegClass::kB32);
  out_->instruction("add.s32 ", near, ", ", at.base ? *at.base : entry(Entry::kArena), ", ",
                    at.bytes);
  return near;
}

// The generic address of a place in global memory, in a register.
void Emitter::generic_address(const Address& at, const Operand& d) {
  const Operand place = fresh(RegClass::kB64);
  out_->instruction("add.s64 ", place, ", ", *at.base, ", ", at.bytes);
  out_->instruction("cvta.global.u64 ", d, ", ", place);
}

Address Emitter::start_of(ValueId value) {
  const View& view = view_of(value);
  if (view.in_arena && !view.base) {
    uses_arena_ = true;
    return {std::nullopt, view.bytes};
  }
  const Operand base = base_of(view);
  const bool is_near =
      base.reg_class == RegClass::kB32 || (view.bytes >= INT32_MIN && view.bytes <= INT32_MAX);
  if (is_near) return {base, static_cast<int32_t>(view.bytes)};
  const Operand far = fresh(RegClass::kB64);
  out_->instruction("add.s64 ", far, ", ", base, ", ",
                    as(Spelling::kSigned, Operand::b64(static_cast<uint64_t>(view.bytes))));
  return {far, 0};
}

// --- Extents and strides --------------------------------------------------------------------

Emitter::Index Emitter::extent(ValueId view, int dim) {
  const auto of_constant = [](int64_t value) {
    return Index{Operand::b64(static_cast<uint64_t>(value)), Scalar::kI64};
  };
  if (const Op* def = kernel_.def(view); def != nullptr && def->attr(AttrKey::kExtents)) {
    return of_constant(kernel_.ints(*def->attr(AttrKey::kExtents))[static_cast<size_t>(dim)]);
  }
  if (const Op* def = kernel_.def(view); def != nullptr && def->opcode == Opcode::kMapShared) {
    return extent(def->view(), dim);
  }
  const View& v = view_of(view);
  if (!v.extents.empty()) {
    const ValueId value = v.extents[static_cast<size_t>(dim)];
    return {elements(value)[0], type(value).scalar};
  }
  const int64_t fixed = kernel_.params()[static_cast<size_t>(v.param)].extents[dim];
  if (fixed != ir::kDynamic) return of_constant(fixed);
  return {param_slot(SlotKind::kExtent, v.param, dim, Scalar::kI64), Scalar::kI64};
}

Emitter::Index Emitter::stride(ValueId view, int dim) {
  const View& v = view_of(view);
  if (kernel_.param_index(view)) {
    const int64_t fixed = kernel_.params()[static_cast<size_t>(v.param)].strides[dim];
    if (fixed != ir::kDynamic) {
      return {Operand::b64(static_cast<uint64_t>(fixed)), Scalar::kI64};
    }
    return {param_slot(SlotKind::kStride, v.param, dim, Scalar::kI64), Scalar::kI64};
  }
  // Row-major: the product of the extents to the right.
  Operand product = Operand::b64(1);
  for (int i = dim + 1; i < type(view).rank; ++i) {
    const Operand factor = converted(extent(view, i), Scalar::kI64);
    if (product.is_constant && factor.is_constant) {
      product.payload *= factor.payload;
    } else {
      const Operand d = fresh(RegClass::kB64);
      out_->instruction("mul.lo.s64 ", d, ", ", as(Spelling::kSigned, factor), ", ",
                        as(Spelling::kSigned, product));
      product = d;
    }
  }
  return {product, Scalar::kI64};
}

Operand Emitter::converted(const Index& index, Scalar to) {
  if (index.scalar == to) return index.operand;
  const RegClass reg_class = class_of(to);
  if (index.operand.is_constant) {
    const auto narrow = static_cast<uint32_t>(index.operand.payload);
    const auto wide = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(narrow)));
    return Operand::constant(reg_class, to == Scalar::kI32 ? narrow : wide);
  }
  const Operand d = fresh(reg_class);
  out_->instruction(to == Scalar::kI32 ? "cvt.u32.u64 " : "cvt.s64.s32 ", d, ", ", index.operand);
  return d;
}

void Emitter::emit_layout_query(const Op& op) {
  const ValueId view = op.view();
  const int dim = static_cast<int>(*op.attr(AttrKey::kDim));
  const Scalar as = type(op.result()).scalar;
  const bool is_extent = op.opcode == Opcode::kExtent;
  const View& v = view_of(view);
  const SlotKind kind = is_extent ? SlotKind::kExtent : SlotKind::kStride;
  // A parameter's slot is read in the width that is asked for.
  const bool in_slot =
      kernel_.param_index(view).has_value() && params_.find(kind, v.param, dim) != nullptr;
  elements(op.result())[0] = in_slot
                                 ? param_slot(kind, v.param, dim, as)
                                 : converted(is_extent ? extent(view, dim) : stride(view, dim), as);
}

// --- Addresses ------------------------------------------------------------------------------

Operand Emitter::base_of(const View& view) {
  if (view.base) return *view.base;
  if (view.in_arena) return entry(Entry::kArena);
  return address_of_param(view.param);
}

// base + index * size, in the width of the space's addresses.
Operand Emitter::scaled(const Operand& base, ValueId index, int size) {
  const Operand& i = elements(index)[0];
  const bool is_narrow = type(index).scalar == Scalar::kI32;
  if (base.reg_class == RegClass::kB32) {
    const Operand low = is_narrow ? i : converted({i, Scalar::kI64}, Scalar::kI32);
    const Operand d = fresh(RegClass::kB32);
    out_->instruction("mad.lo.s32 ", d, ", ", as(Spelling::kSigned, low), ", ", size, ", ", base);
    return d;
  }
  const Operand d = fresh(RegClass::kB64);
  if (is_narrow) {
    out_->instruction("mad.wide.s32 ", d, ", ", as(Spelling::kSigned, i), ", ", size, ", ", base);
  } else if (size == 1) {
    out_->instruction("add.s64 ", d, ", ", base, ", ", as(Spelling::kSigned, i));
  } else {
    const Operand bytes = fresh(RegClass::kB64);
    out_->instruction("shl.b64 ", bytes, ", ", i, ", ", log2_of(size));
    out_->instruction("add.s64 ", d, ", ", base, ", ", bytes);
  }
  return d;
}

// The sum of a base and the scaled terms of an offset; accesses of this scope share it.
Operand Emitter::moved_base(Operand base, const SplitOffset& offset, int size) {
  for (const SplitOffset::Term& term : offset.terms) base = moved(base, term, size);
  if (offset.exclusive == 0) return base;
  const int bytes = offset.exclusive * size;
  const ScopedCache::Key key = {uint64_t{3} << 62 | base.payload, static_cast<uint64_t>(bytes)};
  if (const ScopedCache::Operands* known = cache_.find(key)) return (*known)[0];
  const Operand d = fresh(RegClass::kB32);
  out_->instruction("xor.b32 ", d, ", ", base, ", ", bytes);
  cache_.add(key, {d, d});
  return d;
}

// base + term, computed once in a scope.
Operand Emitter::moved(const Operand& base, const SplitOffset::Term& term, int size) {
  const ScopedCache::Key key = {
      uint64_t{1} << 63 | base.payload << 8 | static_cast<uint64_t>(base.reg_class) << 4 |
          static_cast<uint64_t>(term.factor == 0 ? log2_of(size) : 8 + term.shift),
      uint64_t{static_cast<uint32_t>(term.factor)} << 32 | ir::index_of(term.value)};
  if (const ScopedCache::Operands* known = cache_.find(key)) return (*known)[0];
  const Operand d = term.factor == 0 ? scaled(base, term.value, size) : advanced(base, term);
  cache_.add(key, {d, d});
  return d;
}

Address Emitter::address(OpId id, ValueId view_value) {
  const View& view = view_of(view_value);
  const int size = bytes_of(type(view_value).scalar);
  const SplitOffset& offset = plan_.offset(id);
  const int64_t bytes = plus_elements(view.bytes, offset.addend, size);
  const bool by_name = offset.terms.empty() && view.in_arena && !view.base;
  if (by_name) {
    uses_arena_ = true;
    return {std::nullopt, bytes};
  }
  const Operand base = base_of(view);
  // An instruction has 32 bits for its own offset; those of shared memory always fit.
  const bool is_near =
      base.reg_class == RegClass::kB32 || (bytes >= INT32_MIN && bytes <= INT32_MAX);
  if (is_near) return {moved_base(base, offset, size), static_cast<int32_t>(bytes)};
  const Operand far = fresh(RegClass::kB64);
  out_->instruction("add.s64 ", far, ", ", base, ", ",
                    as(Spelling::kSigned, Operand::b64(static_cast<uint64_t>(bytes))));
  return {moved_base(far, offset, size), 0};
}

}  // namespace heddle::codegen
