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
#include "heddle/runtime/ahead/fact_arguments.h"
#include "heddle/runtime/ahead/launch_recorder.h"
#include "heddle/runtime/ahead/prepared_call.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/operation/registry.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

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

TEST_F(WarmUpTest, RefusesWhatIsDamagedByItsLine) {
  ASSERT_THAT(launch(define(), 32), IsOk());
  const std::string line = lines().at(0);
  const auto refusal = [&](const std::string& text) {
    const auto entries = parse_warm_list("# first\n" + line + "\n" + text);
    EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument) << text;
    return std::string(entries.status().message());
  };
  EXPECT_EQ(refusal("kernel warm at=x"),
            "line 3 is damaged: it has no 'takes'; fix: delete that line, or record the list anew");
  EXPECT_THAT(refusal(line.substr(0, line.size() - 3)), HasSubstr("a quote is not closed"));
  EXPECT_THAT(refusal(line + " tail"), HasSubstr("'tail' is not of the form name=value"));
  EXPECT_THAT(refusal(line + " at=b"), HasSubstr("'at' is given twice"));
  EXPECT_THAT(refusal(line + " size=b"), HasSubstr("a kernel's line has no 'size'"));
  EXPECT_THAT(refusal("kernel"), HasSubstr("the kernel's name is missing"));
  EXPECT_THAT(refusal(std::string("\0\x01 k", 4)), HasSubstr("it starts with '\\x00\\x01', not"));
  const auto with = [&](const std::string& name, const std::string& value) {
    std::string text = line;
    const size_t at = text.find(" " + name + "=") + name.size() + 2;
    const size_t end = text[at] == '"' ? text.find('"', at + 1) + 1 : text.find(' ', at);
    return refusal(text.replace(at, end - at, value));
  };
  EXPECT_THAT(with("block", "0x1x1"), HasSubstr("'0x1x1' is no block, such as 2x1x1"));
  EXPECT_THAT(with("block", "32"), HasSubstr("'32' is no block"));
  EXPECT_THAT(with("cluster", "1x1xy"), HasSubstr("'1x1xy' is no cluster"));
  EXPECT_THAT(with("values", "7g"), HasSubstr("values are hexadecimal"));
  EXPECT_THAT(with("values", "777"), HasSubstr("values are hexadecimal"));
  EXPECT_THAT(with("options", "\"\\q\""), HasSubstr("is no text"));
  for (const char* const fact : {"align(0)", "align(0,0)=1", "extent(0)=1", "extent(0,256)=1",
                                 "extent(-1,0)=1", "align(0=1", "aligned(0)=1", "align(0)=x"}) {
    EXPECT_THAT(with("facts", fact), HasSubstr(absl::StrCat("'", fact, "' is no fact"))) << fact;
  }
  for (const char* const tensor : {"x", "x:f32", "x:f32[1]", "x:f32[1]{1,1}", "x:f32[a]{1}",
                                   "x:g32[1]{1}", "x:f32[1]{1", ":f32[1]{1}"}) {
    EXPECT_THAT(refusal(absl::StrCat("call f ", tensor)),
                HasSubstr(absl::StrCat("'", tensor, "' is no tensor")));
  }
  EXPECT_THAT(refusal("call f x:f32[1]{1} x:f32[1]{1}"), HasSubstr("'x' is given twice"));
  EXPECT_THAT(refusal("call f a=1 a=2"), HasSubstr("'a=' is given twice"));

  write(line + "\nkernel\n");
  EXPECT_THAT(warm_up(device_, {}, list_),
              Fails(StatusCode::kInvalidArgument, list_ + ": line 2 is damaged: "));
  EXPECT_THAT(warm_up(device_, {}, list_ + "x"),
              Fails(StatusCode::kNotFound, "cannot be read: No such file or directory"));
  EXPECT_THAT(warm_up(device_, {}, temp_.path()),
              Fails(StatusCode::kFailedPrecondition, "cannot be read: Is a directory"));
}

TEST(WarmList, IsReadAsItWasPrinted) {
  KernelLine kernel{.kernel = {.name = "a \"b\"\n", .place = "", .takes = "x: \\", .values = "?"},
                    .target = "sm_80",
                    .block = ir::kBlockOfKernel,
                    .cluster = Dim3(2, 1, 1),
                    .options = "--passes='O1, licm'",
                    .facts = {{{ir::FactKind::kExtent, 3, 2}, 1'000'000'000'000}}};
  CallLine call{
      .operation = "f",
      .settings = {{"a", ""}, {"b", "x:y = \"z\""}},
      .tensors = {{"x", {ir::Scalar::kBF16, {8, 4}}, {-4, 0}}, {"s", {ir::Scalar::kF32, {}}, {}}}};
  EXPECT_EQ(print(call), "call f a=\"\" b=\"x:y = \\\"z\\\"\" x:bf16[8,4]{-4,0} s:f32[]{}");
  const auto entries = parse_warm_list(print(kernel) + "\r\n" + print(call));
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2u);
  const auto& read = std::get<KernelLine>((*entries)[0].content);
  EXPECT_EQ(read.kernel, kernel.kernel);
  EXPECT_EQ(read.block, kernel.block);
  EXPECT_EQ(read.cluster, kernel.cluster);
  EXPECT_EQ(read.facts, kernel.facts);
  EXPECT_EQ(read.options, kernel.options);
  EXPECT_EQ(print(read), print(kernel));
  EXPECT_EQ(print(std::get<CallLine>((*entries)[1].content)), print(call));
}

// Arguments of all kinds: what is made of their facts has these facts.
TEST(FactArguments, HaveTheFactsOfTheArgumentsThatTheyStandFor) {
  const auto kernel = define_kernel(
      "f", [](Tensor<const float, 2>, Tensor<float, 2>, Tensor<float, 1>, Pointer<float>, Int) {});
  const auto params = kernel.source().params();
  for (const char* const name : {"sm_80", "sm_100"}) {
    const ir::Target& target = *ir::find_target(name);
    int seen = 0;
    for (const uint64_t distance : {0, 4, 32, 1 << 20}) {
      for (const int64_t extent : {0, 1, 6, 1 << 30}) {
        for (const int64_t stride : {0, 1, 5, 24, -8}) {
          const int64_t extents[] = {extent, 4}, strides[] = {stride, 1}, turned[] = {1, stride};
          const uint64_t at = uint64_t{1} << 45;
          const Argument arguments[] = {tensor_argument(at, extents, strides, 2, 4),
                                        tensor_argument(at + distance, extents, turned, 2, 4),
                                        tensor_argument(at + 2 * distance, extents, strides, 1, 4),
                                        pointer_argument(at + 8), scalar_argument(7)};
          for (const size_t count : {3, 5}) {  // the pointer shares memory with everything
            const auto facts = all_facts(params.subspan(0, count), {arguments, count}, target);
            const auto made = FactArguments::of(params.subspan(0, count), facts, target);
            ASSERT_THAT(made, IsOk()) << print_facts(facts);
            EXPECT_EQ(all_facts(params.subspan(0, count), made->arguments(), target), facts);
            ++seen;
          }
        }
      }
    }
    EXPECT_EQ(seen, 160);
  }
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
  EXPECT_EQ(report.warmed, 1);
  ASSERT_EQ(report.skipped.size(), 3u);
  EXPECT_THAT(report.skipped[0].why, HasSubstr("needs the tensor 'x', f32[96]"));
  EXPECT_THAT(report.skipped[1].why, HasSubstr("takes 97 there, n of 'x'"));
  EXPECT_THAT(report.skipped[2].why, HasSubstr("more"));
  ASSERT_THAT(call_on(96)->compile(device_), IsOk());
  EXPECT_EQ(traces, 1) << "it was compiled";
  EXPECT_EQ(warm({}).there, 1);
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
  setenv("HEDDLE_CACHE", "off", 1);
  EXPECT_THAT(warm_up_disk(target, {}, list),
              Fails(StatusCode::kFailedPrecondition, "there is no cache on disk to fill; fix: "));
}

}  // namespace
}  // namespace heddle::runtime
