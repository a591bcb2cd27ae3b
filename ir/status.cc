#include "heddle/ir/status.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle {
namespace {

constexpr absl::string_view kNames[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS",
};
static_assert(std::size(kNames) == static_cast<size_t>(StatusCode::kDataLoss) + 1);

}  // namespace

absl::string_view name_of(StatusCode code) { return kNames[static_cast<size_t>(code)]; }

Status::Status(StatusCode code, absl::string_view message, int driver_code) {
  if (code != StatusCode::kOk) failure_ = clone({code, std::string(message), driver_code});
}

std::unique_ptr<const Status::Failure> Status::clone(const Failure& failure) {
  return std::make_unique<const Failure>(failure);
}

std::string Status::ToString() const {
  return ok() ? std::string(name_of(code())) : absl::StrCat(name_of(code()), ": ", message());
}

bool operator==(const Status& a, const Status& b) {
  return a.code() == b.code() && a.message() == b.message() && a.driver_code() == b.driver_code();
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

#define HEDDLE_FAILURE(kind) \
  Status kind##Error(absl::string_view message) { return Status(StatusCode::k##kind, message); }
HEDDLE_FAILURE(Aborted)
HEDDLE_FAILURE(AlreadyExists)
HEDDLE_FAILURE(Cancelled)
HEDDLE_FAILURE(DataLoss)
HEDDLE_FAILURE(DeadlineExceeded)
HEDDLE_FAILURE(FailedPrecondition)
HEDDLE_FAILURE(Internal)
HEDDLE_FAILURE(InvalidArgument)
HEDDLE_FAILURE(NotFound)
HEDDLE_FAILURE(OutOfRange)
HEDDLE_FAILURE(PermissionDenied)
HEDDLE_FAILURE(ResourceExhausted)
HEDDLE_FAILURE(Unavailable)
HEDDLE_FAILURE(Unimplemented)
HEDDLE_FAILURE(Unknown)
#undef HEDDLE_FAILURE

Status ErrnoToStatus(int number, absl::string_view message) {
  const absl::Status status = absl::ErrnoToStatus(number, message);
  return Status(static_cast<StatusCode>(status.code()), status.message());
}

namespace detail {

void no_value(const Status& status) {
  if (status.ok()) {
    std::fputs("heddle: StatusOr was given a success where a value was due\n", stderr);
  } else {
    std::fprintf(stderr, "heddle: the value of a call that failed was read: %s\n",
                 status.ToString().c_str());
  }
  std::abort();
}

}  // namespace detail
}  // namespace heddle
