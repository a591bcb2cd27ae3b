// Conversions for projects that speak Abseil.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/ir/status.h"

namespace heddle {

// The same code and message; driver_code() is lost.
inline absl::Status to_absl(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

// The value, or the failure by the function above.
template <typename T>
absl::StatusOr<T> to_absl(StatusOr<T> result) {
  if (!result.ok()) return to_absl(result.status());
  return *std::move(result);
}

}  // namespace heddle
