// heddle build: what it takes of an operation's declaration, and for which architectures its code is.
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "heddle/heddle.h"
#include "heddle/tools/command/commands.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

// y = 1. The input names its sizes in another order than the output.
Status ones_like_turned(const Stream& stream, const TensorRef<const float, 2>&,
                        const TensorRef<float, 2>& y) {
  static const auto kernel = define_kernel(
      "ones_like_turned(y)", [](Tensor<float, 2> t) { t(block_idx.x, thread_idx.x) = 1.0f; });
  return kernel.launch(
      stream, {.grid = static_cast<int>(y.extents[0]), .block = static_cast<int>(y.extents[1])}, y);
}
const Registered registered({.name = "ones_like_turned",
                             .summary = "y = 1",
                             .arguments = {"x: f32[columns, rows]", "y: f32[rows, columns]"},
                             .functions = {host_function(ones_like_turned)},
                             .sizes = {{"rows", 2}, {"columns", 32}}});

class BuildTest : public ::testing::Test {
 protected:
  void SetUp() override { HEDDLE_NEEDS_TOOL(kPtxas); }

  // The contents of ones_like_turned<ending>, built for these architectures.
  std::string built(const std::string& ending, const std::string& targets) {
    BuildOptions options;
    options.choice.kernel = "ones_like_turned";
    options.targets = targets;
    options.folder = dir_.path();
    options.no_library = true;
    options.tvm_ffi = ending == "_tvm_ffi.c";
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(build_kernel(options), Exit::kDone);
    ::testing::internal::GetCapturedStdout();
    return slurp(dir_.file("ones_like_turned" + ending));
  }

  const std::string& folder() const { return dir_.path(); }

 private:
  const TempDir dir_;
};

// The rows of the table of machine code.
int codes(const std::string& source) {
  const size_t begin = source.find("heddle_codes[] = {"), end = source.find("};", begin);
  int count = 0;
  for (size_t at = begin; (at = source.find("\"ones_like_turned", at)) < end; ++at) ++count;
  return count;
}

TEST_F(BuildTest, SizesAreInTheOrderOfTheOutputsAndThenOfTheInputs) {
  EXPECT_THAT(
      built(".h", ""),
      HasSubstr("int ones_like_turned(void* stream, const float* x, float* y, int64_t rows, "
                "int64_t columns, void* workspace, size_t workspace_bytes);"));
}

TEST_F(BuildTest, TvmFfiTakesSizesOfTheShapes) {
  EXPECT_THAT(built("_tvm_ffi.c", ""),
              AllOf(HasSubstr("heddle_extents_0[] = {{1, 0}, {0, 0}};"),
                    HasSubstr("{\"x\", {2, 32, 1}, 2, heddle_extents_0, \"[columns, rows]\"}"),
                    HasSubstr("heddle_extents_1[] = {{0, 0}, {1, 0}};"),
                    HasSubstr("{\"y\", {2, 32, 1}, 2, heddle_extents_1, \"[rows, columns]\"}"),
                    HasSubstr("heddle_size_names[] = {\"rows\", \"columns\"}"),
                    HasSubstr("int __tvm_ffi_ones_like_turned(void* self, ")));
}

TEST_F(BuildTest, EachArchitectureHasCodeOfItsOwn) {
  EXPECT_EQ(codes(built(".c", "sm_90a")), 1);
  EXPECT_EQ(codes(built(".c", "sm_80,sm_90a")), 2);
}

TEST_F(BuildTest, RefusesWhatCannotBeBuilt) {
  const auto refused = [&](const BuildOptions& options) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    EXPECT_NE(build_kernel(options), Exit::kDone);
    ::testing::internal::GetCapturedStdout();
    return ::testing::internal::GetCapturedStderr();
  };
  BuildOptions options;
  options.choice.kernel = "ones_like_turned";
  options.folder = folder();
  options.name = "try";
  EXPECT_THAT(refused(options), HasSubstr("'try' is no name for a function in C"));
  options.name = "";
  setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
  EXPECT_THAT(refused(options), HasSubstr("machine code is needed ahead of time"));
  unsetenv("HEDDLE_OPTIONS");
  setenv("CC", "no_such_compiler -m64", 1);
  EXPECT_THAT(refused(options), HasSubstr("there is no program 'no_such_compiler'"));
  unsetenv("CC");
}

}  // namespace
}  // namespace heddle::tools
