// A value for some opcodes, such as the rule that folds each. Ops of the class that the table is about are
// in it or stand in `without`, those that are left out on purpose: for one that is in neither the build
// stops, so that who adds an op comes by every table that it belongs in.
//
//   constexpr auto kRules = op_table<FoldRule>(
//       elementwise, {{Opcode::kAdd, fold_add}, {Opcode::kSub, fold_sub}}, {Opcode::kSqrt});
//   if (const FoldRule rule = at(kRules, op.opcode)) …
#pragma once

#include <array>
#include <initializer_list>

#include "heddle/ir/op_rows_internal.h"

namespace heddle::ir {

template <class T>
struct OpTableRow {
  Opcode opcode;
  T value;
};
template <class T>
using OpTable = std::array<T, kOpcodeCount>;

// What a table is about.
using OpClass = bool (*)(Opcode);
inline constexpr bool kIsElementwise[] = {
#define HEDDLE_OP(...) false,
#define HEDDLE_ELEMENTWISE(...) true,
#include "heddle/ir/ops.def"
};
// Ops whose result's element i follows from the operands' elements i alone.
consteval bool elementwise(Opcode opcode) { return kIsElementwise[static_cast<size_t>(opcode)]; }
consteval bool not_elementwise(Opcode opcode) { return !elementwise(opcode); }
// Elementwise ops, and those that there are for integers, which a rule of algebra may help.
consteval bool algebraic(Opcode opcode) {
  return elementwise(opcode) && !has(rows::kOps[static_cast<size_t>(opcode)], kOpaque);
}
consteval bool algebraic_on_integers(Opcode opcode) {
  return algebraic(opcode) &&
         rows::kOps[static_cast<size_t>(opcode)].data_class != DataClass::kFloat;
}

template <class T>
consteval OpTable<T> op_table(OpClass is_about, std::initializer_list<OpTableRow<T>> rows,
                              std::initializer_list<Opcode> without = {}) {
  OpTable<T> table{};
  std::array<bool, kOpcodeCount> met{};
  const auto meet = [&](Opcode opcode) {
    bool& before = met[static_cast<size_t>(opcode)];
    if (before) throw "a table has an op twice, or has it and is without it";
    before = true;
  };
  for (const OpTableRow<T>& row : rows) {
    meet(row.opcode);
    table[static_cast<size_t>(row.opcode)] = row.value;
  }
  for (const Opcode opcode : without) meet(opcode);
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (is_about(opcode) && !met[i])
      throw "an op is missing: give it a row, or say that it has none";
  }
  return table;
}

// Ops from outside are in no table.
template <class T>
inline constexpr T kNotInTable{};
template <class T>
constexpr const T& at(const OpTable<T>& table, Opcode opcode) {
  const auto index = static_cast<size_t>(opcode);
  return index < kOpcodeCount ? table[index] : kNotInTable<T>;
}

}  // namespace heddle::ir
