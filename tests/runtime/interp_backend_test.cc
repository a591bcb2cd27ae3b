// What only the interpreter's device does.
#include "heddle/runtime/interp_backend.h"

#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/device.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

TEST(InterpBackendTest, OneDeviceForEachName) {
  const Device device = Device::open("interp").value();
  EXPECT_EQ(device, Device::open("interp").value());
  EXPECT_EQ(device, Device::open("interp:0").value());
  EXPECT_EQ(device.name(), "interp");
  const Device second = Device::open("interp:3").value();
  EXPECT_FALSE(device == second);
  EXPECT_EQ(second.name(), "interp:3");
  EXPECT_FALSE(device == Device::open_private_interp(InterpBackend::default_info()));
}

TEST(InterpBackendTest, ResemblesSm90a) {
  const DeviceInfo info = Device::open("interp").value().info();
  EXPECT_EQ(info.compute_major, 9);
  EXPECT_EQ(info.limits.max_shared_per_block, 232448);
  EXPECT_EQ(info.limits.max_threads_per_block, 1024);
  EXPECT_TRUE(info.cluster_launch);
  EXPECT_EQ(info.driver_version, 0);
}

TEST(InterpBackendTest, CompletesWorkWhenTheEnvironmentSays) {
  ASSERT_EQ(setenv("HEDDLE_INTERP_COMPLETION", "seed:7", 1), 0);
  const Device seeded = Device::open("interp:71").value();
  EXPECT_EQ(seeded.interp()->completion(),
            (ir::interp::Completion{.when = ir::interp::Completion::When::kSeeded, .seed = 7}));
  ASSERT_EQ(setenv("HEDDLE_INTERP_COMPLETION", "soon", 1), 0);
  EXPECT_EQ(
      Device::open("interp:72").status().message(),
      "HEDDLE_INTERP_COMPLETION: completion 'soon' is none of early, late and seed:N, such as "
      "seed:7");
  ASSERT_EQ(unsetenv("HEDDLE_INTERP_COMPLETION"), 0);
  const Device device = Device::open("interp:73").value();
  EXPECT_EQ(device.interp()->completion().when, ir::interp::Completion::When::kLate);
  EXPECT_TRUE(device.set_completion("early").ok());
  EXPECT_EQ(device.interp()->completion().when, ir::interp::Completion::When::kEarly);
  EXPECT_EQ(device.set_completion("seed:x").message(),
            "completion 'seed:x' is none of early, late and seed:N, such as seed:7");
}

TEST(InterpBackendTest, AssertionsSayTheLineAndTheThread) {
  const Device device = Device::open("interp").value();
  const Buffer out = device.allocate(4 * 6 * sizeof(int32_t)).value();
  const int line = __LINE__ + 3;
  const auto kernel = define_kernel("asserts(y, n)", [](Tensor<int32_t, 1> y, Int n) {
    const Int i = thread_idx.x + 2 * thread_idx.y + 6 * block_idx.x;
    device_assert(i < n, "more threads than n");
    y(i) = i;
  });
  const auto launch = [&](int n) {
    return kernel.launch(device.default_stream(), {.grid = 4, .block = {2, 3}},
                         as_tensor<int32_t>(out, {24}), n);
  };
  EXPECT_TRUE(launch(24).ok());
  EXPECT_THAT(std::string(launch(23).message()),
              HasSubstr(absl::StrCat("interp_backend_test.cc:", line,
                                     ": error: assertion failed: more threads than n (kernel "
                                     "'asserts', block (3, 0, 0), thread (1, 2, 0))")));
}

// As a GPU does: what a kernel's own arrays take counts.
TEST(InterpBackendTest, RefusesMoreSharedMemoryThanABlockHas) {
  const auto kernel = define_kernel("holds(y)", [](Tensor<float, 1> y) {
    Shared<float> all(1000);
    all(thread_idx.x) = 1.0f;
    y(thread_idx.x) = all(thread_idx.x);
  });
  DeviceInfo info = InterpBackend::default_info();
  info.limits.max_shared_per_block = 3999;
  const Device small = Device::open_private_interp(info);
  const Buffer y = small.allocate(4).value();
  const Status status =
      kernel.launch(small.default_stream(), {.grid = 1, .block = 1}, as_tensor<float>(y, {1}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot launch: a block needs 4000 + 0 bytes of static and dynamic "
                        "shared memory, but has at most 3999 on "));
}

TEST(InterpBackendTest, PretendsToBeAsSmallAsAsked) {
  DeviceInfo info = InterpBackend::default_info();
  info.total_memory = 1000;
  info.sm_count = 1;
  const Device device = Device::open_private_interp(info);
  EXPECT_EQ(device.info().sm_count, 1);
  Buffer first = device.allocate(600).value();
  EXPECT_EQ(device.allocate(600).status().message(),
            "allocation on interp failed: cannot allocate 600 bytes: 600 of 1000 bytes are in use");
  first = Buffer();
  EXPECT_TRUE(device.allocate(600).ok());
}

TEST(InterpBackendTest, CopiesAndFillsInitialise) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const ir::interp::Memory& memory = device.interp()->memory();
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(64).value();
  EXPECT_FALSE(memory.is_initialized(x.address(), 1));
  const int value = 5;
  ASSERT_TRUE(x.copy_from_host(stream, &value, sizeof(value), 8).ok());
  EXPECT_TRUE(memory.is_initialized(x.address() + 8, 4));
  EXPECT_FALSE(memory.is_initialized(x.address() + 8, 5));
  Buffer y = device.allocate(64).value();
  ASSERT_TRUE(y.copy_from(stream, x, 64).ok());
  EXPECT_TRUE(memory.is_initialized(y.address() + 8, 4));
  EXPECT_FALSE(memory.is_initialized(y.address(), 9)) << "a copy does not initialise";
  EXPECT_EQ(x.download<int>(stream, Unwritten::kAllow).value()[0], 0);
  ASSERT_TRUE(y.fill(stream, 1).ok());
  EXPECT_TRUE(memory.is_initialized(y.address(), 64));
}

constexpr char kUnwrittenFix[] =
    "; fix: let the kernel write all of it, fill the buffer before the launch, or pass "
    "Unwritten::kAllow where it does not matter";

TEST(InterpBackendTest, WhatNobodyWroteIsNotDownloaded) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(64).value();
  const int values[3] = {1, 2, 3};
  ASSERT_TRUE(x.copy_from_host(stream, values, sizeof(values)).ok());
  const Status downloaded = x.download<int>(stream).status();
  EXPECT_EQ(downloaded.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(downloaded.message(),
            std::string("copy to the host on interp: nobody has written 13 of the 16 elements of "
                        "4 bytes; the first is element 3, at byte 12 of allocation #1 of 64 "
                        "bytes") +
                kUnwrittenFix);
  int back[4] = {};
  EXPECT_EQ(x.copy_to_host(stream, back, 8, 8).message(),
            std::string("copy to the host on interp: nobody has written 4 of the 8 bytes; the "
                        "first is byte 12 of allocation #1 of 64 bytes") +
                kUnwrittenFix);
  EXPECT_EQ(stream.copy_to_host(back, x.address() + 60, 4).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(x.copy_to_host(stream, back, 12).ok());
  EXPECT_EQ(back[2], 3);
  EXPECT_TRUE(x.copy_to_host(stream, back, 16, 0, Unwritten::kAllow).ok());
  EXPECT_TRUE(stream.copy_to_host(back, x.address() + 60, 4, Unwritten::kAllow).ok());
}

// A number has no padding, whatever a compiler says of its representations.
template <class T>
void expect_each_byte_needed() {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(sizeof(T)).value();
  for (size_t at = 0; at < sizeof(T); ++at) {
    const Status status = x.download<T>(stream).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << at;
    EXPECT_THAT(status.message(), HasSubstr("nobody has written 1 of the 1 elements"));
    ASSERT_TRUE(x.fill8(stream, 0, 1, at).ok());
  }
  EXPECT_EQ(x.download<T>(stream).value(), std::vector<T>(1));
}

TEST(InterpBackendTest, NumbersAreWrittenWhole) {
  expect_each_byte_needed<float>();
  expect_each_byte_needed<double>();
  expect_each_byte_needed<int32_t>();
}

TEST(InterpBackendTest, PaddingNeedNotBeWritten) {
  struct Padded {
    int32_t a;
    int64_t b;
  };
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(2 * sizeof(Padded)).value();
  const int64_t value = 7;
  for (const size_t at : {size_t{8}, size_t{24}}) {
    ASSERT_EQ(x.download<Padded>(stream).ok(), false);
    ASSERT_TRUE(x.copy_from_host(stream, &value, 8, at).ok());
  }
  EXPECT_EQ(x.download<Padded>(stream).value()[1].b, 7);
}

TEST(InterpBackendTest, StreamsAreDoneWhenTheCallReturns) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(4).value();
  int host = 17;
  ASSERT_TRUE(x.copy_from_host(stream, &host, 4).ok());
  host = 18;
  int back = 0;
  ASSERT_TRUE(x.copy_to_host(stream, &back, 4).ok());
  EXPECT_EQ(back, 17);
  EXPECT_TRUE(stream.done().value());
  EXPECT_NE(stream.handle(), StreamHandle::kDefault);
}

TEST(InterpBackendTest, ReportsAddressesThatAreNotItsOwn) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.default_stream();
  int host = 0;
  EXPECT_EQ(stream.copy_to_device(16, &host, 4).message(),
            "copy to the device on interp failed: 4 bytes at a null pointer plus 16");
  const Status wild = stream.copy_to_host(&host, reinterpret_cast<DeviceAddress>(&host), 4);
  EXPECT_EQ(wild.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(wild.message(), HasSubstr("copy to the host on interp failed: 4 bytes at "));
  EXPECT_THAT(wild.message(), HasSubstr("which belongs to no allocation of this device"));
  DeviceAddress stale = 0;
  {
    Buffer x = device.allocate(100).value();
    stale = x.address();
    EXPECT_EQ(stream.fill8(stale, 1, 101).message(),
              "fill on interp failed: 101 bytes at byte 0 of allocation #1 of 100 bytes, running "
              "1 byte past its end");
    EXPECT_EQ(stream.fill32(stale + 2, 1, 1).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(
      stream.fill32(stale, 1, 1).message(),
      "fill on interp failed: 4 bytes at byte 0 of allocation #1 of 100 bytes, which was freed");
}

TEST(InterpBackendTest, HugeBuffersCostNothing) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.default_stream();
  const size_t bytes = size_t{60} << 30;
  Buffer huge = device.allocate(bytes).value();
  Buffer copy = device.allocate(bytes).value();
  ASSERT_TRUE(huge.fill32(stream, 77, 1, bytes - 4).ok());
  uint32_t last = 0;
  ASSERT_TRUE(huge.copy_to_host(stream, &last, 4, bytes - 4).ok());
  EXPECT_EQ(last, 77u);
  ASSERT_TRUE(huge.fill(stream, 0).ok());
  ASSERT_TRUE(huge.copy_to_host(stream, &last, 4, bytes - 4).ok());
  EXPECT_EQ(last, 0u);
  EXPECT_TRUE(device.interp()->memory().is_initialized(huge.address(), bytes));
}

TEST(InterpBackendTest, HostMemoryOfAbsurdSizeIsAnError) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  for (size_t bytes : {std::numeric_limits<size_t>::max(), size_t{1} << 60}) {
    EXPECT_EQ(device.allocate_pinned(bytes).status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(device.allocate(bytes).status().code(), StatusCode::kResourceExhausted);
  }
}

TEST(InterpBackendTest, LoadsNoMachineCode) {
  const Device device = Device::open("interp").value();
  const Status status = Module::load_ptx(device, "").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "machine code cannot be loaded on interp, which interprets kernels; load it on a cuda "
            "device");
  EXPECT_FALSE(Module::load_cubin(device, {}).ok());
}

TEST(InterpBackendTest, ServesSeveralThreads) {
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = device.create_stream().value();
      for (int i = 0; i < 200; ++i) {
        Buffer buffer = device.allocate(64).value();
        const bool filled = buffer.fill32(stream, static_cast<uint32_t>(t * 1000 + i), 16).ok();
        const std::vector<uint32_t> back = buffer.download<uint32_t>(stream).value();
        if (!filled || back != std::vector<uint32_t>(16, static_cast<uint32_t>(t * 1000 + i))) {
          ++failures[static_cast<size_t>(t)];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
  EXPECT_EQ(device.interp()->memory().allocation_count(), 0u);
}

}  // namespace
}  // namespace heddle::runtime
