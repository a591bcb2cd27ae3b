// What the driver's error codes mean to a user: a status code, whether the device survives, a cure.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/cuda/driver_api.h"

namespace heddle::runtime::cuda {

struct ErrorInfo {
  int code;
  const char* name;
  StatusCode status;
  // Every later call fails too: the driver gives up on the context.
  bool sticky;
  // What to do about it; may be empty.
  const char* hint;
};

// Every code that has a row, in ascending order.
absl::Span<const ErrorInfo> error_table();

// The row of a code; for one without a row, a nameless kInternal with that code.
ErrorInfo error_info(Result result);

// One failed call. Empty parts are left out of the message:
//   <call> for <subject> failed on <device>: <NAME> (<code>), <the driver's text>: <detail>; <hint>
struct DriverFailure {
  // As exported; a version suffix is dropped.
  absl::string_view call;
  absl::string_view subject = "";
  absl::string_view device = "";
  absl::string_view detail = "";
  // Instead of the table's.
  absl::string_view hint = "";
};

Status driver_error(const DriverApi& api, Result result, const DriverFailure& failure);

// "cuMemAlloc" for "cuMemAlloc_v2".
absl::string_view call_name(absl::string_view symbol);

}  // namespace heddle::runtime::cuda
