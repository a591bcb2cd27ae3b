// Kernels that were compiled for given strides, launched with these and others, on whatever device
// the tests run on.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/executable.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// The first elements of a matrix's rows, by code for rows that are 2048 elements apart.
class FixedLayoutTest : public testing::Test {
 protected:
  Status first_column(int64_t rows, const int64_t (&strides)[2]) {
    const auto kernel =
        define_kernel("first(x, y)", [](Tensor<const int32_t, 2> x, Tensor<int32_t, 1> y) {
          y(thread_idx.x) = x(thread_idx.x, 0);
        });
    const CompileOptions options{.block = {static_cast<int>(rows), 1, 1}};
    const auto compiled =
        kernel.compile(Signature{tensor({kAny, kAny}).strides({2048, 1}), tensor({kAny})},
                       runtime::Executable::options_for(*device_.backend(), options));
    if (!compiled.ok()) return compiled.status();
    return compiled->launch(stream_, {.block = rows},
                            TensorRef<const int32_t, 2>(
                                reinterpret_cast<const int32_t*>(x_.address()), {rows, 4}, strides),
                            as_tensor<int32_t>(y_, {rows}));
  }
  std::vector<int32_t> result() { return y_.download<int32_t>(stream_).value(); }

  const Device& device_ = test_device();
  Stream stream_ = device_.create_stream().value();
  Buffer x_ = [this] {
    std::vector<int32_t> host(4 * 2048);
    host[0] = 1;
    host[2048] = 2;
    return device_.upload(absl::MakeConstSpan(host)).value();
  }();
  Buffer y_ = device_.upload<int32_t>({0, 0}).value();
};

TEST_F(FixedLayoutTest, RefusesOtherStridesBeforeAnythingRuns) {
  EXPECT_THAT(first_column(2, {1024, 1}),
              Fails(StatusCode::kInvalidArgument, "argument 0 ('x')", "kernel 'first'",
                    "has stride 1024 in mode 0, and this variant was compiled for 2048", "fix: "));
  EXPECT_THAT(first_column(2, {2048, 2}),
              Fails(StatusCode::kInvalidArgument,
                    "has stride 2 in mode 1, and this variant was compiled for 1"));
  EXPECT_EQ(result(), (std::vector<int32_t>{0, 0}));
  EXPECT_THAT(first_column(2, {2048, 1}), IsOk());
  EXPECT_EQ(result(), (std::vector<int32_t>{1, 2}));
}

TEST_F(FixedLayoutTest, TakesAnyStrideOfAModeOfOneElement) {
  EXPECT_THAT(first_column(1, {1024, 1}), IsOk());
  EXPECT_EQ(result(), (std::vector<int32_t>{1, 0}));
}

}  // namespace
}  // namespace heddle
