// Atomics: an element of global or shared memory becomes a function of itself and a value in one
// step; the old value is the result.
//
//   atomic_add(histogram(bin), 1);                         // nobody reads the result: a reduction
//   Int ticket = atomic_add(counter(0), 1);
//   Int seen = atomic_cas(lock(0), 0, 1, MemoryOrder::acquire);
//   Int flag = atomic_load(ready(0), MemoryOrder::acquire);
//   atomic_store(ready(0), 1, MemoryOrder::release);
//   memory_fence();                                        // __threadfence()
//
// Neighbours can be added to at once, each an atomic of its own: 2 half (bfloat16 from sm_90 on),
// and, in global memory from sm_90 on, 4 or 8 of these, 2 or 4 float.
//
//   Vec<half, 2> before = atomic_add(y.vec<2>(i), v);
//
// Unless the call says otherwise, they are relaxed and atomic among the threads of the GPU. add
// takes all numbers (bfloat16 from sm_90 on); min, max, and, or, xor integers; inc and dec
// uint32_t; exchange integers, float and double; cas all of 16, 32 and 64 bits. Sums of floats
// round to nearest even, may flush subnormals, and depend on who comes first.
#pragma once

#include "heddle/dsl/view.h"

namespace heddle {

// Memory order, as std::memory_order has it: which other accesses are ordered with this one.
enum class MemoryOrder : uint8_t { relaxed, acquire, release, acq_rel, seq_cst };
// Scope: the threads among which an operation is atomic or ordered.
enum class MemoryScope : uint8_t { block, cluster, gpu, system };

namespace detail {

// In the order of ir::AtomicOp.
enum class AtomicKind : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kInc, kDec, kExchange };

struct Atomicity {
  MemoryOrder order;
  MemoryScope scope;
};

Node emit_atomic(AtomicKind kind, const Access& place, const Node& value, Atomicity atomicity,
                 SourceLoc loc);
Node emit_compare_and_swap(const Access& place, const Node& expected, const Node& desired,
                           Atomicity atomicity, SourceLoc loc);
Node emit_atomic_load(const Access& place, NodeType type, Atomicity atomicity);
void emit_atomic_store(const Access& place, const Node& value, Atomicity atomicity, SourceLoc loc);
void emit_fence(Atomicity atomicity, SourceLoc loc);

// T comes from the element alone.
template <class T>
using ArgOf = const Arg<std::type_identity_t<T>>&;

}  // namespace detail

// Read-modify-write: the element becomes a function of its old value and `value`, in one step.
// Gives the old value. Where the result is not used, a reduction instruction is emitted.
#define HEDDLE_ATOMIC(name, kind)                                                             \
  template <class T>                                                                          \
  Value<T> atomic_##name(detail::ElementRef<T>&& place, detail::ArgOf<T> value,               \
                         MemoryOrder order = MemoryOrder::relaxed,                            \
                         MemoryScope scope = MemoryScope::gpu) {                              \
    return Value<T>(detail::emit_atomic(detail::AtomicKind::kind, place.access(), value.node, \
                                        {order, scope}, value.loc));                          \
  }
HEDDLE_ATOMIC(add, kAdd)
HEDDLE_ATOMIC(min, kMin)
HEDDLE_ATOMIC(max, kMax)
HEDDLE_ATOMIC(and, kAnd)
HEDDLE_ATOMIC(or, kOr)
HEDDLE_ATOMIC(xor, kXor)
// The element becomes old >= value ? 0 : old + 1. Gives the old value.
HEDDLE_ATOMIC(inc, kInc)
// The element becomes old == 0 || old > value ? value : old - 1. Gives the old value.
HEDDLE_ATOMIC(dec, kDec)

HEDDLE_ATOMIC(exchange, kExchange)
#undef HEDDLE_ATOMIC

// Adds to neighbouring elements, each addition an atomic of its own. Gives the old values. Two half
// (bfloat16 from sm_90 on); in global memory from sm_90 on, also 4 or 8 of these, and 2 or 4 float.
template <class T, int N>
Vec<T, N> atomic_add(detail::VecRef<T, N>&& place, const Vec<T, N>& value,
                     MemoryOrder order = MemoryOrder::relaxed, MemoryScope scope = MemoryScope::gpu,
                     SourceLoc loc = SourceLoc::current()) {
  return Vec<T, N>(detail::emit_atomic(detail::AtomicKind::kAdd, place.access(), value.node(),
                                       {order, scope}, loc));
}

// Compare and swap: the element becomes `desired` if it was `expected`, else it stays. Gives the
// old value. Elements of 16, 32 and 64 bits.
template <class T>
Value<T> atomic_cas(detail::ElementRef<T>&& place, detail::ArgOf<T> expected,
                    detail::ArgOf<T> desired, MemoryOrder order = MemoryOrder::relaxed,
                    MemoryScope scope = MemoryScope::gpu) {
  return Value<T>(detail::emit_compare_and_swap(place.access(), expected.node, desired.node,
                                                {order, scope}, desired.loc));
}

// An atomic load (relaxed or acquire) and an atomic store (relaxed or release) of one element of
// any type but bool. A plain read that races with a write may give an old value again, even after
// an acquire; an atomic load does not.
template <class T>
Value<T> atomic_load(detail::ElementRef<T>&& place, MemoryOrder order = MemoryOrder::relaxed,
                     MemoryScope scope = MemoryScope::gpu) {
  return Value<T>(
      detail::emit_atomic_load(place.access(), detail::scalar_type<T>(), {order, scope}));
}
template <class T>
void atomic_store(detail::ElementRef<T>&& place, detail::ArgOf<T> value,
                  MemoryOrder order = MemoryOrder::relaxed, MemoryScope scope = MemoryScope::gpu) {
  detail::emit_atomic_store(place.access(), value.node, {order, scope}, value.loc);
}

// An element that has a name is a value, which is nowhere in memory.
#define HEDDLE_ATOMIC(name)                                                                        \
  template <class T, class... More>                                                                \
  HEDDLE_MISTAKE(                                                                                  \
      "an atomic needs the place, and an element that has a name is the value that it had there: " \
      "name the place in the call, as in atomic_add(y(i), 1)")                                     \
  Value<T>                                                                                         \
      atomic_##name(detail::ElementRef<T>& value, const More&...);
HEDDLE_ATOMIC(add)
HEDDLE_ATOMIC(min)
HEDDLE_ATOMIC(max)
HEDDLE_ATOMIC(and)
HEDDLE_ATOMIC(or)
HEDDLE_ATOMIC(xor)
HEDDLE_ATOMIC(inc)
HEDDLE_ATOMIC(dec)
HEDDLE_ATOMIC(exchange)
HEDDLE_ATOMIC(cas)
HEDDLE_ATOMIC(load)
HEDDLE_ATOMIC(store)
#undef HEDDLE_ATOMIC

// A fence: orders the thread's accesses before it against those after it, as the threads of the
// scope see them. acq_rel; or seq_cst, which also orders it with all other seq_cst fences.
inline void memory_fence(MemoryScope scope = MemoryScope::gpu,
                         MemoryOrder order = MemoryOrder::acq_rel,
                         SourceLoc loc = SourceLoc::current()) {
  detail::emit_fence({order, scope}, loc);
}

}  // namespace heddle
