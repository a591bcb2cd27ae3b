// The arguments of one launch, erased, and what holds of them: facts, guards, and the parameter
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "heddle/ir/abi.h"
#include "heddle/ir/kernel_source.h"

namespace heddle::runtime {

// A scalar's bits, zero-extended, or a tensor's address with its extents and strides in elements.
struct Argument {
  uint64_t bits = 0;
  const int64_t* extents = nullptr;  // `rank` of them; nullptr for scalars and pointers
  const int64_t* strides = nullptr;
  int64_t capacity_bytes = -1;  // memory behind the address; -1: not known
  int rank = -1;                // -1: a scalar
  // What tensor_argument() finds: the least and greatest element offset that coordinates reach (as
  // near as 64 bits can say), whether there is no coordinate, and whether an extent is negative.
  int64_t min_offset = 0;
  int64_t max_offset = 0;
  bool empty = false;
  bool negative = false;
};

inline Argument scalar_argument(uint64_t bits) { return {.bits = bits}; }

// A tensor, measured: every launch asks for the answers several times. A pointer has no extents.
inline Argument tensor_argument(uint64_t address, const int64_t* extents, const int64_t* strides,
                                int rank, int64_t capacity_bytes = -1) {
  Argument a{.bits = address,
             .extents = extents,
             .strides = strides,
             .capacity_bytes = capacity_bytes,
             .rank = rank};
  for (int dim = 0; extents != nullptr && dim < rank; ++dim) {
    a.empty |= extents[dim] == 0;
    a.negative |= extents[dim] < 0;
    int64_t reach;
    int64_t& end = strides[dim] < 0 ? a.min_offset : a.max_offset;
    const bool overflow = __builtin_mul_overflow(extents[dim] - 1, strides[dim], &reach) ||
                          __builtin_add_overflow(end, reach, &end);
    if (overflow) end = strides[dim] < 0 ? INT64_MIN : INT64_MAX;
  }
  return a;
}

using Arguments = absl::Span<const Argument>;

// The value of a fact for these arguments, as rounded as fact.h says.
int64_t fact_value(ir::Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Every fact that can be asked of them.
std::vector<ir::Guard> all_facts(absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Whether all facts have the very values that a variant was compiled for: what a launch asks first.
bool match_exactly(absl::Span<const ir::Guard> guards, absl::Span<const ir::ParamInfo> params,
                   Arguments arguments);

// Whether code that relies on `guard` may run where the fact has this value: a larger alignment or
// divisor is as good, more knowledge never hurts, an extent must be the very one.
bool satisfies(const ir::Guard& guard, int64_t value);

// Writes the arguments into a parameter block of layout.bytes bytes, which must have room for
// kPackSlack bytes more. Bytes between the arguments are unspecified.
inline constexpr int kPackSlack = 8;
void pack_arguments(const ir::ParamLayout& layout, Arguments arguments, std::byte* block);

// Whether check_arguments would find nothing: the same tests, and no text.
bool arguments_are_sound(absl::Span<const ir::ParamInfo> params, Arguments arguments);

// What no kernel can be given: a wrong number of arguments, negative extents, a null pointer to
// elements that exist, a layout that reaches beyond its buffer. `kernel` is "kernel 'row_sum'
// (row_sum.cc:14)".
absl::Status check_arguments(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                             Arguments arguments);

// "argument 0 ('x')", for messages.
std::string describe_argument(absl::Span<const ir::ParamInfo> params, int index);

}  // namespace heddle::runtime
