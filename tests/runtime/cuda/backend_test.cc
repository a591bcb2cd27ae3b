// The CUDA backend on a stand-in for the driver: what it calls, what it reports, what it leaves
// behind.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "heddle/runtime/cuda/cuda_backend.h"
#include "runtime/cuda/fake_driver_test.h"

namespace heddle::runtime::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CudaBackendTest : public FakeDriverTest {};

TEST_F(CudaBackendTest, WithoutADriverTheInterpreterIsNamed) {
  setenv("HEDDLE_CUDA_LIBRARY", "libheddle_no_such_library.so.1", 1);
  const Status status = Device::open("cuda:0").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "libheddle_no_such_library.so.1 not found; fix: install NVIDIA's driver, or name its "
            "library in HEDDLE_CUDA_LIBRARY; the interpreter still works: "
            "Device::open(\"interp\")");
  EXPECT_EQ(Device::cuda_device_count().status(), status);
  EXPECT_TRUE(Device::open("interp").ok());
}

TEST_F(CudaBackendTest, AFileThatIsNoLibraryIsQuoted) {
  setenv("HEDDLE_CUDA_LIBRARY", "/proc/self/cmdline", 1);
  const Status status = Device::open("cuda:0").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/self/cmdline cannot be loaded ("));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the interpreter still works"));
}

TEST_F(CudaBackendTest, AnOldDriverIsToldWhatIsNeeded) {
  setenv("HEDDLE_CUDA_LIBRARY", fresh_name().c_str(), 1);
  fake_->set_version(11040);
  const Status status = Device::open("cuda:0").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "speaks CUDA 11.4, and Heddle needs 12.0 or newer; fix: update the NVIDIA driver to "
          "525 or newer; until then "
          "the interpreter still works"));
  // Nothing is remembered of the failure.
  fake_->set_version(12000);
  EXPECT_TRUE(Device::open("cuda:0").ok());
}

TEST_F(CudaBackendTest, ALibraryThatLacksAFunctionIsRefused) {
  setenv("HEDDLE_CUDA_LIBRARY", beside_program("libfake_cuda_without_launch.so").c_str(), 1);
  const Status status = Device::open("cuda:0").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lacks cuLaunchKernelEx; the interpreter"));
}

TEST_F(CudaBackendTest, ADriverThatDoesNotStartIsTriedAgain) {
  setenv("HEDDLE_CUDA_LIBRARY", fresh_name().c_str(), 1);
  fake_->fail("cuInit", 100);
  const Status none = Device::open("cuda:0").status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_EQ(none.message(),
            "cuInit failed: CUDA_ERROR_NO_DEVICE (100), the fake's text; no GPU is visible: check "
            "nvidia-smi and CUDA_VISIBLE_DEVICES; the interpreter still works: "
            "Device::open(\"interp\")");
  fake_->fail("cuDriverGetVersion", 999);
  EXPECT_THAT(std::string(Device::open("cuda:0").status().message()),
              HasSubstr("does not say its version"));
  fake_->reset();
  EXPECT_TRUE(Device::open("cuda:0").ok());
}

TEST_F(CudaBackendTest, CountsAndOpensDevices) {
  EXPECT_EQ(Device::cuda_device_count().value(), 2);
  const Device first = Device::open("cuda").value();
  EXPECT_EQ(first.name(), "cuda:0");
  EXPECT_EQ(first, Device::open("cuda:0").value());
  const Device second = Device::open("cuda:1").value();
  EXPECT_FALSE(first == second);
  EXPECT_EQ(fake_->live().contexts, 2) << "each context is retained once";
  const Status third = Device::open("cuda:2").status();
  EXPECT_EQ(third.code(), StatusCode::kNotFound);
  EXPECT_EQ(third.message(),
            "cuda:2 does not exist: the driver sees 2 GPUs (CUDA_VISIBLE_DEVICES may hide some); "
            "the interpreter still works: Device::open(\"interp\")");
  fake_->set_device_count(1);
  EXPECT_THAT(std::string(Device::open("cuda:7").status().message()),
              HasSubstr("the driver sees 1 GPU ("));
}

TEST_F(CudaBackendTest, ReadsWhatTheDeviceIs) {
  const DeviceInfo info = Device::open("cuda:0").value().info();
  EXPECT_EQ(info.name, "Fake GPU");
  EXPECT_EQ(info.compute_major, 9);
  EXPECT_EQ(info.compute_minor, 0);
  EXPECT_EQ(info.sm_count, 10);
  EXPECT_EQ(info.max_threads_per_sm, 2048);
  EXPECT_EQ(info.registers_per_sm, 65536);
  EXPECT_EQ(info.shared_per_sm, 233472);
  EXPECT_EQ(info.l2_bytes, 1 << 20);
  EXPECT_EQ(info.total_memory, int64_t{1} << 32);
  EXPECT_TRUE(info.cluster_launch);
  EXPECT_TRUE(info.cooperative_launch);
  EXPECT_EQ(info.driver_version, 13000);
  EXPECT_EQ(info.limits.max_grid_x, 2147483647);
  EXPECT_EQ(info.limits.max_grid_y, 65535);
  EXPECT_EQ(info.limits.max_grid_z, 65535);
  EXPECT_EQ(info.limits.max_block_x, 1024);
  EXPECT_EQ(info.limits.max_block_y, 1024);
  EXPECT_EQ(info.limits.max_block_z, 64);
  EXPECT_EQ(info.limits.max_threads_per_block, 1024);
  EXPECT_EQ(info.limits.max_shared_per_block, 232448);
}

TEST_F(CudaBackendTest, LeavesTheCurrentContextAsItWas) {
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  const std::vector<ContextHandle> states = {nullptr, fake_->foreign_context()};
  for (ContextHandle state : states) {
    fake_->set_current_context(state);
    Buffer buffer = device.upload<int>({1, 2, 3}).value();
    EXPECT_EQ(fake_->current_context(), state);
    ASSERT_TRUE(buffer.fill(stream, 0).ok());
    EXPECT_EQ(fake_->current_context(), state);
    fake_->fail("cuMemsetD8Async", 1);
    EXPECT_FALSE(buffer.fill(stream, 0).ok());
    EXPECT_EQ(fake_->current_context(), state) << "after a failure too";
    fake_->reset();
    buffer = Buffer();
    EXPECT_EQ(fake_->current_context(), state);
  }
  fake_->set_current_context(nullptr);
}

TEST_F(CudaBackendTest, PushesNothingWhereTheContextIsCurrent) {
  const Device device = Device::open("cuda:0").value();
  ContextHandle context = nullptr;
  const DriverApi& api = device.cuda()->api();
  api.primary_ctx_retain(&context, 0);
  fake_->set_current_context(context);
  const int before = fake_->call_count();
  ASSERT_TRUE(device.synchronize().ok());
  std::vector<std::string> calls = fake_->calls();
  calls.erase(calls.begin(), calls.begin() + before);
  EXPECT_THAT(calls, ElementsAre("cuCtxGetCurrent", "cuCtxSynchronize"));
  fake_->set_current_context(nullptr);
  api.primary_ctx_release(0);
}

TEST_F(CudaBackendTest, WorksOnAnyThread) {
  const Device device = Device::open("cuda:0").value();
  Status status = UnknownError("not run");
  std::thread([&] {
    const Stream stream = device.create_stream().value();
    Buffer buffer = device.allocate(64).value();
    status = buffer.fill(stream, 1);
  }).join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CudaBackendTest, StreamsDoNotWaitForTheDefaultStream) {
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  EXPECT_THAT(fake_->calls(), Contains("cuStreamCreate 1"));
}

TEST_F(CudaBackendTest, UnfinishedWorkIsNoError) {
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  Event event = device.create_event().value();
  ASSERT_TRUE(event.record(stream).ok());
  fake_->set_busy(true);
  EXPECT_FALSE(stream.done().value());
  EXPECT_FALSE(event.done().value());
  fake_->set_busy(false);
  EXPECT_TRUE(stream.done().value());
  EXPECT_TRUE(event.done().value());
  EXPECT_EQ(Event::elapsed_ms(event, event).value(), 1.5);
}

TEST_F(CudaBackendTest, OutOfMemoryGivesBackWhatPoolsKeepAndSaysHowMuchThereIs) {
  const Device device = Device::open("cuda:0").value();
  Buffer some = device.allocate(1 << 20).value();
  const int before = fake_->call_count();
  const Status status = device.allocate(size_t{1} << 33).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "cuMemAlloc failed on cuda:0: CUDA_ERROR_OUT_OF_MEMORY (2), the fake's text: 8589934592 "
      "bytes requested, 4293918720 of 4294967296 bytes free; free buffers or make them "
      "smaller");
  EXPECT_EQ(status.driver_code(), 2);
  std::vector<std::string> calls = fake_->calls();
  calls.erase(calls.begin(), calls.begin() + before);
  EXPECT_THAT(
      calls, ElementsAre("cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuMemAlloc_v2 8589934592",
                         "cuDeviceGetDefaultMemPool", "cuMemPoolTrimTo", "cuMemAlloc_v2 8589934592",
                         "cuCtxSynchronize", "cuDeviceGetDefaultMemPool", "cuMemPoolTrimTo",
                         "cuMemAlloc_v2 8589934592", "cuMemGetInfo_v2", "cuGetErrorString",
                         "cuCtxPopCurrent_v2"));
  EXPECT_TRUE(device.health().ok());
  EXPECT_TRUE(device.allocate(1 << 20).ok());
}

class StreamMemoryTest : public CudaBackendTest {
 protected:
  // What the driver was asked to do with memory.
  template <class Body>
  std::vector<std::string> calls_of(Body body) {
    const int before = fake_->call_count();
    body();
    std::vector<std::string> calls = fake_->calls();
    calls.erase(calls.begin(), calls.begin() + before);
    calls.erase(std::remove_if(calls.begin(), calls.end(),
                               [](const std::string& call) {
                                 return call.rfind("cuCtx", 0) == 0 && call != "cuCtxSynchronize";
                               }),
                calls.end());
    return calls;
  }
  const std::string asked_ =
      absl::StrCat("cuDeviceGetAttribute ", static_cast<int>(DeviceAttribute::kMemoryPools));
};

TEST_F(StreamMemoryTest, ComesFromOnePoolThatKeepsIt) {
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  const auto use = [&] {
    Buffer scratch = stream.allocate(1000).value();
    EXPECT_EQ(scratch.size_bytes(), 1000);
    const Buffer moved = std::move(scratch);
    EXPECT_EQ(scratch.address(), 0);
  };
  EXPECT_THAT(calls_of(use),
              ElementsAre(asked_, "cuThreadExchangeStreamCaptureMode 2", "cuMemPoolCreate 0",
                          "cuMemPoolSetAttribute", "cuThreadExchangeStreamCaptureMode 0",
                          "cuMemAllocFromPoolAsync 1000", "cuMemFreeAsync"));
  EXPECT_THAT(calls_of(use), ElementsAre("cuMemAllocFromPoolAsync 1000", "cuMemFreeAsync"));
  EXPECT_THAT(calls_of([&] { EXPECT_EQ(stream.allocate(0)->address(), 0); }), ElementsAre());
}

TEST_F(StreamMemoryTest, IsAllocatedWhileAStreamIsCaptured) {
  fake_->set_capturing(true);
  EXPECT_TRUE(Device::open("cuda:0")->create_stream()->allocate(1000).ok());
}

TEST_F(StreamMemoryTest, RunsOutWhenNothingCanBeGivenBack) {
  const Stream stream = Device::open("cuda:0")->create_stream().value();
  (void)stream.allocate(1);
  EXPECT_THAT(
      calls_of([&] {
        EXPECT_EQ(stream.allocate(size_t{1} << 33).status().code(), StatusCode::kResourceExhausted);
      }),
      ElementsAre("cuMemAllocFromPoolAsync 8589934592", "cuDeviceGetDefaultMemPool",
                  "cuMemPoolTrimTo", "cuMemPoolTrimTo", "cuMemAllocFromPoolAsync 8589934592",
                  "cuCtxSynchronize", "cuDeviceGetDefaultMemPool", "cuMemPoolTrimTo",
                  "cuMemPoolTrimTo", "cuMemAllocFromPoolAsync 8589934592", "cuMemGetInfo_v2",
                  "cuGetErrorString"));
}

TEST_F(StreamMemoryTest, MayOutliveItsStream) {
  Buffer scratch;
  {
    const Stream stream = Device::open("cuda:0")->create_stream().value();
    scratch = stream.allocate(1000).value();
  }
  EXPECT_EQ(fake_->live().streams, 1);
  EXPECT_THAT(calls_of([&] { scratch = Buffer(); }),
              ElementsAre("cuMemFreeAsync", "cuStreamDestroy_v2", "cuMemPoolDestroy",
                          "cuDevicePrimaryCtxRelease_v2"));
}

TEST_F(StreamMemoryTest, IsPlainMemoryWhereADeviceHasNoPools) {
  fake_->set_device_attribute(DeviceAttribute::kMemoryPools, 0);
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  const auto use = [&] { (void)stream.allocate(1000).value(); };
  EXPECT_THAT(calls_of(use), ElementsAre(asked_, "cuMemAlloc_v2 1000", "cuMemFree_v2"));
  EXPECT_THAT(calls_of(use), ElementsAre("cuMemAlloc_v2 1000", "cuMemFree_v2"));
}

TEST_F(StreamMemoryTest, NeedsAPoolThatKeepsIt) {
  fake_->fail("cuMemPoolSetAttribute", 1);
  const Device device = Device::open("cuda:0").value();
  EXPECT_FALSE(device.default_stream().allocate(1).ok());
  EXPECT_EQ(fake_->live().pools, 0);
  EXPECT_THAT(fake_->calls(), Contains("cuThreadExchangeStreamCaptureMode 0"));
}

TEST_F(CudaBackendTest, UnknownCodesAreNamedByTheDriver) {
  const Device device = Device::open("cuda:0").value();
  fake_->fail("cuMemGetInfo_v2", 555);
  const Status status = device.memory_usage().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "cuMemGetInfo failed on cuda:0: CUDA_ERROR_FROM_THE_FUTURE (555), the fake's text");
  fake_->fail("cuMemGetInfo_v2", 556);
  EXPECT_EQ(device.memory_usage().status().message(),
            "cuMemGetInfo failed on cuda:0: unknown error (556), the fake's text");
  fake_->fail("cuGetErrorString", 1);
  fake_->fail("cuMemGetInfo_v2", 1);
  EXPECT_EQ(device.memory_usage().status().message(),
            "cuMemGetInfo failed on cuda:0: CUDA_ERROR_INVALID_VALUE (1); check sizes, addresses "
            "and the shape of the launch");
}

TEST_F(CudaBackendTest, FaultsThatComeOutInADestructorAreKept) {
  const Device device = Device::open("cuda:0").value();
  {
    Buffer buffer = device.allocate(64).value();
    fake_->fault(700);
  }
  const Status status = device.health();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      status.message(),
      "cuda:0 is lost since cuMemFree reported CUDA_ERROR_ILLEGAL_ADDRESS (700), no launch of "
      "this program is unfinished, so a copy or another user of the GPU failed; restart the "
      "process to use it again");
  EXPECT_EQ(device.allocate(0).status(), status);
}

TEST_F(CudaBackendTest, ALostDeviceRefusesEverythingWithoutAskingTheDriver) {
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  Event event = device.create_event().value();
  Buffer buffer = device.allocate(64).value();
  const Module module = Module::load_ptx(device, "ptx").value();
  const Function function = module.function("row_sum").value();
  fake_->fault(716);
  const Status first = stream.synchronize();
  EXPECT_EQ(first.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(first.message()), HasSubstr("CUDA_ERROR_MISALIGNED_ADDRESS (716)"));
  EXPECT_THAT(std::string(first.message()),
              HasSubstr("run the kernel on Device::open(\"interp\")"));

  const int before = fake_->call_count();
  int host = 0;
  const Status later[] = {
      device.health(),
      device.synchronize(),
      device.memory_usage().status(),
      device.allocate(4).status(),
      device.allocate(0).status(),
      device.allocate_pinned(4).status(),
      device.allocate_pinned(0).status(),
      device.create_stream().status(),
      device.create_event().status(),
      stream.synchronize(),
      stream.done().status(),
      stream.wait(event),
      event.record(stream),
      event.done().status(),
      event.synchronize(),
      buffer.fill(stream, 1),
      buffer.fill32(stream, 1, 1),
      buffer.copy_from_host(stream, &host, 4),
      buffer.copy_to_host(stream, &host, 4),
      buffer.copy_from(stream, buffer, 4, 32),
      Module::load_ptx(device, "ptx").status(),
      module.function("copy").status(),
      function.max_resident_blocks({.grid = 1, .block = 32}).status(),
      function.reserve_dynamic_shared(100000),
      launch_raw(function, {.grid = 1, .block = 32}, nullptr, 0, nullptr),
  };
  for (const Status& status : later) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(status, device.health());
  }
  EXPECT_EQ(fake_->call_count(), before);
  EXPECT_TRUE(Device::open("cuda:1").ok()) << "other devices are not affected";
}

TEST_F(CudaBackendTest, TheLossIsSharedByAllHandlesAndEndsWithTheLast) {
  {
    const Device device = Device::open("cuda:0").value();
    fake_->fault(719);
    EXPECT_FALSE(device.synchronize().ok());
    EXPECT_FALSE(Device::open("cuda:0").value().health().ok());
  }
  fake_->reset();
  EXPECT_TRUE(Device::open("cuda:0").value().synchronize().ok());
}

TEST(ErrorTableTest, StickyCodesAreThoseThatTheDriverCallsSo) {
  std::vector<int> sticky;
  for (const ErrorInfo& info : error_table()) {
    if (info.sticky) sticky.push_back(info.code);
    EXPECT_THAT(std::string(info.hint), Not(testing::EndsWith(".")));
    EXPECT_NE(info.status, StatusCode::kOk);
  }
  EXPECT_THAT(sticky, ElementsAre(226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911));
  EXPECT_EQ(OkStatus().driver_code(), 0);
  EXPECT_EQ(InternalError("x").driver_code(), 0);
}

TEST(ErrorTableTest, CallNamesLoseTheirVersion) {
  EXPECT_EQ(call_name("cuMemAlloc_v2"), "cuMemAlloc");
  EXPECT_EQ(call_name("cuInit"), "cuInit");
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
}

}  // namespace
}  // namespace heddle::runtime::cuda
