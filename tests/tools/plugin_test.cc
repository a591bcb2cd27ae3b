// Plug-ins reach all of Heddle, whatever the program that loads them uses of it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using codegen::write_file;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The public headers of the kernel language: "dsl/tensor/copy.h".
std::vector<std::string> language_headers() {
  const std::filesystem::path root = std::filesystem::path(HEDDLE_TEST_DATA_DIR).parent_path();
  std::vector<std::string> headers;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "dsl")) {
    const std::string name = std::filesystem::relative(entry.path(), root).string();
    if (entry.path().extension() == ".h" && !absl::EndsWith(name, "_internal.h")) {
      headers.push_back(name);
    }
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

std::vector<std::string> lines(const std::string& text) { return absl::StrSplit(text, '\n'); }
std::string first_word(const std::string& line) { return line.substr(0, line.find(' ')); }

TEST(PluginTest, HasAWordOfEveryHeaderOfTheLanguage) {
  const Outcome list = heddle_command({"list", "--plugin", HEDDLE_LANGUAGE_PLUGIN});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  std::vector<std::string> words;
  for (const std::string& line : lines(list.out)) {
    if (absl::StartsWith(line, "dsl/")) words.push_back(first_word(line));
  }
  std::sort(words.begin(), words.end());
  EXPECT_EQ(words, language_headers()) << "tests/tools/plugin/language.cc has a kernel for each";
}

TEST(PluginTest, EveryWordBecomesPtx) {
  for (const std::string& header : language_headers()) {
    const Outcome dump = heddle_command(
        {"dump", header, "--plugin", HEDDLE_LANGUAGE_PLUGIN, "--arch", "sm_90a", "--stage", "ptx"});
    EXPECT_EQ(dump.exit_code, 0) << header << "\n" << dump.err;
    EXPECT_THAT(dump.out, HasSubstr(".entry word")) << header;
  }
}

TEST(PluginTest, UsesTheHostsSideOfHeddle) {
  codegen::TempDir dir;
  make_npy(dir.file("x.npy"), ir::Scalar::kF32, {300}, [](size_t i) { return i; });
  const Outcome run =
      heddle_command({"run", "host_api", "--plugin", HEDDLE_HOST_API_PLUGIN, "--in",
                      absl::StrCat("x=", dir.file("x.npy")), "--device", "interp", "--check"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(PluginTest, AProgramOfOnesOwnLoadsThemToo) {
  const Outcome dump = run_program(
      HEDDLE_HOST_COMMAND, {"dump", "dsl/cuda/bulk.h", "--plugin", HEDDLE_LANGUAGE_PLUGIN, "--arch",
                            "sm_90a", "--stage", "ptx"});
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_THAT(dump.out, HasSubstr("cp.async.bulk"));
}

TEST(PluginTest, BringsPasses) {
  const TempDir dir;
  const std::string file = write_file(dir.file("k.ir"), R"(kernel @k(
    %x: view<f32, global, 1> [?] strides [1]) block(32, 1, 1) target(sm_90a) {
  %t = thread_idx {axis = x} : i32
  %v = load %x, %t : f32
  %s = sqrt %v : f32
  %d = div %v, %s : f32
  store %x, %d, %t
}
)");
  const auto opt = [&](const std::string& passes, const std::string& arch) {
    const Outcome done = heddle_command({"opt", file, "--plugin", HEDDLE_PASSES_PLUGIN, "--passes",
                                         passes, "--arch", arch, "--verify", "--time-passes"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done;
  };
  const Outcome hopper = opt("O3", "sm_90a");
  EXPECT_THAT(hopper.out, HasSubstr("rsqrt"));
  EXPECT_THAT(hopper.err, HasSubstr("loads 4 bytes"));
  const Outcome ampere = opt("O3", "sm_80");
  EXPECT_THAT(ampere.out, HasSubstr("= div"));
  EXPECT_THAT(ampere.err, HasSubstr("left out for this target"));
  const Outcome none = opt("O0", "sm_90a");
  EXPECT_THAT(none.out, HasSubstr("= div"));
  EXPECT_THAT(none.err, Not(HasSubstr("traffic")));
  EXPECT_THAT(opt("normalise,dce", "sm_90a").out, HasSubstr("rsqrt"));
  const Outcome list = heddle_command({"passes", "--plugin", HEDDLE_PASSES_PLUGIN});
  EXPECT_THAT(list.out, HasSubstr("(after fold, on sm_90a alone)"));
  EXPECT_THAT(list.out,
              HasSubstr("  {factor=1}  trips side by side in loops that do not ask (1 to 64)"));
  EXPECT_THAT(list.out, HasSubstr("pack-arithmetic,traffic"));  // where it has its place in a level
  EXPECT_THAT(heddle_command({"passes"}).out, Not(HasSubstr("traffic")));
  // Named twice, it is there once.
  const Outcome twice = heddle_command(
      {"passes", "--plugin", HEDDLE_PASSES_PLUGIN, "--plugin", HEDDLE_PASSES_PLUGIN});
  EXPECT_EQ(twice.exit_code, 0) << twice.err;
  EXPECT_EQ(twice.out, list.out);
  EXPECT_THAT(heddle_command({"passes", "--json"}).out, HasSubstr("\"keeps\""));
}

// Operations of its own, and passes that know them.
TEST(PluginTest, BringsOperations) {
  const auto command = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--plugin", HEDDLE_OPERATIONS_PLUGIN});
    const Outcome done = heddle_command(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  const TempDir dir;
  const auto floats = [&](const std::string& name, std::vector<int64_t> extents) {
    make_npy(dir.file(name), ir::Scalar::kF32, std::move(extents),
             [](size_t i) { return std::sin(static_cast<double>(i)); });
    return dir.file(name);
  };
  const auto words = [&](const std::string& name, uint32_t factor) {
    HostArray array = HostArray::allocate({ir::Scalar::kU32, {20, 50}}).value();
    for (uint32_t i = 0; i < 1000; ++i) {
      const uint32_t word = i * factor;
      std::memcpy(array.data.get() + 4 * i, &word, 4);
    }
    EXPECT_TRUE(write_npy(dir.file(name), array).ok());
    return dir.file(name);
  };
  const auto check = [&](const std::string& kernel, std::vector<std::string> inputs) {
    std::vector<std::string> arguments = {"run", kernel, "--device", "interp", "--check"};
    for (const std::string& input : inputs) {
      arguments.push_back(absl::StartsWith(input, "cluster") ? "--set" : "--in");
      arguments.push_back(input);
    }
    EXPECT_THAT(command(arguments), HasSubstr("elements right"));
  };
  check("distances", {"a=" + words("a.npy", 0x9E3779B9), "b=" + words("b.npy", 0x85EBCA6B)});
  const std::string row = floats("row.npy", {1000}), rows = floats("rows.npy", {3, 1000});
  check("norms", {"x=" + rows});
  check("norms", {"x=" + rows, "cluster=4"});
  check("activated", {"x=" + row, "bias=" + row});
  const auto ptx = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "dump");
    arguments.insert(arguments.end(), {"--arch", "sm_90a", "--stage", "ptx"});
    return command(arguments);
  };
  EXPECT_THAT(ptx({"distances"}), HasSubstr("sad.u32 %r"));
  EXPECT_THAT(
      command({"reference"}),
      testing::AllOf(HasSubstr("### `acme.sad`\n\nc and the distance of a and b, added up\n\n"
                               "- Signature: `a:u32 b:u32 c:u32 -> u32`"),
                     HasSubstr("- PTX: `sad.u32 %0, %1, %2, %3;`"),
                     HasSubstr("- PTX: - (a mark for a pass)")));
  EXPECT_THAT(ptx({"norms"}), Not(HasSubstr("shared::cluster")));
  EXPECT_THAT(ptx({"norms", "--set", "cluster=2"}),
              testing::AllOf(HasSubstr("shfl.sync"), HasSubstr("ld.shared::cluster")));
  // What is stored to scratch memory stays in registers.
  const std::string fused = ptx({"activated"});
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(fused, "st.global")).size(), 2u) << fused;
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(fused, "ld.global")).size(), 3u) << fused;
}

// What `nm` lists of a file: the names of its definitions, as a linker sees them.
std::set<std::string> definitions(const std::string& file, bool dynamic) {
  codegen::Command command;
  command.program = "/usr/bin/nm";
  command.arguments = {dynamic ? "--dynamic" : "--extern-only", "--defined-only", "-P", file};
  command.max_captured = size_t{1} << 28;
  const auto done = codegen::run_command(command);
  std::set<std::string> names;
  if (!done.ok() || done->exit_code != 0) return names;
  for (const std::string& line : lines(done->standard_output)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() < 2 || fields[1].size() != 1) continue;
    // Not what the compiler makes anew wherever it is used: templates, inline functions.
    if (absl::StrContains("TDBR", fields[1])) names.insert(fields[0]);
  }
  return names;
}

TEST(PluginTest, TheCommandExportsEveryDefinitionOfTheLibraries) {
  const std::set<std::string> exported = definitions(HEDDLE_COMMAND, true);
  if (exported.empty()) GTEST_SKIP() << "SKIPPED: needs nm";
  const std::vector<std::string> libraries = absl::StrSplit(HEDDLE_LIBRARIES, ',');
  for (const std::string& library : libraries) {
    const std::set<std::string> defined = definitions(library, false);
    EXPECT_GT(defined.size(), 50u) << library;
    std::vector<std::string> missing;
    std::set_difference(defined.begin(), defined.end(), exported.begin(), exported.end(),
                        std::back_inserter(missing));
    EXPECT_THAT(missing, IsEmpty()) << library;
  }
}

}  // namespace
}  // namespace heddle::tools
