// Libraries of C made of plans that are written by hand. On the stand-in for libcuda, whose memory is the host's: what fills and
// copies did is there to be looked at.
#include "heddle/runtime/ahead/export.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/ahead/exported_library.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using cuda::DeviceAttribute;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr int kX = 0, kY = 1, kWorkspace = RecordedPlace::kWorkspace;

// A launch of a kernel whose machine code is this text.
RecordedLaunch launch_of(const std::string& code) {
  auto kernel = std::make_shared<Compilation>(ir::TraceResult{ir::Kernel("row_sum")});
  kernel->assembly.cubin = code;
  kernel->ptx.entry = "row_sum";
  return {.kernel = std::move(kernel), .shape = {.grid = 1, .block = 32}};
}

RecordedFill byte_of(uint8_t value) { return {.to = {kY}, .value = value, .count = 1}; }

// A plan for x, which is read, and y, which is written.
ExportedPlan plan_of(const char* target, std::vector<RecordedStep> steps, int64_t n = 1) {
  ExportedPlan plan{ir::find_target(target), {{"n", n}}, {}};
  plan.call.steps = std::move(steps);
  const TensorShape shape{ir::Scalar::kU8, {4096}};
  plan.call.tensors = {{.name = "x", .shape = shape, .bytes = 4096},
                       {.name = "y", .shape = shape, .written = true, .bytes = 4096}};
  return plan;
}

ExportedSources sources_of(const std::vector<ExportedPlan>& plans) {
  return export_calls("built", {"n"}, plans).value();
}

class ExportedPlans : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    leaks_expected_ = true;  // libraries keep what they have loaded
    HEDDLE_NEEDS_C_COMPILERS();
    device_ = Device::open("cuda:0").value();
    memory_ = device_->allocate(16384).value();
    std::memset(bytes(0), 0, memory_->size_bytes());
    enter(0);
  }
  void TearDown() override {
    fake_->set_current_context(nullptr);
    memory_.reset();
    device_.reset();
    FakeDriverTest::TearDown();
  }

  // As a program that has made a device's context current.
  void enter(uintptr_t device) {
    fake_->set_current_context(reinterpret_cast<cuda::ContextHandle>(0xC000 + device));
  }
  void set_capability(int major, int minor) {
    fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMajor, major);
    fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMinor, minor);
  }
  uint64_t address(uint64_t offset) const { return memory_->address() + offset; }
  uint8_t* bytes(uint64_t offset) const { return reinterpret_cast<uint8_t*>(address(offset)); }
  // A call with x and y so many bytes behind the memory's beginning.
  int64_t run(const ExportedLibrary& library, uint64_t x, uint64_t y, uint64_t n = 1,
              uint64_t workspace = 0, uint64_t workspace_bytes = 0) const {
    return library.call({0, address(x), address(y), n, workspace, workspace_bytes});
  }
  int64_t modules_loaded() const {
    const std::vector<std::string> calls = fake_->calls();
    return std::count_if(calls.begin(), calls.end(), [](const std::string& call) {
      return call.rfind("cuModuleLoadDataEx", 0) == 0;
    });
  }

  std::optional<Device> device_;
  std::optional<Buffer> memory_;
};

TEST_F(ExportedPlans, FillAndCopyAtTheirOffsets) {
  ExportedPlan plan = plan_of(
      "sm_90",
      {RecordedFill{.to = {kY, 1}, .value = 7, .count = 2},
       RecordedFill{.to = {kWorkspace, 256 + 4}, .value = 0x04030201, .unit_bytes = 4, .count = 2},
       RecordedCopy{.to = {kY, 4}, .from = {kWorkspace, 256 + 6}, .bytes = 3},
       RecordedCopy{.to = {kY, 8}, .from = {kX, 2}, .bytes = 2}});
  plan.call.workspace_bytes = 512;
  const ExportedLibrary library("built", sources_of({plan}));
  std::iota(bytes(0), bytes(8), uint8_t{10});
  ASSERT_EQ(run(library, 0, 4096, 1, address(8192), 512), 0) << library.error();
  EXPECT_THAT(std::vector<uint8_t>(bytes(4096), bytes(4096 + 12)),
              ElementsAre(0, 7, 7, 0, 3, 4, 1, 0, 12, 13, 0, 0));
}

TEST_F(ExportedPlans, RunTheNewestCodeThatTheDeviceTakes) {
  std::vector<ExportedPlan> plans = {
      plan_of("sm_86", {byte_of(86)}), plan_of("sm_80", {byte_of(80)}),
      plan_of("sm_90a", {byte_of(91)}), plan_of("sm_90", {byte_of(90)})};
  // Whichever of them comes first.
  for (int round = 0; round < 2; ++round) {
    const ExportedLibrary library("built", sources_of(plans));
    const auto chosen = [&](int major, int minor) {
      set_capability(major, minor);
      EXPECT_EQ(run(library, 0, 4096), 0) << library.error();
      return int{*bytes(4096)};
    };
    EXPECT_EQ(chosen(8, 0), 80);
    EXPECT_EQ(chosen(8, 6), 86);
    EXPECT_EQ(chosen(8, 9), 86);
    EXPECT_EQ(chosen(9, 0), 91);
    EXPECT_EQ(chosen(9, 3), 90) << "sm_90a is of one chip alone";
    std::reverse(plans.begin(), plans.end());
  }
}

TEST_F(ExportedPlans, LoadCodeAnewWhereTheirDeviceWasReset) {
  const ExportedLibrary library("built", sources_of({plan_of("sm_90", {launch_of("one")})}));
  ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
  fake_->renew_contexts();
  ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
  EXPECT_EQ(modules_loaded(), 2) << "the context's address is the same";
}

TEST_F(ExportedPlans, LoadCodeWhileAStreamIsCaptured) {
  const ExportedLibrary library("built", sources_of({plan_of("sm_90", {launch_of("one")})}));
  ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
  const std::vector<std::string> calls = fake_->calls();
  const auto load = std::find_if(calls.begin(), calls.end(), [](const std::string& call) {
    return call.rfind("cuModuleLoadDataEx", 0) == 0;
  });
  ASSERT_GT(calls.end() - load, 1);
  EXPECT_EQ(load[-1], "cuThreadExchangeStreamCaptureMode 2");
  EXPECT_EQ(load[1], "cuThreadExchangeStreamCaptureMode 0") << "as it was";
}

TEST_F(ExportedPlans, WantAContextWhereNobodyHasInitialisedTheDriver) {
  const ExportedLibrary library("built", sources_of({plan_of("sm_90", {byte_of(1)})}));
  fake_->fail("cuCtxGetCurrent", 3);
  EXPECT_EQ(run(library, 0, 4096), -4);
  EXPECT_THAT(library.error(), HasSubstr("no CUDA context is current"));
}

TEST_F(ExportedPlans, RunNoCodeThatTakesMoreSharedMemoryThanTheDeviceHas) {
  RecordedLaunch large = launch_of("large");
  large.shape.shared_bytes = 160000;
  const ExportedLibrary library("built",
                                sources_of({plan_of("sm_80", {byte_of(80), std::move(large)})}));
  const auto run_on = [&](int minor, int shared_bytes) {
    set_capability(8, minor);
    fake_->set_device_attribute(DeviceAttribute::kMaxSharedMemoryPerBlockOptin, shared_bytes);
    return run(library, 0, 4096);
  };
  EXPECT_EQ(run_on(0, 166912), 0) << library.error();
  *bytes(4096) = 0;
  EXPECT_EQ(run_on(6, 101376), -2);
  EXPECT_THAT(library.error(),
              HasSubstr("160000 bytes of shared memory for a block, and this GPU has 101376"));
  EXPECT_EQ(*bytes(4096), 0) << "nothing was enqueued";
}

TEST_F(ExportedPlans, NeverTakeSharedMemoryFromAKernelThatMayHaveIt) {
  std::vector<RecordedStep> steps;
  for (const int64_t shared_bytes : {60000, 1000, 60000, 70000}) {
    RecordedLaunch launch = launch_of("one");
    launch.shape.shared_bytes = shared_bytes;
    steps.emplace_back(std::move(launch));
  }
  const ExportedLibrary library("built", sources_of({plan_of("sm_90", std::move(steps))}));
  for (int round = 0; round < 2; ++round) ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
  const std::vector<std::string> calls = fake_->calls();
  EXPECT_EQ(std::count_if(
                calls.begin(), calls.end(),
                [](const std::string& call) { return call.rfind("cuFuncSetAttribute", 0) == 0; }),
            2);
}

TEST_F(ExportedPlans, EnqueueNothingWhereCodeCannotBeLoaded) {
  const ExportedLibrary library(
      "built", sources_of({plan_of("sm_90", {byte_of(1), launch_of("one"), launch_of("other")})}));
  fake_->fail("cuModuleLoadDataEx", 2, /*after=*/1);
  EXPECT_EQ(run(library, 0, 4096), 2);
  EXPECT_EQ(*bytes(4096), 0);
  EXPECT_TRUE(fake_->launches().empty());
  const int loaded = fake_->live().modules;
  fake_->reset();
  enter(0);
  fake_->fail("cuModuleGetFunction", 500);
  EXPECT_EQ(run(library, 0, 4096), 500);
  EXPECT_EQ(fake_->live().modules, loaded) << "a module without its kernel is unloaded";
}

TEST_F(ExportedPlans, LoadEachCodeOnceInAContext) {
  // Variants of a kernel have one name.
  const ExportedLibrary library(
      "built",
      sources_of({plan_of("sm_90", {launch_of("one"), launch_of("other"), launch_of("one")})}));
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
    EXPECT_EQ(modules_loaded(), 2);
  }
  const Device second = Device::open("cuda:1").value();
  enter(1);
  ASSERT_EQ(run(library, 0, 4096), 0) << library.error();
  EXPECT_EQ(modules_loaded(), 4);
  EXPECT_EQ(fake_->launches().size(), 9u);
  fake_->set_current_context(nullptr);
}

TEST_F(ExportedPlans, NeedTheWorkspaceOfTheirSizes) {
  std::vector<ExportedPlan> plans = {plan_of("sm_80", {}), plan_of("sm_90", {}),
                                     plan_of("sm_90", {}, 2)};
  plans[0].call.workspace_bytes = 2048;
  plans[1].call.workspace_bytes = 1024;
  plans[2].call.workspace_bytes = 4096;
  const ExportedLibrary library("built", sources_of(plans));
  EXPECT_EQ(library.workspace_bytes({1}), 2048) << "the most of any architecture";
  EXPECT_EQ(library.workspace_bytes({2}), 4096);
  EXPECT_EQ(library.workspace_bytes({3}), 0);

  const uint64_t workspace = address(8192);
  EXPECT_EQ(run(library, 0, 4096, 1, workspace, 1024), 0);
  EXPECT_EQ(run(library, 0, 4096, 1, workspace, 1023), -3);
  EXPECT_EQ(
      library.error(),
      "built: the workspace has 1023 bytes, and 1024 are needed: see built_workspace_bytes()");
  EXPECT_EQ(run(library, 0, 4096, 1, 0, 1024), -3);
  EXPECT_THAT(library.error(), HasSubstr("the workspace has 0 bytes"));
  EXPECT_EQ(run(library, 0, 4096, 1, address(4096 + 3840), 1024), -3);
  EXPECT_EQ(library.error(), "built: y shares memory with the workspace");
}

TEST_F(ExportedPlans, RefuseTensorsThatAreNotAlignedAsTheirCodeNeeds) {
  ExportedPlan plan = plan_of("sm_90", {});
  plan.call.tensors[0].alignment = 16;
  plan.call.tensors[1].alignment = 64;
  const ExportedLibrary library("built", sources_of({plan}));
  EXPECT_EQ(run(library, 16, 4096 + 64), 0);
  EXPECT_EQ(run(library, 4, 4096), -3);
  EXPECT_THAT(library.error(), MatchesRegex("built: x lies at .*, .* a multiple of 16 bytes"));
  EXPECT_EQ(run(library, 0, 4096 + 16), -3);
  EXPECT_THAT(library.error(), MatchesRegex("built: y lies at .*, .* a multiple of 64 bytes"));
}

TEST_F(ExportedPlans, RefuseTensorsThatShareMemoryWithWhatIsWritten) {
  ExportedPlan plan = plan_of("sm_90", {});
  plan.call.tensors[1].bytes = 16;  // y, which is written
  constexpr uint64_t kAtX = 4096;
  {
    const ExportedLibrary library("built", sources_of({plan}));
    for (const int inside : {-15, 0, 2048, 4095}) {
      EXPECT_EQ(run(library, kAtX, kAtX + inside), -3) << inside;
      EXPECT_EQ(library.error(),
                "built: y shares memory with x, and the code is for tensors that do not");
    }
    for (const int outside : {-16, 4096}) {
      EXPECT_EQ(run(library, kAtX, kAtX + outside), 0) << outside;
    }
  }
  plan.call.tensors[1].written = false;
  EXPECT_EQ(run(ExportedLibrary("built", sources_of({plan})), kAtX, kAtX + 2048), 0);
}

TEST_F(ExportedPlans, ThrowWhatWentWrongInCpp) {
  const ExportedLibrary library("built", sources_of({plan_of("sm_90", {launch_of("one")})}), R"cpp(
#include "built.hpp"
    extern "C" int built_thrown(void* stream, const std::uint8_t* x, std::uint8_t* y,
                                std::int64_t n) {
      try {
        built_built::launch(stream, {x, y}, {n});
      } catch (const built_built::Error& error) {
        return error.what() == std::string(built_error()) ? error.code : 9999;
      }
      return 0;
    }
  )cpp");
  const auto thrown = [&](uint64_t n) {
    return library.call("_thrown", {0, address(0), address(4096), n});
  };
  EXPECT_EQ(thrown(1), 0);
  EXPECT_EQ(thrown(2), -1);
  fake_->fail("cuLaunchKernelEx", 1);
  EXPECT_EQ(thrown(1), 1);
}

TEST(Export, RefusesNamesThatAreNone) {
  for (const char* const name : {"", "1a", "a-b", "int", "class", "a b", "heddle_a"}) {
    EXPECT_THAT(export_calls(name, {}, {}),
                Fails(StatusCode::kInvalidArgument, "is no name for a function in C"));
  }
  EXPECT_THAT(export_calls("a", {}, {}), Fails(StatusCode::kInvalidArgument, "no plan is given"));
}

TEST(Export, RefusesPlansThatAreOfNoOneFunction) {
  const auto refused = [](const std::vector<ExportedPlan>& plans,
                          const std::vector<std::string>& sizes = {"n"}) {
    const auto sources = export_calls("built", sizes, plans);
    EXPECT_EQ(sources.status().code(), StatusCode::kInvalidArgument);
    return std::string(sources.status().message());
  };
  const ExportedPlan plan = plan_of("sm_90", {byte_of(1)});
  EXPECT_THAT(refused({}), HasSubstr("nothing to export"));
  EXPECT_THAT(refused({plan}, {"n", "m"}), HasSubstr("does not say the size 'm'"));
  for (const char* const name : {"stream", "workspace", "sizes", "n", "x"}) {
    ExportedPlan other = plan;
    other.call.tensors[1].name = name;
    EXPECT_THAT(refused({other}), HasSubstr(std::string("would be called '") + name));
  }
  ExportedPlan other = plan;
  other.call.tensors[1].name = "new";
  EXPECT_THAT(refused({other}), HasSubstr("'new' is no name for a parameter"));
  other = plan;
  other.call.tensors[1].shape.dtype = ir::Scalar::kF32;
  EXPECT_THAT(refused({plan, other}), HasSubstr("different tensors"));
}

}  // namespace
}  // namespace heddle::runtime
