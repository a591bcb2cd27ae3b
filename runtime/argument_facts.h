// What holds of a launch's arguments: facts, guards, soundness.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/backend.h"

namespace heddle::runtime {

// The value of a fact for these arguments, as rounded as fact.h says.
int64_t fact_value(ir::Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Every fact that can be asked of them, for code of this target.
std::vector<ir::Guard> all_facts(absl::Span<const ir::ParamInfo> params, Arguments arguments,
                                 const ir::Target& target);

// Whether an argument shares memory with another one that the kernel writes.
bool overlaps_written(int index, absl::Span<const ir::ParamInfo> params, Arguments arguments);

// Whether code that relies on `guard` may run where the fact has this value: a larger alignment or
// divisor is as good, more knowledge never hurts, an extent must be the very one.
bool satisfies(const ir::Guard& guard, int64_t value);

// What is true of an argument whose fact has that value: "starts at a multiple of 16 bytes".
std::string describe_guard(const ir::Guard& guard);

// Whether check_arguments would find nothing: the same tests, and no text.
bool arguments_are_sound(absl::Span<const ir::ParamInfo> params, Arguments arguments);

// What no kernel can be given: a scalar that its parameter does not hold, a wrong number of
// arguments, negative extents, a null pointer to elements that exist, a layout that reaches beyond
// its buffer, memory that was freed or is not the device's. `kernel` is
// "kernel 'row_sum' (row_sum.cc:14)".
Status check_arguments(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                       Arguments arguments, const Backend& device);

// "argument 0 ('x')", for messages.
std::string describe_argument(absl::Span<const ir::ParamInfo> params, int index);

}  // namespace heddle::runtime
