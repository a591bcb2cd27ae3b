#include "heddle/ir/status.h"

#include <cerrno>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/status_absl.h"

namespace heddle {
namespace {

using testing::StartsWith;

TEST(Status, SuccessIsTheDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_EQ(status, OkStatus());
  EXPECT_TRUE(Status(StatusCode::kOk, "dropped").ok());
}

TEST(Status, AFailureKeepsCodeMessageAndDriverCodeThroughCopies) {
  const Status failed(StatusCode::kUnavailable, "no device", 46);
  Status copy = failed;
  EXPECT_EQ(copy, failed);
  const Status moved = std::move(copy);
  EXPECT_EQ(moved.code(), StatusCode::kUnavailable);
  EXPECT_EQ(moved.message(), "no device");
  EXPECT_EQ(moved.driver_code(), 46);
  EXPECT_NE(moved, UnavailableError("no device"));
  std::ostringstream out;
  out << moved;
  EXPECT_EQ(out.str(), "UNAVAILABLE: no device");
}

TEST(Status, UpdateKeepsTheFirstFailure) {
  Status status;
  status.Update(NotFoundError("first"));
  status.Update(InternalError("second"));
  status.Update(OkStatus());
  EXPECT_EQ(status.ToString(), "NOT_FOUND: first");
}

TEST(Status, SaysWhatTheOperatingSystemRefused) {
  const Status status = ErrnoToStatus(ENOENT, "open x");
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), StartsWith("open x: No such file"));
}

// Every code, by name and by number.
TEST(Status, CodesAreAbseils) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kDataLoss); ++code) {
    EXPECT_EQ(name_of(static_cast<StatusCode>(code)),
              absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  }
  EXPECT_EQ(to_absl(OutOfRangeError("x")), absl::OutOfRangeError("x"));
  EXPECT_EQ(*to_absl(StatusOr<int>(7)), 7);
  EXPECT_EQ(to_absl(StatusOr<int>(AbortedError("x"))).status(), absl::AbortedError("x"));
}

TEST(StatusOr, HoldsAValueOrAFailure) {
  StatusOr<std::unique_ptr<int>> value = std::make_unique<int>(3);
  ASSERT_TRUE(value.ok());
  EXPECT_TRUE(value.status().ok());
  EXPECT_EQ(**value, 3);
  const std::unique_ptr<int> taken = *std::move(value);
  EXPECT_EQ(*taken, 3);

  const StatusOr<std::string> failed = NotFoundError("none");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().message(), "none");
  EXPECT_EQ(failed.value_or("otherwise"), "otherwise");
}

TEST(StatusOr, ConvertsWhatItsValueConvertsFrom) {
  const StatusOr<std::string> text = "abc";
  EXPECT_EQ(text->size(), 3u);
  const StatusOr<std::shared_ptr<const int>> shared =
      StatusOr<std::shared_ptr<int>>(std::make_shared<int>(5));
  EXPECT_EQ(**shared, 5);
  const StatusOr<std::shared_ptr<const int>> failed =
      StatusOr<std::shared_ptr<int>>(InternalError("x"));
  EXPECT_EQ(failed.status().message(), "x");
}

TEST(StatusOrDeathTest, ReadingTheValueOfAFailureEndsTheProgram) {
  const StatusOr<int> failed = NotFoundError("no such kernel");
  EXPECT_DEATH(static_cast<void>(*failed),
               "value of a call that failed was read: NOT_FOUND: no such kernel");
  EXPECT_DEATH(static_cast<void>(failed.value()), "no such kernel");
  EXPECT_DEATH(static_cast<void>(StatusOr<int>(OkStatus())),
               "given a success where a value was due");
}

}  // namespace
}  // namespace heddle
