// Compile options as text and in the environment.
#include "heddle/runtime/compile_option_text.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string failure(absl::string_view text) {
  CompileOptions options;
  options.opt_level = 1;
  const Status status = read_compile_options(text, options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(print_compile_options(options), "--opt-level=1") << "changed by " << text;
  return std::string(status.message());
}

TEST(CompileOptionText, EveryOptionIsReadAndPrinted) {
  const std::string text =
      "--gpu-arch=sm_80 --passes=O3,-licm --device-checks=on --assembler=ptxas --opt-level=1 "
      "--max-registers=64 --line-info=off --ptxas-flags=--fmad=false,--warn-on-spills "
      "--ptxas='/a folder/ptxas' --ptx-library=/lib.so --allow-slow-wgmma=on --cache=renew "
      "--recall=check --keep=ir,ptx --keep-dir=out";
  CompileOptions options;
  ASSERT_TRUE(read_compile_options(text, options).ok()) << read_compile_options(text, options);
  EXPECT_EQ(options.target, "sm_80");
  EXPECT_EQ(options.passes, "O3,-licm");
  EXPECT_TRUE(options.device_checks);
  EXPECT_EQ(options.assembler, Assembler::kPtxas);
  EXPECT_EQ(options.opt_level, 1);
  EXPECT_EQ(options.max_registers, 64);
  EXPECT_FALSE(options.line_info);
  EXPECT_THAT(options.ptxas_flags, testing::ElementsAre("--fmad=false", "--warn-on-spills"));
  EXPECT_EQ(options.ptxas_path, "/a folder/ptxas");
  EXPECT_EQ(options.ptx_library_path, "/lib.so");
  EXPECT_TRUE(options.allow_slow_wgmma);
  EXPECT_EQ(options.disk_cache, DiskCaching::kRenew);
  EXPECT_EQ(options.recall, Recall::kCheck);
  EXPECT_EQ(options.keep, "ir,ptx");
  EXPECT_EQ(options.keep_dir, "out");
  EXPECT_EQ(print_compile_options(options), text);
  // None was left out above.
  for (const CompileOptionText& row : compile_option_texts()) {
    EXPECT_NE(row.print(options), row.print({})) << row.name;
  }
  EXPECT_EQ(print_compile_options({}), "");
}

TEST(CompileOptionText, BlanksQuotesAndSwitches) {
  CompileOptions options;
  ASSERT_TRUE(read_compile_options("  --device-checks\t--keep-dir=\"it's here\"\n", options).ok());
  EXPECT_TRUE(options.device_checks);
  EXPECT_EQ(options.keep_dir, "it's here");
  EXPECT_EQ(print_compile_options(options), "--device-checks=on --keep-dir=\"it's here\"");
  ASSERT_TRUE(read_compile_options("", options).ok());
  ASSERT_TRUE(read_compile_options("--device-checks=off", options).ok());
  EXPECT_FALSE(options.device_checks);
}

TEST(CompileOptionText, SaysWhatIsWrong) {
  EXPECT_THAT(failure("--opt-levle=2"),
              StartsWith("there is no option '--opt-levle'; did you mean 'opt-level'?; there are "
                         "--gpu-arch, --passes, "));
  EXPECT_EQ(failure("--opt-level=4"), "--opt-level=4: it takes 0|1|2|3");
  EXPECT_EQ(failure("--opt-level"), "--opt-level=: it takes 0|1|2|3");
  EXPECT_EQ(failure("--keep-dir"), "--keep-dir=: it takes FOLDER");
  EXPECT_EQ(failure("--max-registers=-1"), "--max-registers=-1: it takes N");
  EXPECT_EQ(failure("--max-registers=256"), "--max-registers=256: it takes N");
  EXPECT_EQ(failure("--assembler=llvm"), "--assembler=llvm: it takes any|library|ptxas|driver");
  EXPECT_EQ(failure("--line-info=1"), "--line-info=1: it takes off|on");
  EXPECT_EQ(failure("--gpu-arch="), "--gpu-arch=: it takes TARGET");
  EXPECT_EQ(failure("--keep=sass"),
            "--keep=sass: no stage is called 'sass'; it takes trace, ir, ptx, cubin, constants or "
            "all, several with commas");
  EXPECT_EQ(failure("O2"), "'O2' is no option; write --name=value, with blanks between options");
  EXPECT_EQ(failure("--keep-dir='a"), "a quote is not closed");
  // Nothing of a text that is partly wrong.
  EXPECT_THAT(failure("--opt-level=0 --passes=O1 --x"), HasSubstr("'--x'"));
}

class OptionsOfTheEnvironment : public testing::Test {
 protected:
  ~OptionsOfTheEnvironment() override { unsetenv("HEDDLE_OPTIONS"); }
  std::string resolved(const char* text, const CompileOptions& options) {
    setenv("HEDDLE_OPTIONS", text, 1);
    const StatusOr<CompileOptions> result = with_environment(options);
    return result.ok() ? print_compile_options(*result) : std::string(result.status().message());
  }
};

TEST_F(OptionsOfTheEnvironment, FillInWhatAProgramLeavesOpen) {
  EXPECT_EQ(resolved("--opt-level=1 --gpu-arch=sm_80", {}), "--gpu-arch=sm_80 --opt-level=1");
  EXPECT_EQ(resolved("--opt-level=1 --gpu-arch=sm_80", {.target = "sm_90"}),
            "--gpu-arch=sm_90 --opt-level=1");
  EXPECT_EQ(resolved("--opt-level=1 --opt-level=2", {}), "--opt-level=2");
  EXPECT_EQ(resolved("", {.opt_level = 0}), "--opt-level=0");
  unsetenv("HEDDLE_OPTIONS");
  EXPECT_EQ(print_compile_options(*with_environment({.opt_level = 0})), "--opt-level=0");
}

TEST_F(OptionsOfTheEnvironment, MistakesNameTheVariable) {
  EXPECT_EQ(resolved("--opt-level=9", {}), "HEDDLE_OPTIONS: --opt-level=9: it takes 0|1|2|3");
  EXPECT_THAT(resolved("--nothing", {}),
              StartsWith("HEDDLE_OPTIONS: there is no option '--nothing'"));
}

}  // namespace
}  // namespace heddle::runtime
