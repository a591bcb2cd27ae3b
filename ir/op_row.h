// Rows in the notation of ops.def, read by the compiler: the legend is there. What is malformed stops the build.
//
//   constexpr OpInfo kRow = op_row("acme.dot4", "a:u32 b:u32 c:i32 -> i32", kPure);
#pragma once

#include <type_traits>

#include "heddle/ir/op_info.h"

namespace heddle::ir {
namespace rows {

// --- The columns of ops.def: each is of a type of its own, and says which field it fills ---

struct Attrs {
  absl::string_view words;
};
constexpr Attrs attrs(absl::string_view words) { return {words}; }

// Operands, by name, whose memory is read or written.
struct Accesses {
  absl::string_view reads, writes;
};
constexpr Accesses reads(absl::string_view operands) { return {operands, {}}; }
constexpr Accesses writes(absl::string_view operands) { return {{}, operands}; }

enum class EffectFlag : uint8_t { kAsync, kOrders, kUnnamed };

// Reads and writes one operand's memory, and orders all other accesses.
struct Updates {
  absl::string_view operand;
};
constexpr Updates updates(absl::string_view operand) { return {operand}; }

// How far threads have the same result.
struct Uniform {
  Scope scope;
};
constexpr Uniform uniform(Scope scope) { return {scope}; }

// Operands, by name, whose being uninitialised the results inherit.
struct Poison {
  absl::string_view operands;
};
constexpr Poison poison(absl::string_view operands) { return {operands}; }

// The words that rows use without their enumeration's name.
using enum DataClass;
using enum EffectFlag;
using enum Feature;
constexpr Scope kThread = Scope::kThread;
constexpr Scope kWarp = Scope::kWarp;
constexpr Scope kWarpGroup = Scope::kWarpGroup;
constexpr Scope kBlock = Scope::kBlock;
constexpr Scope kCluster = Scope::kCluster;
constexpr Scope kGrid = Scope::kGrid;

// Targets by element type.
template <class Predicate>
constexpr Targets for_types(Predicate predicate, Targets others) {
  for (int i = 0; i < kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (predicate(scalar)) others = others.with(scalar, kBase);
  }
  return others;
}
constexpr Targets kBf16FromSm90 = Targets().with(Scalar::kBF16, kBf16Arithmetic);
constexpr Targets kNoF64 = Targets().with(Scalar::kF64, kNever);
constexpr Targets kF32F64 = Targets(kNever).with(Scalar::kF32, kBase).with(Scalar::kF64, kBase);
constexpr Targets k32Bits =
    for_types([](Scalar scalar) { return info(scalar).bits == 32; }, Targets(kNever));
// Conversions: between all types but 4-bit floats, which have ops of their own.
constexpr Targets kNarrowTypes = Targets()
                                     .with(Scalar::kE4M3, kFloat8)
                                     .with(Scalar::kE5M2, kFloat8)
                                     .with(Scalar::kE8M0, kFloat4)
                                     .with(Scalar::kE2M1X2, kNever);
// With a rounding of their own: integers, wide floats, and e8m0.
constexpr Targets kRoundedTypes = for_types(
    [](Scalar scalar) {
      return !is_float(scalar) || (info(scalar).bits >= 32 && !info(scalar).storage_only);
    },
    Targets(kNever).with(Scalar::kE8M0, kFloat4));

// --- Reading a row: what is malformed stops the build, since a constant expression cannot throw ---

// A word at a time from `text`; the empty word ends it.
constexpr absl::string_view next_word(absl::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && text[begin] == ' ') ++begin;
  size_t end = begin;
  while (end < text.size() && text[end] != ' ') ++end;
  const absl::string_view word = text.substr(begin, end - begin);
  text = text.substr(end);
  return word;
}

constexpr bool same(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

struct RoleName {
  absl::string_view name;
  Role role;
};
constexpr RoleName kRoleNames[] = {
    {"T", Role::kT},       {"B", Role::kBoolLikeT},  {"U", Role::kDataLikeT},
    {"I", Role::kIndex},   {"E", Role::kElement},    {"V", Role::kView},
    {"S", Role::kSlot},    {"C", Role::kCheck},      {"F", Role::kFragment},
    {"Q", Role::kPending}, {"D", Role::kDescriptor}, {"M", Role::kTensorMap},
    {"P", Role::kTile},    {"X", Role::kAny},        {"i32", Role::kI32},
    {"u32", Role::kU32},   {"i64", Role::kI64},      {"bool", Role::kBool},
};

constexpr absl::string_view kOperandNames[] = {
#define HEDDLE_OPERAND(name, enumerator) #name,
#define HEDDLE_OPERANDS(name, enumerator) #name,
#include "heddle/ir/operands.def"
};
constexpr bool kNamesMany[] = {
#define HEDDLE_OPERAND(...) false,
#define HEDDLE_OPERANDS(...) true,
#include "heddle/ir/operands.def"
};

constexpr OperandName parse_operand_name(absl::string_view word) {
  for (int i = 0; i < kOperandNameCount; ++i) {
    if (same(kOperandNames[i], word)) return static_cast<OperandName>(i);
  }
  throw "an operand of a signature is called what operands.def (heddle/ir/operands.def) does not list";
}

constexpr Position parse_position(absl::string_view word) {
  Position position;
  while (!word.empty()) {
    const char last = word[word.size() - 1];
    if (last == '?') {
      position.arity = Arity::kOptional;
    } else if (last == '*') {
      position.arity = Arity::kMany;
    } else if (last == '!') {
      position.tied = true;
    } else {
      break;
    }
    word = word.substr(0, word.size() - 1);
  }
  for (const RoleName& entry : kRoleNames) {
    if (same(entry.name, word)) {
      position.role = entry.role;
      return position;
    }
  }
  throw "a word of a signature is no role; ops.def lists them: T, I, U, B, i32, u32, i64, bool, …";
}

// "view:V".
constexpr Position parse_operand(absl::string_view word) {
  size_t colon = 0;
  while (colon < word.size() && word[colon] != ':') ++colon;
  if (colon == word.size()) throw "an operand in ops.def has no name";
  Position position = parse_position(word.substr(colon + 1));
  position.name = parse_operand_name(word.substr(0, colon));
  const bool many = kNamesMany[static_cast<size_t>(position.name)];
  if (many != (position.arity == Arity::kMany))
    throw "one value by a name for many, or many by one";
  return position;
}

constexpr Signature parse_signature(absl::string_view text) {
  Signature signature;
  bool results = false;
  bool open = false;  // behind an operand that need not be there
  for (absl::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    if (same(word, "->")) {
      results = true;
    } else if (results) {
      signature.results[signature.result_count++] = parse_position(word);
    } else {
      const Position position = parse_operand(word);
      if (open) throw "only the last operand may be optional or many: others are found by number";
      open = position.arity != Arity::kOne;
      signature.operands[signature.operand_count++] = position;
    }
  }
  if (!results) throw "a signature of ops.def lacks its arrow";
  return signature;
}

// Bit i for operand i.
constexpr uint8_t parse_operands(const Signature& signature, absl::string_view words) {
  uint8_t mask = 0;
  for (absl::string_view word = next_word(words); !word.empty(); word = next_word(words)) {
    int index = 0;
    while (index < signature.operand_count &&
           !same(kOperandNames[static_cast<size_t>(signature.operands[index].name)], word)) {
      ++index;
    }
    if (index == signature.operand_count) throw "a column of ops.def names no operand of its row";
    mask |= static_cast<uint8_t>(1 << index);
  }
  return mask;
}

constexpr AttrRule parse_attr(absl::string_view word) {
  AttrRule rule;
  if (word[word.size() - 1] == '?') {
    rule.required = false;
    word = word.substr(0, word.size() - 1);
  }
  for (int i = 0; i < kAttrKeyCount; ++i) {
    if (same(kAttrs[i].name, word)) {
      rule.key = static_cast<AttrKey>(i);
      return rule;
    }
  }
  throw "unknown attribute in ops.def";
}

// --- Columns ---

constexpr void fill(OpInfo& row, DataClass data_class) { row.data_class = data_class; }
constexpr void fill(OpInfo& row, Trait trait) { row.traits |= trait; }
constexpr void fill(OpInfo& row, Scope convergence) { row.convergence = convergence; }
constexpr void fill(OpInfo& row, Targets targets) { row.targets = targets; }
constexpr void fill(OpInfo& row, Feature feature) { row.targets = Targets(feature); }
constexpr void fill(OpInfo& row, Admits admits) { row.effects.admits = admits; }
constexpr void fill(OpInfo& row, Attrs attrs) {
  for (absl::string_view word = next_word(attrs.words); !word.empty();
       word = next_word(attrs.words)) {
    row.attrs[row.attr_count++] = parse_attr(word);
  }
}
constexpr void fill(OpInfo& row, Accesses accesses) {
  row.effects.reads |= parse_operands(row.signature, accesses.reads);
  row.effects.writes |= parse_operands(row.signature, accesses.writes);
}
constexpr void fill(OpInfo& row, Updates updates) {
  fill(row, Accesses{updates.operand, updates.operand});
  row.effects.orders = true;
}
constexpr void fill(OpInfo& row, EffectFlag flag) {
  switch (flag) {
    case kAsync:
      row.effects.async = true;
      return;
    case kOrders:
      row.effects.orders = true;
      return;
    case kUnnamed:
      row.effects.unnamed = true;
      return;
  }
}

constexpr void fill(OpInfo& row, Uniform uniform) { row.uniform = uniform.scope; }
constexpr void fill(OpInfo& row, Poison poison) {
  row.poison = parse_operands(row.signature, poison.operands);
}

// What a result that follows from the operands alone inherits, unless a column says otherwise.
template <class... Columns>
constexpr void fill_defaults(OpInfo& row) {
  // What forwards its operand is that operand's registers.
  if (has(row, kForwards)) row.traits |= kRename | kCheap;
  if (!has(row, kPure) && !has(row, kForwards)) return;
  if (!(std::is_same_v<Columns, Uniform> || ...)) row.uniform = kGrid;
  if (!(std::is_same_v<Columns, Poison> || ...)) row.poison = 0xFF;
}

template <class... Columns>
constexpr OpInfo make_info(absl::string_view mnemonic, absl::string_view signature,
                           Columns... columns) {
  OpInfo row;
  row.mnemonic = mnemonic;
  row.signature = parse_signature(signature);
  (fill(row, columns), ...);
  fill_defaults<Columns...>(row);
  return row;
}

}  // namespace rows

// A row of an op that ops.def does not have: its mnemonic, its signature, and columns in any order. Words that
// are no enumerators of ir stand in ir::rows: poison("a"), uniform(Scope::kWarp), kUnnamed.
template <class... Columns>
consteval OpInfo op_row(absl::string_view mnemonic, absl::string_view signature,
                        Columns... columns) {
  return rows::make_info(mnemonic, signature, columns...);
}

}  // namespace heddle::ir
