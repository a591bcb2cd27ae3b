// `heddle cache`, and what other commands keep there.
#include <filesystem>

#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;

class CacheTest : public ::testing::Test {
 protected:
  Outcome run(const Arguments& arguments) const {
    return heddle_command(arguments,
                          {"HEDDLE_CACHE=", absl::StrCat("HEDDLE_CACHE_DIR=", folder())});
  }
  std::string printed(const Arguments& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
  std::string folder() const { return dir_.file("cache"); }

  codegen::TempDir dir_;
};

TEST_F(CacheTest, HasWhatCommandsCompile) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  EXPECT_EQ(printed({"cache"}),
            absl::StrCat(folder(), "/kernels\n0 entries, 0.0 MiB of 1024.0 MiB\n"));
  const Arguments dump = {"dump", "row_sum", "--stage", "cubin", "-o", dir_.file("a")};
  printed(dump);
  // The kernel, and the version of ptxas.
  EXPECT_THAT(printed({"cache", "info"}), HasSubstr("\n2 entries, 0.0 MiB of 1024.0 MiB\n"));
  const std::string listed = printed({"cache", "list"});
  EXPECT_THAT(listed, ::testing::ContainsRegex(
                          "20..-..-.. +[0-9]+ bytes  row_sum[a-z0-9_]*, sm_90a, ptxas [0-9.]+\n"));
  EXPECT_THAT(listed, ::testing::ContainsRegex("bytes  version of /.*ptxas\n"));
  printed(dump);
  EXPECT_THAT(printed({"cache", "info", "--json"}), HasSubstr("\"entries\": 2"));
  printed({"dump", "row_sum", "--stage", "cubin", "--set", "dtype=bf16", "-o", dir_.file("b")});
  EXPECT_THAT(printed({"cache", "info", "--json"}), HasSubstr("\"entries\": 3"));

  EXPECT_EQ(printed({"cache", "verify"}), "3 entries read, 0 damaged\n");
  for (const auto& file : std::filesystem::directory_iterator(folder() + "/kernels")) {
    if (file.path().extension() == ".heddle") std::filesystem::resize_file(file, 20);
  }
  EXPECT_THAT(printed({"cache", "list"}), HasSubstr("bytes  damaged\n"));
  EXPECT_EQ(printed({"cache", "verify"}), "3 entries read, 3 damaged and deleted\n");
  printed(dump);
  EXPECT_EQ(printed({"cache", "clear"}), "2 entries deleted\n");
  EXPECT_EQ(printed({"cache", "clear", "--json"}), "{\"deleted\": 0}\n");
  EXPECT_EQ(printed({"cache", "list"}), "");
}

// What comes from there is what ptxas made.
TEST_F(CacheTest, GivesTheSameCubin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  std::string made[3];
  for (std::string& cubin : made) {
    // The third one goes without.
    const bool without = &cubin == &made[2];
    const Outcome outcome =
        heddle_command({"dump", "row_sum", "--stage", "cubin", "-o", dir_.file("k")},
                       {without ? "HEDDLE_CACHE=off" : "HEDDLE_CACHE=",
                        absl::StrCat("HEDDLE_CACHE_DIR=", folder())});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::ifstream file(dir_.file("k/row_sum.cubin"), std::ios::binary);
    cubin.assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_FALSE(made[0].empty());
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(made[0], made[2]);
}

TEST_F(CacheTest, SaysWhatIsWrong) {
  expect_one_line(run({"cache", "burn"}), 2, HasSubstr("burn not in {info,list,clear,verify}"));
  std::filesystem::create_directories(folder() + "/kernels");
  std::filesystem::permissions(folder() + "/kernels", std::filesystem::perms::all);
  expect_one_line(run({"cache"}), 1,
                  HasSubstr("/cache/kernels can be written by others; fix: chmod go-w"));
  expect_one_line(heddle_command({"cache"}), 1,
                  HasSubstr("none of HEDDLE_CACHE_DIR, XDG_CACHE_HOME and HOME is set; fix: set "
                            "HEDDLE_CACHE_DIR to a folder of yours"));
}

// A program goes on without a cache, and says so once.
TEST_F(CacheTest, IsDoneWithout) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Outcome outcome =
      heddle_command({"dump", "row_sum", "--stage", "cubin", "-o", dir_.file("k")},
                     {"HEDDLE_CACHE=", "HEDDLE_CACHE_DIR=/proc/nowhere"});
  expect_one_line(
      outcome, 0,
      ::testing::Eq("compiled kernels are not kept for other programs: /proc/nowhere/kernels "
                    "cannot be made: No such file or directory; fix: set HEDDLE_CACHE_DIR to a "
                    "folder of yours"));
}

}  // namespace
}  // namespace heddle::tools
