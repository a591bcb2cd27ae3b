#include "fuzz/generator_base.h"

#include <algorithm>

#include "fuzz/inputs.h"
#include "heddle/ir/text/literal.h"

namespace heddle::fuzz {

ValueId GeneratorBase::make(Opcode opcode, absl::Span<const ValueId> operands, Type type,
                            absl::Span<const ir::Attr> attrs) {
  const ValueId result = b_.create(opcode, operands, type, attrs);
  if (!valid(result)) return result;
  const ir::OpInfo& row = ir::info(opcode);
  Scope level = has(row, ir::kPure) ? row.uniform : Scope::kThread;
  for (const ValueId operand : operands) level = std::min(level, level_[operand]);
  return keep(result, level);
}

ValueId GeneratorBase::keep(ValueId value, Scope level) {
  level_.at(value) = level;
  if (kernel_.type(value).is_data()) values_.push_back(value);
  return value;
}

Scalar GeneratorBase::any_scalar() {
  if (floats_ && chance(30)) return one_of(kFloats);
  return one_of(kIntegers);
}

Type GeneratorBase::shaped(Scalar scalar) {
  if (chance(80)) return Type::of(scalar);
  if (chance(50)) return Type::fragment(scalar, chance(50) ? 3 : 4);
  return Type::vector(scalar, ir::info(scalar).bits == 64 || chance(50) ? 2 : 4);
}

Type GeneratorBase::any_type() { return shaped(any_scalar()); }

ValueId GeneratorBase::constant(Type type) {
  const uint64_t random = random_();
  const uint64_t mask = ~uint64_t{0} >> (64 - ir::value_bits(type.scalar));
  const ValueId value =
      b_.constant(type, chance(92) ? edge_bits(type.scalar, random) : random & mask);
  level_.at(value) = Scope::kGrid;
  return value;
}

ValueId GeneratorBase::any(Type type) {
  if (chance(12)) return constant(type);
  // What was made last is looked at first, so that ops build on each other.
  for (int attempt = 0; attempt < 10 && !values_.empty(); ++attempt) {
    const size_t recent = std::min<size_t>(values_.size(), chance(50) ? 12 : values_.size());
    const ValueId value = values_[values_.size() - 1 - below(recent)];
    if (kernel_.type(value) == type) return value;
  }
  if (values_.empty()) return constant(type);
  if (!type.is_scalar()) {
    if (chance(50)) return make(Opcode::kSplat, {any(type.element())}, type);
    std::vector<ValueId> parts;
    for (int i = 0; i < type.count; ++i) parts.push_back(any(type.element()));
    return make(Opcode::kPack, parts, type);
  }
  const ValueId value = values_[below(values_.size())];
  if (!kernel_.type(value).is_scalar()) return constant(type);
  if (kernel_.type(value) == type) return value;
  return make(Opcode::kConvert, {value}, type);
}

ValueId GeneratorBase::agreed(Scalar scalar, Scope level) {
  for (int attempt = 0; attempt < 12; ++attempt) {
    const ValueId value = values_[below(values_.size())];
    if (kernel_.type(value) == Type::of(scalar) && level_[value] >= level) return value;
  }
  return constant(Type::of(scalar));
}

ValueId GeneratorBase::masked(Scalar scalar, int64_t mask) {
  const Type type = Type::of(scalar);
  return make(Opcode::kAnd, {any(type), number(type, mask)});
}

}  // namespace heddle::fuzz
