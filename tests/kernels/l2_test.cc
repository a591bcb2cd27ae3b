// What kernels ask of L2 (kernels/l2.h).
#include "heddle/kernels/l2.h"

#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/launched_ptx.h"
#include "support/matchers.h"

namespace heddle::kernels {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(L2, IsFloodedByTwiceWhatItHolds) {
  DeviceInfo device;
  device.l2_bytes = 1000;
  EXPECT_FALSE(floods_l2(2000, device));
  EXPECT_TRUE(floods_l2(2001, device));
}

TEST(L2, IsFloodedByWhatIsStored) {
  EXPECT_EQ(stored_bytes(TensorRef<float, 2>(nullptr, {6, 7})), 168);
  EXPECT_EQ(stored_bytes(TensorRef<const float, 2>(nullptr, {6, 7})), 0);
  EXPECT_EQ(stored_bytes(TensorRef<half, 1>(nullptr, {5})), 10);
  EXPECT_EQ(stored_bytes(1.5f), 0);
}

constexpr const char* kThatStoreAsMuch[] = {
    "copy",     "transpose",        "add",      "softmax",           "log_softmax",
    "dropout",  "softmax_backward", "rms_norm", "layer_norm",        "add_rms_norm",
    "scan",     "segmented_scan",   "rotary",   "rms_norm_backward", "cross_entropy_backward",
    "embedding"};

// The first kernel's, on a device whose L2 holds so much.
std::string ptx_of(const char* operation, int64_t l2_bytes) {
  DeviceInfo info = hopper_info();
  info.l2_bytes = l2_bytes;
  const StatusOr<LaunchedPtx> launched =
      launched_ptx(*runtime::find_operation(operation), {}, info);
  EXPECT_THAT(launched.status(), IsOk());
  return launched.ok() ? launched->front().second : "";
}

TEST(L2, KeepsWhatIsLoadedWhereALaunchFloodsIt) {
  for (const char* operation : kThatStoreAsMuch) {
    SCOPED_TRACE(operation);
    const std::string ptx = ptx_of(operation, 1);
    EXPECT_THAT(ptx, HasSubstr("createpolicy.fractional.L2::evict_last"));
    int hinted = 0;
    for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
      if (!absl::StrContains(line, "cache_hint")) continue;
      ++hinted;
      EXPECT_THAT(std::string(line), Not(HasSubstr("\tst.")));
    }
    EXPECT_GT(hinted, 0);
  }
}

TEST(L2, IsLeftAloneWhereItHoldsWhatIsStored) {
  for (const char* operation : kThatStoreAsMuch) {
    SCOPED_TRACE(operation);
    EXPECT_THAT(ptx_of(operation, int64_t{1} << 40), Not(HasSubstr("createpolicy")));
  }
}

// They store little: no line has to leave for another.
TEST(L2, IsLeftAloneByKernelsThatReadAlone) {
  for (const char* operation : {"reduce", "cross_entropy", "row_sum"}) {
    SCOPED_TRACE(operation);
    EXPECT_THAT(ptx_of(operation, 1 << 20), Not(HasSubstr("createpolicy")));
  }
}

}  // namespace
}  // namespace heddle::kernels
