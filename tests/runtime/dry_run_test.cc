// What an operation would launch, without data and without a GPU.
#include "heddle/runtime/operation/dry_run.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/kernel_cache.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DryRunTest : public testing::Test {
 protected:
  const Device device = open_dry_run(Device::open("interp")->info(), [this](const DryLaunch& l) {
    launches.push_back(absl::StrCat(l.source != nullptr ? l.source->name() : "compiled", " ",
                                    l.shape.grid.x, " ", l.shape.block.x));
    return answer;
  });
  const Stream stream = device.create_stream().value();
  std::vector<std::string> launches;
  Status answer;
};

const auto fill = define_kernel("fill(y)", [](Tensor<float, 1> y) { y(thread_idx.x) = 1.0f; });

TEST_F(DryRunTest, TellsOfLaunchesInOrderAndCompilesNothing) {
  const Buffer y = device.allocate(64 * sizeof(float)).value();
  const auto tensor = as_tensor<float>(y, {64});
  EXPECT_THAT(fill.launch(stream, {.grid = 2, .block = 32}, tensor), IsOk());
  EXPECT_THAT(fill.launch(device.default_stream(), {.grid = 1, .block = 64}, tensor), IsOk());
  EXPECT_THAT(launches, ElementsAre("fill 2 32", "fill 1 64"));
  EXPECT_EQ(KernelCache::of(fill.source()).size(), 0);
}

TEST_F(DryRunTest, KernelsThatWereCompiledBeforeCountToo) {
  const auto compiled = fill.compile(Signature{tensor({kAny})},
                                     CompileOptions{.block = {32, 1, 1}, .stage = Stage::kIr});
  ASSERT_THAT(compiled.status(), IsOk());
  const Buffer y = device.allocate(32 * sizeof(float)).value();
  EXPECT_THAT(compiled->launch(stream, {.grid = 1, .block = 32}, as_tensor<float>(y, {32})),
              IsOk());
  EXPECT_THAT(launches, ElementsAre("compiled 1 32"));
}

TEST_F(DryRunTest, RefusesWhatEveryDeviceRefuses) {
  const Buffer y = device.allocate(64 * sizeof(float)).value();
  EXPECT_THAT(fill.launch(stream, {.grid = 1, .block = 2048}, as_tensor<float>(y, {64})),
              Fails(StatusCode::kInvalidArgument, "block.x is 2048"));
  EXPECT_THAT(fill.launch(stream, {.grid = 1, .block = 64}, as_tensor<float>(y, {65})),
              Fails(StatusCode::kInvalidArgument, "reaches 260 bytes into a buffer of 256"));
  EXPECT_THAT(launches, IsEmpty());
}

TEST_F(DryRunTest, RefusesWhatAVariantWasNotCompiledFor) {
  const auto twice = define_kernel("twice(y)", [](Tensor<float, 1> y) {
    const auto two = y.vec<2>(2 * thread_idx.x);
    y.vec<2>(2 * thread_idx.x) = two + two;
  });
  const auto compiled = twice.compile(Signature{tensor({kAny}).aligned(8)},
                                      CompileOptions{.block = {32, 1, 1}, .stage = Stage::kIr});
  ASSERT_THAT(compiled.status(), IsOk());
  const Buffer y = device.allocate(65 * sizeof(float)).value();
  TensorRef<float, 1> odd = as_tensor<float>(y, {64});
  odd.data += 1;
  EXPECT_THAT(compiled->launch(stream, {.grid = 1, .block = 32}, odd),
              Fails(StatusCode::kInvalidArgument, "that starts at a multiple of 8 bytes"));
  EXPECT_THAT(launches, IsEmpty());
}

TEST_F(DryRunTest, TellsWhetherResultsWereWanted) {
  Buffer y = device.allocate(64).value();
  EXPECT_THAT(y.fill(stream, 0), IsOk());
  EXPECT_FALSE(results_were_wanted(device));
  EXPECT_FALSE(y.download<char>(stream).ok());
  EXPECT_TRUE(results_were_wanted(device));
  EXPECT_FALSE(results_were_wanted(Device::open("interp").value()));
}

TEST_F(DryRunTest, PassesAnAnswerOn) {
  answer = CancelledError("enough");
  const Buffer y = device.allocate(64 * sizeof(float)).value();
  EXPECT_THAT(fill.launch(stream, {.grid = 1, .block = 64}, as_tensor<float>(y, {64})),
              Fails(StatusCode::kCancelled, "enough"));
}

TEST_F(DryRunTest, MemoryHasAddressesAndNoBytes) {
  Buffer a = stream.device().allocate(300).value();
  const Buffer b = device.allocate(size_t{1} << 36).value();
  EXPECT_EQ(a.address() % 256, 0u);
  EXPECT_GE(b.address(), a.address() + 300);
  EXPECT_THAT(a.fill(stream, 0), IsOk());
  EXPECT_THAT(device.upload<int>({1, 2}).status(), IsOk());
  EXPECT_THAT(a.download<char>(stream).status(),
              Fails(StatusCode::kFailedPrecondition, "nothing has been computed"));
  EXPECT_THAT(device.allocate(size_t{1} << 50).status(),
              Fails(StatusCode::kResourceExhausted, "dry run"));
}

}  // namespace
}  // namespace heddle::runtime
