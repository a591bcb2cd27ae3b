// Kernels that depend on host values: each value has its own.
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

const auto fill = kernel_family("fill(y)", [](float value, Tensor<float, 1> y) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < y.shape(0), [&] { y(i) = value; });
});

template <class K>
float filled_by(const K& kernel) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.allocate(sizeof(float)).value();
  EXPECT_THAT(kernel.launch(stream, {.block = 32}, as_tensor<float>(y, {1})), IsOk());
  return y.download<float>(stream).value()[0];
}

TEST(KernelFamily, EachValueHasItsKernel) {
  EXPECT_EQ(filled_by(fill(2.0f)), 2.0f);
  EXPECT_EQ(filled_by(fill(3.0f)), 3.0f);
  EXPECT_EQ(filled_by(fill(2.0f)), 2.0f);
  EXPECT_EQ(&fill(2.0f), &fill(2.0f));
  EXPECT_NE(&fill(2.0f), &fill(3.0f));
}

// What a factory with a static kernel gets wrong.
float made(float factor) {
  static const auto family = kernel_family(
      "made(y)", [](float f, Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = f; }); });
  return filled_by(family(factor));
}

TEST(KernelFamily, AFactoryThatIsCalledTwice) {
  EXPECT_EQ(made(2.0f), 2.0f);
  EXPECT_EQ(made(3.0f), 3.0f);
}

TEST(KernelFamily, KeysOfSeveralKinds) {
  enum class Mode { kOne, kTwo };
  const auto family =
      kernel_family("keys(y)", [](Mode mode, std::string text, int n, Tensor<float, 1> y) {
        If(thread_idx.x == 0, [&] {
          y(0) = static_cast<float>(n) + static_cast<float>(text.size()) +
                 (mode == Mode::kTwo ? 0.5f : 0.0f);
        });
      });
  EXPECT_EQ(filled_by(family(Mode::kOne, "abc", 10)), 13.0f);
  EXPECT_EQ(filled_by(family(Mode::kTwo, "abc", 10)), 13.5f);
  EXPECT_EQ(filled_by(family(Mode::kTwo, "", 1)), 1.5f);
}

TEST(KernelFamily, NumbersAreTheirBits) {
  const auto family = kernel_family("sign(y)", [](float value, Tensor<float, 1> y) {
    If(thread_idx.x == 0, [&] { y(0) = std::signbit(value) ? 1.0f : 2.0f; });
  });
  EXPECT_EQ(filled_by(family(0.0f)), 2.0f);
  EXPECT_EQ(filled_by(family(-0.0f)), 1.0f);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(&family(nan), &family(nan));
}

TEST(KernelFamily, NumbersThatTheirParameterDoesNotHold) {
  const auto family = kernel_family(
      "wide(y)", [](int, uint8_t small, Tensor<float, 1> y) { y(0) = static_cast<float>(small); });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.allocate(sizeof(float)).value();
  EXPECT_THAT(family(1, size_t{7}).launch(stream, {}, as_tensor<float>(y, {1})), IsOk());
  EXPECT_THAT(family(int64_t{5'000'000'000}, -1).launch(stream, {}, as_tensor<float>(y, {1})),
              Fails(StatusCode::kInvalidArgument, "kernel_family_test.cc:",
                    "host value 0 of the family is 5000000000, which does not fit",
                    "host value 1 of the family is -1, which does not fit"));
}

TEST(KernelFamily, ManyThreadsGetOneKernel) {
  constexpr int kThreads = 4, kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    const float value = 100.0f + static_cast<float>(round);
    std::atomic<int> ready{0};
    const void* seen[kThreads] = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        // All at once.
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        seen[t] = &fill(value);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const void* kernel : seen) ASSERT_EQ(kernel, &fill(value));
  }
}

// --- What captures ---

TEST(Captures, ValuesAreBakedIn) {
  const auto make = [](float value) {
    return define_kernel("kept(y)",
                         [=](Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = value; }); });
  };
  const auto two = make(2.0f), three = make(3.0f);
  EXPECT_EQ(filled_by(two), 2.0f);
  EXPECT_EQ(filled_by(three), 3.0f);
}

Status launch_static(float value) {
  static const auto kernel = define_kernel(
      "first(y)", [=](Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = value; }); });
  const Device& device = test_device();
  const Buffer y = device.allocate(sizeof(float)).value();
  return kernel.launch(device.default_stream(), {.block = 32}, as_tensor<float>(y, {1}));
}

TEST(Captures, AStaticKernelCapturesNothing) {
  EXPECT_THAT(
      launch_static(2.0f),
      Fails(StatusCode::kInvalidArgument, "kernel_family_test.cc:",
            "this kernel captures values and is static: in a function it keeps those of the "
            "first call for ever",
            "fix: make it a kernel_family(), which takes the values as parameters, or let "
            "a scope or an object own it"));
}

// The same of one that may refer: it would keep what is gone.
Status launch_static_local(float value) {
  static const auto kernel = local_kernel(
      "first(y)", [=](Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = value; }); });
  const Device& device = test_device();
  const Buffer y = device.allocate(sizeof(float)).value();
  return kernel.launch(device.default_stream(), {.block = 32}, as_tensor<float>(y, {1}));
}

TEST(Captures, ALocalKernelIsNoStatic) {
  EXPECT_THAT(launch_static_local(2.0f),
              Fails(StatusCode::kInvalidArgument,
                    "kernel_family_test.cc:", "this kernel captures values and is static"));
}

TEST(Captures, KernelsThatOwnMemoryOrLieThereAreNoStatics) {
  const float value = 5.0f;
  const auto make = [&] {
    return define_kernel("owned(y)",
                         [=](Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = value; }); });
  };
  const auto on_heap = std::make_unique<decltype(make())>(make());
  EXPECT_EQ(filled_by(*on_heap), 5.0f);
}

TEST(Captures, ALocalKernelMayRefer) {
  float value = 4.0f;
  const auto kernel = local_kernel(
      "local(y)", [&](Tensor<float, 1> y) { If(thread_idx.x == 0, [&] { y(0) = value; }); });
  value = 6.0f;
  EXPECT_EQ(filled_by(kernel), 6.0f);
  using K = std::remove_const_t<decltype(kernel)>;
  static_assert(!std::is_copy_constructible_v<K> && !std::is_move_constructible_v<K>);
}

}  // namespace
}  // namespace heddle
