// Values as lists of operands: definitions, renames, moves.
#include <bit>

#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/float_bits.h"

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
  const int each = elements_per_register(t);
  const Operand& word = elements(value)[i / each];
  if (word.is_constant) {
    const int bits = ir::info(t.scalar).bits;
    const uint64_t element = word.payload >> bits * (i % each) & ((uint64_t{1} << bits) - 1);
    return Operand::constant(class_of(t.scalar), element);
  }
  if (each == 4) return byte(word, i % 4, /*sign=*/false);
  const ScopedCache::Key key = {ir::index_of(value), static_cast<uint64_t>(i / 2)};
  if (const ScopedCache::Operands* halves = cache_.find(key)) return (*halves)[i % 2];
  const ScopedCache::Operands halves = {fresh(RegClass::kB16), fresh(RegClass::kB16)};
  out_->instruction("mov.b32 ", Vector{halves.data(), 2}, ", ", word);
  cache_.add(key, halves);
  return halves[i % 2];
}

// prmt picks bytes by nibbles: 4 to 7 are those of its second operand, zero here, and 8 more asks
// for eight copies of the byte's sign.
Operand Emitter::byte(const Operand& word, int i, bool sign) {
  const Operand d = fresh(RegClass::kB32);
  const auto n = static_cast<uint32_t>(i);
  const uint32_t above = sign ? 8 + n : 4;
  out_->instruction("prmt.b32 ", d, ", ", word, ", 0, ",
                    Operand::b32(n | above << 4 | above << 8 | above << 12));
  return d;
}

Operand Emitter::packed_bytes(absl::Span<const Operand> bytes) {
  const auto pair = [this](const Operand& low, const Operand& high, uint32_t selector) {
    const Operand d = fresh(RegClass::kB32);
    out_->instruction("prmt.b32 ", d, ", ", low, ", ", high, ", ", Operand::b32(selector));
    return d;
  };
  if (std::all_of(bytes.begin(), bytes.end(), [](const Operand& b) { return b.is_constant; })) {
    uint32_t word = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      word |= static_cast<uint32_t>(bytes[i].payload & 0xFF) << 8 * i;
    }
    return Operand::b32(word);
  }
  const Operand zero = Operand::b32(0);
  const Operand low = pair(bytes[0], bytes.size() > 1 ? bytes[1] : zero, 0x0040);
  if (bytes.size() <= 2) return pair(low, zero, 0x4410);
  return pair(low, pair(bytes[2], bytes.size() > 3 ? bytes[3] : zero, 0x0040), 0x5410);
}

void Emitter::define_bytes(ValueId result, absl::FunctionRef<Operand(int)> byte_of) {
  Operand* const d = define(result);
  const Type t = type(result);
  if (!is_packed(t)) {
    out_->instruction("and.b32 ", d[0], ", ", in_register(byte_of(0)), ", 255");
    return;
  }
  for (int k = 0; 4 * k < t.count; ++k) {
    absl::InlinedVector<Operand, 4> bytes;
    for (int i = 4 * k; i < std::min<int>(4 * k + 4, t.count); ++i) bytes.push_back(byte_of(i));
    move(d[k], packed_bytes(bytes));
  }
}

Operand Emitter::wide_lane(ValueId value, int i) {
  const Type t = type(value);
  const Operand& home = elements(value)[is_packed(t) ? i / elements_per_register(t) : 0];
  if (home.is_constant) {
    const double wide = ir::float_value(t.scalar, lane(value, i).payload);
    return Operand::b32(static_cast<uint32_t>(ir::float_bits(Scalar::kF32, wide)));
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
    if (jumps_.is_dead(to[i])) continue;
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
  for (const Copy& one : moves_) {
    out_->instruction(guard_, "mov.", info(one.to.reg_class).type, ' ', one.to, ", ", one.from);
  }
}

void Emitter::rename(const Op& op) {
  const Operand* const source = elements(op.a());
  std::copy(source, source + layout_of(type(op.a())).count, elements(op.result()));
}

void Emitter::emit_const(const Op& op) {
  const auto bits = static_cast<uint64_t>(*op.attr(AttrKey::kBits));
  const Type t = type(op.result());
  const RegLayout layout = layout_of(t);
  const uint64_t copies = elements_per_register(t) == 4   ? 0x01010101
                          : elements_per_register(t) == 2 ? 0x00010001
                                                          : 1;
  const uint64_t payload = bits * copies;
  std::fill_n(elements(op.result()), layout.count, Operand::constant(layout.reg_class, payload));
}

void Emitter::gather(ValueId result, absl::Span<const Source> sources) {
  Operand* const d = elements(result);
  if (!is_packed(type(result))) {
    for (size_t i = 0; i < sources.size(); ++i) d[i] = lane(sources[i].value, sources[i].lane);
    return;
  }
  const auto each = static_cast<size_t>(elements_per_register(type(result)));
  for (size_t i = 0; i < sources.size(); i += each) {
    const Source low = sources[i];
    const auto count = static_cast<int>(std::min(each, sources.size() - i));
    // A register of another value is shared; what it holds beyond the last element does not count.
    bool is_whole = is_packed(type(low.value)) && static_cast<size_t>(low.lane) % each == 0;
    absl::InlinedVector<Source, 4> parts;
    for (int j = 0; j < count; ++j) {
      parts.push_back(sources[i + static_cast<size_t>(j)]);
      is_whole &= parts.back().value == low.value && parts.back().lane == low.lane + j;
    }
    if (is_whole) {
      d[i / each] = elements(low.value)[static_cast<size_t>(low.lane) / each];
      continue;
    }
    absl::InlinedVector<Operand, 4> lanes;
    for (const Source& part : parts) lanes.push_back(lane(part.value, part.lane));
    if (each == 2 && lanes.size() == 1) lanes.push_back(Operand::constant(RegClass::kB16, 0));
    d[i / each] = each == 4 ? packed_bytes(lanes) : packed(lanes[0], lanes[1]);
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
  for (int i = 0; i < type(op.result()).count; ++i) sources.push_back({op.a(), first + i});
  gather(op.result(), sources);
}

void Emitter::emit_splat(const Op& op) {
  const Operand element = lane(op.a(), 0);
  const Type t = type(op.result());
  Operand filled = element;
  if (elements_per_register(t) == 4) {
    filled = packed_bytes({element, element, element, element});
  } else if (is_packed(t)) {
    filled = packed(element, element);
  }
  std::fill_n(elements(op.result()), layout_of(t).count, filled);
}

}  // namespace heddle::codegen
