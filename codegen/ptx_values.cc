// Values as lists of operands: definitions, renames, moves.
#include <bit>

#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/float16.h"

namespace heddle::codegen {

using ir::AttrKey;
using ir::Opcode;

Operand* Emitter::define(ValueId value) {
  const ValueId home = plan_.home(value);
  const RegLayout layout = layout_of(type(home));
  Operand* const shared = elements(home);
  if (!defined_[ir::index_of(home)]) {
    for (int i = 0; i < layout.count; ++i) shared[i] = fresh(layout.reg_class);
    defined_[ir::index_of(home)] = 1;
  }
  if (value == home) return shared;
  std::copy(shared, shared + layout.count, elements(value));
  return elements(value);
}

Operand Emitter::lane(ValueId value, int i) {
  const Type t = type(value);
  if (t.is_scalar()) return elements(value)[0];
  if (!is_packed(t)) return elements(value)[i];
  const Operand& pair = elements(value)[i / 2];
  if (pair.is_constant) {
    return Operand::constant(RegClass::kB16, pair.payload >> 16 * (i % 2) & 0xFFFF);
  }
  const ScopedCache::Key key = {ir::index_of(value), static_cast<uint64_t>(i / 2)};
  if (const ScopedCache::Operands* halves = cache_.find(key)) return (*halves)[i % 2];
  const ScopedCache::Operands halves = {fresh(RegClass::kB16), fresh(RegClass::kB16)};
  out_->instruction("mov.b32 ", Vector{halves.data(), 2}, ", ", pair);
  cache_.add(key, halves);
  return halves[i % 2];
}

Operand Emitter::wide_lane(ValueId value, int i) {
  const Type t = type(value);
  const Operand& home = elements(value)[is_packed(t) ? i / 2 : 0];
  if (home.is_constant) {
    const auto bits = static_cast<uint16_t>(lane(value, i).payload);
    const bool is_bf16 = t.scalar == Scalar::kBF16;
    const float wide = is_bf16 ? ir::bf16_to_float(bits) : ir::f16_to_float(bits);
    return Operand::b32(std::bit_cast<uint32_t>(wide));
  }
  const Operand d = fresh(RegClass::kB32);
  widen(value, i, d);
  return d;
}

void Emitter::widen(ValueId value, int i, const Operand& d) {
  const Type t = type(value);
  if (t.scalar == Scalar::kF16) {
    return out_->instruction("cvt.f32.f16 ", d, ", ", in_register(lane(value, i)));
  }
  // bf16 is the upper half of an f32: packed ones need no unpacking first.
  if (!is_packed(t)) {
    out_->instruction("mov.b32 ", d, ", {0, ", lane(value, 0), "}");
  } else if (i % 2 == 0) {
    out_->instruction("shl.b32 ", d, ", ", elements(value)[i / 2], ", 16");
  } else {
    out_->instruction("and.b32 ", d, ", ", elements(value)[i / 2], ", 0xFFFF0000");
  }
}

Operand Emitter::in_register(const Operand& operand) {
  if (!operand.is_constant) return operand;
  const Operand d = fresh(operand.reg_class);
  move(d, operand);
  return d;
}

void Emitter::move(const Operand& to, const Operand& from) {
  out_->instruction("mov.", info(to.reg_class).type, ' ', to, ", ", from);
}

void Emitter::define_halves(ValueId result, absl::FunctionRef<void(int, const Operand&)> half) {
  Operand* const d = define(result);
  const Type t = type(result);
  if (!is_packed(t)) return half(0, d[0]);
  for (int k = 0; 2 * k < t.count; ++k) {
    std::array<Operand, 2> halves = {fresh(RegClass::kB16), fresh(RegClass::kB16)};
    half(2 * k, halves[0]);
    if (2 * k + 1 < t.count) {
      half(2 * k + 1, halves[1]);
    } else {
      halves[1] = halves[0];
    }
    out_->instruction("mov.b32 ", d[k], ", ", Vector{halves.data(), 2});
  }
}

void Emitter::define_rounded(ValueId result, absl::FunctionRef<Operand(int)> single) {
  Operand* const d = define(result);
  const Type t = type(result);
  const TypeSpelling& spelling = spelling_of(t.scalar);
  if (!is_packed(t)) {
    const Operand source = in_register(single(0));
    out_->instruction("cvt.rn.", spelling.name, ".f32 ", d[0], ", ", source);
    return;
  }
  for (int k = 0; 2 * k < t.count; ++k) {
    const Operand low = in_register(single(2 * k));
    const Operand high = 2 * k + 1 < t.count ? in_register(single(2 * k + 1)) : low;
    // The first operand goes into the upper half.
    out_->instruction("cvt.rn.", spelling.packed, ".f32 ", d[k], ", ", high, ", ", low);
  }
}

void Emitter::move_values(OpId at, absl::Span<const ValueId> to, absl::Span<const ValueId> from) {
  copies_.clear();
  for (size_t i = 0; i < to.size(); ++i) {
    // Any content will do for a value that nobody has written.
    const Op* const def = kernel_.def(from[i]);
    if (def != nullptr && def->opcode == Opcode::kUndef) continue;
    const Operand* const d = elements(to[i]);
    const Operand* const s = elements(from[i]);
    const int count = layout_of(type(to[i])).count;
    if (type(to[i]).is_pending() && !std::equal(d, d + count, s)) {
      error(at,
            "an accumulator that the tensor cores still write would have to be moved to other "
            "registers here",
            "settle it with wgmma.wait first, and hand each accumulator on as the same one that it "
            "came in as");
    }
    for (int k = 0; k < count; ++k) copies_.push_back({d[k], s[k]});
  }
  moves_.clear();
  sequence_copies(copies_, registers_, &moves_);
  for (const Copy& move_one : moves_) move(move_one.to, move_one.from);
}

void Emitter::rename(const Op& op) {
  const Operand* const source = elements(op.operands[0]);
  std::copy(source, source + layout_of(type(op.operands[0])).count, elements(op.result()));
}

void Emitter::emit_const(const Op& op) {
  const auto bits = static_cast<uint64_t>(*op.attr(AttrKey::kBits));
  const Type t = type(op.result());
  const RegLayout layout = layout_of(t);
  const uint64_t payload = is_packed(t) ? bits | bits << 16 : bits;
  std::fill_n(elements(op.result()), layout.count, Operand::constant(layout.reg_class, payload));
}

void Emitter::gather(ValueId result, absl::Span<const Source> sources) {
  Operand* const d = elements(result);
  if (!is_packed(type(result))) {
    for (size_t i = 0; i < sources.size(); ++i) d[i] = lane(sources[i].value, sources[i].lane);
    return;
  }
  for (size_t i = 0; i < sources.size(); i += 2) {
    const Source low = sources[i];
    const Source high = i + 1 < sources.size() ? sources[i + 1] : Source{low.value, low.lane + 1};
    const bool is_pair = is_packed(type(low.value)) && low.value == high.value &&
                         low.lane % 2 == 0 && high.lane == low.lane + 1;
    if (is_pair) {
      d[i / 2] = elements(low.value)[low.lane / 2];
      continue;
    }
    const bool has_high = i + 1 < sources.size();
    d[i / 2] = packed(lane(low.value, low.lane), has_high ? lane(high.value, high.lane)
                                                          : Operand::constant(RegClass::kB16, 0));
  }
}

Operand Emitter::packed(const Operand& low, const Operand& high) {
  if (low.is_constant && high.is_constant) {
    return Operand::b32(static_cast<uint32_t>(low.payload | high.payload << 16));
  }
  const Operand d = fresh(RegClass::kB32);
  const std::array<Operand, 2> halves = {low, high};
  out_->instruction("mov.b32 ", d, ", ", Vector{halves.data(), 2});
  return d;
}

void Emitter::emit_pack(const Op& op) {
  absl::InlinedVector<Source, 16> sources;
  for (const ValueId operand : op.operands) {
    for (int i = 0; i < type(operand).count; ++i) sources.push_back({operand, i});
  }
  gather(op.result(), sources);
}

void Emitter::emit_extract(const Op& op) {
  const int first = static_cast<int>(*op.attr(AttrKey::kIndex));
  absl::InlinedVector<Source, 16> sources;
  for (int i = 0; i < type(op.result()).count; ++i) sources.push_back({op.operands[0], first + i});
  gather(op.result(), sources);
}

void Emitter::emit_splat(const Op& op) {
  const Operand element = lane(op.operands[0], 0);
  const Type t = type(op.result());
  const Operand filled = is_packed(t) ? packed(element, element) : element;
  std::fill_n(elements(op.result()), layout_of(t).count, filled);
}

}  // namespace heddle::codegen
