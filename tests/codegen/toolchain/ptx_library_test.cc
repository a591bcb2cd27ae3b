// The PTX compiler in this process: the thread that it works in, and libraries that are none or fail. That it does what ptxas does is
// tested with ptxas (ptxas_test.cc).
#include "heddle/codegen/toolchain/ptx_library.h"

#include <fenv.h>

#include <chrono>
#include <string>
#include <thread>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/ptxas.h"

namespace heddle::codegen {
namespace {

using testing::HasSubstr;

class FakeLibrary : public testing::Test {
 protected:
  FakeLibrary() {
    options_.arch = "sm_90a";
    options_.library_path = HEDDLE_FAKE_PTX_LIBRARY_13_1;
    options_.assembler = Assembler::kLibrary;
  }
  Status failure(absl::string_view ptx) { return assemble(ptx, options_, &said_).status(); }
  std::string message(absl::string_view ptx) { return std::string(failure(ptx).message()); }

  AssembleOptions options_;
  std::vector<Diagnostic> said_;
};

TEST_F(FakeLibrary, WorksInAThreadThatIsAsAFreshProgramIs) {
  const int before = fegetround();
  fesetround(FE_TOWARDZERO);
  EXPECT_FALSE(failure("tell").ok());
  fesetround(before);
  ASSERT_EQ(said_.size(), 1);
  EXPECT_EQ(said_[0].text,
            "rounding is 1, stack of 64 MiB, SIGTERM blocked 1, SIGSEGV blocked 0, "
            "the program's locale 0");
}

TEST_F(FakeLibrary, IsLeftBehindAtTheTimeout) {
  options_.timeout = std::chrono::milliseconds(20);
  const auto began = std::chrono::steady_clock::now();
  const Status hung = failure("hang");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(300));
  EXPECT_EQ(hung.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(hung.message()), HasSubstr("did not end within"));
  EXPECT_THAT(std::string(hung.message()), HasSubstr(HEDDLE_FAKE_PTX_LIBRARY_13_1));
  // And others work meanwhile.
  options_.timeout = std::chrono::seconds(60);
  EXPECT_EQ(failure("x").code(), StatusCode::kDataLoss);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(500));  // it returns to a job that nobody waits for
}

TEST_F(FakeLibrary, FailuresAreReportedAsThoseOfPtxas) {
  EXPECT_EQ(failure("fail").code(), StatusCode::kUnknown);
  EXPECT_THAT(message("fail"), HasSubstr("ptxas ended with exit code 4 and printed no error"));
  EXPECT_EQ(failure("memory").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(failure("huge").code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(message("x"), HasSubstr("ptxas reported success, but its cubin cannot be used"));
}

TEST_F(FakeLibrary, OfOldAndFaultyVersionsIsRefused) {
  options_.library_path = HEDDLE_FAKE_PTX_LIBRARY_11_8;
  EXPECT_THAT(message("x"), HasSubstr("is version 11.8.0, older than 12.0.0"));
  options_.library_path = HEDDLE_FAKE_PTX_LIBRARY_12_3;
  EXPECT_THAT(message("x"), HasSubstr("is version 12.3.0, which is known to be faulty"));
}

TEST_F(FakeLibrary, IsNotReplacedWhereItIsAskedFor) {
  for (const Assembler assembler : {Assembler::kLibrary, Assembler::kAny}) {
    options_.assembler = assembler;
    options_.library_path = "/nowhere/libnvptxcompiler.so";
    const Status missing = failure("x");
    EXPECT_EQ(missing.code(), StatusCode::kNotFound);
    EXPECT_THAT(
        std::string(missing.message()),
        HasSubstr("libnvptxcompiler.so from the given option (/nowhere/libnvptxcompiler.so) "
                  "cannot be used: /nowhere does not exist"));
  }
}

TEST_F(FakeLibrary, FilesThatAreNoneAreRefused) {
  const TempDir temp;
  options_.library_path = write_file(temp.file("text.so"), "no library");
  EXPECT_EQ(failure("x").code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(message("x"), HasSubstr("it cannot be loaded: "));
  // A library, but another one.
  options_.library_path = HEDDLE_OTHER_LIBRARY;
  EXPECT_EQ(failure("x").code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(message("x"), HasSubstr("is no PTX compiler: it lacks nvPTXCompilerGetVersion"));
}

// What is loaded cannot be taken back: the version would be that of the new file, and the code the old one's.
TEST_F(FakeLibrary, ThatIsReplacedIsNoLongerUsed) {
  const TempDir temp;
  options_.library_path = temp.file("lib.so");
  std::filesystem::copy_file(HEDDLE_FAKE_PTX_LIBRARY_13_1, options_.library_path);
  EXPECT_EQ(failure("x").code(), StatusCode::kDataLoss);
  std::filesystem::remove(options_.library_path);
  std::filesystem::copy_file(HEDDLE_FAKE_PTX_LIBRARY_11_8, options_.library_path);
  EXPECT_EQ(failure("x").code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(message("x"),
              HasSubstr("was replaced after this program had loaded it; start it again"));
}

TEST_F(FakeLibrary, ThatOthersCanWriteIsNotLoaded) {
  const TempDir temp;
  options_.library_path = temp.file("lib.so");
  std::filesystem::copy_file(HEDDLE_FAKE_PTX_LIBRARY_13_1, options_.library_path);
  chmod(options_.library_path.c_str(), 0600);  // executable it need not be
  EXPECT_EQ(failure("x").code(), StatusCode::kDataLoss);
  chmod(options_.library_path.c_str(), 0666);
  EXPECT_EQ(failure("x").code(), StatusCode::kPermissionDenied);
}

TEST(PtxLibrary, IsFoundInTheFoldersOfLibraries) {
  const TempDir temp;
  std::filesystem::create_directories(temp.file("lib"));
  std::filesystem::copy_file(HEDDLE_FAKE_PTX_LIBRARY_13_1, temp.file("lib/libnvptxcompiler.so"));
  ToolSearch search;
  search.roots = {{"there", temp.path()}};
  search.path_variable = temp.file("lib");  // is for programs
  StatusOr<ToolLocation> found = find_tool(Tool::kPtxLibrary, search);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, temp.file("lib/libnvptxcompiler.so"));
  EXPECT_EQ(found->version.to_string(), "13.1.0");
  search.roots.clear();
  EXPECT_THAT(std::string(find_tool(Tool::kPtxLibrary, search).status().message()),
              HasSubstr("libnvptxcompiler.so was not found; make it with Heddle's "
                        "tools/ptx_library.sh and set HEDDLE_PTX_LIBRARY to its absolute path"));
}

// What is asked of a program is not given to the library; and where neither is there, it is ptxas that one reads of.
TEST(PtxLibrary, GivesWayToAProgramThatIsAskedFor) {
  AssembleOptions options;
  options.arch = "sm_90a";
  const TempDir temp;
  options.ptxas_path =
      write_fake_ptxas(temp.file("ptxas"), "echo 'ptxas fatal   : from the script' >&2; exit 1");
  EXPECT_THAT(std::string(assemble("x", options).status().message()), HasSubstr("from the script"));
}

}  // namespace
}  // namespace heddle::codegen
