#include "fuzz/generator_arithmetic.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/rounding.h"

namespace heddle::fuzz {
namespace {

// Every op whose elements follow from its operands' elements alone.
constexpr Opcode kElementwise[] = {
#define HEDDLE_OP(name, ...)
#define HEDDLE_ELEMENTWISE(name, ...) Opcode::k##name,
#include "heddle/ir/ops.def"
};

// Those that kernels are mostly made of.
constexpr Opcode kCommon[] = {
    Opcode::kAdd, Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kFma, Opcode::kMin,
    Opcode::kMax, Opcode::kAnd, Opcode::kOr,  Opcode::kXor, Opcode::kShl, Opcode::kShr,
    Opcode::kNeg, Opcode::kAbs, Opcode::kNot, Opcode::kDiv, Opcode::kRem, Opcode::kSelect,
    Opcode::kEq,  Opcode::kNe,  Opcode::kLt,  Opcode::kLe,  Opcode::kGt,  Opcode::kGe,
};

constexpr Opcode kChained[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kAnd,
                               Opcode::kOr,  Opcode::kXor, Opcode::kMin, Opcode::kMax,
                               Opcode::kDiv, Opcode::kRem};

// Whose pairs fold to less.
constexpr Opcode kUnary[] = {Opcode::kNeg, Opcode::kAbs, Opcode::kNot, Opcode::kBrev};

bool takes(const ir::OpInfo& row, AttrKey key) {
  return std::any_of(row.attrs.begin(), row.attrs.begin() + row.attr_count,
                     [&](const ir::AttrRule& rule) { return rule.key == key; });
}

}  // namespace

// A power of two, one less, or one more, of either sign, or the least number of all.
ValueId ArithmeticGenerator::special_divisor(Type type) {
  const auto bits = static_cast<uint64_t>(ir::info(type.scalar).bits);
  if (ir::is_signed(type.scalar) && chance(60)) {
    return number(type, static_cast<int64_t>(~uint64_t{0} << (bits - 1)));
  }
  const auto power = static_cast<int64_t>(uint64_t{1} << (2 + below(bits - 3)));
  const int64_t near = chance(60) ? power : power + (chance(50) ? 1 : -1);
  return number(type, ir::is_signed(type.scalar) && chance(40) ? -near : near);
}

// One that follows from the kernel's arguments: 1 or more, or -2 or less.
ValueId ArithmeticGenerator::launch_divisor(Type type) {
  const ValueId value = agreed(type.scalar, Scope::kGrid);
  const int bits = ir::info(type.scalar).bits;
  const auto most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  const bool is_small = chance(50);
  const ValueId kept = make(Opcode::kAnd, {value, number(type, is_small ? 127 : most)});
  if (!ir::is_signed(type.scalar))
    return make(Opcode::kOr, {chance(50) ? value : kept, number(type, 1)});
  if (chance(50)) return make(Opcode::kOr, {kept, number(type, 1)});
  return make(Opcode::kNeg, {make(Opcode::kOr, {kept, number(type, 2)})});
}

// A divisor for which ops.def says what comes out: not zero, and not -1, which the least number has
// no quotient by.
ValueId ArithmeticGenerator::divisor(Type type) {
  const Scalar scalar = type.scalar;
  if (!ir::is_integer(scalar)) return any(type);
  const int bits_of_type = ir::info(scalar).bits;
  const uint64_t ones = ~uint64_t{0} >> (64 - bits_of_type);
  if (chance(20)) {
    // A power of two that no pass knows.
    const ValueId low = number(ir::kU32Type, bits_of_type / 2 - 1);
    const ValueId exponent = make(Opcode::kAnd, {any(ir::kU32Type), low});
    return make(Opcode::kShl, {number(type, 1), exponent});
  }
  if (type.is_scalar() && chance(20)) return launch_divisor(type);
  if (chance(25)) return special_divisor(type);
  if (chance(60)) {
    const ValueId c = constant(type);
    const uint64_t bits = *kernel_.constant_bits(c);
    if (bits != 0 && !(ir::is_signed(scalar) && bits == ones)) return c;
  }
  if (ir::is_signed(scalar)) {
    // From 1 to 8, or from 1 to the greatest odd number.
    const bool small = chance(50);
    const ValueId low = number(type, small ? 7 : static_cast<int64_t>(ones >> 1));
    const ValueId kept = make(Opcode::kAnd, {any(type), low});
    return make(small ? Opcode::kAdd : Opcode::kOr, {kept, number(type, 1)});
  }
  return make(Opcode::kOr, {any(type), number(type, 1)});
}

ValueId ArithmeticGenerator::operand_of(const ir::Position& position, Opcode opcode, size_t index,
                                        Type type) {
  switch (position.role) {
    case ir::Role::kT:
    case ir::Role::kDataLikeT:
      return any(type);
    case ir::Role::kBoolLikeT:
      return any(type.with_scalar(Scalar::kBool));
    case ir::Role::kBool:
      return any(ir::kBoolType);
    case ir::Role::kU32:
      // Counts of shifts: mostly in range, or just beyond.
      if (opcode != Opcode::kPrmt && index > 0 && chance(70)) {
        return number(ir::kU32Type, static_cast<int64_t>(below(chance(80) ? 33 : 70)));
      }
      return any(ir::kU32Type);
    default:
      return any(ir::kI32Type);
  }
}

void ArithmeticGenerator::table_op(Opcode opcode) {
  if (opcode == Opcode::kConvertRounded) return convert();
  const ir::OpInfo& row = ir::info(opcode);
  const auto fits = [&](Type type) {
    return row.data_class == ir::DataClass::kNone ||
           (admits(row.data_class, type.scalar) &&
            supports(*kernel_.target, row.targets, type.scalar));
  };
  Type type = any_type();
  // Most types are those of integers, and ops of floats shall not be rare.
  for (int attempt = 0; attempt < 6 && !fits(type); ++attempt) type = any_type();
  if (admits(row.data_class, Scalar::kBool) && chance(30)) type = type.with_scalar(Scalar::kBool);
  if (!fits(type)) return;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < row.signature.operand_count; ++i) {
    const bool by = (opcode == Opcode::kDiv || opcode == Opcode::kRem) && i == 1;
    operands.push_back(by ? divisor(type) : operand_of(row.signature.operands[i], opcode, i, type));
  }
  absl::InlinedVector<ir::Attr, 4> attrs;
  if (takes(row, AttrKey::kRounding)) {
    attrs.push_back({AttrKey::kRounding, static_cast<int64_t>(below(ir::kRoundingCount))});
  }
  if (takes(row, AttrKey::kFtz) && type.scalar == Scalar::kF32 && chance(20)) {
    attrs.push_back({AttrKey::kFtz, 1});
  }
  make(opcode, operands, row.signature.results[0].role == ir::Role::kT ? type : Type::none(),
       attrs);
}

void ArithmeticGenerator::convert() {
  const auto scalar = [&] {
    if (chance(15)) return Scalar::kBool;
    if (!chance(25)) return any_scalar();
    const Scalar stored = one_of(kStorage);
    return ir::is_float(stored) && !floats_ ? Scalar::kI8 : stored;
  };
  const Type type = shaped(scalar());
  const Scalar to = scalar();
  const ValueId converted = make(Opcode::kConvert, {any(type)}, type.with_scalar(to));
  // There and back.
  if (chance(40)) make(Opcode::kConvert, {converted}, type);
  // The one op that computes with types that are only stored.
  if (chance(30) && type.is_scalar()) {
    make(Opcode::kSelect, {any(ir::kBoolType), any(Type::of(to)), converted}, Type::of(to));
  }
  if (!floats_ || !chance(15)) return;
  const Scalar wide = chance(50) ? Scalar::kF32 : Scalar::kF64;
  const Scalar integer = one_of(kIntegers);
  const ir::Attr rounding{AttrKey::kRounding, static_cast<int64_t>(below(ir::kRoundingCount))};
  make(Opcode::kConvertRounded, {any(Type::of(wide))}, Type::of(integer), {rounding});
  make(Opcode::kConvertRounded, {any(Type::of(Scalar::kF64))}, ir::kF32Type, {rounding});
  make(Opcode::kConvertRounded, {any(Type::of(one_of(kIntegers)))}, ir::kF32Type, {rounding});
}

void ArithmeticGenerator::bitcast() {
  static constexpr Scalar kPairs[][2] = {
      {Scalar::kI32, Scalar::kU32}, {Scalar::kU32, Scalar::kI32}, {Scalar::kI64, Scalar::kU64},
      {Scalar::kU64, Scalar::kI64}, {Scalar::kU32, Scalar::kF32}, {Scalar::kI32, Scalar::kF32},
      {Scalar::kI64, Scalar::kF64}, {Scalar::kF32, Scalar::kI32}, {Scalar::kF32, Scalar::kU32},
      {Scalar::kF64, Scalar::kU64},
  };
  const auto& [from, to] = kPairs[below(floats_ ? std::size(kPairs) : 4)];
  if (!ir::is_float(from)) {
    const Type type = shaped(from);
    make(Opcode::kBitcast, {any(type)}, type.with_scalar(to));
    return;
  }
  // Which NaN a float is has no meaning.
  const ValueId value = any(Type::of(from));
  const ValueId is_number = b_.create(Opcode::kEq, {value, value});
  const ValueId bits = b_.create(Opcode::kBitcast, {value}, Type::of(to));
  keep(b_.create(Opcode::kSelect, {is_number, bits, constant(Type::of(to))}));
}

void ArithmeticGenerator::chain() {
  const Type type = any_type();
  const Opcode opcode = one_of(kChained);
  if (!admits(ir::info(opcode).data_class, type.scalar)) return;
  ValueId value = any(type);
  for (size_t i = 1 + below(3); i > 0; --i) {
    if (chance(30)) {
      const Opcode unary = one_of(kUnary);
      if (admits(ir::info(unary).data_class, type.scalar)) value = make(unary, {value});
      continue;
    }
    const Opcode next = chance(70) ? opcode : one_of(kChained);
    if (!admits(ir::info(next).data_class, type.scalar)) continue;
    const bool divides = next == Opcode::kDiv || next == Opcode::kRem;
    const ValueId c = divides ? divisor(type) : constant(type);
    value = !divides && chance(30) ? make(next, {c, value}) : make(next, {value, c});
  }
}

void ArithmeticGenerator::again() {
  const ValueId before = values_[below(values_.size())];
  const ir::Op* const def = kernel_.def(before);
  if (def == nullptr || !def->regions.empty()) return;
  const ir::OpInfo& row = info(*def);
  if (!has(row, ir::kPure) || def->results.size() != 1) return;
  std::vector<ValueId> operands(def->operands.begin(), def->operands.end());
  if (has(row, ir::kCommutative) && chance(50)) std::swap(operands[0], operands[1]);
  const std::vector<ir::Attr> attrs(def->attrs.begin(), def->attrs.end());
  make(def->opcode, operands, kernel_.type(before), attrs);
}

void ArithmeticGenerator::neighbours() {
  static constexpr Opcode kAlike[] = {Opcode::kAdd, Opcode::kMul, Opcode::kMax, Opcode::kSub};
  if (!floats_) return;
  const Type half = Type::of(chance(50) ? Scalar::kF16 : Scalar::kBF16);
  const int count = chance(50) ? 2 : 4;
  const ValueId vector = any(Type::vector(half.scalar, count)), shared = any(half);
  const Opcode first = one_of(kAlike), second = one_of(kAlike);
  const bool negates = chance(40), converts = chance(30), differs = chance(15), turns = chance(15);
  std::vector<ValueId> made;
  for (int i = 0; i < count; ++i) {
    const ir::Attr index{AttrKey::kIndex, turns ? count - 1 - i : i};
    const ValueId element = b_.create(Opcode::kExtract, {vector}, half, {index});
    ValueId value = b_.create(i == 0 && differs ? second : first, {element, shared}, half);
    if (negates) value = b_.create(Opcode::kNeg, {value}, half);
    // Floats of 32 bits come from anywhere.
    if (converts) value = b_.create(Opcode::kConvert, {any(ir::kF32Type)}, half);
    made.push_back(b_.create(second, {value, element}, half));
  }
  if (chance(15)) keep(made[0]);
  // What is taken out of a vector again needs no vector.
  const Type type = Type::vector(half.scalar, count);
  make(Opcode::kMax, {b_.create(Opcode::kPack, made, type), any(type)}, type);
}

void ArithmeticGenerator::elements() {
  const Scalar scalar = any_scalar();
  const Type fragment = Type::fragment(scalar, 4);
  const Type pair = Type::vector(scalar, 2);
  const auto take = [&](Opcode opcode, Type from, Type type, size_t places) {
    const ValueId whole = any(from);
    make(opcode, {whole}, type, {{AttrKey::kIndex, static_cast<int64_t>(below(places))}});
  };
  switch (below(5)) {
    case 0:
      make(Opcode::kPack, {any(pair), any(Type::of(scalar)), any(Type::of(scalar))}, fragment);
      return;
    case 1:
      return take(Opcode::kExtract, fragment, Type::of(scalar), 4);
    case 2:
      return take(Opcode::kSlice, fragment, pair, 3);
    case 3:
      make(Opcode::kSplat, {any(Type::of(scalar))}, fragment);
      return;
    default:
      return take(Opcode::kExtract, pair, Type::of(scalar), 2);
  }
}

void ArithmeticGenerator::promise() {
  const Scalar scalar = one_of(kIntegers);
  const Type type = Type::of(scalar);
  switch (below(4)) {
    case 0: {  // kept between two numbers
      const auto low = static_cast<int64_t>(below(200)) - (ir::is_signed(scalar) ? 100 : 0);
      const int64_t high = low + static_cast<int64_t>(below(300));
      const ValueId least = make(Opcode::kMax, {any(type), number(type, low)});
      const ValueId kept = make(Opcode::kMin, {least, number(type, high)});
      make(Opcode::kAssumeRange, {kept}, Type::none(),
           {{AttrKey::kMin, low - static_cast<int64_t>(below(2))}, {AttrKey::kMax, high}});
      return;
    }
    case 1: {  // a multiple
      const auto factor = static_cast<int64_t>(1 + below(12));
      const ValueId product = make(Opcode::kMul, {masked(scalar, 63), number(type, factor)});
      make(Opcode::kAssumeRange, {product}, Type::none(),
           {{AttrKey::kMin, 0}, {AttrKey::kMax, 63 * factor}, {AttrKey::kDivisor, factor}});
      return;
    }
    case 2: {
      const ValueId value = agreed(scalar, Scope::kBlock);
      keep(b_.create(Opcode::kAssumeUniform, {value}), level_[value]);
      return;
    }
    default: {
      const ValueId expected = any(ir::kBoolType);
      make(Opcode::kExpect, {expected}, Type::none(),
           {{AttrKey::kLikely, static_cast<int64_t>(below(2))}});
    }
  }
}

void ArithmeticGenerator::divide() {
  const Type type = Type::of(one_of(kIntegers));
  ValueId n = any(type);
  if (chance(30)) n = make(Opcode::kAnd, {n, number(type, ir::type_range(type.scalar).max)});
  const ValueId d = divisor(type);
  const ValueId quotient = make(Opcode::kDiv, {n, d});
  if (chance(50)) make(Opcode::kAdd, {quotient, make(Opcode::kRem, {n, d})});
}

void ArithmeticGenerator::cheap() {
  const Opcode opcode = one_of(kCommon);
  const ir::OpInfo& row = ir::info(opcode);
  if (has(row, ir::kCheap) && !has(row, ir::kNotSpeculatable)) table_op(opcode);
}

void ArithmeticGenerator::arithmetic() {
  const size_t kind = below(100);
  if (kind < 3) return neighbours();
  if (kind < 45) return table_op(one_of(kCommon));
  if (kind < 58) return table_op(one_of(kElementwise));
  if (kind < 68) return convert();
  if (kind < 73) return bitcast();
  if (kind < 83) return chain();
  if (kind < 88) return again();
  if (kind < 90) return elements();
  if (kind < 97) return divide();
  promise();
}

void ArithmeticGenerator::witness() {
  if (!valid(witness_) || values_.empty() || chance(30)) return;
  ValueId value = values_.back();
  const Type type = kernel_.type(value);
  if (!type.is_scalar()) {
    const ir::Attr index{AttrKey::kIndex, static_cast<int64_t>(below(type.count))};
    value = b_.create(Opcode::kExtract, {value}, type.element(), {index});
  }
  if (ir::is_float(type.scalar)) {
    // Which NaN a float is has no meaning.
    value = b_.create(Opcode::kConvert, {value}, Type::of(Scalar::kF64));
    const ValueId is_number = b_.create(Opcode::kEq, {value, value});
    value = b_.create(Opcode::kBitcast, {value}, Type::of(Scalar::kU64));
    value = b_.create(Opcode::kSelect, {is_number, value, number(Type::of(Scalar::kU64), 1)});
  } else if (type.scalar != Scalar::kU64) {
    value = b_.create(Opcode::kConvert, {value}, Type::of(Scalar::kU64));
  }
  const ValueId factor = number(Type::of(Scalar::kU64), 0x9E37'79B1);
  const ValueId before = b_.create(Opcode::kVarLoad, {witness_});
  const ValueId mixed = b_.create(Opcode::kFma, {before, factor, value});
  b_.create(Opcode::kVarStore, {witness_, mixed});
}

ValueId ArithmeticGenerator::condition() {
  static constexpr Opcode kComparisons[] = {Opcode::kEq, Opcode::kNe, Opcode::kLt,
                                            Opcode::kLe, Opcode::kGt, Opcode::kGe};
  if (chance(8)) return constant(ir::kBoolType);
  if (chance(40)) return any(ir::kBoolType);
  const Type type = Type::of(any_scalar());
  const Opcode comparison = one_of(kComparisons);
  return make(comparison, {any(type), any(type)});
}

}  // namespace heddle::fuzz
