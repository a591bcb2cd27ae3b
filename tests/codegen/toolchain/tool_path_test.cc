#include "heddle/codegen/toolchain/tool_path.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_trust.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message(const Status& status) { return std::string(status.message()); }

ToolSearch asked_for(const std::string& path) {
  ToolSearch search;
  search.explicit_path = path;
  return search;
}

ToolSearch in_path(const std::string& path_variable) {
  ToolSearch search;
  search.path_variable = path_variable;
  return search;
}

std::vector<std::string> problems(const ToolLocation& location) {
  std::vector<std::string> result;
  for (const ToolAttempt& attempt : location.tried) result.push_back(attempt.problem);
  return result;
}

TEST(ToolVersion, IsReadFromWhatTheToolPrints) {
  constexpr char kPtxas[] =
      "ptxas: NVIDIA (R) Ptx optimizing assembler\n"
      "Copyright (c) 2005-2025 NVIDIA Corporation\n"
      "Built on Wed_Aug_20_01:55:12_PM_PDT_2025\n"
      "Cuda compilation tools, release 13.0, V13.0.88\n"
      "Build cuda_13.0.r13.0/compiler.36424714_0\n";
  const std::optional<ToolVersion> version = parse_tool_version(Tool::kPtxas, kPtxas);
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(*version, (ToolVersion{13, 0, 88, "cuda_13.0.r13.0/compiler.36424714_0"}));
  EXPECT_EQ(version->to_string(), "13.0.88");
  EXPECT_FALSE(parse_tool_version(Tool::kNvdisasm, kPtxas).has_value());
  EXPECT_EQ(parse_tool_version(Tool::kNvdisasm,
                               "nvdisasm: NVIDIA (R) CUDA disassembler\n"
                               "Cuda compilation tools, release 13.5, V13.5.37"),
            (ToolVersion{13, 5, 37, ""}));
  for (absl::string_view wrong : {"", "ptxas:", "ptxas: , V", "ptxas: , V13.0", "ptxas: , V13.0.x",
                                  "ptxas: , V13.0.88.1", "ptxas: release 13.0"}) {
    EXPECT_FALSE(parse_tool_version(Tool::kPtxas, wrong).has_value()) << wrong;
  }
}

TEST(ToolVersion, ComparesByNumber) {
  EXPECT_TRUE(compare({12, 9, 200, ""}, {12, 10, 0, ""}) < 0);
  EXPECT_TRUE(compare({13, 0, 88, "a"}, {13, 0, 88, "b"}) == 0);
  EXPECT_TRUE(compare({13, 0, 0, ""}, {12, 99, 99, ""}) > 0);
}

TEST(FindTool, TakesWhatIsAskedFor) {
  TempDir temp;
  const std::string path = write_fake_ptxas(temp.file("ptxas"), "");
  StatusOr<ToolLocation> found = find_tool(Tool::kPtxas, asked_for(path));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->origin, "the given option");
  EXPECT_EQ(found->version.to_string(), "13.0.88");
  EXPECT_EQ(found->version.build, "cuda_13.0.r13.0/compiler.36424714_0");
  EXPECT_TRUE(found->tried.empty());

  ToolSearch by_variable;
  by_variable.variable = path;
  found = find_tool(Tool::kPtxas, by_variable);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->origin, "HEDDLE_PTXAS");
}

TEST(FindTool, NeverReplacesWhatIsAskedFor) {
  TempDir temp;
  write_fake_ptxas(temp.file("bin/ptxas"), "");
  ToolSearch search = in_path(temp.file("bin"));
  ASSERT_TRUE(find_tool(Tool::kPtxas, search).ok());
  search.explicit_path = temp.file("missing");
  const Status status = find_tool(Tool::kPtxas, search).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(
      message(status),
      absl::StrCat(
          "ptxas from the given option (", temp.file("missing"),
          ") cannot be used: ", temp.file("missing"),
          " does not exist; fix: leave the option out, or give it the absolute path of ptxas"));
}

TEST(FindTool, RefusesRelativePaths) {
  for (absl::string_view path : {"ptxas", "./ptxas", "bin/ptxas"}) {
    const Status status = find_tool(Tool::kPtxas, asked_for(std::string(path))).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(message(status), HasSubstr(absl::StrCat("'", path, "' is not an absolute path")));
  }
}

TEST(FindTool, RefusesWhatIsNoProgram) {
  TempDir temp;
  const auto status_of = [](const std::string& path) {
    return find_tool(Tool::kPtxas, asked_for(path)).status();
  };
  std::filesystem::create_directory(temp.file("folder"));
  EXPECT_EQ(status_of(temp.file("folder")).code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(message(status_of(temp.file("folder"))), HasSubstr("/folder is a folder"));
  write_file(temp.file("plain"), "text", 0600);
  EXPECT_EQ(status_of(temp.file("plain")).code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(message(status_of(temp.file("plain"))), HasSubstr("/plain is not executable"));
  EXPECT_THAT(message(status_of("/dev/null")), HasSubstr("/dev/null is not a regular file"));
  EXPECT_THAT(message(status_of(temp.file("plain/ptxas"))), HasSubstr("/plain is not a folder"));
  std::filesystem::create_symlink(temp.file("nowhere"), temp.file("dangling"));
  EXPECT_EQ(status_of(temp.file("dangling")).code(), StatusCode::kNotFound);
  std::filesystem::create_symlink(temp.file("loop"), temp.file("loop"));
  EXPECT_THAT(message(status_of(temp.file("loop"))), HasSubstr("is a link that leads nowhere"));
}

TEST(FindTool, RefusesWhatOthersCanWrite) {
  TempDir temp;
  const std::string path = write_fake_ptxas(temp.file("bin/ptxas"), "");
  chmod(path.c_str(), 0702);
  const Status status = find_tool(Tool::kPtxas, asked_for(path)).status();
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(message(status), HasSubstr(absl::StrCat(path, " can be written by everyone")));
  chmod(path.c_str(), 0755);
  EXPECT_TRUE(find_tool(Tool::kPtxas, asked_for(path)).ok());

  // A folder on the way, reached by a link as well.
  chmod(temp.file("bin").c_str(), 0777);
  std::filesystem::create_symlink(path, temp.file("link"));
  for (const std::string& name : {path, temp.file("link")}) {
    EXPECT_EQ(message(check_trusted(CodeFile::kProgram, name)),
              absl::StrCat(temp.file("bin"), " can be written by everyone"));
  }
  // In a sticky folder, such as /tmp, others cannot replace our file.
  chmod(temp.file("bin").c_str(), 01777);
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, path).ok())
      << check_trusted(CodeFile::kProgram, path);
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, temp.file("link")).ok());
}

TEST(FindTool, RefusesWhatAnOrdinaryGroupCanWrite) {
  constexpr gid_t kStaff = 50, kOrdinary = 12345;
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can give files to other groups";
  TempDir temp;
  const std::string path = write_fake_ptxas(temp.file("ptxas"), "");
  chmod(path.c_str(), 0775);
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, path).ok());
  ASSERT_EQ(chown(path.c_str(), 0, kStaff), 0);
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, path).ok());
  ASSERT_EQ(chown(path.c_str(), 0, kOrdinary), 0);
  EXPECT_EQ(message(check_trusted(CodeFile::kProgram, path)),
            absl::StrCat(path, " can be written by every member of group 12345"));
}

TEST(FindTool, RefusesAnotherUsersFileInAFolderForEveryone) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can give files to other users";
  TempDir temp;
  const std::string path = write_fake_ptxas(temp.file("shared/ptxas"), "");
  chmod(temp.file("shared").c_str(), 01777);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(message(check_trusted(CodeFile::kProgram, path)),
            absl::StrCat(path, " lies in a folder for everyone and belongs to user 12345"));
}

TEST(FindTool, FollowsRelativeLinksAndDots) {
  TempDir temp;
  write_fake_ptxas(temp.file("cuda-13.0/bin/ptxas"), "");
  std::filesystem::create_directory_symlink("cuda-13.0", temp.file("cuda"));
  std::filesystem::create_symlink("../cuda/./bin/ptxas", temp.file("cuda-13.0/link"));
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, temp.file("cuda/bin/ptxas")).ok());
  EXPECT_TRUE(check_trusted(CodeFile::kProgram, temp.file("cuda/bin/../link")).ok());
  EXPECT_TRUE(
      check_trusted(CodeFile::kProgram, absl::StrCat("/../..", temp.file("cuda/bin//ptxas"))).ok());
}

TEST(FindTool, RefusesWrongVersions) {
  TempDir temp;
  struct Case {
    std::string path, text;
  };
  const std::vector<Case> cases = {
      {write_fake_ptxas(temp.file("old"), "", "11.8.89"), "is version 11.8.89, older than 12.0.0"},
      {write_fake_ptxas(temp.file("bad"), "", "12.3.103"),
       "is version 12.3.103, which is known to be faulty"},
      {write_script(temp.file("other"), "echo 'nvcc: NVIDIA (R) Cuda compiler driver'"),
       "does not answer as ptxas does, but 'nvcc: NVIDIA (R) Cuda compiler driver'"},
      {write_script(temp.file("silent"), "exit 0"), "does not answer as ptxas does, but ''"},
      {write_script(temp.file("failing"), "exit 9"), "--version' ended with exit code 9"},
      {write_script(temp.file("crashing"), "kill -SEGV $$"), "--version' was killed by SIGSEGV"},
      {write_file(temp.file("no_program"), "garbage", 0700), "cannot start"},
  };
  for (const Case& wrong : cases) {
    const Status status = find_tool(Tool::kPtxas, asked_for(wrong.path)).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(message(status), HasSubstr(wrong.text));
  }
  EXPECT_TRUE(
      find_tool(Tool::kPtxas, asked_for(write_fake_ptxas(temp.file("first"), "", "12.0.0"))).ok());
}

TEST(FindTool, DoesNotWaitForAVersionForever) {
  TempDir temp;
  ToolSearch search = asked_for(write_script(temp.file("ptxas"), "sleep 100"));
  search.version_timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(message(find_tool(Tool::kPtxas, search).status()),
              HasSubstr("--version' did not end within 0.1 s"));
}

TEST(FindTool, SearchesRootsBeforePathAndTheNewestVersionFirst) {
  TempDir temp;
  write_fake_ptxas(temp.file("cuda-12.9/bin/ptxas"), "", "12.9.86");
  write_fake_ptxas(temp.file("cuda-12.10/bin/ptxas"), "", "12.10.1");
  write_fake_ptxas(temp.file("path/ptxas"), "", "13.0.88");
  ToolSearch search = in_path(temp.file("path"));
  search.roots = {{"CUDA_HOME", ""}, {"many", temp.file("cuda-*")}};
  StatusOr<ToolLocation> found = find_tool(Tool::kPtxas, search);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, temp.file("cuda-12.10/bin/ptxas"));
  EXPECT_EQ(found->origin, "many");

  // One that will not do is passed over, and said.
  write_fake_ptxas(temp.file("cuda-12.10/bin/ptxas"), "", "11.0.0");
  found = find_tool(Tool::kPtxas, search);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, temp.file("cuda-12.9/bin/ptxas"));
  EXPECT_THAT(problems(*found), ElementsAre(absl::StrCat(temp.file("cuda-12.10/bin/ptxas"),
                                                         " is version 11.0.0, older than 12.0.0")));
}

TEST(FindTool, IgnoresEntriesOfPathThatAShadowCouldUse) {
  TempDir temp;
  write_fake_ptxas(temp.file("here/ptxas"), "", "13.9.9");
  write_fake_ptxas(temp.file("open/ptxas"), "", "13.9.9");
  write_fake_ptxas(temp.file("good/ptxas"), "", "13.0.88");
  chmod(temp.file("open").c_str(), 0777);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temp.file("here"));
  const StatusOr<ToolLocation> found =
      find_tool(Tool::kPtxas,
                in_path(absl::StrCat(":.:../here:", temp.file("open"), ":", temp.file("good"))));
  std::filesystem::current_path(before);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, temp.file("good/ptxas"));
  EXPECT_EQ(found->origin, "PATH");
  EXPECT_THAT(
      problems(*found),
      ElementsAre("an empty entry of PATH is ignored", "the relative entry '.' of PATH is ignored",
                  "the relative entry '../here' of PATH is ignored",
                  absl::StrCat(temp.file("open"), " can be written by everyone")));
}

TEST(FindTool, SaysWhyThereIsNoneAndTheCure) {
  TempDir temp;
  write_fake_ptxas(temp.file("old/ptxas"), "", "10.1.0");
  ToolSearch search =
      in_path(absl::StrCat("bin:", temp.file("a"), ":", temp.file("b"), ":bin:", temp.file("old")));
  search.roots = {{"CUDA_HOME", temp.file("cuda")}, {"CUDA_PATH", temp.file("cuda")}};
  const Status status = find_tool(Tool::kPtxas, search).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(message(status),
            absl::StrCat("ptxas was not found; install the CUDA toolkit, or run 'pip install "
                         "nvidia-cuda-nvcc' and set HEDDLE_PTXAS to its absolute path (",
                         temp.file("cuda"),
                         " does not exist; the relative entry 'bin' of PATH is ignored; no folder "
                         "of PATH has it; ",
                         temp.file("old/ptxas"), " is version 10.1.0, older than 12.0.0)"));
  EXPECT_THAT(message(find_tool(Tool::kNvdisasm, ToolSearch()).status()),
              HasSubstr("'pip install nvidia-cuda-nvdisasm' and set HEDDLE_NVDISASM to its "
                        "absolute path (no CUDA folder and no PATH is set)"));
}

TEST(FindTool, OtherToolsNeedNoVersion) {
  TempDir temp;
  const std::string path = write_script(temp.file("cuobjdump"), "exit 1");
  const StatusOr<ToolLocation> found = find_tool(Tool::kCuobjdump, in_path(temp.path()));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, path);
}

TEST(FindTool, RemembersUntilTheFileChanges) {
  TempDir temp;
  const std::string counter = temp.file("calls");
  const std::string path = temp.file("ptxas");
  const auto install = [&](absl::string_view version) {
    write_script(
        path, absl::StrCat("echo call >> ", counter, "\necho 'ptxas: release x, V", version, "'"));
  };
  const auto calls = [&] { return std::filesystem::file_size(counter) / sizeof("call"); };
  install("13.0.88");
  const StatusOr<ToolLocation> first = find_tool(Tool::kPtxas, asked_for(path));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(find_tool(Tool::kPtxas, asked_for(path)).ok());
  EXPECT_EQ(calls(), 1);
  // Another question is another answer.
  EXPECT_TRUE(find_tool(Tool::kPtxas, in_path(temp.path())).ok());
  EXPECT_EQ(calls(), 2);

  install("13.1.10");
  EXPECT_FALSE(first->is_unchanged());
  const StatusOr<ToolLocation> second = find_tool(Tool::kPtxas, asked_for(path));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->version.to_string(), "13.1.10");
  std::filesystem::remove(path);
  EXPECT_FALSE(second->is_unchanged());
  EXPECT_FALSE(find_tool(Tool::kPtxas, asked_for(path)).ok());
}

TEST(FindTool, WorksInManyThreadsAtOnce) {
  TempDir temp;
  const std::string path = write_fake_ptxas(temp.file("ptxas"), "");
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) found += find_tool(Tool::kPtxas, asked_for(path)).ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 160);
}

TEST(ToolSearch, ReadsTheEnvironment) {
  const auto keep = [](const char* name) {
    const char* value = getenv(name);
    return value != nullptr ? std::string(value) : std::string();
  };
  const std::string path = keep("PATH"), home = keep("CUDA_HOME"), ptxas = keep("HEDDLE_PTXAS");
  setenv("HEDDLE_PTXAS", "/a/ptxas", 1);
  setenv("CUDA_HOME", "/b", 1);
  setenv("PATH", "/c:/d", 1);
  const ToolSearch search = ToolSearch::from_environment(Tool::kPtxas, "/e/ptxas");
  const ToolSearch other = ToolSearch::from_environment(Tool::kNvdisasm);
  setenv("PATH", path.c_str(), 1);
  home.empty() ? unsetenv("CUDA_HOME") : setenv("CUDA_HOME", home.c_str(), 1);
  ptxas.empty() ? unsetenv("HEDDLE_PTXAS") : setenv("HEDDLE_PTXAS", ptxas.c_str(), 1);

  EXPECT_EQ(search.explicit_path, "/e/ptxas");
  EXPECT_EQ(search.variable, "/a/ptxas");
  EXPECT_EQ(search.path_variable, "/c:/d");
  std::vector<std::string> roots;
  for (const ToolSearch::Root& root : search.roots) roots.push_back(root.origin);
  EXPECT_THAT(roots, ElementsAre("the folder 'cuda' beside the program", "CUDA_HOME", "CUDA_PATH",
                                 "/usr/local/cuda", "/usr/local/cuda-*"));
  EXPECT_EQ((search.roots.end() - 4)->path, "/b");
  EXPECT_TRUE(search.is_request());
  EXPECT_NE(other.variable, "/a/ptxas");
}

// Few programs bring CUDA along: the others hear nothing of a folder that is not there. This one
// asks a copy of itself, which has a folder of its own.
TEST(ToolSearch, NamesTheFolderBesideTheProgramWhereThereIsOne) {
  constexpr char kIsCopy[] = "HEDDLE_TEST_IS_COPY";
  if (getenv(kIsCopy) != nullptr) {
    std::ofstream(kOutputFile) << ToolSearch::from_environment(Tool::kPtxas).roots.at(0).path;
    return;
  }
  TempDir temp;
  Command copy;
  copy.program = temp.file("program");
  copy.arguments = {"--gtest_filter=ToolSearch.NamesTheFolderBesideTheProgramWhereThereIsOne"};
  copy.environment.push_back(absl::StrCat(kIsCopy, "=1"));
  copy.wants_output_file = true;
  std::filesystem::copy_file("/proc/self/exe", copy.program);
  const auto named = [&] {
    const StatusOr<Finished> finished = run_command(copy);
    EXPECT_TRUE(finished.ok() && finished->succeeded()) << finished.status();
    return finished.ok() ? finished->output_file : "";
  };
  EXPECT_EQ(named(), "");
  write_file(temp.file("cuda"), "no folder");
  EXPECT_EQ(named(), "");
  std::filesystem::remove(temp.file("cuda"));
  std::filesystem::create_directory(temp.file("cuda"));
  EXPECT_EQ(named(), std::filesystem::canonical(temp.file("cuda")).string());
}

TEST(ToolSearch, LooksForDisassemblersBesidePtxas) {
  TempDir temp;
  const std::string ptxas = write_fake_ptxas(temp.file("real/bin/ptxas"), "");
  std::filesystem::create_directories(temp.file("links"));
  std::filesystem::create_symlink(ptxas, temp.file("links/ptxas"));
  const char* const kept = getenv("HEDDLE_PTXAS");
  const std::string before = kept != nullptr ? kept : "";
  setenv("HEDDLE_PTXAS", temp.file("links/ptxas").c_str(), 1);
  ToolSearch search = ToolSearch::from_environment(Tool::kNvdisasm);
  before.empty() ? unsetenv("HEDDLE_PTXAS") : setenv("HEDDLE_PTXAS", before.c_str(), 1);
  EXPECT_THAT(search.beside_ptxas, ElementsAre(temp.file("links"), temp.file("real/bin")));

  write_script(temp.file("real/bin/nvdisasm"), "exit 0");
  search.variable.clear();
  const StatusOr<ToolLocation> found = find_tool(Tool::kNvdisasm, search);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, temp.file("real/bin/nvdisasm"));
  EXPECT_EQ(found->origin, "beside ptxas");
}

// Searches of equal folders are remembered, those beside another ptxas are not.
TEST(ToolSearch, BesideAnotherPtxasIsAnotherSearch) {
  TempDir temp;
  for (const char* const folder : {"a", "b"}) {
    std::filesystem::create_directories(temp.file(folder));
    write_script(temp.file(absl::StrCat(folder, "/nvdisasm")), "exit 0");
    ToolSearch search = ToolSearch::from_environment(Tool::kNvdisasm);
    search.variable.clear();
    search.beside_ptxas = {temp.file(folder)};
    const StatusOr<ToolLocation> found = find_tool(Tool::kNvdisasm, search);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->path, temp.file(absl::StrCat(folder, "/nvdisasm")));
  }
}

TEST(FindTool, FindsTheInstalledPtxas) {
  const StatusOr<ToolLocation> found = find_tool(Tool::kPtxas);
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found.status().message();
  EXPECT_TRUE(absl::StartsWith(found->path, "/"));
  EXPECT_GE(found->version.major, kOldestPtxas[0]);
  EXPECT_FALSE(found->version.build.empty());
}

}  // namespace
}  // namespace heddle::codegen
