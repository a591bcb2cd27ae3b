// The operation gemm under all its settings, compared with its reference as `heddle run gemm --check` does it.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/tools/command/check.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/elements.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::tools {
namespace {

using Given = std::map<std::string, std::string>;

bool has_wgmma() {
  const DeviceInfo& info = test_device().info();
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

const runtime::Operation& gemm() { return *runtime::find_operation("gemm"); }

// The choices of a setting.
const std::vector<std::string>& choices(const char* name) {
  for (const runtime::Setting& setting : gemm().spec().settings) {
    if (setting.name == name) return setting.choices;
  }
  static const std::vector<std::string> none;
  return none;
}

// Runs it on numbers from `least` to 1.
void check(const Given& given, const runtime::Sizes& sizes, double least = -1) {
  std::string settings_text;
  for (const auto& [name, value] : given) settings_text += name + "=" + value + " ";
  SCOPED_TRACE(settings_text);
  const StatusOr<Settings> settings = gemm().resolve(given);
  ASSERT_THAT(settings, IsOk());
  const ChosenKernel kernel{&gemm(), *settings, sizes};
  const runtime::BoundCall shapes = runtime::bind(gemm(), *settings, {}, sizes).value();
  std::mt19937 random(5);
  std::uniform_real_distribution<> uniform(least, 1);
  HostArrays inputs;
  for (const runtime::BoundCall::Value& value : shapes.values) {
    if (!value.argument->is_read()) continue;
    HostArray& array = inputs[value.argument->name] = HostArray::allocate(value.shape).value();
    std::vector<double> numbers(array.byte_count /
                                static_cast<size_t>(ir::bytes_of(value.shape.dtype)));
    for (double& number : numbers) number = uniform(random);
    from_doubles(value.shape.dtype, numbers, array.bytes());
  }
  const runtime::BoundCall call = bind_inputs(kernel, inputs).value();
  const StatusOr<Execution> done = execute(test_device(), call, inputs, /*repeat=*/0);
  ASSERT_THAT(done.status(), IsOk());
  const StatusOr<Verdict> verdict = check_results(kernel, inputs, done->outputs);
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_TRUE(verdict->right) << verdict->text;
  // And the same bits again.
  const StatusOr<Execution> again = execute(test_device(), call, inputs, /*repeat=*/0);
  ASSERT_THAT(again.status(), IsOk());
  for (const auto& [name, array] : done->outputs) {
    const HostArray& other = again->outputs.at(name);
    EXPECT_EQ(array.bytes(), other.bytes()) << name;
  }
}

// Of every combination that there is.
void check_types(const char* layout, const runtime::Sizes& sizes, double least = -1) {
  for (const std::string& dtype : choices("dtype")) {
    for (const std::string& out : choices("out")) {
      const Given given = {{"dtype", dtype}, {"out", out}, {"layout", layout}};
      if (gemm().resolve(given).ok()) check(given, sizes, least);
    }
  }
}

TEST(GemmOperation, OfEveryTypeAndLayout) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const std::string& layout : choices("layout")) {
    check_types(layout.c_str(), {{"m", 72}, {"n", 48}, {"k", 80}});
  }
}

TEST(GemmOperation, OfOddExtents) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const std::string& layout : choices("layout")) {
    check_types(layout.c_str(), {{"m", 35}, {"n", 22}, {"k", 18}});
  }
  check_types("tn", {{"m", 1}, {"n", 1}, {"k", 1}});
}

TEST(GemmOperation, OfEveryEpilogue) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const std::string& epilogue : choices("epilogue")) {
    check({{"dtype", "bf16"}, {"epilogue", epilogue}}, {{"m", 130}, {"n", 72}, {"k", 40}});
    check({{"out", "f32"}, {"epilogue", epilogue}, {"alpha", "0.25"}, {"beta", "-2"}},
          {{"m", 70}, {"n", 33}, {"k", 40}});
  }
}

TEST(GemmOperation, OfFactors) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const char* const alpha : {"1", "-0.5", "0"}) {
    for (const char* const beta : {"0", "1", "3"}) {
      check({{"alpha", alpha}, {"beta", beta}, {"layout", "nt"}},
            {{"m", 40}, {"n", 136}, {"k", 24}});
    }
  }
}

// Sums of which the tensor cores lose much, by rounding off or all to one side.
TEST(GemmOperation, OfLongSums) {
  if (!has_wgmma() || test_device().name() == "interp") GTEST_SKIP() << "for a GPU of sm_90a";
  for (const double least : {-1.0, 0.0}) {
    check_types("tn", {{"m", 200}, {"n", 136}, {"k", 4096}}, least);
    check_types("tn", {{"m", 16}, {"n", 264}, {"k", 20000}}, least);
  }
}

}  // namespace
}  // namespace heddle::tools
