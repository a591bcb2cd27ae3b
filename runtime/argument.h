// Arguments as data: for other languages, and where types are known only at run time. A kernel is
// then a KernelSource, and a call has an array of these. A signature (signature.h) is data already.
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
// There is one argument for each of source.params(). Element types are not checked; all else is, as
// it is for typed launches. An operation of the library is called in the same way (operation.h),
// and says itself what it takes (find_operation() of registry.h, bind() of bound_call.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "heddle/ir/launch/fact.h"

namespace heddle::detail {
struct MemoryTag;  // memory_tag.h
}

namespace heddle::runtime {

// Whether a scalar fits its parameter's type; if not, whether its bits are a signed or an unsigned
// number.
enum class Misfit : uint8_t { kFits, kSigned, kUnsigned };

// A scalar, a pointer or a tensor. A tensor comes measured, since every launch asks for the answers
// several times.
struct Argument {
  uint64_t bits = 0;  // the scalar, zero-extended, or the address
  const int64_t* extents =
      nullptr;  // `rank` of them, in elements; nullptr for scalars and pointers
  const int64_t* strides = nullptr;  // likewise
  int64_t capacity_bytes = -1;       // memory behind the address; -1: not known
  // The bytes that its coordinates reach: addresses from `begin` up to, not including, `end`. Equal
  // where it has no elements; all of memory for a pointer, and where the range needs more than 64
  // bits.
  uint64_t begin = 0;
  uint64_t end = 0;
  // The allocation that a tensor lies in; nullptr: not known.
  const heddle::detail::MemoryTag* memory = nullptr;
  uint64_t allocation = 0;
  int rank = -1;  // -1: a scalar
  // Whether the offsets of all coordinates, in elements, are from 0 to 2^31 - 1.
  bool fits32 = true;
  // Whether a launch can take it. A scalar fits its type. A tensor has no negative extent, and what
  // its coordinates reach is memory: not null, within capacity, aligned to its elements, not freed,
  // of the launch's device.
  bool sound = true;
  // Of a scalar, why it is not sound.
  Misfit misfit = Misfit::kFits;
};

// A number: its bits, zero-extended. Where it does not fit its parameter, `misfit` says so, and the
// launch reports it.
inline Argument scalar_argument(uint64_t bits, Misfit misfit = Misfit::kFits) {
  return {.bits = bits, .sound = misfit == Misfit::kFits, .misfit = misfit};
}

// A raw pointer to device memory.
inline Argument pointer_argument(uint64_t address) {
  return {.bits = address, .end = UINT64_MAX, .rank = 1};
}

// Measures a tensor of any extents and strides: what tensor_argument() does for unusual ones.
inline void measure_tensor(Argument& a, int element_bytes) {
  const uint64_t address = a.bits;
  const int64_t capacity_bytes = a.capacity_bytes;
  const int rank = a.rank;
  const int64_t *const extents = a.extents, *const strides = a.strides;
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
    return;
  }
  a.fits32 = !huge && low == 0 && high <= ir::kLargestOffset32;
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
}

// A tensor: its address on the device, `rank` extents and strides in elements, and the bytes of
// memory behind the address; -1: not known. The arrays must outlive the launch.
[[gnu::always_inline]] inline Argument tensor_argument(uint64_t address, const int64_t* extents,
                                                       const int64_t* strides, int rank,
                                                       int element_bytes,
                                                       int64_t capacity_bytes = -1) {
  Argument a{.bits = address,
             .extents = extents,
             .strides = strides,
             .capacity_bytes = capacity_bytes,
             .rank = rank};
  // Where no number has more than 26 bits, nothing below overflows, and no stride is negative.
  constexpr uint64_t kSmall = uint64_t{1} << 26;
  constexpr int kMostModes = 8;
  uint64_t all = 0;
  bool empty = false;
  uint64_t high = 0;
  for (int dim = 0; dim < rank; ++dim) {
    all |= static_cast<uint64_t>(extents[dim]) | static_cast<uint64_t>(strides[dim]);
    empty |= extents[dim] == 0;
    high += (static_cast<uint64_t>(extents[dim]) - 1) * static_cast<uint64_t>(strides[dim]);
  }
  const uint64_t bytes = (high + 1) * static_cast<uint64_t>(element_bytes);
  if (empty || all >= kSmall || rank > kMostModes || address > UINT64_MAX - bytes) [[unlikely]] {
    measure_tensor(a, element_bytes);
    return a;
  }
  a.fits32 = high <= static_cast<uint64_t>(ir::kLargestOffset32);
  a.begin = address;
  a.end = address + bytes;
  const bool aligned = (address & static_cast<uint64_t>(element_bytes - 1)) == 0;
  a.sound = address != 0 && aligned &&
            (capacity_bytes < 0 || bytes <= static_cast<uint64_t>(capacity_bytes));
  return a;
}

// The arguments of a call, in the order of the parameters.
using Arguments = absl::Span<const Argument>;

}  // namespace heddle::runtime
