// What of a compilation is shown, and where it goes where several have one name.
#include "heddle/runtime/dump.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::runtime {
namespace {

// A process numbers names once and for all, so every test has names of its own.
class DumpDirTest : public testing::Test {
 protected:
  Dumps of(absl::string_view kernel, absl::string_view arch = "sm_90a") {
    return Dumps(kernel, arch, "", dir_.path());
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(dir_.file(name)).rdbuf();
    return text.str();
  }
  std::set<std::string> files() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  codegen::TempDir dir_;
};

TEST_F(DumpDirTest, EveryCompilationKeepsItsFiles) {
  for (const char* variant : {"first", "second", "third"}) {
    Dumps dumps = of("twin");
    dumps.show("ir", absl::StrCat(variant, " ir"));
    dumps.show("ptx", absl::StrCat(variant, " ptx"));
  }
  of("twin", "sm_80").show("ir", "of another target");
  EXPECT_THAT(files(),
              testing::ElementsAre("twin.sm_80.ir", "twin.sm_90a.1.ir", "twin.sm_90a.1.ptx",
                                   "twin.sm_90a.2.ir", "twin.sm_90a.2.ptx", "twin.sm_90a.ir",
                                   "twin.sm_90a.ptx"));
  EXPECT_EQ(read("twin.sm_90a.ir"), "first ir");
  EXPECT_EQ(read("twin.sm_90a.1.ptx"), "second ptx");
  EXPECT_EQ(read("twin.sm_90a.2.ir"), "third ir");
  EXPECT_EQ(read("twin.sm_80.ir"), "of another target");
}

TEST_F(DumpDirTest, EachFolderIsNumberedByItself) {
  Dumps("apart", "a", "", dir_.file("one")).show("ir", "first");
  Dumps("apart", "a", "", dir_.file("two")).show("ir", "second");
  EXPECT_EQ(read("one/apart.a.ir"), "first");
  EXPECT_EQ(read("two/apart.a.ir"), "second");
}

TEST_F(DumpDirTest, ANumberedNameIsNotTakenTwice) {
  of("num", "a.1").show("ir", "called a.1");
  of("num", "a").show("ir", "first");
  of("num", "a").show("ir", "second");
  EXPECT_EQ(read("num.a.1.ir"), "called a.1");
  EXPECT_EQ(read("num.a.2.ir"), "second");
}

TEST_F(DumpDirTest, ThreadsDoNotMixTheirs) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      Dumps dumps = of("shared");
      dumps.show("ir", absl::StrCat(t));
      dumps.show("ptx", absl::StrCat(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> seen;
  for (int t = 0; t < kThreads; ++t) {
    const std::string stem = t == 0 ? "shared.sm_90a" : absl::StrCat("shared.sm_90a.", t);
    EXPECT_EQ(read(stem + ".ir"), read(stem + ".ptx")) << stem;
    seen.insert(read(stem + ".ir"));
  }
  EXPECT_EQ(seen.size(), size_t{kThreads});
}

TEST_F(DumpDirTest, MakesTheFolderAndWritesBytesAsTheyAre) {
  const std::string folder = dir_.file("new/folder");
  const std::string bytes("a\0b\n", 4);
  Dumps("bytes", "sm_90a", "", folder).show("cubin", bytes, /*binary=*/true);
  EXPECT_EQ(read("new/folder/bytes.sm_90a.cubin"), bytes);
}

TEST(DumpsTest, StderrHasTheNumberOfBytes) {
  Dumps dumps("k", "sm_90a", "", "");
  testing::internal::CaptureStderr();
  dumps.show("ir", "text");
  dumps.show("cubin", "12345", /*binary=*/true);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "--- k: ir ---\ntext\n"
            "--- k: cubin ---\n5 bytes, which a folder receives (HEDDLE_DUMP_DIR)\n");
}

TEST(DumpsTest, TakeTheirStagesFromTheOptionAndFromTheEnvironment) {
  const Dumps none("k", "sm_90a", "", "");
  EXPECT_FALSE(none.wanted("ir"));
  setenv("HEDDLE_DUMP", "trace", 1);
  const Dumps both("k", "sm_90a", "ptx, ir", "");
  unsetenv("HEDDLE_DUMP");
  for (const char* stage : {"trace", "ptx", "ir"}) EXPECT_TRUE(both.wanted(stage)) << stage;
  EXPECT_FALSE(both.wanted("cubin"));
  EXPECT_TRUE(Dumps("k", "sm_90a", "all", "").wanted("cubin"));
  EXPECT_TRUE(check_dump_stages("all").ok() && check_dump_stages("").ok());
  EXPECT_EQ(std::string(check_dump_stages("ir,sass").message()),
            "no stage is called 'sass'; it takes trace, ir, ptx, cubin, constants or all, several "
            "with commas");
}

}  // namespace
}  // namespace heddle::runtime
