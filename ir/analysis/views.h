// Where views come from: the memory behind them and what is fixed of their layout.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// Elements of the longest vector, whatever they are, and bytes of the largest one.
inline constexpr int kMostVectorElements = 16;
inline constexpr int kMostVectorBytes = 32;

// Elements of the widest access to a view's memory that the target has, a power of two. Alignment may allow less.
int most_access_elements(const Kernel& kernel, ValueId view);

// The view that a view is cut from, through any number of subviews: a parameter, a `shared` or
// `shared.dynamic` op's result, or whatever hands views on (a region's argument, a result of `if`).
// For a matrix descriptor, the root of the view that it describes.
ValueId root_of(const Kernel& kernel, ValueId view);

// Whether nothing is known of what lies behind a view: an unbounded parameter, or a `pointer`.
bool is_unbounded(const Kernel& kernel, ValueId view);

// What an `extent` or `stride` op gives, where the kernel says it outright: a parameter's fixed
// layout, or the shape of a shared array.
std::optional<int64_t> fixed_layout(const Kernel& kernel, const Op& op);

// Bytes, a power of two, that divide the address at which a view starts. Of a parameter it asks the fact, which
// makes it a guard.
int64_t alignment_of(const Kernel& kernel, ValueId view, IntAnalysis& ints);

}  // namespace heddle::ir
