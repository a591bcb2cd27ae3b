// Matchers for statuses.
#pragma once

#include <string>

#include "gmock/gmock.h"
#include "heddle/ir/status.h"

namespace heddle {

inline Status status_of(const Status& status) { return status; }
template <class T>
Status status_of(const StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << status_of(arg).ToString();
  return status_of(arg).ok();
}

// A status of this code whose message has every one of the texts.
template <class... Text>
auto Fails(StatusCode code, const Text&... texts) {
  const auto text_of = [](const auto& s) { return std::string(status_of(s).message()); };
  const auto code_of = [](const auto& s) { return status_of(s).code(); };
  return testing::AllOf(testing::ResultOf("code", code_of, code),
                        testing::ResultOf("message", text_of, testing::HasSubstr(texts))...);
}

}  // namespace heddle
