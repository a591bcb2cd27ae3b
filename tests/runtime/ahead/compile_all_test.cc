// Many kernels compiled at once.
#include "heddle/runtime/ahead/compile_all.h"

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/host_function.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

auto fill_with(float value) {
  return define_kernel("fill", [value](Tensor<float, 1> y) { y(thread_idx.x) = value; });
}

TEST(CompileAll, ResultsAreInTheOrderOfTheJobsAndAFailureStopsNone) {
  std::vector<decltype(fill_with(0))> kernels;
  for (int i = 0; i < 20; ++i) kernels.push_back(fill_with(static_cast<float>(i) + 0.5f));
  std::vector<CompileJob> jobs;
  for (const auto& kernel : kernels) {
    jobs.push_back(
        {&kernel.source(), {tensor({kAny})}, {.block = {32, 1, 1}, .stage = Stage::kPtx}});
  }
  jobs[7].signature = {tensor({kAny, kAny})};  // of another rank
  jobs[9].source = nullptr;
  for (const int threads : {0, 1, 3, 100}) {
    std::vector<int> counts;
    std::set<std::string> names;
    int failures = 0;
    std::atomic<int> reporting{0};
    const auto compiled =
        compile_all(jobs, {.threads = threads, .on_done = [&](const CompileProgress& progress) {
                             EXPECT_EQ(++reporting, 1) << "two reports at once";
                             std::this_thread::sleep_for(std::chrono::milliseconds(1));
                             counts.push_back(progress.done);
                             names.insert(progress.job);
                             failures += progress.status.ok() ? 0 : 1;
                             EXPECT_EQ(progress.total, 20);
                             EXPECT_GT(progress.seconds, 0);
                             --reporting;
                           }});
    ASSERT_EQ(compiled.size(), 20u);
    for (int i = 0; i < 20; ++i) {
      if (i == 7 || i == 9) continue;
      ASSERT_THAT(compiled[i].status(), IsOk()) << i;
      EXPECT_THAT(ir::print(compiled[i]->trace()), HasSubstr(absl::StrCat("const ", i, ".5"))) << i;
    }
    EXPECT_THAT(std::string(compiled[7].status().message()),
                HasSubstr("the signature gives 2 extents"));
    EXPECT_EQ(std::string(compiled[9].status().message()), "job 9 of compile_all() has no kernel");
    std::vector<int> expected(20);
    for (int i = 0; i < 20; ++i) expected[i] = i + 1;
    EXPECT_EQ(counts, expected);
    EXPECT_EQ(names.size(), 2u);  // "kernel 'fill' (…)" and the one without
    EXPECT_EQ(failures, 2);
  }
  EXPECT_TRUE(compile_all({}).empty());
}

TEST(CompileAll, ThrowsWhatItsCallersThrow) {
  const auto kernel = fill_with(1);
  const std::vector<CompileJob> jobs(
      8, {&kernel.source(), {tensor({kAny})}, {.block = {32, 1, 1}, .stage = Stage::kIr}});
  for (const int threads : {1, 3}) {
    EXPECT_THROW(compile_all(jobs, {.threads = threads,
                                    .on_done =
                                        [](const CompileProgress& p) {
                                          if (p.done == 3) throw std::runtime_error("enough");
                                        }}),
                 std::runtime_error);
  }
}

TEST(CompileAll, UsesTheThreadsThatItIsGiven) {
  const auto kernel = fill_with(1);
  const std::vector<CompileJob> jobs(
      12, {&kernel.source(), {tensor({kAny})}, {.block = {32, 1, 1}, .stage = Stage::kIr}});
  for (const int threads : {1, 2}) {
    std::set<std::thread::id> seen;
    compile_all(jobs, {.threads = threads, .on_done = [&](const CompileProgress&) {
                         seen.insert(std::this_thread::get_id());
                         std::this_thread::yield();
                       }});
    EXPECT_LE(seen.size(), static_cast<size_t>(threads));
    if (threads == 1) {
      EXPECT_EQ(*seen.begin(), std::this_thread::get_id());
    }
  }
}

TEST(CompileAll, LaunchesOfCallsFindTheirKernels) {
  const auto fill = fill_with(3);
  const HostFunction function =
      host_function([&](const Stream& stream, const TensorRef<float, 1>& y) {
        return fill.launch(stream, {.grid = 1, .block = 32}, y);
      });
  const Device device = Device::open("interp").value();
  const Buffer memory = device.allocate(32 * sizeof(float)).value();
  const int64_t extents[] = {32}, strides[] = {1};
  const Argument arguments[] = {tensor_argument(memory.address(), extents, strides, 1, 4)};
  const auto compiled =
      compile_all_calls(device, {{&function, arguments, "fill"}, {nullptr, arguments, "none"}});
  ASSERT_EQ(compiled.size(), 2u);
  ASSERT_THAT(compiled[0].status(), IsOk());
  EXPECT_EQ(compiled[0]->launches, 1);
  EXPECT_EQ(KernelCache::of(fill.source()).size(), 1);
  EXPECT_THAT(function.call(device.default_stream(), arguments), IsOk());
  EXPECT_EQ(KernelCache::of(fill.source()).size(), 1) << "the launch found it";
  EXPECT_EQ(std::string(compiled[1].status().message()),
            "job 1 of compile_all_calls() has no function");
}

}  // namespace
}  // namespace heddle::runtime
