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
};
using Arguments = absl::Span<const Argument>;

// The value of a fact for these arguments, as rounded as fact.h says.
int64_t fact_value(ir::Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Every fact that can be asked of them.
std::vector<ir::Guard> all_facts(absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Whether code that relies on `guard` may run where the fact has this value: a larger alignment or
// divisor is as good, more knowledge never hurts, an extent must be the very one.
bool satisfies(const ir::Guard& guard, int64_t value);

// Writes the arguments into a parameter block of layout.bytes bytes. Bytes between them stay as
// they are.
void pack_arguments(const ir::ParamLayout& layout, Arguments arguments, std::byte* block);

// What no kernel can be given: a wrong number of arguments, negative extents, a null pointer to
// elements that exist, a layout that reaches beyond its buffer. `kernel` is "kernel 'row_sum'
// (row_sum.cc:14)".
absl::Status check_arguments(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                             Arguments arguments);

// "argument 0 ('x')", for messages.
std::string describe_argument(absl::Span<const ir::ParamInfo> params, int index);

}  // namespace heddle::runtime
