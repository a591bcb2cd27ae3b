// Rules of fold for conversions, for vectors and fragments, and for values of the launch.
#include <algorithm>

#include "heddle/ir/passes/folder.h"

namespace heddle::ir {
namespace {

constexpr ValueId kNoChange = ValueId::kNone;

// Whether every number of one float type is a number of another.
bool widens(Scalar from, Scalar to) {
  if (from == to) return true;
  if (from == Scalar::kE8M0) return is_float(to) && (bytes_of(to) > 2 || to == Scalar::kBF16);
  // Each of two bytes has all numbers of each of one byte, and beyond two bytes all of the shorter.
  return is_float(from) && is_float(to) && bytes_of(from) < bytes_of(to);
}

// Whether a conversion between integers leaves each number that the value can be as it is.
bool keeps_number(Folder& f, ValueId value, Scalar from, Scalar to) {
  if (is_float(from) || is_float(to)) return false;
  if (from == Scalar::kBool) return true;
  if (to == Scalar::kBool) return false;
  const IntRange range = f.ints().range(value);
  // A u64's negative twins stand for numbers beyond 2^63, a u64's result for none below 0.
  const bool twins = from == Scalar::kU64 || to == Scalar::kU64;
  if (from != to && twins && range.min < 0) return false;
  return type_range(to).contains(range);
}

// The elements of a value, in order, as parts of others: operand and first element.
struct Part {
  ValueId source;
  int64_t index;
  int64_t count;
};

// What an operand of a pack is a part of: itself where it is none.
Part part_of(const Folder& f, ValueId value) {
  const int64_t count = f.type(value).count;
  for (const Opcode opcode : {Opcode::kExtract, Opcode::kSlice}) {
    if (const auto part = f.match(value, opcode)) return {part->a(), part->index, count};
  }
  return {value, 0, count};
}

}  // namespace

ValueId fold_convert(Folder& f, const Node& n) {
  const Type from = f.type(n.a());
  if (from == n.type) return n.a();
  const auto inner = f.match(n.a(), Opcode::kConvert);
  if (!inner) return kNoChange;
  // first -> from -> n.type, without the one in the middle where it changes nothing that matters.
  const Scalar first = f.type(inner->a()).scalar;
  if (is_float(first)) {
    // Only to floats that have all numbers of the first: a NaN that becomes an integer tells which
    // type it comes from.
    if (!widens(first, from.scalar) || !widens(first, n.type.scalar)) return kNoChange;
    // A byte does not come back as it was: infinity is its largest number then, any NaN 0x7f.
    if (bytes_of(n.type.scalar) == 1) return kNoChange;
    return f.make(Opcode::kConvert, {inner->a()}, n.type);
  }
  const bool integers = is_integer(first) && is_integer(from.scalar) && is_integer(n.type.scalar);
  // Low bits survive any detour through at least as many.
  const bool low_bits = integers && element_bits(from) >= element_bits(n.type);
  if (!low_bits && !keeps_number(f, inner->a(), first, from.scalar)) return kNoChange;
  return f.make(Opcode::kConvert, {inner->a()}, n.type);
}

ValueId fold_bitcast(Folder& f, const Node& n) {
  if (f.type(n.a()) == n.type) return n.a();
  if (const auto inner = f.match(n.a(), Opcode::kBitcast)) {
    return f.make(Opcode::kBitcast, {inner->a()}, n.type);
  }
  return kNoChange;
}

ValueId fold_pack(Folder& f, const Node& n) {
  // The same constant, or the same scalar, everywhere.
  const auto constant = f.bits(n.operands.front());
  bool same_constant = constant.has_value();
  bool same_scalar = f.type(n.operands.front()).is_scalar();
  for (const ValueId operand : n.operands) {
    same_constant &= f.bits(operand) == constant;
    same_scalar &= operand == n.operands.front();
  }
  if (same_constant) return f.constant(n.type, *constant);
  const auto is_undef = [&](ValueId operand) {
    const auto definition = f.definition(operand);
    return definition && definition->opcode == Opcode::kUndef;
  };
  if (std::all_of(n.operands.begin(), n.operands.end(), is_undef)) {
    return f.make(Opcode::kUndef, {}, n.type);
  }
  if (same_scalar && n.operands.size() > 1)
    return f.make(Opcode::kSplat, {n.operands.front()}, n.type);
  // Parts of a value, put together again: they are that value, or that value among others.
  absl::InlinedVector<ValueId, 8> operands;
  for (size_t i = 0; i < n.operands.size();) {
    const Part first = part_of(f, n.operands[i]);
    const int64_t whole = f.type(first.source).count;
    int64_t next = 0;
    size_t end = i;
    while (end < n.operands.size() && next < whole) {
      const Part part = part_of(f, n.operands[end]);
      if (part.source != first.source || part.index != next) break;
      next += part.count;
      ++end;
    }
    const bool is_whole = next == whole && end > i;
    operands.push_back(is_whole ? first.source : n.operands[i]);
    i = is_whole ? end : i + 1;
  }
  if (operands.size() == 1 && f.type(operands[0]) == n.type) return operands[0];
  const bool changed =
      !std::equal(operands.begin(), operands.end(), n.operands.begin(), n.operands.end());
  return changed ? f.make_pack(operands, n.type) : kNoChange;
}

ValueId fold_extract(Folder& f, const Node& n) {
  if (const auto constant = f.bits(n.a())) return f.constant(n.type, *constant);
  const auto source = f.definition(n.a());
  if (!source) return kNoChange;
  if (source->opcode == Opcode::kUndef) return f.make(Opcode::kUndef, {}, n.type);
  if (source->opcode == Opcode::kSplat) return source->a();
  if (source->opcode == Opcode::kSlice) {
    return f.make_indexed(Opcode::kExtract, source->a(), source->index + n.index, n.type);
  }
  if (source->opcode != Opcode::kPack) return kNoChange;
  int64_t index = n.index;
  for (const ValueId operand : source->operands) {
    const Type type = f.type(operand);
    if (index >= type.count) {
      index -= type.count;
      continue;
    }
    if (type.is_scalar()) return operand;
    return f.make_indexed(Opcode::kExtract, operand, index, n.type);
  }
  return kNoChange;
}

ValueId fold_slice(Folder& f, const Node& n) {
  if (f.type(n.a()) == n.type) return n.a();
  if (const auto constant = f.bits(n.a())) return f.constant(n.type, *constant);
  const auto source = f.definition(n.a());
  if (!source) return kNoChange;
  if (source->opcode == Opcode::kUndef) return f.make(Opcode::kUndef, {}, n.type);
  if (source->opcode == Opcode::kSplat) return f.make(Opcode::kSplat, {source->a()}, n.type);
  if (source->opcode == Opcode::kSlice) {
    return f.make_indexed(Opcode::kSlice, source->a(), source->index + n.index, n.type);
  }
  if (source->opcode != Opcode::kPack) return kNoChange;
  // Operands of the pack that fill the slice exactly.
  absl::InlinedVector<ValueId, 4> inside;
  int64_t at = 0;
  const int64_t end = n.index + n.type.count;
  for (const ValueId operand : source->operands) {
    const int64_t next = at + f.type(operand).count;
    if (at >= n.index && next <= end) {
      inside.push_back(operand);
    } else if (next > n.index && at < end) {
      return kNoChange;  // cut in two
    }
    at = next;
  }
  if (inside.size() == 1) {
    return f.type(inside[0]) == n.type ? inside[0] : kNoChange;
  }
  return f.make_pack(inside, n.type);
}

ValueId fold_splat(Folder& f, const Node& n) {
  const auto constant = f.bits(n.a());
  return constant ? f.constant(n.type, *constant) : kNoChange;
}

// What the launch passes anyway needs no place of its own.
ValueId fold_at_launch(Folder& f, const Node& n) {
  const bool passed = f.kernel().param_index(n.a()).has_value() ||
                      f.match(n.a(), Opcode::kExtent) || f.match(n.a(), Opcode::kStride) ||
                      f.match(n.a(), Opcode::kAtLaunch);
  return passed ? n.a() : kNoChange;
}

}  // namespace heddle::ir
