// What only a GPU can show: machine code runs, the driver's limits are as assumed, and real faults
// are reported as promised.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/device.h"
#include "support/test_device.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

// Kernels by hand, for sm_90 and up, so that this layer is tested without those above it.
//   scale: y[i] = factor * x[i], one element a thread, guarded by n
//   store: p[offset] = 7 from thread 0 of block 0, whatever p is
//   trap:  trap
//   rank:  p[block] = rank of the block in its cluster; rank2 is compiled for clusters of two
//   last:  dynamic shared memory of the block is written at its last word and copied to p
std::string ptx() {
  return R"(.version 7.8
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];

.visible .entry scale(.param .u64 y, .param .u64 x, .param .u32 n, .param .f32 factor) {
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .f32 %f<3>;
  .reg .b64 %d<5>;
  ld.param.u64 %d0, [y];
  ld.param.u64 %d1, [x];
  ld.param.u32 %r0, [n];
  ld.param.f32 %f0, [factor];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p bra done;
  mul.wide.u32 %d2, %r4, 4;
  add.u64 %d3, %d1, %d2;
  add.u64 %d4, %d0, %d2;
  ld.global.f32 %f1, [%d3];
  mul.f32 %f2, %f1, %f0;
  st.global.f32 [%d4], %f2;
done:
  ret;
}

.visible .entry store(.param .u64 p, .param .u64 offset) {
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [p];
  ld.param.u64 %d1, [offset];
  add.u64 %d2, %d0, %d1;
  st.global.u32 [%d2], 7;
  ret;
}

.visible .entry trap() {
  trap;
  ret;
}

.visible .entry rank(.param .u64 p) {
  .reg .b32 %r<2>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [p];
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d2, %d0, %d1;
  mov.u32 %r1, %cluster_ctarank;
  st.global.u32 [%d2], %r1;
  ret;
}

.visible .entry rank2(.param .u64 p) .reqnctapercluster 2, 1, 1 {
  .reg .b32 %r<2>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [p];
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d2, %d0, %d1;
  mov.u32 %r1, %cluster_ctarank;
  st.global.u32 [%d2], %r1;
  ret;
}

.visible .entry last(.param .u64 p, .param .u32 bytes) {
  .reg .b32 %r<4>;
  .reg .b64 %d;
  ld.param.u64 %d, [p];
  ld.param.u32 %r0, [bytes];
  mov.u32 %r1, dynamic;
  add.u32 %r2, %r1, %r0;
  st.shared.u32 [%r2+-4], %r0;
  ld.shared.u32 %r3, [%r2+-4];
  st.global.u32 [%d], %r3;
  ret;
}
)";
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    HEDDLE_SKIP_WITHOUT_GPU();
    if (test_device().info().compute_major < 9) GTEST_SKIP() << "needs a GPU with clusters (sm_90)";
    const StatusOr<Module> module = Module::load_ptx(test_device(), ptx());
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *module;
  }
  Function function(const char* name) const { return module_->function(name).value(); }

  std::optional<Module> module_;
};

struct ScaleParameters {
  DeviceAddress y, x;
  uint32_t n;
  float factor;
};

TEST_F(GpuTest, RunsAKernel) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5f;
  Buffer x = device.upload<float>(values).value();
  Buffer y = device.allocate(x.size_bytes()).value();
  const ScaleParameters parameters{y.address(), x.address(), static_cast<uint32_t>(values.size()),
                                   3.0f};
  const LaunchSite site("scale", "gpu_test.cc", 1);
  const LaunchShape config{.grid = (values.size() + 255) / 256, .block = 256};
  ASSERT_TRUE(
      launch_raw(function("scale"), config, &parameters, sizeof(parameters), &site, &stream).ok());
  const std::vector<float> result = y.download<float>(stream).value();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], values[i] * 3.0f) << i;
}

TEST_F(GpuTest, SaysWhatAKernelNeeds) {
  const FunctionAttributes& attributes = function("scale").attributes();
  EXPECT_GT(attributes.registers, 0);
  EXPECT_EQ(attributes.static_shared_bytes, 0);
  EXPECT_GE(attributes.max_threads_per_block, 256);
  EXPECT_EQ(attributes.required_cluster, Dim3());
  EXPECT_EQ(function("rank2").attributes().required_cluster, Dim3(2));
  EXPECT_EQ(module_->function("nothing").status().code(), StatusCode::kNotFound);
}

TEST_F(GpuTest, AllOfSharedMemoryCanBeUsed) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer p = device.upload<uint32_t>({0}).value();
  const int64_t limit = device.info().limits.max_shared_per_block;
  for (int64_t bytes : {int64_t{1024}, int64_t{100000}, limit}) {
    const struct {
      DeviceAddress p;
      uint32_t bytes;
    } parameters{p.address(), static_cast<uint32_t>(bytes)};
    const Status status =
        launch_raw(function("last"), {.grid = 1, .block = 1, .shared_bytes = bytes}, &parameters,
                   12, nullptr, &stream);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(p.download<uint32_t>(stream).value()[0], static_cast<uint32_t>(bytes));
  }
  EXPECT_EQ(function("last").reserve_dynamic_shared(limit + 1).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(GpuTest, LaunchesClusters) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (uint32_t cluster : {1u, 2u, 4u, 8u, 16u}) {
    Buffer p = device.allocate(32 * 4).value();
    ASSERT_TRUE(p.fill(stream, 0xFF).ok());
    const DeviceAddress address = p.address();
    const LaunchShape config{.grid = 32, .block = 64, .cluster = cluster};
    const Status status =
        launch_raw(function("rank"), config, &address, sizeof(address), nullptr, &stream);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<uint32_t> ranks = p.download<uint32_t>(stream).value();
    for (uint32_t block = 0; block < 32; ++block) EXPECT_EQ(ranks[block], block % cluster);
    EXPECT_GT(function("rank").max_resident_blocks(config).value(), 0);
  }
  Buffer p = device.allocate(32 * 4).value();
  const DeviceAddress address = p.address();
  const Status status =
      launch_raw(function("rank2"), {.grid = 32, .block = 64}, &address, 8, nullptr, &stream);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(p.download<uint32_t>(stream).value()[31], 1u);
}

TEST_F(GpuTest, AClusterThatCannotFitIsRefused) {
  const Device& device = test_device();
  // One block to a multiprocessor, and no part of the chip has 16 of them to spare... unless it
  // has.
  const LaunchShape config{.grid = 16,
                           .block = 1024,
                           .cluster = 16,
                           .shared_bytes = device.info().limits.max_shared_per_block};
  const StatusOr<int64_t> resident = function("rank").max_resident_blocks(config);
  ASSERT_TRUE(resident.ok()) << resident.status();
  Buffer p = device.allocate(64).value();
  const DeviceAddress address = p.address();
  const Status status = launch_raw(function("rank"), config, &address, 8, nullptr);
  EXPECT_EQ(status.ok(), *resident > 0) << status;
  EXPECT_TRUE(device.synchronize().ok());
}

TEST_F(GpuTest, CooperativeGridsAreBounded) {
  const Device& device = test_device();
  Buffer p = device.allocate(1 << 20).value();
  const DeviceAddress address = p.address();
  LaunchShape config{.grid = 1, .block = 1024, .cooperative = true};
  const int64_t resident = function("rank").max_resident_blocks(config).value();
  EXPECT_GE(resident, device.info().sm_count);
  config.grid = resident;
  const Status status = launch_raw(function("rank"), config, &address, 8, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  config.grid = resident + 1;
  EXPECT_THAT(std::string(launch_raw(function("rank"), config, &address, 8, nullptr).message()),
              HasSubstr(absl::StrCat("has ", resident + 1, " blocks, but only ", resident)));
  EXPECT_TRUE(device.synchronize().ok());
}

TEST_F(GpuTest, BadModulesAreErrors) {
  const Device& device = test_device();
  const Status syntax =
      Module::load_ptx(device, absl::StrReplaceAll(ptx(), {{"mul.f32", "mull.f32"}})).status();
  EXPECT_EQ(syntax.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(syntax.message()), HasSubstr("line "));
  EXPECT_FALSE(Module::load_ptx(device, "").ok());
  const Status arch =
      Module::load_ptx(device, absl::StrReplaceAll(ptx(), {{".target sm_90", ".target sm_121"},
                                                           {".version 7.8", ".version 8.8"}}))
          .status();
  EXPECT_FALSE(arch.ok());
  EXPECT_NE(arch.driver_code(), 0) << arch;
  EXPECT_TRUE(device.health().ok());
}

// The rest kills the device, so each runs in a process of its own. It prints its status.
class GpuFaultDeathTest : public GpuTest {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    GpuTest::SetUp();
  }

  // Launches `kernel` among innocent ones, waits, and prints what comes back then and later.
  [[noreturn]] void fault(const char* kernel, DeviceAddress address, DeviceAddress offset) const {
    const Device& device = test_device();
    const Stream stream = device.create_stream().value();
    const Buffer good = device.allocate(1024).value();
    const DeviceAddress innocent[2] = {good.address(), 0};
    const DeviceAddress guilty[2] = {address == 0 ? good.address() : address, offset};
    const LaunchSite before("before", "before.cc", 1);
    const LaunchSite culprit("culprit", "culprit.cc", 2);
    const LaunchShape config{.grid = 1, .block = 1};
    Status status = launch_raw(function("store"), config, innocent, 16, &before, &stream);
    if (status.ok()) status = stream.synchronize();
    if (status.ok()) {
      const bool plain = std::string(kernel) == "trap";
      status = launch_raw(function(kernel), config, plain ? nullptr : guilty, plain ? 0 : 16,
                          &culprit, &stream);
    }
    if (status.ok()) status = stream.synchronize();
    std::fprintf(stderr, "first: %s\nlater: %s\n", std::string(status.message()).c_str(),
                 std::string(device.allocate(16).status().message()).c_str());
    std::fflush(stderr);
    std::exit(status.code() == StatusCode::kAborted ? 0 : 1);
  }
};

MATCHER_P2(ReportsFault, code, call, "") {
  const std::string text(arg);
  const std::string blame =
      "caused by kernel 'culprit' (culprit.cc:2) with grid 1x1x1, block 1x1x1";
  return text.find(absl::StrCat("first: ", call, " failed on cuda:0")) != std::string::npos &&
         text.find(absl::StrCat("(", code, ")")) != std::string::npos &&
         text.find(blame) != std::string::npos &&
         text.find("later: cuda:0 is lost since cuStreamSynchronize reported") !=
             std::string::npos &&
         text.find(blame, text.find("later: ")) != std::string::npos;
}

TEST_F(GpuFaultDeathTest, IllegalAddress) {
  EXPECT_EXIT(fault("store", 0x10, 0), testing::ExitedWithCode(0),
              ReportsFault(700, "cuStreamSynchronize"));
}

TEST_F(GpuFaultDeathTest, MisalignedAddress) {
  EXPECT_EXIT(fault("store", 0, 2), testing::ExitedWithCode(0),
              ReportsFault(716, "cuStreamSynchronize"));
}

TEST_F(GpuFaultDeathTest, Trap) {
  // Which code a trap gets is the driver's choice.
  EXPECT_EXIT(fault("trap", 0, 0), testing::ExitedWithCode(0),
              HasSubstr("caused by kernel 'culprit' (culprit.cc:2)"));
}

TEST_F(GpuFaultDeathTest, LaunchBlockingReportsAtTheLaunch) {
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  EXPECT_EXIT(fault("store", 0x10, 0), testing::ExitedWithCode(0),
              ReportsFault(700, "cuStreamSynchronize for kernel 'culprit' (culprit.cc:2)"));
  unsetenv("HEDDLE_LAUNCH_BLOCKING");
}

}  // namespace
}  // namespace heddle::runtime
