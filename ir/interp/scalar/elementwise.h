// Lane loops over functions of lanes, and tables of them by element type. Internal.
#pragma once

#include <array>
#include <utility>

#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/machine.h"

namespace heddle::ir::interp {

template <class Function, class R, class A>
const Instr* run_unary(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  R* __restrict d = warp.reg<R>(instr->dst);
  const A* __restrict a = warp.reg<A>(instr->a);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = Function::apply(a[l]);
  }
  return instr + 1;
}

template <class Function, class R, class A>
const Instr* run_binary(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  R* __restrict d = warp.reg<R>(instr->dst);
  const A* a = warp.reg<A>(instr->a);
  const A* b = warp.reg<A>(instr->b);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes, b += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = Function::apply(a[l], b[l]);
  }
  return instr + 1;
}

// One count, a u32, for all elements.
template <class Function, class T>
const Instr* run_shift(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  const uint32_t* b = warp.reg<uint32_t>(instr->b);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = Function::apply(a[l], b[l]);
  }
  return instr + 1;
}

// Likewise, behind two operands.
template <class Function, class T>
const Instr* run_funnel(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  const T* b = warp.reg<T>(instr->b);
  const uint32_t* c = warp.reg<uint32_t>(instr->c);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes, b += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = Function::apply(a[l], b[l], c[l]);
  }
  return instr + 1;
}

template <class Function, class T>
const Instr* run_ternary(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  const T* b = warp.reg<T>(instr->b);
  const T* c = warp.reg<T>(instr->c);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes, b += kLanes, c += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = Function::apply(a[l], b[l], c[l]);
  }
  return instr + 1;
}

// The handlers of one op, by Scalar.
using HandlerRow = std::array<Handler, kScalarCount>;

template <Scalar... kScalars>
struct ScalarList {};

// The element types of a class of ops.def, and how many there are; but for pairs, which have no lanes
// of their own.
template <DataClass kClass>
inline constexpr auto kTypesOf = [] {
  std::array<Scalar, kScalarCount> types{};
  size_t count = 0;
  for (int i = 0; i < kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    const bool is_pair = info(scalar).scalar_class == ScalarClass::kPair;
    if (admits(kClass, scalar) && !is_pair) types[count++] = scalar;
  }
  return std::pair(types, count);
}();
template <DataClass kClass, size_t... kIndices>
ScalarList<kTypesOf<kClass>.first[kIndices]...> list_of(std::index_sequence<kIndices...>);
template <DataClass kClass>
using TypesOf = decltype(list_of<kClass>(std::make_index_sequence<kTypesOf<kClass>.second>()));

using Integers = TypesOf<DataClass::kInteger>;
using Floats = TypesOf<DataClass::kFloat>;
using Numbers = TypesOf<DataClass::kNumber>;
using BitTypes = TypesOf<DataClass::kIntOrBool>;
using WordTypes = TypesOf<DataClass::kIntFloatOrBool>;
using DataTypes = TypesOf<DataClass::kData>;

// The lane type that an op computes a scalar type in.
template <class Function, Scalar kScalar>
using WorkLane = std::conditional_t<Function::kSignless, Unsigned<Lane<kScalar>>, Lane<kScalar>>;

template <class Function, Scalar... kTypes>
constexpr HandlerRow unary_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] =
        &run_unary<Function, WorkLane<Function, kTypes>, WorkLane<Function, kTypes>>),
   ...);
  return row;
}

template <class Function, Scalar... kTypes>
constexpr HandlerRow binary_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] =
        &run_binary<Function, WorkLane<Function, kTypes>, WorkLane<Function, kTypes>>),
   ...);
  return row;
}

template <class Function, Scalar... kTypes>
constexpr HandlerRow shift_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] = &run_shift<Function, WorkLane<Function, kTypes>>), ...);
  return row;
}

template <class Function, Scalar... kTypes>
constexpr HandlerRow funnel_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] = &run_funnel<Function, WorkLane<Function, kTypes>>), ...);
  return row;
}

template <class Function, Scalar... kTypes>
constexpr HandlerRow ternary_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] = &run_ternary<Function, WorkLane<Function, kTypes>>), ...);
  return row;
}

template <class Function, Scalar... kTypes>
constexpr HandlerRow compare_row(ScalarList<kTypes...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTypes)] = &run_binary<Function, Bool, Lane<kTypes>>), ...);
  return row;
}

struct OpcodeRow {
  Opcode opcode;
  HandlerRow handlers;
};

// nullptr where the table has no such row, or the row no such type.
template <size_t kCount>
Handler handler_in(const OpcodeRow (&table)[kCount], Opcode opcode, Scalar scalar) {
  for (const OpcodeRow& row : table) {
    if (row.opcode == opcode) return row.handlers[static_cast<size_t>(scalar)];
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
