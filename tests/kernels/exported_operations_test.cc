// Libraries of C that operations are exported to, beside Heddle's own launches: on the stand-in for libcuda, which remembers what it
// was asked for, both ask for the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/toolchain/tool_testing.h"
#include "heddle/runtime/ahead/export.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/tools/command/execution.h"
#include "runtime/ahead/exported_library.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using cuda::FakeLaunch;
using testing::ElementsAreArray;
using testing::HasSubstr;

struct Case {
  const char* operation;
  std::map<std::string, std::string> settings;
  Sizes sizes;
};
std::ostream& operator<<(std::ostream& to, const Case& c) { return to << c.operation; }

// One launch; several, with scratch memory and fills; tensor maps; clusters; more than 8 bytes of scalars.
const Case kCases[] = {
    {"softmax", {}, {{"rows", 33}, {"columns", 76}}},
    {"gemm", {}, {{"m", 256}, {"n", 256}, {"k", 128}}},
    {"gemm", {{"dtype", "bf16"}, {"beta", "0.5"}}, {{"m", 40}, {"n", 2048}, {"k", 24}}},
    {"sort_pairs", {}, {{"n", 100000}}},
    {"scan", {}, {{"rows", 2}, {"columns", 100000}}},
    {"histogram", {}, {{"n", 5000}, {"bins", 24}}},
    {"cluster_histogram", {}, {}},
    {"reduce", {{"dim", "first"}}, {{"rows", 3000}, {"columns", 76}}},
    {"topk", {{"k", "5"}}, {{"rows", 33}, {"columns", 7000}}},
    {"layer_norm_backward", {}, {{"rows", 33}, {"columns", 76}}},
};

class ExportTest : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    HEDDLE_NEEDS_TOOL(kPtxas);
    HEDDLE_NEEDS_C_COMPILERS();
  }
  void TearDown() override {
    // Kernels that Heddle has loaded stay so, and with them the device.
    fake_->set_current_context(nullptr);
    fake_->reset();
    unsetenv("HEDDLE_CUDA_LIBRARY");
  }

  // Of what the driver was asked, what makes the device work.
  std::vector<std::string> work() const {
    std::vector<std::string> asked;
    for (const std::string& call : fake_->calls()) {
      for (const char* const what : {"cuLaunchKernelEx", "cuMemset", "cuMemcpy"}) {
        if (call.rfind(what, 0) == 0) asked.push_back(call);
      }
    }
    return asked;
  }
};

class ExportedOperations : public ExportTest, public testing::WithParamInterface<Case> {};

TEST_P(ExportedOperations, AskTheDriverForWhatHeddleAsksIt) {
  const Device device = Device::open("cuda:0").value();
  const Operation& operation = *find_operation(GetParam().operation);
  const BoundCall call =
      bind(operation, operation.resolve(GetParam().settings).value(), {}, GetParam().sizes).value();
  CompileOptions options;
  options.target = "sm_90a";
  const RecordedCall recorded = record_call(call, device.info(), options).value();
  std::vector<std::string> kernels;
  for (const RecordedStep& step : recorded.steps) {
    if (const auto* const launch = std::get_if<RecordedLaunch>(&step))
      kernels.push_back(launch->kernel->ptx.entry);
  }
  fake_->set_kernels(absl::StrJoin(kernels, "\n").c_str());
  fake_->set_parameter_count(8);

  const std::vector<std::string> sizes = [&] {
    std::vector<std::string> names;
    for (const auto& [name, size] : call.sizes) names.push_back(name);
    return names;
  }();
  const ExportedPlan plan{ir::find_target("sm_90a"), call.sizes, recorded};
  const ExportedLibrary library("built", export_calls("built", sizes, {plan}).value());

  tools::DeviceArguments arguments = tools::DeviceArguments::allocate(device, call).value();
  const Stream stream = device.create_stream().value();
  // The fake's kernels write nothing, and what is read is not looked at.
  ASSERT_THAT(call.function->call(stream, arguments.arguments()), IsOk());
  const std::vector<std::string> work_of_heddle = work();
  const std::vector<FakeLaunch> launches_of_heddle = fake_->launches();

  const Buffer workspace = device.allocate(recorded.workspace_bytes).value();
  std::vector<uint64_t> passed = {static_cast<uint64_t>(stream.handle())};
  for (size_t i = 0; i < call.values.size(); ++i) {
    if (call.values[i].argument->is_tensor()) passed.push_back(arguments.arguments()[i].bits);
  }
  std::vector<uint64_t> numbers;
  for (const std::string& name : sizes)
    numbers.push_back(static_cast<uint64_t>(call.sizes.at(name)));
  passed.insert(passed.end(), numbers.begin(), numbers.end());
  passed.push_back(workspace.address());
  passed.push_back(workspace.size_bytes());
  EXPECT_EQ(library.workspace_bytes(numbers), recorded.workspace_bytes);

  fake_->set_current_context(reinterpret_cast<cuda::ContextHandle>(0xC000));  // the device's
  ASSERT_EQ(library.call(passed), 0) << library.error();
  fake_->set_current_context(nullptr);

  std::vector<std::string> twice = work_of_heddle;
  twice.insert(twice.end(), work_of_heddle.begin(), work_of_heddle.end());
  EXPECT_THAT(work(), ElementsAreArray(twice));
  const std::vector<FakeLaunch> all = fake_->launches();
  ASSERT_EQ(all.size(), 2 * launches_of_heddle.size());
  size_t next = 0;
  for (const RecordedStep& step : recorded.steps) {
    const auto* const launch = std::get_if<RecordedLaunch>(&step);
    if (launch == nullptr) continue;
    FakeLaunch ours = all[next], theirs = all[next + launches_of_heddle.size()];
    ++next;
    EXPECT_EQ(ours.kernel, theirs.kernel);
    EXPECT_EQ(ours.config.stream, theirs.config.stream);
    EXPECT_EQ(std::memcmp(&ours.config, &theirs.config, 7 * sizeof(uint32_t)), 0);
    ASSERT_EQ(ours.attributes.size(), theirs.attributes.size());
    for (size_t i = 0; i < ours.attributes.size(); ++i) {
      EXPECT_EQ(ours.attributes[i].id, theirs.attributes[i].id);
      const size_t bytes =
          ours.attributes[i].id == cuda::LaunchAttributeId::kClusterDimension ? 12 : 4;
      EXPECT_EQ(std::memcmp(&ours.attributes[i].value, &theirs.attributes[i].value, bytes), 0);
    }
    // Parameters one by one are kept a byte each, and then the workspace's addresses may differ.
    ASSERT_EQ(ours.parameters.size(), theirs.parameters.size());
    if (launch->kernel->places.empty()) {
      for (const RecordedLaunch::Address& address : launch->addresses) {
        if (address.place.tensor != RecordedPlace::kWorkspace) continue;
        for (FakeLaunch* one : {&ours, &theirs}) {
          std::fill_n(one->parameters.begin() + address.offset, sizeof(uint64_t), uint8_t{0});
        }
      }
      for (const ir::ParamSlot& slot : launch->kernel->layout.slots) {
        EXPECT_EQ(std::memcmp(ours.parameters.data() + slot.offset,
                              theirs.parameters.data() + slot.offset, slot.bytes),
                  0)
            << ours.kernel << ", byte " << slot.offset;
      }
      for (const ir::LaunchSlot& slot : launch->kernel->layout.at_launch) {
        EXPECT_EQ(std::memcmp(ours.parameters.data() + slot.offset,
                              theirs.parameters.data() + slot.offset, slot.bytes),
                  0);
      }
    } else if (recorded.workspace_bytes == 0) {
      EXPECT_EQ(ours.parameters, theirs.parameters);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExportedOperations, testing::ValuesIn(kCases));

// What a library says of calls that it cannot run.
class ExportedErrors : public ExportTest {
 protected:
  // softmax of 33 x 76 and 8 x 64, for sm_90a and sm_80.
  void build() {
    const Operation& operation = *find_operation("softmax");
    std::vector<ExportedPlan> plans;
    for (const Sizes& sizes :
         {Sizes{{"rows", 33}, {"columns", 76}}, Sizes{{"rows", 8}, {"columns", 64}}}) {
      for (const char* const target : {"sm_90a", "sm_80"}) {
        const BoundCall call = bind(operation, operation.resolve({}).value(), {}, sizes).value();
        CompileOptions options;
        options.target = target;
        plans.push_back({ir::find_target(target), call.sizes,
                         record_call(call, info_of(*ir::find_target(target)), options).value()});
        for (const RecordedStep& step : plans.back().call.steps) {
          kernels_ += std::get<RecordedLaunch>(step).kernel->ptx.entry + "\n";
        }
      }
    }
    built_.emplace("soft", export_calls("soft", {"rows", "columns"}, plans).value());
    fake_->set_kernels(kernels_.c_str());
    device_ = Device::open("cuda:0").value();
    x_ = device_->allocate(33 * 76 * 4).value();
    y_ = device_->allocate(33 * 76 * 4).value();
    fake_->set_current_context(reinterpret_cast<cuda::ContextHandle>(0xC000));
  }
  void TearDown() override {
    fake_->set_current_context(nullptr);
    x_.reset();
    y_.reset();
    device_.reset();
    ExportTest::TearDown();
  }
  int64_t run(uint64_t x, uint64_t y, uint64_t rows, uint64_t columns, uint64_t workspace = 0) {
    return built_->call({0, x, y, rows, columns, workspace, 0});
  }

  std::string kernels_;
  std::optional<ExportedLibrary> built_;
  std::optional<Device> device_;
  std::optional<Buffer> x_, y_;
};

TEST_F(ExportedErrors, SayWhatIsWrong) {
  build();
  const uint64_t x = x_->address(), y = y_->address();
  EXPECT_EQ(run(x, y, 33, 76), 0);
  EXPECT_EQ(run(x, y, 8, 64), 0);
  EXPECT_EQ(run(x, y, 33, 64), -1);
  EXPECT_EQ(built_->error(),
            "soft: there is no code for rows=33, columns=64: it was built for rows=33, columns=76; "
            "rows=8, columns=64");
  EXPECT_EQ(run(0, y, 33, 76), -3);
  EXPECT_EQ(built_->error(), "soft: x is NULL");
  EXPECT_EQ(run(x, y + 2, 33, 76), -3);
  EXPECT_THAT(built_->error(), HasSubstr("and has to lie at a multiple of "));
  EXPECT_EQ(run(x, y, 33, 76, 100), -3);
  EXPECT_THAT(built_->error(), HasSubstr("has to lie at a multiple of 256 bytes"));

  fake_->set_device_attribute(cuda::DeviceAttribute::kComputeCapabilityMinor, 3);
  EXPECT_EQ(run(x, y, 33, 76), -2) << "sm_90a is of one chip alone";
  EXPECT_EQ(built_->error(),
            "soft: there is no code for this GPU, of compute capability 9.3: it was built for "
            "sm_90a, sm_80");
  fake_->set_device_attribute(cuda::DeviceAttribute::kComputeCapabilityMajor, 8);
  fake_->set_device_attribute(cuda::DeviceAttribute::kComputeCapabilityMinor, 6);
  EXPECT_EQ(run(x, y, 33, 76), 0) << "code of 8.0 runs on 8.6";

  fake_->fail("cuLaunchKernelEx", 1);
  EXPECT_EQ(run(x, y, 33, 76), 1);
  EXPECT_THAT(built_->error(), HasSubstr("cuLaunchKernelEx failed: "));
  fake_->set_current_context(nullptr);
  EXPECT_EQ(run(x, y, 33, 76), -4);
  EXPECT_EQ(built_->error(),
            "soft: no CUDA context is current: call cudaSetDevice() or cuCtxSetCurrent() first");
}

TEST_F(ExportedErrors, OfTensorsThatAreNotAlignedAsTheirCodeNeeds) {
  build();
  EXPECT_EQ(run(x_->address() + 4, y_->address(), 33, 76), -3) << "it reads 16 bytes at once";
  EXPECT_EQ(run(x_->address(), y_->address() + 4, 33, 76), -3) << "and writes as many";
}

TEST_F(ExportedErrors, OfADriverThatIsMissing) {
  build();
  setenv("HEDDLE_CUDA_LIBRARY", "/no/such/library.so", 1);
  EXPECT_EQ(run(x_->address(), y_->address(), 33, 76), -5);
  EXPECT_THAT(built_->error(), HasSubstr("soft: NVIDIA's driver is not there: "));
  setenv("HEDDLE_CUDA_LIBRARY", library_.c_str(), 1);
  EXPECT_EQ(run(x_->address(), y_->address(), 33, 76), 0) << "the next call tries again";
}

}  // namespace
}  // namespace heddle::runtime
