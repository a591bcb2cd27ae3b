// Where HEDDLE_DUMP_DIR puts what several compilations of one name give.
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
  DumpDirTest() { setenv("HEDDLE_DUMP_DIR", dir_.path().c_str(), 1); }
  ~DumpDirTest() override { unsetenv("HEDDLE_DUMP_DIR"); }

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
    dump("twin", "ir", absl::StrCat(variant, " ir"));
    dump("twin", "ptx", absl::StrCat(variant, " ptx"));
  }
  EXPECT_THAT(files(), testing::ElementsAre("twin.1.ir", "twin.1.ptx", "twin.2.ir", "twin.2.ptx",
                                            "twin.ir", "twin.ptx"));
  EXPECT_EQ(read("twin.ir"), "first ir");
  EXPECT_EQ(read("twin.1.ptx"), "second ptx");
  EXPECT_EQ(read("twin.2.ir"), "third ir");
}

// A kernel that is wrong gives a trace alone; what comes next is of the next compilation.
TEST_F(DumpDirTest, StagesOfOneCompilationStayTogether) {
  dump("part", "trace.ir", "wrong");
  dump("part", "trace.ir", "right");
  dump("part", "ir", "right");
  dump("other_part", "ir", "another kernel");
  dump("part", "ir", "without a trace");
  EXPECT_EQ(read("part.trace.ir"), "wrong");
  EXPECT_EQ(read("part.1.trace.ir"), "right");
  EXPECT_EQ(read("part.1.ir"), "right");
  EXPECT_EQ(read("part.2.ir"), "without a trace");
}

TEST_F(DumpDirTest, ANumberedNameIsNotTakenTwice) {
  dump("num.1", "ir", "called num.1");
  dump("num", "ir", "first");
  dump("num", "ir", "second");
  EXPECT_EQ(read("num.1.ir"), "called num.1");
  EXPECT_EQ(read("num.2.ir"), "second");
}

TEST_F(DumpDirTest, ThreadsDoNotMixTheirs) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      dump("shared", "ir", absl::StrCat(t));
      dump("shared", "ptx", absl::StrCat(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> seen;
  for (int t = 0; t < kThreads; ++t) {
    const std::string stem = t == 0 ? "shared" : absl::StrCat("shared.", t);
    EXPECT_EQ(read(stem + ".ir"), read(stem + ".ptx")) << stem;
    seen.insert(read(stem + ".ir"));
  }
  EXPECT_EQ(seen.size(), size_t{kThreads});
}

}  // namespace
}  // namespace heddle::runtime
