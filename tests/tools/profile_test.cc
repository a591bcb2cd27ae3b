// heddle profile, with a program that answers in the place of Nsight Compute (profiler/fake_ncu.py).
#include "codegen/toolchain/tool_testing.h"
#include "nlohmann/json.hpp"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome profile(Arguments arguments, std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), "profile");
  environment.push_back("HEDDLE_NCU=" HEDDLE_TEST_DATA_DIR "/tools/profiler/fake_ncu.py");
  environment.push_back("HEDDLE_UNDER_TEST=" HEDDLE_COMMAND);
  environment.push_back(absl::StrCat("PATH=", std::getenv("PATH")));
  return heddle_command(arguments, environment);
}

class ProfileTest : public ::testing::Test {
 protected:
  // Lines are those of machine code.
  void SetUp() override {
    if (!codegen::find_tool(codegen::Tool::kPtxas).ok() ||
        !codegen::find_tool(codegen::Tool::kNvdisasm).ok()) {
      GTEST_SKIP() << "it takes ptxas and nvdisasm";
    }
  }
};

TEST_F(ProfileTest, SaysWhatBoundsAKernelAndWhereItWaits) {
  const TempDir dir;
  const std::string file = dir.file("profile.json"), page = dir.file("page.html");
  const Outcome outcome =
      profile({"row_sum", "--shape", "64x1000", "--json", file, "--html", page});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("row_sum: 21.31 us, 8192 blocks of 64 threads, 40 registers"),
                    HasSubstr("device memory 92 %, L2 80 %"),
                    HasSubstr("bound by device memory: 92 % of its peak, so at most 1.09 times"),
                    HasSubstr("(global or local memory, ")));
  const json launch = json::parse(slurp(file))["launches"][0];
  EXPECT_EQ(launch["metrics"]["dram_bytes_s"], 2225813813.81);
  // Every sample is in a line, and each line is of a file.
  int samples = 0;
  for (const json& line : launch["lines"]) {
    samples += line["samples"].get<int>();
    EXPECT_EQ(line["samples"], line["stalls"].value("global or local memory", 0));
    EXPECT_THAT(line["file"].get<std::string>(), HasSubstr("."));
  }
  EXPECT_GT(samples, 50);
  EXPECT_THAT(slurp(page), AllOf(HasSubstr("<!doctype html>"), HasSubstr("bound by device memory"),
                                 Not(HasSubstr("src="))));
}

TEST_F(ProfileTest, ShowsNoLinesOfOtherMachineCode) {
  const Outcome outcome = profile({"row_sum", "--shape", "64x1000"}, {"FAKE_NCU=other code"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("no lines: the machine code that ran is not what"));
}

TEST_F(ProfileTest, SaysWhatFailed) {
  expect_one_line(profile({"row_sum"}, {"FAKE_NCU=fail"}), 1,
                  HasSubstr("fake_ncu.py failed: ==ERROR== ERR_NVGPUCTRPERM"));
  expect_one_line(profile({"row_sum"}, {"FAKE_NCU=none"}), 1, "the profiler saw no kernel");
}

TEST(ProfileOptionsTest, AreCheckedBeforeAnythingRuns) {
  expect_misused(profile({"row_sun"}), HasSubstr("unknown kernel 'row_sun'"));
  expect_misused(profile({"row_sum", "--shape", "8"}), HasSubstr("--shape: '8' has 1 number"));
  expect_misused(profile({"row_sum", "--html", "/no/folder/page.html"}),
                 HasSubstr("/no/folder/page.html"));
  expect_one_line(heddle_command({"profile", "row_sum"}, {"HEDDLE_NCU=/no/ncu"}), 1,
                  "HEDDLE_NCU is /no/ncu, which is no program");
  expect_one_line(heddle_command({"profile", "row_sum"}, {"PATH=/no/folder"}), 1,
                  HasSubstr("there is no ncu in PATH or /usr/local/cuda/bin; fix: install it"));
}

}  // namespace
}  // namespace heddle::tools
