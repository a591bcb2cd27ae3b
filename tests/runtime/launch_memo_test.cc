// Launches that come again: what reaches the driver is what reached it the first time, until something differs.
#include "heddle/runtime/launch_memo.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "heddle/heddle.h"
#include "heddle/runtime/graph/graph.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/observe/log.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime::cuda {
namespace {

constexpr LaunchShape kShape{.grid = 2, .block = 32};

class LaunchMemoTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    fake_->set_device_count(2);
    fake_->set_kernels("scale\ntwice\nmapped\n");
    setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
    scale_.emplace(define_kernel("scale(p, x, y, a)", [](Pointer<float> p, Tensor<const float, 1> x,
                                                         Tensor<float, 1> y, Float a) {
      y(thread_idx.x) = a * x(thread_idx.x);
      p[0] = Float(x.shape(0));
    }));
    device_.emplace(Device::open("cuda:0").value());
    stream_.emplace(device_->create_stream().value());
    x_.emplace(device_->allocate(1024).value());
    y_.emplace(device_->allocate(1024).value());
  }
  void TearDown() override {
    scale_.reset();
    x_.reset();
    y_.reset();
    stream_.reset();
    device_.reset();
    unsetenv("HEDDLE_OPTIONS");
    FakeDriverTest::TearDown();
  }

  TensorRef<const float, 1> x(int64_t n = 64) const { return as_tensor<const float>(*x_, {n}); }
  TensorRef<float, 1> y(int64_t n = 64) const { return as_tensor<float>(*y_, {n}); }

  // The word at this place of the last launch's parameters.
  template <class T>
  T parameter(size_t at) const {
    T value;
    std::memcpy(&value, fake_->launches().back().parameters.data() + at, sizeof(value));
    return value;
  }
  // Whether a launch comes again as one of this thread's last ones.
  template <class... P>
  bool remembered(const Kernel<P...>& kernel, const Stream& stream, const LaunchShape& shape,
                  const typename heddle::detail::ParamTraits<P>::Host&... args) {
    const ArgumentWords<P...> words(stream.backend().get(), args...);
    const uint64_t id = KernelCache::of(kernel.source()).kernel_id();
    return words.valid() && LaunchMemo::of_thread()
                                ->entry(id, words.key())
                                .is(id, stream.backend().get(), shape, words.key());
  }

  std::optional<Kernel<Pointer<float>, Tensor<const float, 1>, Tensor<float, 1>, Float>> scale_;
  std::optional<Device> device_;
  std::optional<Stream> stream_;
  std::optional<Buffer> x_, y_;
};

TEST_F(LaunchMemoTest, TheSameLaunchPassesTheSame) {
  EXPECT_FALSE(remembered(*scale_, *stream_, kShape, nullptr, x(), y(), 2.0f));
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
    EXPECT_TRUE(remembered(*scale_, *stream_, kShape, nullptr, x(), y(), 2.0f));
  }
  const std::vector<FakeLaunch> launches = fake_->launches();
  ASSERT_EQ(launches.size(), 3u);
  for (const FakeLaunch& launch : launches) {
    EXPECT_EQ(launch.kernel, "scale");
    EXPECT_EQ(launch.parameters, launches[0].parameters);
    EXPECT_EQ(launch.config.grid_x, 2u);
    EXPECT_EQ(launch.config.block_x, 32u);
    EXPECT_EQ(launch.config.stream, driver_stream(stream_->handle()));
  }
}

// Launches that somebody watches take the long way, each time.
TEST_F(LaunchMemoTest, WhatIsObservedIsNotRemembered) {
  int lines = 0;
  set_log(LogLevel::kDebug, [&](LogLevel, absl::string_view line) {
    lines += absl::StrContains(line, "'scale'") && absl::StrContains(line, " launched on cuda:0: ");
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  }
  set_log(LogLevel::kOff);
  EXPECT_EQ(lines, 3);
  EXPECT_FALSE(remembered(*scale_, *stream_, kShape, nullptr, x(), y(), 2.0f));
  EXPECT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  EXPECT_TRUE(remembered(*scale_, *stream_, kShape, nullptr, x(), y(), 2.0f));
  EXPECT_FALSE(launches_may_be_observed());
}

TEST_F(LaunchMemoTest, WhatDiffersReachesTheDriver) {
  const auto launch = [&](auto&&... args) {
    ASSERT_THAT(scale_->launch(*stream_, args...), IsOk());
  };
  // Each twice: the second may be a remembered one.
  for (int i = 0; i < 2; ++i) {
    launch(kShape, nullptr, x(), y(), 2.0f);
    const std::vector<uint8_t> first = fake_->launches().back().parameters;
    launch(kShape, nullptr, x(), y(), 3.0f);
    EXPECT_NE(fake_->launches().back().parameters, first) << "a number";
    launch(kShape, nullptr, x(48), y(), 2.0f);
    EXPECT_NE(fake_->launches().back().parameters, first) << "an extent";
    launch(kShape, nullptr, as_tensor<const float>(*x_, {64}, {2}), y(), 2.0f);
    EXPECT_NE(fake_->launches().back().parameters, first) << "a stride";
    launch(kShape, nullptr, as_tensor<const float>(*y_, {64}), as_tensor<float>(*x_, {64}), 2.0f);
    EXPECT_NE(fake_->launches().back().parameters, first) << "addresses";
    launch(kShape, reinterpret_cast<float*>(x_->address()), x(), y(), 2.0f);
    EXPECT_NE(fake_->launches().back().parameters, first) << "a pointer";
    launch(LaunchShape{.grid = 3, .block = 32}, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().config.grid_x, 3u);
    launch(LaunchShape{.grid = 2, .block = 64}, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().config.block_x, 64u);
    launch(LaunchShape{.grid = 2, .block = 32, .cluster = 2}, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().attributes.size(), 1u);
    launch(LaunchShape{.grid = 2, .block = 32, .shared_bytes = 128}, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().config.dynamic_shared_bytes, 128u);
    launch(LaunchShape{.grid = 2, .block = 32, .programmatic = true}, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().attributes.size(), 1u);
    launch(kShape, nullptr, x(), y(), 2.0f);
    EXPECT_EQ(fake_->launches().back().parameters, first);
    EXPECT_EQ(fake_->launches().back().attributes.size(), 0u);
  }
}

TEST_F(LaunchMemoTest, AnyStreamOfTheDeviceButNoOther) {
  ASSERT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  const Stream second = device_->create_stream().value();
  EXPECT_TRUE(remembered(*scale_, second, kShape, nullptr, x(), y(), 2.0f));
  ASSERT_THAT(scale_->launch(second, kShape, nullptr, x(), y(), 2.0f), IsOk());
  EXPECT_EQ(fake_->launches().back().config.stream, driver_stream(second.handle()));

  const Device other = Device::open("cuda:1").value();
  const Stream elsewhere = other.create_stream().value();
  EXPECT_FALSE(remembered(*scale_, elsewhere, kShape, nullptr, x(), y(), 2.0f));
  EXPECT_THAT(scale_->launch(elsewhere, kShape, nullptr, x(), y(), 2.0f),
              Fails(StatusCode::kInvalidArgument, "lies in memory of cuda:0"));
  Stream gone = device_->create_stream().value();
  const Stream taken = std::move(gone);
  EXPECT_THAT(scale_->launch(gone, kShape, nullptr, x(), y(), 2.0f),
              Fails(StatusCode::kFailedPrecondition, "moved from"));
}

TEST_F(LaunchMemoTest, ABufferThatWasFreedIsRefused) {
  const auto launch = [&](const TensorRef<const float, 1>& from) {
    return scale_->launch(*stream_, kShape, nullptr, from, y(), 2.0f);
  };
  const TensorRef<const float, 1> before = x();
  ASSERT_THAT(launch(before), IsOk());
  x_.reset();
  EXPECT_THAT(launch(before), Fails(StatusCode::kInvalidArgument, "freed"));
  EXPECT_EQ(fake_->launches().size(), 1u);
}

TEST_F(LaunchMemoTest, AnotherKernelOfTheSameArgumentsIsAnother) {
  const auto twice = define_kernel("twice(y)", [](Tensor<float, 1> y) { y(0) = 2.0f * y(0); });
  for (int i = 0; i < 2; ++i) {
    // Made anew, at the same place as likely as not.
    const auto scale = define_kernel("scale(y)", [](Tensor<float, 1> y) { y(0) = 3.0f * y(0); });
    EXPECT_FALSE(remembered(scale, *stream_, kShape, y()));
    ASSERT_THAT(scale.launch(*stream_, kShape, y()), IsOk());
    EXPECT_EQ(fake_->launches().back().kernel, "scale");
    ASSERT_THAT(twice.launch(*stream_, kShape, y()), IsOk());
    EXPECT_EQ(fake_->launches().back().kernel, "twice");
    ASSERT_THAT(scale.launch(*stream_, kShape, y()), IsOk());
    EXPECT_EQ(fake_->launches().back().kernel, "scale");
  }
}

TEST_F(LaunchMemoTest, KernelsMeetInOnePlaceAndStayApart) {
  // More kernels of either name than there are places.
  constexpr int kKernels = 100;
  using OfY = Kernel<Tensor<float, 1>>;
  std::vector<OfY> kernels;
  for (int i = 0; i < kKernels; ++i) {
    kernels.push_back(define_kernel("scale(y)", [](Tensor<float, 1> y) { y(0) = 3.0f * y(0); }));
  }
  for (int i = 0; i < kKernels; ++i) {
    kernels.push_back(define_kernel("twice(y)", [](Tensor<float, 1> y) { y(0) = 2.0f * y(0); }));
  }
  for (const OfY& kernel : kernels) {
    ASSERT_THAT(kernel.launch(*stream_, kShape, y()), IsOk());
    ASSERT_EQ(fake_->launches().back().kernel, kernel.source().name());
  }
}

TEST_F(LaunchMemoTest, EachDeviceHasItsOwnCode) {
  // Without buffers, whose device would be known.
  const auto scale = define_kernel("scale(p)", [](Pointer<float> p) { p[0] = 3.0f; });
  const Device other = Device::open("cuda:1").value();
  for (const Device& device : {*device_, other}) {
    ASSERT_THAT(scale.launch(device.default_stream(), kShape, reinterpret_cast<float*>(4096)),
                IsOk());
  }
  EXPECT_EQ(fake_->live().modules, 2);
}

TEST_F(LaunchMemoTest, AGridOfTheKernelsOwnThatIsEmptyStaysEmpty) {
  const auto scale = define_kernel("scale(y)", [](Tensor<float, 1> y) {
    launch_grid(y.shape(0));
    y(block_idx.x) = 1.0f;
  });
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(scale.launch(*stream_, {.block = 32}, y(3)), IsOk());
    EXPECT_EQ(fake_->launches().back().config.grid_x, 3u);
    const size_t launched = fake_->launches().size();
    for (int again = 0; again < 2; ++again) {
      ASSERT_THAT(scale.launch(*stream_, {.block = 32}, y(0)), IsOk());
    }
    EXPECT_EQ(fake_->launches().size(), launched);
  }
}

TEST_F(LaunchMemoTest, ALaunchIsRecordedForAGraphAsItIsRun) {
  ASSERT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  const auto graph = Graph::capture(*stream_, [&](const Stream& s) {
    return scale_->launch(s, kShape, nullptr, x(), y(), 2.0f);
  });
  ASSERT_THAT(graph.status(), IsOk());
  ASSERT_THAT(graph->launch(*stream_), IsOk());
}

TEST_F(LaunchMemoTest, ADeviceThatIsLostIsLost) {
  leaks_expected_ = true;
  ASSERT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(), Fails(StatusCode::kAborted, "scale"));
  fake_->fault(0);
  const size_t launched = fake_->launches().size();
  EXPECT_FALSE(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f).ok());
  EXPECT_EQ(fake_->launches().size(), launched);
}

TEST_F(LaunchMemoTest, WhatTheDriverRefusesIsAskedAgain) {
  ASSERT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f), IsOk());
  fake_->fail("cuLaunchKernelEx", 701);
  EXPECT_THAT(scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f),
              Fails(StatusCode::kResourceExhausted, "grid 2x1x1"));
}

// Does something while its thread ends.
struct AtTheEnd {
  std::function<void()> work;
  ~AtTheEnd() { work(); }
};

TEST_F(LaunchMemoTest, EachThreadHasItsOwnAndLaunchesUntilItEnds) {
  const LaunchMemo* const mine = LaunchMemo::of_thread();
  const auto launch = [this] { return scale_->launch(*stream_, kShape, nullptr, x(), y(), 2.0f); };
  bool had_none = false;
  Status last = InternalError("never launched");
  std::thread([&] {
    // Made before the memo is, and so destroyed after it.
    thread_local AtTheEnd at_the_end;
    at_the_end.work = [&] {
      had_none = LaunchMemo::of_thread() == nullptr;
      last = launch();
    };
    EXPECT_NE(LaunchMemo::of_thread(), mine);
    EXPECT_THAT(launch(), IsOk());
  }).join();
  EXPECT_TRUE(had_none);
  EXPECT_THAT(last, IsOk());
  EXPECT_EQ(fake_->launches().size(), 2u);
}

}  // namespace
}  // namespace heddle::runtime::cuda
