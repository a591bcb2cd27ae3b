// Invariants of Heddle itself. User mistakes are Status or diagnostics, never a check.
//
//   HEDDLE_CHECK(region.ops_open, "a terminator was appended twice");
#pragma once

#include "absl/strings/string_view.h"

namespace heddle {

// Prints the broken invariant with its place to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               absl::string_view message);

}  // namespace heddle

#define HEDDLE_CHECK(condition, message) \
  ((condition) ? (void)0 : ::heddle::check_failed(__FILE__, __LINE__, #condition, message))
