// What the layout calculator's functions work on, and the functions by name.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/dsl/layout/calculator.h"

namespace heddle::detail {

LayoutValue calculator_error(std::string what, const std::string& fix);
bool failed(const LayoutValue& value);

// What a value may stand for: a tuple for the compact layout of that shape, say.
bool is_layout_like(const LayoutValue& value);
Layout as_layout(const LayoutValue& value);
bool is_tiler_like(const LayoutValue& value);
Tiler as_tiler(const LayoutValue& value);
bool is_tuple(const LayoutValue& value);
const IntTuple& as_tuple(const LayoutValue& value);

LayoutValue call_calculator(absl::string_view name, absl::Span<const LayoutValue> arguments);

}  // namespace heddle::detail
