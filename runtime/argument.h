// Arguments as data: the door for other languages, and for whoever learns types at run time. A
// kernel is a KernelSource then, a call an array of these, and a signature (signature.h) is data
// already.
//
//   const int64_t extents[] = {rows, columns}, strides[] = {columns, 1};   // outlive the launch
//   const Argument arguments[] = {
//       tensor_argument(x.address(), extents, strides, /*rank=*/2, sizeof(float)),
//       tensor_argument(y.address(), extents, strides + 1, /*rank=*/1, sizeof(float)),
//       scalar_argument(7),
//   };
//   const ir::KernelSource& source = kernel.source();
//   Status status = launch(stream, source, {.grid = rows, .block = 128}, arguments);
//   StatusOr<CompiledKernel> compiled = compile(source, signature, {.block = {128, 1, 1}});
//   status = compiled->launch(stream, {.grid = rows, .block = 128}, arguments);
//
// One argument for each of source.params(), whose element types are the caller's promise; the rest
// is tested as it is for typed launches. An operation of the library is called in the same way
// (operation.h), and says itself what it takes (find_operation() of registry.h, bind() of
// bound_call.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::detail {
struct MemoryTag;  // memory_tag.h
}

namespace heddle::runtime {

// Whether a scalar's bits are a number that its parameter's type does not hold, and of which kind.
enum class Misfit : uint8_t { kFits, kSigned, kUnsigned };

// A scalar, a pointer or a tensor. A tensor comes measured, since every launch asks for the answers
// several times.
struct Argument {
  uint64_t bits = 0;  // the scalar, zero-extended, or the address
  const int64_t* extents =
      nullptr;  // `rank` of them, in elements; nullptr for scalars and pointers
  const int64_t* strides = nullptr;
  int64_t capacity_bytes = -1;  // memory behind the address; -1: not known
  // The addresses of the bytes that its coordinates reach, from `begin` to before `end`: equal
  // where there is no coordinate, all of memory where 64 bits cannot say or nobody knows (a
  // pointer).
  uint64_t begin = 0;
  uint64_t end = 0;
  // The allocation that a tensor lies in; nullptr where nobody knows.
  const heddle::detail::MemoryTag* memory = nullptr;
  uint64_t allocation = 0;
  int rank = -1;  // -1: a scalar
  // No coordinate's offset, in elements, is negative or needs more than 31 bits.
  bool fits32 = true;
  // A scalar fits its type. Of a tensor no extent is negative, and what the coordinates reach is
  // memory: not null, not beyond capacity, at a multiple of an element's size, alive and of the
  // launch's device.
  bool sound = true;
  Misfit misfit = Misfit::kFits;
};

inline Argument scalar_argument(uint64_t bits, Misfit misfit = Misfit::kFits) {
  return {.bits = bits, .sound = misfit == Misfit::kFits, .misfit = misfit};
}

inline Argument pointer_argument(uint64_t address) {
  return {.bits = address, .end = UINT64_MAX, .rank = 1};
}

[[gnu::always_inline]] inline Argument tensor_argument(uint64_t address, const int64_t* extents,
                                                       const int64_t* strides, int rank,
                                                       int element_bytes,
                                                       int64_t capacity_bytes = -1) {
  Argument a{.bits = address,
             .extents = extents,
             .strides = strides,
             .capacity_bytes = capacity_bytes,
             .rank = rank};
  // The least and greatest offset, in elements.
  int64_t low = 0, high = 0;
  bool empty = false, negative = false, huge = false;
  for (int dim = 0; dim < rank; ++dim) {
    empty |= extents[dim] == 0;
    negative |= extents[dim] < 0;
    int64_t reach;
    const int64_t last = extents[dim] > 0 ? extents[dim] - 1 : 0;
    huge |= __builtin_mul_overflow(last, strides[dim], &reach);
    huge |= __builtin_add_overflow(low, reach < 0 ? reach : 0, &low);
    huge |= __builtin_add_overflow(high, reach > 0 ? reach : 0, &high);
  }
  if (empty || negative) {
    a.sound = !negative;
    return a;
  }
  constexpr int64_t kMax31 = INT32_MAX;
  a.fits32 = !huge && low == 0 && high <= kMax31;
  int64_t before = 0, behind = 0;  // bytes
  huge |= __builtin_mul_overflow(low, element_bytes, &before);
  huge |= __builtin_mul_overflow(high, element_bytes, &behind);
  huge |= __builtin_add_overflow(behind, element_bytes, &behind);
  huge |= __builtin_add_overflow(address, before, &a.begin);
  huge |= __builtin_add_overflow(address, behind, &a.end);
  if (huge) {
    a.begin = 0;
    a.end = UINT64_MAX;
  }
  const bool within = before == 0 && behind <= capacity_bytes;
  const bool aligned = (address & static_cast<uint64_t>(element_bytes - 1)) == 0;
  a.sound = address != 0 && aligned && (capacity_bytes < 0 || (within && !huge));
  return a;
}

using Arguments = absl::Span<const Argument>;

}  // namespace heddle::runtime
