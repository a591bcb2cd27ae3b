// Status and StatusOr: what a call that can fail returns. Success, or a code and a message that
// says what happened and how to mend it.
//
// Codes and names are those of absl::Status, so a reader of Abseil knows them. Abseil's own header costs
// every file that includes <heddle/heddle.h> more compile time than all of Heddle. ir/status_absl.h
// converts for projects that use Abseil.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"

namespace heddle {

// The kinds of failure. The numbers are absl::StatusCode's and gRPC's.
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

// "INVALID_ARGUMENT" for kInvalidArgument.
absl::string_view name_of(StatusCode code);

// Success, or the code and the message of a failure. Success is one null pointer, and so is
// what was moved from.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success

  // A failure; success if `code` is kOk, and the message is dropped. `driver_code` is the CUDA driver's
  // number of the error, 0 where it was not the driver that failed.
  Status(StatusCode code, absl::string_view message, int driver_code = 0);

  Status(const Status& other) : failure_(other.failure_ ? clone(*other.failure_) : nullptr) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  // Whether it is a success.
  [[nodiscard]] bool ok() const { return failure_ == nullptr; }
  // The kind of failure; kOk for a success.
  StatusCode code() const { return failure_ ? failure_->code : StatusCode::kOk; }
  // What happened and how to mend it; empty for a success.
  absl::string_view message() const { return failure_ ? failure_->message : absl::string_view(); }
  // The CUDA driver's number of the error; 0 where it was not the driver that failed.
  int driver_code() const { return failure_ ? failure_->driver_code : 0; }

  // "OK", or "INVALID_ARGUMENT: …".
  std::string ToString() const;

  // Keeps the first failure: takes `other` if this is a success.
  void Update(Status other) {
    if (ok()) *this = std::move(other);
  }

 private:
  struct Failure {
    StatusCode code;
    std::string message;
    int driver_code;
  };

  static std::unique_ptr<const Failure> clone(const Failure& failure);

  std::unique_ptr<const Failure> failure_;
};

bool operator==(const Status& a, const Status& b);
std::ostream& operator<<(std::ostream& out, const Status& status);

// Success.
inline Status OkStatus() { return {}; }

// A failure of each kind.
Status AbortedError(absl::string_view message);
Status AlreadyExistsError(absl::string_view message);
Status CancelledError(absl::string_view message);
Status DataLossError(absl::string_view message);
Status DeadlineExceededError(absl::string_view message);
Status FailedPreconditionError(absl::string_view message);
Status InternalError(absl::string_view message);
Status InvalidArgumentError(absl::string_view message);
Status NotFoundError(absl::string_view message);
Status OutOfRangeError(absl::string_view message);
Status PermissionDeniedError(absl::string_view message);
Status ResourceExhaustedError(absl::string_view message);
Status UnavailableError(absl::string_view message);
Status UnimplementedError(absl::string_view message);
Status UnknownError(absl::string_view message);

// What the operating system's error `number` is called, after "message: ", and the code that fits it.
Status ErrnoToStatus(int number, absl::string_view message);

// Whether it is a failure of this kind.
inline bool IsDataLoss(const Status& s) { return s.code() == StatusCode::kDataLoss; }
inline bool IsFailedPrecondition(const Status& s) {
  return s.code() == StatusCode::kFailedPrecondition;
}
inline bool IsInvalidArgument(const Status& s) { return s.code() == StatusCode::kInvalidArgument; }
inline bool IsNotFound(const Status& s) { return s.code() == StatusCode::kNotFound; }
inline bool IsUnimplemented(const Status& s) { return s.code() == StatusCode::kUnimplemented; }

namespace detail {
// Ends the program: a value was read of a call that failed, or a success was given for a value.
[[noreturn]] void no_value(const Status& status);
}  // namespace detail

// A value, or why there is none. Reading the value of a failure ends the program with its message.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;

  // A failure; `status` may not be a success.
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) detail::no_value(status_);
  }

  // A value, of what converts to T.
  template <typename U = T>
  requires(std::is_convertible_v<U&&, T> && !std::is_convertible_v<U&&, Status> &&
           !std::is_same_v<std::remove_cvref_t<U>, StatusOr>) StatusOr(U&& value)
      : value_(std::in_place, std::forward<U>(value)) {}  // NOLINT

  // What another value or failure converts to.
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<U, T>) StatusOr(StatusOr<U>&& other)
      : status_(other.status()) {  // NOLINT(google-explicit-constructor)
    if (other.ok()) value_.emplace(*std::move(other));
  }

  // Whether there is a value.
  [[nodiscard]] bool ok() const { return value_.has_value(); }
  // The failure; a success where there is a value.
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  // The value; also *result and result->member. For a failure the program ends with its message.
  T& value() & { return checked(), *value_; }
  const T& value() const& { return checked(), *value_; }
  T&& value() && { return checked(), *std::move(value_); }

  T& operator*() & { return checked(), *value_; }
  const T& operator*() const& { return checked(), *value_; }
  T&& operator*() && { return checked(), *std::move(value_); }

  T* operator->() { return checked(), &*value_; }
  const T* operator->() const { return checked(), &*value_; }

  // The value, or `otherwise` for a failure.
  template <typename U>
  T value_or(U&& otherwise) const& {
    return value_.value_or(std::forward<U>(otherwise));
  }

 private:
  void checked() const {
    if (!ok()) detail::no_value(status_);
  }

  Status status_;  // success where there is a value
  std::optional<T> value_;
};

}  // namespace heddle
