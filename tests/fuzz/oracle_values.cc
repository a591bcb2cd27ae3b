// Ops of values: constants, variables, elements, promises, and where a thread is.
#include "fuzz/oracle_state.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::AttrKey;
using ir::Op;
using ir::Opcode;
using ir::ValueId;

bool constant(State& state, const Op& op, const Threads& threads) {
  const auto bits = static_cast<uint64_t>(op.attr_or(AttrKey::kBits, 0));
  for (int e = 0; e < state.count_of(op.result()); ++e) state.fill(op.result(), threads, bits, e);
  return true;
}

bool variable(State& state, const Op& op, const Threads& threads) {
  state.copy({op.init()}, {op.result()}, threads);
  return true;
}
bool load_variable(State& state, const Op& op, const Threads& threads) {
  state.copy({op.slot()}, {op.result()}, threads);
  return true;
}
bool store_variable(State& state, const Op& op, const Threads& threads) {
  state.copy({op.value()}, {op.slot()}, threads);
  return true;
}

// An i32 that follows from the thread's number.
template <auto kFunction>
bool place(State& state, const Op& op, const Threads& threads) {
  const auto axis = static_cast<int>(op.attr_or(AttrKey::kAxis, 0));
  for (const uint32_t t : threads) {
    state.at(op.result(), t) = wrap(ir::Scalar::kI32, kFunction(state, t, axis));
  }
  return true;
}

// The elements of the operands, one behind the other, from the attribute's on.
bool elements(State& state, const Op& op, const Threads& threads) {
  const int first = static_cast<int>(op.attr_or(AttrKey::kIndex, 0));
  const int count = state.count_of(op.result());
  int position = -first;
  for (const ValueId operand : op.operands) {
    for (int e = 0; e < state.count_of(operand); ++e, ++position) {
      if (position < 0 || position >= count) continue;
      const uint64_t* const from = state.row(operand, e);
      uint64_t* const to = state.row(op.result(), position);
      for (const uint32_t t : threads) to[t] = from[t];
    }
  }
  return position >= count || state.fail("an element is taken that is not there");
}
bool splat(State& state, const Op& op, const Threads& threads) {
  const uint64_t* const from = state.row(op.a());
  for (int e = 0; e < state.count_of(op.result()); ++e) {
    uint64_t* const to = state.row(op.result(), e);
    for (const uint32_t t : threads) to[t] = from[t];
  }
  return true;
}

bool forward(State& state, const Op& op, const Threads& threads) {
  state.copy({op.a()}, {op.result()}, threads);
  return true;
}
bool assume_uniform(State& state, const Op& op, const Threads& threads) {
  for (int e = 0; e < state.count_of(op.a()); ++e) {
    const uint64_t* const values = state.row(op.a(), e);
    for (const uint32_t t : threads) {
      if (values[t] != values[threads[0]]) return state.fail("assume_uniform does not hold");
    }
  }
  return forward(state, op, threads);
}
bool assume_range(State& state, const Op& op, const Threads& threads) {
  const ir::Scalar scalar = state.kernel().type(op.a()).scalar;
  for (int e = 0; e < state.count_of(op.a()); ++e) {
    for (const uint32_t t : threads) {
      const Int128 value = integer(scalar, state.at(op.a(), t, e));
      const bool holds = value >= op.attr_or(AttrKey::kMin, INT64_MIN) &&
                         (!op.attr(AttrKey::kMax) || value <= *op.attr(AttrKey::kMax)) &&
                         value % op.attr_or(AttrKey::kDivisor, 1) == 0;
      if (!holds) return state.fail("assume_range does not hold");
    }
  }
  return forward(state, op, threads);
}

bool assertion(State& state, const Op& op, const Threads& threads) {
  for (const uint32_t t : threads) {
    if (state.at(op.condition(), t) == 0) return state.fail("an assertion does not hold");
  }
  return true;
}

constexpr std::pair<Opcode, Handler> kHandlers[] = {
    {Opcode::kConst, constant},
    {Opcode::kVar, variable},
    {Opcode::kVarLoad, load_variable},
    {Opcode::kVarStore, store_variable},
    {Opcode::kThreadIdx,
     place<[](State& s, uint32_t t, int axis) -> Int128 { return s.coordinate(t, axis); }>},
    {Opcode::kBlockIdx,
     place<[](State& s, uint32_t, int axis) -> Int128 { return axis == 0 ? s.block() : 0; }>},
    {Opcode::kBlockDim, place<[](State& s, uint32_t, int axis) -> Int128 {
       return s.inputs().block[static_cast<size_t>(axis)];
     }>},
    {Opcode::kGridDim, place<[](State& s, uint32_t, int axis) -> Int128 {
       return s.inputs().grid[static_cast<size_t>(axis)];
     }>},
    {Opcode::kLaneId, place<[](State&, uint32_t t, int) -> Int128 { return t % kWarp; }>},
    {Opcode::kWarpId, place<[](State&, uint32_t t, int) -> Int128 { return t / kWarp; }>},
    {Opcode::kPack, elements},
    {Opcode::kExtract, elements},
    {Opcode::kSlice, elements},
    {Opcode::kSplat, splat},
    {Opcode::kAssumeUniform, assume_uniform},
    {Opcode::kAssumeRange, assume_range},
    {Opcode::kExpect, forward},
    {Opcode::kUnreachable,
     [](State& state, const Op&, const Threads&) {
       return state.fail("a thread reaches what is unreachable");
     }},
    {Opcode::kAssert, assertion},
    {Opcode::kPin, [](State&, const Op&, const Threads&) { return true; }},
    {Opcode::kRequire, [](State&, const Op&, const Threads&) { return true; }},
};

}  // namespace

Handler value_handler(Opcode opcode) { return find_in<Handler>(kHandlers, opcode); }

}  // namespace heddle::fuzz::oracle
