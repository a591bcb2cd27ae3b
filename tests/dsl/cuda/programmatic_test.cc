// Kernels that start before the one in front of them has ended; and evictions from L2.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Each launch reads what the one before wrote, one element further on, which another block wrote.
TEST(ProgrammaticLaunch, ConsumersSeeWhatTheyWaitedFor) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  constexpr int kCount = 1 << 16, kLaunches = 20;
  const Stream stream = test_device().create_stream().value();
  const auto step = define_kernel("step", [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
    const Int i = block_idx.x * 256 + thread_idx.x;
    grid_dependency_launch();  // the next one may come; it waits for this one's end
    grid_dependency_wait();
    y(i) = x((i + 256) % kCount) + 1;
  });
  const auto values = counting(kCount);
  const Buffer buffers[] = {test_device().upload(absl::MakeConstSpan(values)).value(),
                            test_device().allocate(kCount * sizeof(int32_t)).value()};
  for (int i = 0; i < kLaunches; ++i) {
    ASSERT_THAT(step.launch(stream, {.grid = kCount / 256, .block = 256, .programmatic = true},
                            as_tensor<const int32_t>(buffers[i % 2], {kCount}),
                            as_tensor<int32_t>(buffers[(i + 1) % 2], {kCount})),
                IsOk());
  }
  const auto got = buffers[kLaunches % 2].download<int32_t>(stream);
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ((*got)[static_cast<size_t>(i)], (i + kLaunches * 256) % kCount + kLaunches) << i;
  }
}

// The interpreter, which runs one after the other, says what a GPU might get wrong.
TEST(ProgrammaticLaunch, KernelsThatNeverWaitAreReported) {
  const Device device = Device::open("interp").value();
  const Stream stream = device.create_stream().value(), other = device.create_stream().value();
  Buffer buffers[3];
  for (Buffer& buffer : buffers) buffer = device.upload<int32_t>({1, 2, 3, 4}).value();
  const auto step = [](bool waits) {
    return local_kernel(waits ? "patient" : "hasty",
                        [=](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                          if (waits) grid_dependency_wait();
                          y(thread_idx.x) = x(thread_idx.x) + 1;
                        });
  };
  const auto hasty = step(false), patient = step(true);
  const auto launch = [&](const auto& kernel, int from, int to, bool programmatic,
                          const Stream& on) {
    return std::string(kernel
                           .launch(on, {.grid = 1, .block = 4, .programmatic = programmatic},
                                   as_tensor<const int32_t>(buffers[from], {4}),
                                   as_tensor<int32_t>(buffers[to], {4}))
                           .message());
  };
  EXPECT_EQ(launch(hasty, 0, 1, true, stream), "") << "nothing is before it";
  EXPECT_THAT(launch(hasty, 1, 2, true, stream),
              AllOf(HasSubstr("programmatic_test.cc:"),
                    HasSubstr("is launched with .programmatic and never waits for kernel 'hasty'"),
                    HasSubstr("its 'arg0' reads memory that 'arg1' there may write\n  fix: call "
                              "grid_dependency_wait() in front of the first access")));
  // What the one before only reads.
  EXPECT_EQ(launch(patient, 0, 1, true, stream), "");
  EXPECT_THAT(launch(hasty, 2, 0, true, stream),
              HasSubstr("its 'arg1' may write memory that 'arg0' there reads"));
  // Others' memory, both reading, a wait, another stream, a launch as usual, a copy or a wait of the host between.
  EXPECT_EQ(launch(patient, 0, 1, true, stream), "");
  EXPECT_EQ(launch(hasty, 0, 2, true, stream), "");
  EXPECT_EQ(launch(patient, 2, 1, true, stream), "");
  EXPECT_EQ(launch(hasty, 1, 0, true, other), "");
  EXPECT_EQ(launch(hasty, 1, 0, false, stream), "");
  ASSERT_THAT(buffers[2].fill(stream, 0), IsOk());
  EXPECT_EQ(launch(hasty, 0, 1, true, stream), "");
  ASSERT_THAT(stream.synchronize(), IsOk());
  EXPECT_EQ(launch(hasty, 1, 0, true, stream), "");
  // Whatever else is enqueued or frees memory; a launch that was refused is not the last one.
  const std::vector<int32_t> values = {1, 2, 3, 4};
  std::vector<int32_t> back(4);
  const std::function<Status()> betweens[] = {
      [&] { return buffers[2].copy_from_host(stream, values.data(), 16); },
      [&] { return buffers[2].copy_to_host(stream, back.data(), 16); },
      [&] { return buffers[2].copy_from(stream, buffers[0], 16); },
      [&] { return buffers[2].fill32(stream, 0, 4); },
      [&] { return device.synchronize(); },
      [&] { return device.allocate(16).status(); },
  };
  for (const auto& between : betweens) {
    EXPECT_EQ(launch(patient, 0, 1, true, stream), "");
    EXPECT_NE(launch(hasty, 1, 2, true, stream), "");
    EXPECT_NE(launch(hasty, 1, 2, true, stream), "");
    ASSERT_THAT(between(), IsOk());
    EXPECT_EQ(launch(hasty, 1, 2, true, stream), "");
  }
}

// Of inline PTX and of pointers nothing is known, so that nothing is said.
TEST(ProgrammaticLaunch, WhatIsNotKnownIsNotReported) {
  const Device device = Device::open("interp").value();
  const Stream stream = device.create_stream().value();
  Buffer buffers[2];
  for (Buffer& buffer : buffers) buffer = device.upload<int32_t>({1, 2, 3, 4}).value();
  const auto inline_wait =
      local_kernel("by_text", [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        inline_ptx(PtxText("griddepcontrol.wait;", [] {}).has_effects());
        y(thread_idx.x) = x(thread_idx.x) + 1;
      });
  const auto by_pointer = local_kernel(
      "by_pointer",
      [](Pointer<const int32_t> x, Pointer<int32_t> y) { y[thread_idx.x] = x[thread_idx.x] + 1; });
  const LaunchShape shape{.grid = 1, .block = 4, .programmatic = true};
  for (const int i : {0, 1}) {
    EXPECT_THAT(inline_wait.launch(stream, shape, as_tensor<const int32_t>(buffers[i], {4}),
                                   as_tensor<int32_t>(buffers[1 - i], {4})),
                IsOk());
  }
  EXPECT_THAT(by_pointer.launch(stream, shape, as_tensor<const int32_t>(buffers[0], {4}).data,
                                as_tensor<int32_t>(buffers[1], {4}).data),
              IsOk());
}

template <class Body>
std::string ptx_of(Body body) {
  const auto kernel =
      local_kernel("k", [&](Tensor<const float, 1> x, Tensor<float, 1> y) { body(x, y); });
  const auto compiled =
      kernel.compile(Signature{tensor({1024}).no_overlap(), tensor({1024}).no_overlap()},
                     CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  return compiled.ok() ? compiled->ptx() : std::string(compiled.status().message());
}

// The cache behind ld.global.nc may keep what was there before the wait.
TEST(ProgrammaticLaunch, WhatIsWaitedForIsReadCoherently) {
  const auto copying = [](auto wait) {
    return ptx_of([=](Tensor<const float, 1> x, Tensor<float, 1> y) {
      wait();
      y(thread_idx.x) = x(thread_idx.x);
    });
  };
  EXPECT_THAT(copying([] {}), HasSubstr("ld.global.nc.b32"));
  const std::string waiting = copying([] { grid_dependency_wait(); });
  EXPECT_THAT(waiting, HasSubstr("griddepcontrol.wait;"));
  EXPECT_THAT(waiting, HasSubstr("ld.global.b32"));
  EXPECT_THAT(waiting, Not(HasSubstr(".nc")));
}

TEST(L2Evict, IsAPolicyThatAccessesShare) {
  const std::string ptx = ptx_of([](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const Int t = thread_idx.x;
    const auto kept = x.with(L2Evict::last);
    y.with(L2Evict::first, 25).with(Cache::no_allocate)(t) = kept(t) + kept(t + 32);
  });
  const std::string last = "createpolicy.fractional.L2::evict_last.b64";
  ASSERT_THAT(ptx, HasSubstr(last));
  EXPECT_EQ(ptx.find(last), ptx.rfind(last)) << "one for both loads";
  EXPECT_THAT(ptx, HasSubstr("createpolicy.fractional.L2::evict_first.b64"));
  EXPECT_THAT(ptx, HasSubstr(", 0f3E800000;"));
  EXPECT_THAT(ptx, HasSubstr("st.global.L1::no_allocate.L2::cache_hint.b32 ["));
  EXPECT_TRUE(absl::StrContains(ptx, "ld.global.nc.L2::cache_hint.b32") ||
              absl::StrContains(ptx, "ld.global.L2::cache_hint.b32"))
      << ptx;
}

TEST(L2Evict, ChangesNoResult) {
  const auto got =
      run("evict", {.block = 64}, 64, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t> tile(256);
        const Int t = thread_idx.x;
        copy_async(tile.at(t), x.with(L2Evict::unchanged).at(t));
        copy_async_commit();
        copy_async_wait();
        sync_threads();
        const Int twice = tile(63 - t) + x.with(L2Evict::normal)(t);
        y.with(L2Evict::last, 50)(t) = twice;
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 63);
}

TEST(L2Evict, IsForGlobalMemory) {
  const auto got =
      run("evict", {.block = 32}, 32, [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
        const Shared<int32_t> tile(32);
        tile.with(L2Evict::last)(thread_idx.x) = 1;
        y(thread_idx.x) = tile(thread_idx.x);
      });
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("a cache hint is for global memory"));
}

}  // namespace
}  // namespace heddle
