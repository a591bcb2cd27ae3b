// Compares a kernel's outputs with its reference.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/kernel_choice.h"

namespace heddle::tools {

struct Comparison {
  size_t count = 0;                   // elements
  size_t wrong = 0;                   // of them
  double max_error = 0;               // absolute; infinite where only one side is a number
  size_t max_error_at = 0;            // its place in row-major order
  std::optional<size_t> first_wrong;  // likewise
};

// An element is right when both are NaN, both the same infinity, or their difference is within the
// tolerance.
Comparison compare(absl::Span<const double> actual, const runtime::Expected& expected);

// "y: 1024 elements agree, max error 3.1e-06 at y[17]", or how many are wrong and the first of them
// with its value.
std::string describe(const Comparison& comparison, absl::string_view name,
                     const runtime::TensorShape& shape, absl::Span<const double> actual,
                     const runtime::Expected& expected);

// All outputs that the kernel's reference computes, a line each.
struct Verdict {
  bool right = true;
  std::string text;
};
// Errors: the reference's own; kInternal where it does not fit the outputs.
StatusOr<Verdict> check_results(const ChosenKernel& kernel, const HostArrays& inputs,
                                const HostArrays& outputs);

}  // namespace heddle::tools
