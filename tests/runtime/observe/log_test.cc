// The lines of the log: of compilations, and of why launches waited for one. Times are T.
#include "heddle/runtime/observe/log.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/launch_limits.h"
#include "heddle/runtime/observe/compile_watch.h"
#include "runtime/cuda/fake_driver_test.h"
#include "runtime/observe/observe_testing.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogTest : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    fake_->set_device_count(2);
    fake_->set_kernels("gemm\n");
    setenv("HEDDLE_PTXAS", fake_ptxas(dir_, said_).c_str(), 1);
  }
  void TearDown() override {
    set_log(LogLevel::kOff);
    unsetenv("HEDDLE_PTXAS");
    FakeDriverTest::TearDown();
  }
  // Finds the variant of a launch on 32 elements, or so many, from that address on.
  void find(const TextSource& source, const std::string& device, LaunchShape shape = {.block = 256},
            uint64_t address = 4096, int64_t extent = 32) {
    const int64_t extents[] = {extent}, strides[] = {1};
    const Argument arguments[] = {tensor_argument(address, extents, strides, 1, 4)};
    const Device opened = Device::open(device).value();
    const auto found =
        KernelCache::of(source).find_or_compile(source, opened.backend(), shape, arguments);
    ASSERT_TRUE(found.ok()) << found.status();
  }

  const std::string said_ =
      "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
      "ptxas info    : Function properties for gemm\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers\n";
  const std::string compiled_ =
      "info: kernel 'gemm' (gemm.cc:10) compiled in T ms for sm_90a, block 256x1x1 (trace T, "
      "passes "
      "T, PTX T, assembling T): 64 registers, no spills, 0 bytes of shared memory; 4 blocks and 32 "
      "of 64 warps a multiprocessor, limited by registers; by ptxas 13.0.88";
  codegen::TempDir dir_;
};

TEST_F(LogTest, SaysWhyALaunchWaited) {
  LogLines log(LogLevel::kInfo);
  const TextSource source = store_source();
  find(source, "cuda:0");
  EXPECT_THAT(
      log.take(),
      ElementsAre(compiled_,
                  "info: kernel 'gemm' (gemm.cc:10): a launch on cuda:0 waited T ms for "
                  "variant 1 (compiled in T ms, loaded in T ms): it is the kernel's first"));
  find(source, "cuda:1");
  EXPECT_THAT(log.take(),
              ElementsAre("info: kernel 'gemm' (gemm.cc:10): a launch on cuda:1 waited "
                          "T ms for variant 2 (compiled before, loaded in T ms): variant "
                          "1 would do, which cuda:1 had not loaded"));
  find(source, "cuda:0", {.block = 256}, 4096 + 4, 33);
  EXPECT_THAT(
      log.take(),
      ElementsAre(compiled_,
                  "info: kernel 'gemm' (gemm.cc:10): a launch on cuda:0 waited T ms for "
                  "variant 3 (compiled in T ms, loaded in T ms): argument 0 ('y') starts at a "
                  "multiple of 4 bytes, while for variant 1 it starts at a multiple of 16 "
                  "bytes, and argument 0 ('y') has an odd extent in mode 0, while for variant "
                  "1 it has an extent in mode 0 that 16 divides"));
  // The nearest is named.
  find(source, "cuda:0", {.block = 256}, 4096 + 4, 34);
  EXPECT_EQ(
      log.take()[1],
      "info: kernel 'gemm' (gemm.cc:10): a launch on cuda:0 waited T ms for variant 4 (compiled "
      "in T ms, loaded in T ms): argument 0 ('y') has an extent in mode 0 that 2 divides, while "
      "for variant 3 it has an odd extent in mode 0");
  find(source, "interp");
  EXPECT_THAT(
      log.take(),
      ElementsAre("info: kernel 'gemm' (gemm.cc:10) compiled in T ms for sm_90a, block 256x1x1 "
                  "(trace T, passes T)",
                  "info: kernel 'gemm' (gemm.cc:10): a launch on interp waited T ms for variant 5 "
                  "(compiled in T ms, loaded in T ms): none was for the interpreter"));
}

TEST_F(LogTest, SaysWhichBlockIsNew) {
  const TextSource source = store_source("");
  find(source, "interp", {.block = 64});
  LogLines log(LogLevel::kInfo);
  find(source, "interp", {.block = 32, .cluster = 2});
  EXPECT_EQ(
      log.take()[1],
      "info: kernel 'gemm' (gemm.cc:10): a launch on interp waited T ms for variant 2 (compiled "
      "in T ms, loaded in T ms): it is the first with block 32x1x1, cluster 2x1x1; another has "
      "block 64x1x1");
  // What is there is no news.
  find(source, "interp", {.block = 64});
  EXPECT_THAT(log.take(), IsEmpty());
}

TEST_F(LogTest, SaysThatALaunchWaitedForAnotherThread) {
  const TextSource source = store_source();
  std::atomic<bool> comes{false};
  std::thread second;
  const auto watch = std::make_shared<CompileWatch>();
  watch->on_ir = [&](const Compilation&) {
    second = std::thread([&] {
      comes = true;
      find(source, "interp");
    });
    while (!comes) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  const auto before = watch_compilations(watch);
  LogLines log(LogLevel::kInfo);
  find(source, "interp");
  second.join();
  watch_compilations(before);
  const std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2],
            "info: kernel 'gemm' (gemm.cc:10): a launch on interp waited T ms while another thread "
            "compiled it");
}

TEST_F(LogTest, SaysWhatTheDriverAssembles) {
  setenv("HEDDLE_PTXAS", "/no/ptxas", 1);
  testing::internal::CaptureStderr();  // of the first in a process it is said without a log, too
  LogLines log(LogLevel::kInfo);
  find(store_source(), "cuda:0");
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log.take(),
      ElementsAre("info: kernel 'gemm' (gemm.cc:10) compiled in T ms for sm_90a, block "
                  "256x1x1 (trace T, passes T, PTX T): the driver assembles it when it is "
                  "loaded",
                  "info: kernel 'gemm' (gemm.cc:10): a launch on cuda:0 waited T ms for "
                  "variant 1 (compiled in T ms, loaded in T ms): it is the kernel's first"));
  // What the driver cannot help with is an error, said once.
  setenv("HEDDLE_OPTIONS", "--assembler=ptxas", 1);
  const TextSource source = store_source();
  const Device device = Device::open("cuda:0").value();
  const int64_t extents[] = {32}, strides[] = {1};
  const Argument arguments[] = {tensor_argument(4096, extents, strides, 1, 4)};
  EXPECT_FALSE(KernelCache::of(source)
                   .find_or_compile(source, device.backend(), {.block = 256}, arguments)
                   .ok());
  unsetenv("HEDDLE_OPTIONS");
  EXPECT_THAT(log.take(),
              ElementsAre(testing::StartsWith("error: not compiled: kernel 'gemm' (gemm.cc:10)")));
}

TEST_F(LogTest, ShowsMoreAtFinerLevels) {
  const auto compile = [&](const CompileOptions& options) {
    (void)compile_source(store_source(), {}, options);
  };
  CompileOptions spills{.block = {256, 1, 1}, .target = "sm_90a"};
  codegen::TempDir dir;
  spills.ptxas_path = fake_ptxas(dir);
  LogLines log(LogLevel::kWarning);
  compile(spills);
  const std::vector<std::string> warnings = log.take();
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(
      warnings[0],
      "warning: kernel 'gemm' (gemm.cc:10) needs more than 64 registers a thread, and spills 24 "
      "bytes to memory and loads 20");
  EXPECT_EQ(warnings[1], "warning: kernel 'gemm' (gemm.cc:10): ptxas says: something is odd");
  EXPECT_THAT(warnings[2],
              testing::StartsWith("warning: kernel 'gemm' (gemm.cc:10): ptxas says of gemm.cc:12: "
                                  "Potential Performance Loss: it is slow"));
  spills.block = {2048, 1, 1};
  compile(spills);
  EXPECT_THAT(log.take(),
              ElementsAre(testing::StartsWith("error: not compiled: kernel 'gemm' (gemm.cc:10)")));
  set_log(LogLevel::kError, [](LogLevel, absl::string_view) { ADD_FAILURE(); });
  compile({.block = {256, 1, 1}, .ptxas_path = spills.ptxas_path});
}

TEST_F(LogTest, ShowsLaunchesAndLoadsAtDebug) {
  const TextSource source = store_source();
  LogLines log(LogLevel::kDebug);
  find(source, "cuda:0");
  const std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "debug: kernel 'gemm' (gemm.cc:10): the disk's cache is off");
  EXPECT_THAT(lines[2],
              testing::MatchesRegex("debug: kernel 'gemm' \\(gemm.cc:10\\): cuda:0 loaded "
                                    "[0-9]+ bytes of cubin in T ms"));
  const int64_t extents[] = {32}, strides[] = {1};
  const Argument arguments[] = {tensor_argument(4096, extents, strides, 1, 4)};
  const LaunchShape shape{.grid = 2, .block = 256};
  {
    const Device device = Device::open("cuda:0").value();
    const auto executable =
        KernelCache::of(source).find_or_compile(source, device.backend(), shape, arguments);
    ASSERT_TRUE((*executable)->launch(device.default_stream(), shape, arguments).ok());
    log.take();
    ASSERT_TRUE((*executable)->launch(device.default_stream(), shape, arguments).ok());
    EXPECT_THAT(log.take(),
                ElementsAre("debug: kernel 'gemm' (gemm.cc:10) launched on cuda:0: grid "
                            "2x1x1, block 256x1x1"));
    EXPECT_FALSE(
        (*executable)->launch(device.default_stream(), {.grid = 0, .block = 256}, arguments).ok());
    EXPECT_THAT(log.take(), ElementsAre(testing::StartsWith(
                                "debug: kernel 'gemm' (gemm.cc:10) launched on cuda:0: "
                                "grid 0x1x1, block 256x1x1: kernel 'gemm'")));
    set_log(LogLevel::kInfo, [](LogLevel, absl::string_view) { ADD_FAILURE(); });
    ASSERT_TRUE((*executable)->launch(device.default_stream(), shape, arguments).ok());
  }
}

// Each of a process of its own, in which nobody has asked for the level yet.
std::string printed(const char* level) {
  testing::internal::CaptureStderr();
  setenv("HEDDLE_LOG", level, 1);
  detail::log_level.store(detail::kUnread);
  for (int i = 0; i < 2; ++i) log(LogLevel::kInfo, "one\n  two\nthree");
  unsetenv("HEDDLE_LOG");
  set_log(LogLevel::kOff);
  return testing::internal::GetCapturedStderr();
}

TEST(LogOfTheEnvironment, GoesToStderr) {
  EXPECT_EQ(printed("debug"), "heddle: info: one | two | three\nheddle: info: one | two | three\n");
  EXPECT_EQ(printed("info"), printed("debug"));
  for (const char* less : {"warning", "error", "off", ""}) EXPECT_EQ(printed(less), "");
}

TEST(LogOfTheEnvironment, SaysOnceWhatIsNoLevel) {
  EXPECT_EQ(
      printed("inf"),
      "heddle: HEDDLE_LOG: 'inf' ignored; did you mean 'info'?; it takes off, error, warning, "
      "info, debug\n");
}

// A sink may use the log itself, and is not called under a lock.
TEST(LogSink, MayLog) {
  int calls = 0;
  set_log(LogLevel::kInfo, [&](LogLevel, absl::string_view) {
    if (++calls == 1) log(LogLevel::kInfo, "again");
  });
  log(LogLevel::kInfo, "once");
  log(LogLevel::kOff, "never");
  log(LogLevel::kDebug, "too fine");
  set_log(LogLevel::kOff);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace heddle::runtime
