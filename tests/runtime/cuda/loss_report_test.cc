// The file about a lost device, on the stand-in for the driver.
#include "heddle/runtime/cuda/loss_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/toolchain/tool_testing.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/kernel.h"
#include "heddle/runtime/graph/graph.h"
#include "heddle/runtime/launch.h"
#include "nlohmann/json.hpp"
#include "runtime/cuda/fake_driver_test.h"

namespace heddle::runtime::cuda {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class LossReportTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    setenv("HEDDLE_REPORT_DIR", folder_.c_str(), 1);
    setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
  }
  void TearDown() override {
    unsetenv("HEDDLE_REPORT_DIR");
    unsetenv("HEDDLE_OPTIONS");
    FakeDriverTest::TearDown();
  }

  std::vector<std::string> reports() const {
    std::vector<std::string> paths;
    if (!std::filesystem::exists(folder_)) return paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  static mode_t rights(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  static std::string address(const Buffer& buffer, size_t offset = 0) {
    return absl::StrCat("0x", absl::Hex(buffer.address() + offset));
  }

  codegen::TempDir dir_;
  const std::string folder_ = dir_.file("reports");
};

TEST_F(LossReportTest, HasLaunchesWithTheirArguments) {
  fake_->set_kernels("scale\n");
  const auto scale =
      local_kernel("scale(x, y, q, n, a)",
                   [](Tensor<const float, 2> x, Tensor<float, 1> y, Pointer<float> q, Int n,
                      Float a) { y(thread_idx.x) = a * x(thread_idx.x, 0) + q[n]; });
  const Device device = Device::open("cuda:0").value();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(4096).value(), y = device.allocate(256).value();
  StatusOr<Buffer> gone = device.allocate(512);
  float* const freed = reinterpret_cast<float*>(gone->address() + 16);
  const std::string freed_at = absl::StrCat("0x", absl::Hex(gone->address() + 16));
  const auto launch = [&](int n) {
    return scale.launch(stream, {.grid = 3, .block = 32}, as_tensor<const float>(x, {32, 7}),
                        as_tensor<float>(y, {32}), freed, n, 0.5f);
  };
  ASSERT_EQ(launch(1), OkStatus());
  ASSERT_TRUE(stream.synchronize().ok());
  gone = Buffer();
  ASSERT_TRUE(launch(-2).ok());
  EXPECT_TRUE(reports().empty());
  fake_->fault(700);
  const Status status = stream.synchronize();
  ASSERT_EQ(reports().size(), 1u);
  const std::string path = reports()[0];
  EXPECT_THAT(std::string(status.message()),
              EndsWith(absl::StrCat("which reports the access with its line; a report is in '",
                                    path, "'")));
  EXPECT_THAT(
      std::string(device.health().message()),
      EndsWith(absl::StrCat("restart the process to use it again; a report is in '", path, "'")));
  EXPECT_FALSE(device.allocate(8).ok());
  // As where two threads meet the fault.
  EXPECT_EQ(device.cuda()->fail("cuMemFree_v2", Result{719}).driver_code(), 719);
  EXPECT_THAT(std::string(device.health().message()), HasSubstr("cuStreamSynchronize"));
  EXPECT_EQ(reports().size(), 1u) << "once a loss";
  EXPECT_EQ(rights(path), 0600u);
  EXPECT_EQ(rights(folder_), 0700u);

  const Json report = Json::parse(std::ifstream(path));
  EXPECT_EQ(report["process"], getpid());
  EXPECT_EQ(report["error"]["call"], "cuStreamSynchronize");
  EXPECT_EQ(report["error"]["name"], "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(report["error"]["code"], 700);
  EXPECT_EQ(report["error"]["text"], "the fake's text");
  EXPECT_THAT(report["error"]["meaning"], HasSubstr("which reports the access"));
  EXPECT_THAT(report["error"]["cause"], HasSubstr("kernel 'scale' ("));
  EXPECT_EQ(report["device"]["name"], "cuda:0");
  EXPECT_EQ(report["device"]["gpu"], device.info().name);
  EXPECT_EQ(report["environment"]["HEDDLE_REPORT_DIR"], folder_);
  EXPECT_EQ(report["environment"].count("PATH"), 0u);
  EXPECT_EQ(report["allocations"]["count"], 2);
  EXPECT_EQ(report["allocations"]["bytes"], 4096 + 256);

  ASSERT_EQ(report["launches"].size(), 2u);
  EXPECT_EQ(report["launches"][1]["unfinished"], false);
  const Json& newest = report["launches"][0];
  EXPECT_EQ(newest["unfinished"], true);
  EXPECT_EQ(newest["kernel"], "scale");
  EXPECT_THAT(newest["file"], EndsWith("loss_report_test.cc"));
  EXPECT_EQ(newest["grid"], "3x1x1");
  EXPECT_EQ(newest["block"], "32x1x1");
  EXPECT_GT(newest["order"], report["launches"][1]["order"]);
  EXPECT_GT(newest["function"]["registers_per_thread"], 0);
  const Json& arguments = newest["arguments"];
  ASSERT_EQ(arguments.size(), 5u);
  EXPECT_EQ(arguments[0]["name"], "x");
  EXPECT_EQ(arguments[0]["address"], address(x));
  EXPECT_EQ(arguments[0]["extents"], (Json{32, 7}));
  EXPECT_EQ(arguments[1]["extents"], (Json{32}));
  EXPECT_EQ(arguments[2]["address"], freed_at);
  EXPECT_EQ(arguments[2].count("extents"), 0u);
  EXPECT_EQ(arguments[3]["value"], -2);
  EXPECT_EQ(arguments[4]["value"], "0.5");
  EXPECT_EQ(arguments[4]["bits"], "0x3f000000");

  const Json& memory = report["memory"];
  EXPECT_EQ(memory[address(x)],
            (Json{{"allocation", address(x)}, {"bytes", 4096}, {"offset", 0}, {"freed", false}}));
  EXPECT_EQ(memory[freed_at]["freed"], true);
  EXPECT_EQ(memory[freed_at]["offset"], 16);
  EXPECT_EQ(memory[freed_at]["bytes"], 512);
}

// Of machine code that was loaded as such.
TEST_F(LossReportTest, HasTheLastLaunchesThatTheDriverTook) {
  const Device device = Device::open("cuda:0").value();
  const Module module = Module::load_ptx(device, "ptx").value();
  const Function function = module.function("row_sum").value();
  const LaunchSite site("row_sum", "row_sum.cc", 14);
  const auto launch = [&](int64_t grid) {
    const uint64_t block[] = {0x1234, static_cast<uint64_t>(grid)};
    return launch_raw(function, {.grid = grid, .block = 32}, block, 12, &site);
  };
  for (int i = 1; i <= 18; ++i) ASSERT_TRUE(launch(i).ok());
  fake_->fail("cuLaunchKernelEx", 701);
  EXPECT_FALSE(launch(99).ok());
  fake_->fail("cuCtxSynchronize", 719);
  const Status status = device.synchronize();
  ASSERT_EQ(reports().size(), 1u) << status;
  const Json report = Json::parse(std::ifstream(reports()[0]));
  ASSERT_EQ(report["launches"].size(), LossReporter::kLaunches - 1)
      << "the refused one took a place";
  EXPECT_EQ(report["launches"][0]["grid"], "18x1x1");
  EXPECT_EQ(report["launches"].back()["grid"], "4x1x1");
  EXPECT_EQ(report["launches"][0]["parameter_words"], (Json{"0x1234", "0x12"}));
  EXPECT_EQ(report["launches"][0].count("arguments"), 0u);
}

// A recorded launch has not run; one of a graph is known by its name and shape.
TEST_F(LossReportTest, HasGraphsLaunchesOnceTheyRun) {
  for (const bool launched : {false, true}) {
    const Device device = Device::open("cuda:0").value();
    const Stream stream = device.create_stream().value();
    const Module module = Module::load_ptx(device, "ptx").value();
    const Function function = module.function("row_sum").value();
    const LaunchSite site("row_sum", "row_sum.cc", 14);
    const Graph graph =
        Graph::capture(stream, [&](const Stream& s) {
          return launch_raw(function, {.grid = 5, .block = 32}, nullptr, 0, &site, &s);
        }).value();
    if (launched) {
      ASSERT_TRUE(graph.launch(stream).ok());
    }
    fake_->fail("cuCtxSynchronize", 719);
    EXPECT_FALSE(device.synchronize().ok());
    fake_->reset();
    ASSERT_EQ(reports().size(), 1u);
    const Json report = Json::parse(std::ifstream(reports()[0]));
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(report["launches"].size(), launched ? 1u : 0u);
    if (launched) {
      EXPECT_EQ(report["launches"][0]["grid"], "5x1x1");
      EXPECT_EQ(report["launches"][0].count("parameter_words"), 0u);
    }
  }
}

TEST_F(LossReportTest, HasANameOfItsOwn) {
  for (int i = 0; i < 2; ++i) {
    const Device device = Device::open("cuda:0").value();
    fake_->fail("cuCtxSynchronize", 719);
    EXPECT_FALSE(device.synchronize().ok());
    fake_->reset();
  }
  EXPECT_EQ(reports().size(), 2u);
}

TEST_F(LossReportTest, NeverHidesTheError) {
  std::ofstream(folder_) << "no folder";
  const Device device = Device::open("cuda:0").value();
  fake_->fail("cuCtxSynchronize", 719);
  const Status status = device.synchronize();
  EXPECT_EQ(status.driver_code(), 719);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA_ERROR_LAUNCH_FAILED (719)"));
  EXPECT_THAT(
      std::string(status.message()),
      EndsWith(absl::StrCat("; no report: HEDDLE_REPORT_DIR '", folder_, "': Not a directory")));
  EXPECT_FALSE(device.health().ok());
}

TEST_F(LossReportTest, IsWrittenWhereItIsAskedForAlone) {
  for (const char* folder : {"", static_cast<const char*>(nullptr)}) {
    unsetenv("HEDDLE_REPORT_DIR");
    if (folder != nullptr) setenv("HEDDLE_REPORT_DIR", folder, 1);
    const Device device = Device::open("cuda:0").value();
    fake_->fail("cuMemGetInfo_v2", 719);
    EXPECT_THAT(std::string(device.memory_usage().status().message()), Not(HasSubstr("report:")));
    EXPECT_THAT(std::string(device.health().message()), EndsWith("to use it again"));
    fake_->reset();
  }
}

// What does not end the context is no loss.
TEST_F(LossReportTest, IsNotWrittenForErrorsThatPass) {
  const Device device = Device::open("cuda:0").value();
  fake_->fail("cuMemGetInfo_v2", 1);
  EXPECT_FALSE(device.memory_usage().ok());
  EXPECT_TRUE(reports().empty());
}

}  // namespace
}  // namespace heddle::runtime::cuda
