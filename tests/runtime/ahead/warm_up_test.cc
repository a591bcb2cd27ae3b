// Warm-up lists: recorded by one process, compiled by the next. Kernel objects of the same lambda stand for the kernels of several
// processes.
#include "heddle/runtime/ahead/warm_up.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/dsl.h"
#include "heddle/runtime/ahead/launch_recorder.h"
#include "heddle/runtime/ahead/prepared_call.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/operation/registry.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::atomic<int> traces{0};

// A kernel as each process has it. It asks for extents, so that extents make variants.
auto define(float value = 1) {
  return define_kernel("warm(x[n], y)", [value](Tensor<const float, 1> x, Tensor<float, 1> y) {
    ++traces;
    y(thread_idx.x) = x(thread_idx.x) * value + static_cast<float>(x.fixed_shape(0));
  });
}
using Warm = decltype(define());

class WarmUpTest : public testing::Test {
 protected:
  void SetUp() override {
    traces = 0;
    ASSERT_THAT(record_launches(list_), IsOk());
  }
  void TearDown() override { ASSERT_THAT(record_launches(""), IsOk()); }

  Status launch(const Warm& kernel, int extent, int block = 32, int64_t first = 0) const {
    TensorRef<const float, 1> x(reinterpret_cast<const float*>(x_.address()) + first, {extent});
    TensorRef<float, 1> y(reinterpret_cast<float*>(y_.address()), {extent});
    return kernel.launch(device_.default_stream(), {.block = block}, x, y);
  }
  std::vector<std::string> lines() const {
    std::ifstream file(list_);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  void write(const std::string& text) const {
    std::ofstream(list_, std::ios::binary | std::ios::trunc) << text;
  }
  // What the list says of kernels.
  WarmUpReport warm(std::vector<const ir::KernelSource*> kernels) const {
    const StatusOr<WarmUpReport> report = warm_up(device_, kernels, list_);
    EXPECT_THAT(report, IsOk());
    return report.value_or(WarmUpReport());
  }

  codegen::TempDir temp_;
  const std::string list_ = temp_.file("warm.list");
  Device device_ = Device::open("interp").value();
  Buffer x_ = device_.upload<float>(std::vector<float>(256, 1)).value();
  Buffer y_ = device_.allocate(1024).value();
};

TEST_F(WarmUpTest, LaunchesOfTheNextProcessCompileNothing) {
  {
    const Warm kernel = define();
    for (const int extent : {32, 48, 64, 48}) ASSERT_THAT(launch(kernel, extent), IsOk());
    ASSERT_THAT(launch(kernel, 64, 16), IsOk());
  }
  EXPECT_EQ(traces, 4);
  ASSERT_EQ(lines().size(), 4u) << "a launch that finds its variant writes nothing";
  EXPECT_THAT(
      lines()[0],
      testing::MatchesRegex("kernel warm at=.*warm_up_test.cc:[0-9]+ "
                            "takes=\"x: const f32.n., y: f32..]\" values=[0-9a-f]+ "
                            "target=sm_90a block=32x1x1 cluster=1x1x1 options=\"\" facts=\".*\""));
  EXPECT_THAT(lines()[1], HasSubstr(" extent(0,0)=48 "));
  EXPECT_THAT(lines()[3], HasSubstr(" block=16x1x1 "));

  traces = 0;
  const Warm kernel = define();
  const WarmUpReport report = warm({&kernel.source()});
  EXPECT_EQ(traces, 4);
  EXPECT_EQ(report.lines, 4);
  EXPECT_EQ(report.warmed, 4);
  EXPECT_EQ(report.kernels, 4);
  EXPECT_THAT(report.skipped, IsEmpty());
  EXPECT_THAT(report.failed, IsEmpty());
  EXPECT_EQ(KernelCache::of(kernel.source()).size(), 4);
  for (const int extent : {64, 48, 32}) EXPECT_THAT(launch(kernel, extent), IsOk());
  EXPECT_THAT(launch(kernel, 64, 16), IsOk());
  EXPECT_EQ(traces, 4) << "launches found what was warm";
  EXPECT_EQ(lines().size(), 4u) << "and what was recorded before is not recorded again";
  EXPECT_THAT(launch(kernel, 33), IsOk());
  EXPECT_EQ(traces, 5);

  const WarmUpReport again = warm({&kernel.source()});
  EXPECT_EQ(again.there, 5);
  EXPECT_EQ(again.warmed + again.kernels, 0);
  EXPECT_EQ(traces, 5);
}

TEST_F(WarmUpTest, WhatAKernelWasGivenTellsItFromOthers) {
  for (const float value : {1.0f, 2.0f}) ASSERT_THAT(launch(define(value), 32), IsOk());
  ASSERT_EQ(lines().size(), 2u);
  traces = 0;
  const Warm other = define(3), second = define(2), twin = define(2);
  std::vector<std::string> said;
  const auto report =
      warm_up(device_, std::vector{&other.source(), &second.source(), &twin.source()}, list_,
              {.on_done = [&](const CompileProgress& p) {
                said.push_back(absl::StrCat(p.done, " of ", p.total, ": ", p.job));
              }});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(traces, 2) << "two kernels have the values of the second line, none those of the first";
  EXPECT_EQ(KernelCache::of(other.source()).size(), 0);
  ASSERT_EQ(report->skipped.size(), 1u);
  EXPECT_EQ(report->skipped[0].number, 1);
  EXPECT_EQ(report->skipped[0].what, "kernel warm");
  EXPECT_THAT(report->skipped[0].why, HasSubstr("was made for other values"));
  EXPECT_THAT(said, ElementsAre(StartsWith("1 of 1: kernel 'warm' (")));
  EXPECT_THAT(to_string(*report),
              testing::ContainsRegex("2 lines in [0-9.]+ s: 1 warmed .2 kernels, 0 of them from "
                                     "the disk., 0 there already, 1 skipped, 0 failed\n"
                                     "line 1 skipped, kernel warm: "));
}

// Each kind of line that says nothing to this program, and what is said of it.
TEST_F(WarmUpTest, SkipsWhatItHasNotAndGoesOn) {
  ASSERT_THAT(launch(define(), 32), IsOk());
  const std::string line = lines().at(0);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Case {
    std::string line, why;
  };
  const Case cases[] = {
      {changed("kernel warm", "kernel warmth"),
       "no kernel 'warmth' was given; did you mean 'warm'"},
      {changed("y: f32", "y: f64"), "takes (x: const f32[n], y: f32[?]) by now, and took ("},
      {changed("sm_90a", "sm_80"), "it is for sm_80, and interp takes code for sm_90a"},
      {changed("align(0)=", "align(0)=3"), "no arguments of the kernel have such facts: align(0)"},
      {changed("extent(0,0)=32", "extent(0,0)=-2"), "say no extent of mode 0 of argument 0 ('x')"},
      {changed(" no_overlap(1)=1", ""),
       "no arguments of the kernel have such facts: no_overlap(1)"},
      {changed("align(0)=", "align(7)=16 align(0)="), "such facts: align(7)=16"},
      {changed(" no_overlap(1)=1", " no_overlap(1)=1 no_overlap(1)=1"), "a fact is given twice"},
      {"call warm_nothing", "there is no operation 'warm_nothing'"},
      {"graph of a later version", "knows lines of kernels and of calls alone"},
  };
  std::string text = "# a comment\n\n";
  for (const Case& c : cases) text += c.line + "\n";
  write(text + line + "\n" + line + "\n");
  traces = 0;
  const Warm kernel = define();
  const WarmUpReport report = warm({&kernel.source()});
  EXPECT_EQ(report.warmed, 1);
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(report.lines, static_cast<int>(std::size(cases)) + 1) << "the last one stands twice";
  ASSERT_EQ(report.skipped.size(), std::size(cases));
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(report.skipped[i].number, static_cast<int>(i) + 3);
    EXPECT_THAT(report.skipped[i].why, HasSubstr(cases[i].why)) << cases[i].line;
  }
  EXPECT_THAT(to_json(report), HasSubstr("{\"line\":3,\"what\":\"kernel warmth\",\"why\":\"no "));
}

TEST_F(WarmUpTest, ALineThatDoesNotCompileStopsNoOther) {
  ASSERT_THAT(launch(define(), 32), IsOk());
  std::string line = lines().at(0);
  line.replace(line.find("block=32x"), 9, "block=2048x");
  write(line + "\n" + lines().at(0) + "\n");
  const Warm kernel = define();
  const WarmUpReport report = warm({&kernel.source()});
  EXPECT_EQ(report.warmed, 1);
  ASSERT_EQ(report.failed.size(), 1u);
  EXPECT_EQ(report.failed[0].number, 1);
  EXPECT_EQ(report.failed[0].what, "kernel warm");
  EXPECT_THAT(report.failed[0].why, HasSubstr("2048"));
  EXPECT_THAT(warm_up(device_, std::vector<const ir::KernelSource*>{nullptr}, list_),
              Fails(StatusCode::kInvalidArgument, "a kernel that warm_up() was given is null"));
}

TEST_F(WarmUpTest, RefusesWhatCannotBeRead) {
  write("# mine\nkernel\n");
  EXPECT_THAT(warm_up(device_, {}, list_),
              Fails(StatusCode::kInvalidArgument, list_ + ": line 2 is damaged: "));
  EXPECT_THAT(warm_up(device_, {}, list_ + "x"),
              Fails(StatusCode::kNotFound, "cannot be read: No such file or directory"));
  EXPECT_THAT(warm_up(device_, {}, temp_.path()),
              Fails(StatusCode::kFailedPrecondition, "cannot be read: Is a directory"));
}

// Notes a call of an operation without arguments.
void record(const std::string& name, const std::string& text = "") {
  const Operation operation({.name = name});
  record_call(BoundCall{.operation = &operation, .settings = {{"text", text}}}, {});
}

TEST_F(WarmUpTest, SeveralProcessesWriteOneFile) {
  constexpr int kProcesses = 4, kLines = 200;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    // All write some of the same calls; each opens the file itself.
    bool ok = record_launches(list_).ok();
    for (int i = 0; ok && i < kLines; ++i) {
      record(absl::StrCat("f", i % 2 == 0 ? i : i * 10 + child),
             std::string(static_cast<size_t>(i), 'x'));
    }
    _exit(ok ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto entries = read_warm_list(list_);
  ASSERT_THAT(entries, IsOk());
  EXPECT_EQ(entries->size(), static_cast<size_t>(kLines / 2 + kLines / 2 * kProcesses));
}

TEST_F(WarmUpTest, ThreadsRecordWholeLinesOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) record(absl::StrCat("f", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines().size(), 50u);
  // Another process with the same file, whose last line an editor has left without an end.
  std::string text;
  for (const std::string& line : lines()) text += line + "\n";
  write(text + "# mine");
  ASSERT_THAT(record_launches(list_), IsOk());
  record("f7");
  record("g");
  EXPECT_EQ(lines().size(), 52u);
  EXPECT_EQ(lines().back(), "call g text=\"\"");
  EXPECT_THAT(record_launches(temp_.file("no/list")),
              Fails(StatusCode::kFailedPrecondition, "launches cannot be recorded in '",
                    "No such file or directory; fix: name a file that can be written"));
  record("h");
  EXPECT_EQ(lines().back(), "call h text=\"\"") << "what was recorded before goes on";
  ASSERT_THAT(record_launches(""), IsOk());
  EXPECT_FALSE(launches_are_recorded());
  record("i");
  EXPECT_EQ(lines().back(), "call h text=\"\"");
}

// --- Calls of operations ---

Status run_warm(const Stream& stream, const TensorRef<const float, 1>& x,
                const TensorRef<float, 1>& y) {
  static const auto family = kernel_family(
      "warm_of_family(from, to)", [](int, Tensor<const float, 1> from, Tensor<float, 1> to) {
        ++traces;
        to(thread_idx.x) = from(thread_idx.x);
      });
  return family(static_cast<int>(x.extents[0])).launch(stream, {.block = 32}, x, y);
}

TEST_F(WarmUpTest, CallsAreRecordedInPlaceOfTheirKernelsAndReplayed) {
  const Registered operation({.name = "warm_operation",
                              .summary = "y = x",
                              .arguments = {"x: f32[n]", "y: f32[n]"},
                              .functions = {host_function(run_warm)},
                              .sizes = {{"n", 64}}});
  const auto call_on = [](int64_t n, int64_t stride = 1) {
    return PreparedCall::bind(
        *find_operation("warm_operation"), {},
        {{{"y", {ir::Scalar::kF32, {n}}, {stride}}, {"x", {ir::Scalar::kF32, {n}}, {stride}}}});
  };
  ASSERT_THAT(call_on(64), IsOk());
  ASSERT_THAT(call_on(64)->compile(device_), IsOk());
  ASSERT_THAT(call_on(64)->compile(device_), IsOk());
  ASSERT_THAT(call_on(64, 2)->compile(device_), IsOk());
  EXPECT_THAT(lines(), ElementsAre("call warm_operation x:f32[64]{1} y:f32[64]{1}",
                                   "call warm_operation x:f32[64]{2} y:f32[64]{2}"));
  // As another process: nothing is there for this shape.
  write(
      "call warm_operation x:f32[96]{1} y:f32[96]{1}\n"
      "call warm_operation y:f32[96]{1}\n"
      "call warm_operation y:f32[96]{1} x:f32[97]{1}\n"
      "call warm_operation more=1\n");
  traces = 0;
  const WarmUpReport report = warm({});
  EXPECT_EQ(traces, 1);
  EXPECT_THAT(lines(), Each(StartsWith("call "))) << "nor are their kernels when they are warmed";
  EXPECT_EQ(report.warmed, 1);
  ASSERT_EQ(report.skipped.size(), 3u);
  EXPECT_THAT(report.skipped[0].why, HasSubstr("needs the tensor 'x', f32[96]"));
  EXPECT_THAT(report.skipped[1].why, HasSubstr("takes 97 there, n of 'x'"));
  EXPECT_THAT(report.skipped[2].why, HasSubstr("more"));
  ASSERT_THAT(call_on(96)->compile(device_), IsOk());
  EXPECT_EQ(traces, 1) << "it was compiled";
  EXPECT_EQ(warm({}).there, 1);
}

Status read_results(const Stream& stream, const TensorRef<const float, 1>& x) {
  float first = 0;
  return stream.copy_to_host(&first, reinterpret_cast<uint64_t>(x.data), sizeof(first));
}

TEST_F(WarmUpTest, CallsThatCannotBePreparedSayWhy) {
  const Registered operation({.name = "warm_reader",
                              .summary = "reads",
                              .arguments = {"x: f32[n]"},
                              .functions = {host_function(read_results)},
                              .sizes = {{"n", 64}}});
  write("call warm_reader x:f32[8]{1}\n");
  const WarmUpReport report = warm({});
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_THAT(report.skipped[0].why, HasSubstr("it reads results between its launches"));
  EXPECT_EQ(report.warmed + report.there, 0);

  const CallTensor x{"x", {ir::Scalar::kF32, {8}}, {1}};
  EXPECT_THAT(PreparedCall::bind(*find_operation("warm_reader"), {}, {x, x}),
              Fails(StatusCode::kInvalidArgument, "tensor 'x' is given twice"));
  EXPECT_THAT(PreparedCall::bind(*find_operation("warm_reader"), {}, {{"x", x.shape, {8, 1}}}),
              Fails(StatusCode::kInvalidArgument, "tensor 'x' has 1 extent and 2 strides"));
}

TEST_F(WarmUpTest, KernelsOfOneTextAreToldByTheirPlacesAndTakeTurns) {
  const auto here = [] {
    return define_kernel("twice(x)", [](Tensor<float, 1> x) { x(thread_idx.x) = 1; });
  };
  const auto there = [] {
    return define_kernel("twice(x)", [](Tensor<float, 1> x) { x(thread_idx.x) = 2; });
  };
  for (const int block : {32, 64}) {
    ASSERT_THAT(
        there().launch(device_.default_stream(), {.block = block}, as_tensor<float>(y_, {64})),
        IsOk());
  }
  ASSERT_THAT(here().launch(device_.default_stream(), {.block = 32}, as_tensor<float>(y_, {64})),
              IsOk());
  const auto warmed = [&](const CompileAllOptions& options) {
    const auto a = here(), b = there();
    const auto report = warm_up(device_, std::vector{&a.source(), &b.source()}, list_, options);
    EXPECT_THAT(report, IsOk());
    return report.value_or(WarmUpReport()).kernels;
  };
  const std::string place = identity_of(there().source()).place;
  std::vector<std::string> jobs;
  EXPECT_EQ(warmed({.threads = 1, .on_done = [&](const auto& p) { jobs.push_back(p.job); }}), 3)
      << "each kernel those of its place";
  EXPECT_THAT(jobs,
              ElementsAre(HasSubstr(place), testing::Not(HasSubstr(place)), HasSubstr(place)));
  // The source has got other lines: nobody knows which of the two it was.
  std::string text = lines().at(0) + "\n" + lines().at(1) + "\n";
  while (text.find(place) != std::string::npos)
    text.replace(text.find(place), place.size(), "b.cc:1");
  write(text);
  EXPECT_EQ(warmed({}), 4);
  Device gone = Device::open("interp").value();
  const Device taken = std::move(gone);
  EXPECT_FALSE(warm_up(gone, {}, list_).ok());
}

// --- On the stand-in for the driver ---

class WarmUpOnDriverTest : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    setenv("HEDDLE_CACHE", "", 1);
    setenv("HEDDLE_CACHE_DIR", temp_.path().c_str(), 1);
    fake_->set_kernels("warm");
    traces = 0;
  }
  void TearDown() override {
    EXPECT_TRUE(record_launches("").ok());
    setenv("HEDDLE_CACHE", "off", 1);
    unsetenv("HEDDLE_CACHE_DIR");
    FakeDriverTest::TearDown();
  }
  codegen::TempDir temp_;
};

TEST_F(WarmUpOnDriverTest, AListFillsTheDiskWithoutADeviceAndADeviceTakesItFromThere) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const std::string list = temp_.file("warm.list");
  const Device device = Device::open("cuda:0").value();
  const Buffer x = device.allocate(1024).value(), y = device.allocate(1024).value();
  const auto launch = [&](const Warm& kernel) {
    return kernel.launch(device.default_stream(), {.block = 32}, as_tensor<const float>(x, {64}),
                         as_tensor<float>(y, {64}));
  };
  device.set_launch_options({.disk_cache = DiskCaching::kOff});
  ASSERT_THAT(record_launches(list), IsOk());
  ASSERT_THAT(launch(define()), IsOk());
  device.set_launch_options({});
  ASSERT_THAT(record_launches(""), IsOk());

  const ir::Target& target = *ir::find_target("sm_90a");
  for (const bool again : {false, true}) {
    const Warm kernel = define();
    const auto report = warm_up_disk(target, std::vector{&kernel.source()}, list);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->warmed, again ? 0 : 1);
    EXPECT_EQ(report->there, again ? 1 : 0);
    EXPECT_EQ(KernelCache::of(kernel.source()).size(), 0) << "nothing is loaded";
  }
  traces = 0;
  const Warm kernel = define();
  const auto report = warm_up(device, std::vector{&kernel.source()}, list);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->warmed, 1);
  EXPECT_EQ(report->from_disk, 1);
  ASSERT_THAT(launch(kernel), IsOk());
  EXPECT_EQ(traces, 1);
  setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
  const auto unkept = warm_up_disk(target, std::vector{&kernel.source()}, list);
  unsetenv("HEDDLE_OPTIONS");
  ASSERT_THAT(unkept, IsOk());
  ASSERT_EQ(unkept->failed.size(), 1u);
  EXPECT_THAT(unkept->failed[0].why, HasSubstr("the driver is chosen to assemble kernels, which "
                                               "leaves nothing on the disk; fix: "));
  setenv("HEDDLE_CACHE", "off", 1);
  EXPECT_THAT(warm_up_disk(target, {}, list),
              Fails(StatusCode::kFailedPrecondition, "there is no cache on disk to fill; fix: "));
}

}  // namespace
}  // namespace heddle::runtime
