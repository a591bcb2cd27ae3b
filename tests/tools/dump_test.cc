// heddle dump, and HEDDLE_DUMP.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "heddle/tools/command/text_diff.h"
#include "nlohmann/json.hpp"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::string>& no_tools() {
  static const auto& none = *new std::vector<std::string>{
      "HEDDLE_PTXAS=/no/ptxas", "HEDDLE_NVDISASM=/no/nvdisasm", "HEDDLE_CUOBJDUMP=/no/cuobjdump"};
  return none;
}

Outcome dump(const Arguments& more, const std::vector<std::string>& environment = {}) {
  Arguments arguments = {"dump", "row_sum"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return heddle_command(arguments, environment);
}

TEST(DumpTest, ShowsOneStageAlone) {
  const Outcome trace = dump({"--stage", "trace"});
  EXPECT_EQ(trace.exit_code, 0) << trace.err;
  EXPECT_EQ(trace.err, "");
  EXPECT_THAT(trace.out, AllOf(StartsWith("kernel @row_sum("), HasSubstr("row_sum.cc\":")));
  const Outcome optimized = dump({"--stage", "ir"});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_THAT(optimized.out, StartsWith("kernel @row_sum("));
  EXPECT_NE(optimized.out, trace.out);
  const Outcome constants = dump({"--stage", "constants"});
  EXPECT_EQ(constants.exit_code, 0) << constants.err;
  EXPECT_THAT(constants.out, HasSubstr("const"));
  const Outcome ptx = dump({"--stage", "ptx"});
  EXPECT_EQ(ptx.exit_code, 0) << ptx.err;
  EXPECT_THAT(ptx.out, AllOf(HasSubstr(".target sm_90a"), HasSubstr(".entry row_sum")));
}

TEST(DumpTest, ShowsSeveralWithHeadings) {
  const Outcome both = dump({"--stage", "trace,ptx"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, AllOf(StartsWith("--- row_sum: trace.ir ---\nkernel @row_sum("),
                              HasSubstr("\n--- row_sum: ptx ---\n"), Not(HasSubstr(": ir ---"))));
  EXPECT_EQ(dump({"--stage", "trace", "--stage", "ptx"}).out, both.out);
}

TEST(DumpTest, FollowsSettingsAndArchitecture) {
  const Outcome half = dump({"--stage", "ir", "--set", "dtype=f16"});
  EXPECT_EQ(half.exit_code, 0) << half.err;
  EXPECT_THAT(half.out, HasSubstr("f16"));
  const Outcome older = dump({"--stage", "ptx", "--arch", "sm_80"});
  EXPECT_EQ(older.exit_code, 0) << older.err;
  EXPECT_THAT(older.out, HasSubstr(".target sm_80"));
}

TEST(DumpTest, RunsThePassesThatItIsTold) {
  const std::string trace = dump({"--stage", "trace"}).out;
  for (const Arguments& none : {Arguments{"--passes", ""}, Arguments{"--pass-limit", "0"}}) {
    Arguments arguments = {"--stage", "ir"};
    arguments.insert(arguments.end(), none.begin(), none.end());
    const Outcome untouched = dump(arguments);
    EXPECT_EQ(untouched.exit_code, 0) << untouched.err;
    EXPECT_EQ(untouched.out, trace);
  }
  const Outcome watched =
      dump({"--stage", "ir", "--passes", "promote-vars,fold", "--print-after", "fold",
            "--print-before", "promote-vars", "--time-passes", "--verify"});
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_THAT(watched.out, StartsWith("kernel @row_sum("));
  EXPECT_THAT(watched.err, AllOf(HasSubstr("; before promote-vars\n"), HasSubstr("; after fold"),
                                 Not(HasSubstr("; after promote-vars")),
                                 ::testing::ContainsRegex("\nfold +[0-9.]+ us  [0-9]+ ops"),
                                 ::testing::ContainsRegex("\nall passes +[0-9.]+ us\n")));
}

TEST(DumpTest, ShowsALevelAndTwoBesideEachOther) {
  const Outcome plain = dump({"--opt", "0", "--stage", "ir"});
  EXPECT_EQ(plain.out, dump({"--passes", "O0", "--stage", "ir"}).out);
  EXPECT_NE(plain.out, dump({"--stage", "ir"}).out);
  EXPECT_EQ(dump({"--opt", "3", "--stage", "ptx"}).out, dump({"--stage", "ptx"}).out);
  const Outcome both = dump({"--opt", "0,3", "--diff", "--stage", "ir,ptx"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, AllOf(StartsWith("--- row_sum: ir, O0 and O3 ---\nkernel @row_sum("),
                              HasSubstr("--- row_sum: ptx, O0 and O3 ---")));
  const auto misuse = [](const Arguments& more) { return dump(more); };
  expect_misused(misuse({"--opt", "4"}),
                 "there is no level '4' of optimisation; --opt takes 0 to 3");
  expect_misused(misuse({"--opt", "0,3"}),
                 "--opt names 2 levels, and one at a time is shown; add --diff to compare two");
  expect_misused(misuse({"--opt", "0", "--diff"}),
                 "--opt names 1 level, and --diff compares two; write --opt 0,3");
}

TEST(DumpTest, ShowsWhatEachPassChanges) {
  const Outcome changes = dump({"--stage", "ir", "--print-changed"});
  EXPECT_EQ(changes.exit_code, 0) << changes.err;
  EXPECT_THAT(changes.err,
              AllOf(StartsWith("; fold changed\n@@ -"), HasSubstr("\n; licm changed\n"),
                    Not(HasSubstr("; unroll changed"))));
}

TEST(TextDiffTest, OfLines) {
  EXPECT_EQ(unified_diff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  EXPECT_EQ(unified_diff("a\n", "a\n"), "");
  EXPECT_EQ(side_by_side("a\nlong long line\nc\n", "a\nx\nc\nd\n", 8),
            "a          a\nlong lo~ | x\nc          c\n         > d\n");
  EXPECT_EQ(side_by_side("b\n", "", 8), "b        <\n");
  // Numbers of registers make no difference; those of types and values do.
  EXPECT_EQ(side_by_side("add %r1, R7\n", "add %r12, R8\n", 16),
            "add %r1, R7        add %r12, R8\n");
  EXPECT_EQ(side_by_side("\t/*0010*/ RET ;\n", "\t/*0020*/ RET ;\n", 20),
            "    /*0010*/ RET ;         /*0020*/ RET ;\n");
  EXPECT_EQ(side_by_side("add.s32 %v1\n", "add.s64 %v1\n", 16), "add.s32 %v1      | add.s64 %v1\n");
  EXPECT_EQ(side_by_side("%v1\n", "%v2\n", 8), "%v1      | %v2\n");
}

TEST(DumpTest, CountsWhatItMade) {
  const Outcome text = dump({"--stats"}, no_tools());
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("kernel row_sum for sm_90a\n"), HasSubstr(" trace\n"),
                              HasSubstr(" ir\n"), HasSubstr(" ptx\n"), HasSubstr("   ret\n"),
                              Not(HasSubstr("registers"))));
  expect_one_line(text, 0, AllOf(HasSubstr("ptxas"), HasSubstr("the rest is shown without it")));

  const Outcome as_json = dump({"--stats", "--json"}, no_tools());
  EXPECT_EQ(as_json.exit_code, 0) << as_json.err;
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(json["kernel"], "row_sum");
  EXPECT_EQ(json["stats"]["ptx"]["by_opcode"]["ret"], 1);
  EXPECT_NE(json["stats"]["trace"]["total"], json["stats"]["ir"]["total"]);
  // Lines by what lives there: of the text, those with most.
  const auto& live = json["stats"]["live"];
  ASSERT_GT(live.size(), 8u);
  EXPECT_GT(live[0]["registers"], live[8]["registers"]);
  EXPECT_THAT(text.out, AllOf(HasSubstr("values of 32 bits live at once, by line:\n"),
                              HasSubstr(live[0]["place"].get<std::string>()),
                              HasSubstr(live[7]["place"].get<std::string>() + "\n")));
  EXPECT_EQ(json["problems"].size(), 1u);
  EXPECT_EQ(json["settings"]["dtype"], "f32");
  EXPECT_FALSE(json["passes"].empty());
}

TEST(DumpTest, CountsWhatPtxasMade) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Outcome as_json = dump({"--stats", "--json", "--stage", "cubin"});
  EXPECT_EQ(as_json.exit_code, 0) << as_json.err;
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  EXPECT_GT(json["stats"]["resources"]["registers"], 0);
  EXPECT_EQ(json["stats"]["resources"]["spill_store_bytes"], 0);
  EXPECT_GT(json["times_us"]["ptxas"], 0);
  std::string cubin;
  ASSERT_TRUE(absl::Base64Unescape(json["stages"]["cubin"].get<std::string>(), &cubin));
  const auto read = codegen::read_cubin(cubin);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->has_entry("row_sum"));
  const bool has_sass = json["stats"].contains("sass");
  EXPECT_EQ(json["problems"].size(), has_sass ? 0u : 1u);
}

TEST(DumpTest, ReportsWhatBecameOfIt) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Outcome text = dump({"--report"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("kernel row_sum ("), HasSubstr("\nblock        512x1x1\n"),
                              HasSubstr(" registers, no spills, 64 bytes of shared memory\n"),
                              HasSubstr("\noccupancy    4 blocks and 64 of 64 warps a multiproc")));
  const Outcome as_json = dump({"--report", "--json"});
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(json["report"]["occupancy"]["blocks"], 4);
  EXPECT_TRUE(json["stages"].empty() && !json.contains("stats"));
  const TempDir dir;
  EXPECT_EQ(
      dump({"--report", "-o", dir.path()}).out,
      absl::StrCat(dir.file("row_sum.report.txt"), "\n", dir.file("row_sum.report.json"), "\n"));
  EXPECT_EQ(nlohmann::json::parse(slurp(dir.file("row_sum.report.json")))["name"], "row_sum");
}

TEST(DumpTest, ReportsWithoutPtxasWhatThereIs) {
  const Outcome text = dump({"--report"}, no_tools());
  expect_one_line(text, 0, HasSubstr("the rest is shown without it"));
  EXPECT_THAT(text.out, AllOf(StartsWith("kernel row_sum ("), Not(HasSubstr("occupancy"))));
}

TEST(DumpTest, PassesMachineCodeOn) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Outcome cubin = dump({"--stage", "cubin"});
  EXPECT_EQ(cubin.exit_code, 0) << cubin.err;
  const auto read = codegen::read_cubin(cubin.out);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->has_entry("row_sum"));
  const Outcome all = dump({});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("--- row_sum: ptxas ---\nptxas "), HasSubstr(" registers, "),
                             HasSubstr("--- row_sum: cubin ---\n"),
                             HasSubstr(" bytes; -o DIR writes them\n"), Not(HasSubstr("\x7F"))));
}

TEST(DumpTest, WritesFiles) {
  const TempDir dir;
  const std::string folder = dir.file("new/folder");
  const Outcome done = dump({"-o", folder, "--stage", "all", "--stats"}, no_tools());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  for (const char* suffix : {"trace.ir", "constants", "ir", "ptx", "stats.txt", "stats.json"}) {
    const std::string path = absl::StrCat(folder, "/row_sum.", suffix);
    EXPECT_THAT(done.out, HasSubstr(path + "\n"));
    EXPECT_FALSE(slurp(path).empty()) << path;
  }
  EXPECT_EQ(slurp(folder + "/row_sum.ptx"), dump({"--stage", "ptx"}).out);
  EXPECT_TRUE(nlohmann::json::accept(slurp(folder + "/row_sum.stats.json")));
}

TEST(DumpTest, WithoutPtxasShowsTheRest) {
  const Outcome all = dump({}, no_tools());
  expect_one_line(all, 0, AllOf(HasSubstr("ptxas"), HasSubstr("the rest is shown without it")));
  EXPECT_THAT(all.out, HasSubstr(".entry row_sum"));
  expect_one_line(dump({"--stage", "cubin"}, no_tools()), 1,
                  AllOf(HasSubstr("/no/ptxas"),
                        HasSubstr("; fix: unset HEDDLE_PTXAS, or set it to the absolute path of "
                                  "ptxas")));
  const Outcome both = dump({"--stage", "ptx,cubin"}, no_tools());
  expect_one_line(both, 1, HasSubstr("/no/ptxas"));
  EXPECT_THAT(both.out, HasSubstr(".entry row_sum"));
}

TEST(DumpTest, AFailingPtxasIsAFailure) {
  const TempDir dir;
  const std::string ptxas = codegen::write_fake_ptxas(
      dir.file("ptxas"), "echo 'ptxas fatal   : I do not want to' >&2; exit 255");
  const Outcome all = dump({}, {absl::StrCat("HEDDLE_PTXAS=", ptxas)});
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_THAT(all.err, HasSubstr("I do not want to"));
  EXPECT_THAT(all.out, HasSubstr(".entry row_sum"));
}

TEST(DumpTest, WithoutADisassemblerOnlySassIsMissing) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const std::vector<std::string> no_disassembler = {"HEDDLE_NVDISASM=/no/nvdisasm",
                                                    "HEDDLE_CUOBJDUMP=/no/cuobjdump"};
  const Outcome stats = dump({"--stats"}, no_disassembler);
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_THAT(stats.out, HasSubstr(" registers a thread; "));
  EXPECT_THAT(stats.out, Not(HasSubstr(" sass\n")));
  EXPECT_EQ(std::count(stats.err.begin(), stats.err.end(), '\n'), 1) << stats.err;
  EXPECT_EQ(dump({"--stage", "sass"}, no_disassembler).exit_code, 1);
}

TEST(DumpTest, ShowsSass) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  if (!codegen::find_tool(codegen::Tool::kNvdisasm).ok() &&
      !codegen::find_tool(codegen::Tool::kCuobjdump).ok()) {
    GTEST_SKIP() << "needs nvdisasm or cuobjdump, which are not installed";
  }
  const Outcome sass = dump({"--stage", "sass"});
  EXPECT_EQ(sass.exit_code, 0) << sass.err;
  EXPECT_THAT(sass.out, HasSubstr("EXIT"));
}

TEST(DumpTest, AMistakenKernelIsReportedWithItsTrace) {
  const Outcome done =
      heddle_command({"dump", "mistaken", "--plugin", HEDDLE_FAULTY_PLUGIN, "--stage", "trace"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.out, StartsWith("kernel @mistaken("));
  EXPECT_THAT(done.err, AllOf(StartsWith("heddle: kernel 'mistaken' ("), HasSubstr("faulty.cc:"),
                              HasSubstr("fix: ")));
}

TEST(DumpTest, AnswersMisuseWithOneLine) {
  expect_misused(heddle_command({"dump", "frobnicate"}), StartsWith("unknown kernel 'frobnicate'"));
  expect_misused(dump({"--stage", "ptxx"}),
                 "unknown stage 'ptxx'; did you mean 'ptx'?; there are trace, constants, ir, ptx, "
                 "cubin, sass and all");
  for (const char* list : {"ir,", ",ir", "ir,,ptx"}) {
    expect_misused(dump({"--stage", list}), absl::StrCat("empty stage name in --stage '", list,
                                                         "'; fix: leave out the extra comma"));
  }
  expect_misused(dump({"--stage", ""}), "--stage: is empty; it takes STAGE");
  expect_misused(dump({"--arch", "sm_12"}),
                 "unknown target 'sm_12'; there are sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, "
                 "sm_100a, sm_103, sm_103a, sm_110, sm_110a, sm_120, sm_120a");
  expect_misused(dump({"--passes", "fold,cs"}),
                 "unknown pass 'cs' in pipeline 'fold,cs'; did you mean 'cse'?");
  expect_misused(dump({"--passes", "fold,,cse"}),
                 "empty pass name in --passes 'fold,,cse'; fix: leave out the extra comma");
  expect_misused(dump({"--print-after", "fould"}),
                 "unknown pass 'fould' in --print-after; did you mean 'fold'?");
  expect_misused(dump({"--pass-limit", "-3"}),
                 "--pass-limit: '-3' is no whole number from 0 to 1000000");
  expect_misused(dump({"--json", "-o", "x"}), HasSubstr("--json"));
  expect_misused(dump({"--stage", "ptx", "-o", "/dev/null/x"}), HasSubstr("/dev/null/x"));
  expect_misused(heddle_command({"dump", "no_function", "--plugin", HEDDLE_FAULTY_PLUGIN}),
                 "kernel 'no_function' is registered wrongly: it has no function");
  expect_misused(dump({"--size", "rwos=3"}),
                 "kernel 'row_sum' has no dimension 'rwos'; it has columns, rows");
  expect_misused(dump({"--size", "rows=9223372036854775807"}),
                 "'x' of f32[9223372036854775807, 16384] has too many bytes: rows is "
                 "9223372036854775807; fix: choose a smaller size");
  // Without elements there are strides all the same.
  expect_misused(heddle_command({"dump", "transpose", "--size", "rows=9223372036854775807",
                                 "--size", "columns=0"}),
                 "'x' of f32[9223372036854775807, 0] has too many bytes: rows is "
                 "9223372036854775807; fix: choose a smaller size");
  expect_misused(heddle_command({"dump", "spmv", "--size", "rows=9223372036854775807"}),
                 "dimension 'rows' of kernel 'spmv' is too large: 9223372036854775807, and 'start' "
                 "has 1 more than that");
}

// Two launches with memory between them, none of which happens.
TEST(DumpTest, ShowsEveryKernelOfAnOperation) {
  const Arguments center = {"dump", "center", "--plugin", HEDDLE_CENTER_PLUGIN, "--stage", "ptx"};
  const Outcome both = heddle_command(center);
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(
      both.out,
      AllOf(StartsWith("--- sum_blocks: ptx ---\n"), HasSubstr(".entry sum_blocks"),
            HasSubstr("\n--- subtract_mean: ptx ---\n"), HasSubstr(".entry subtract_mean")));
  Arguments more = center;
  more.push_back("--json");
  const nlohmann::json json = nlohmann::json::parse(heddle_command(more).out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["kernel"], "sum_blocks");
  EXPECT_EQ(json[1]["kernel"], "subtract_mean");
  Arguments stats = center;
  stats.back() = "ptx,all";
  const Outcome without_ptxas = heddle_command(stats, no_tools());
  expect_one_line(without_ptxas, 0, HasSubstr("the rest is shown without it"));
  const TempDir dir;
  more.back() = "--output=" + dir.path();
  EXPECT_EQ(heddle_command(more).exit_code, 0);
  EXPECT_THAT(slurp(dir.file("sum_blocks.ptx")), HasSubstr(".entry sum_blocks"));
  EXPECT_THAT(slurp(dir.file("subtract_mean.ptx")), HasSubstr(".entry subtract_mean"));
}

// A kernel that is launched again in the same way is shown once.
TEST(DumpTest, ShowsEachVariantOnce) {
  const Outcome sort =
      heddle_command({"dump", "bitonic_sort", "--size", "n=8192", "--stage", "ir"});
  EXPECT_EQ(sort.exit_code, 0) << sort.err;
  std::vector<std::string> headings;
  for (const absl::string_view line : absl::StrSplit(sort.out, '\n')) {
    if (absl::StartsWith(line, "---")) headings.emplace_back(line);
  }
  EXPECT_THAT(headings, ::testing::ElementsAre("--- sort_tiles: ir ---", "--- merge_far: ir ---",
                                               "--- merge_near: ir ---"));
}

// Two kernels may have one name and, one after the other, one address.
TEST(DumpTest, ShowsEachKernelOfAName) {
  const Outcome both =
      heddle_command({"dump", "same_name", "--plugin", HEDDLE_FAULTY_PLUGIN, "--stage", "ir"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, AllOf(HasSubstr("--- again: ir ---"), HasSubstr("--- again.1: ir ---"),
                              HasSubstr("--- again.2: ir ---"), HasSubstr("--- again.3: ir ---")));
}

TEST(DumpTest, ADeviceHasTheSharedMemoryOfItsTarget) {
  const Arguments dump = {"dump", "much_shared", "--plugin", HEDDLE_FAULTY_PLUGIN, "--stage", "ir"};
  EXPECT_EQ(heddle_command(dump).exit_code, 0);
  Arguments smaller = dump;
  smaller.insert(smaller.end(), {"--arch", "sm_86"});
  expect_one_line(heddle_command(smaller), 1,
                  HasSubstr("shared_bytes is 120000, but must be from 0 to 101376"));
}

// As it is registered, without a word about settings or sizes.
TEST(DumpTest, ShowsEveryOperationOfTheLibrary) {
  const nlohmann::json list = nlohmann::json::parse(heddle_command({"list", "--json"}).out);
  EXPECT_GT(list.size(), 15u);
  for (const nlohmann::json& operation : list) {
    const std::string name = operation["name"];
    EXPECT_EQ(operation["can_run"], true) << name;
    const Outcome ptx = heddle_command({"dump", name, "--stage", "ptx"});
    EXPECT_EQ(ptx.exit_code, 0) << name << ": " << ptx.err;
    EXPECT_THAT(ptx.out, HasSubstr(".entry ")) << name;
  }
}

// The shapes decide which kernel it is.
TEST(DumpTest, FollowsSizes) {
  EXPECT_THAT(dump({"--stage", "trace"}).out, HasSubstr("block(512, 1, 1)"));
  EXPECT_THAT(dump({"--stage", "trace", "--size", "columns=32"}).out, HasSubstr("block(32, 8, 1)"));
  expect_one_line(dump({"--size", "rows=0"}), 1,
                  "kernel 'row_sum' launches nothing for these sizes");
}

TEST(DumpTest, SaysWhatCannotBeRunDry) {
  const Outcome looks =
      heddle_command({"dump", "looks", "--plugin", HEDDLE_FAULTY_PLUGIN, "--stage", "trace"});
  EXPECT_EQ(looks.exit_code, 1);
  EXPECT_THAT(looks.out, StartsWith("kernel @copy("));
  EXPECT_THAT(looks.err, HasSubstr("an operation that looks at results can only be run"));
}

TEST(HeddleDumpTest, ShowsTheKernelsOfAnyProgram) {
  const TempDir dir;
  make_npy(dir.file("x.npy"), ir::Scalar::kF32, {2, 2}, [](size_t i) { return i; });
  const Arguments run = {"run", "row_sum", "--device", "interp", "--in", "x=" + dir.file("x.npy")};
  EXPECT_EQ(heddle_command(run).err, "");
  const Outcome shown = heddle_command(run, {"HEDDLE_DUMP=trace,ir,constants"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.err, AllOf(HasSubstr("--- row_sum: trace.ir ---\nkernel @row_sum("),
                               HasSubstr("--- row_sum: ir ---\nkernel @row_sum("),
                               HasSubstr("--- row_sum: constants ---\n")));
  const Outcome files =
      heddle_command(run, {"HEDDLE_DUMP=all", absl::StrCat("HEDDLE_DUMP_DIR=", dir.path())});
  EXPECT_EQ(files.exit_code, 0);
  EXPECT_EQ(files.err, "");
  EXPECT_THAT(slurp(dir.file("row_sum.sm_90a.trace.ir")), StartsWith("kernel @row_sum("));
  EXPECT_THAT(slurp(dir.file("row_sum.sm_90a.ir")), StartsWith("kernel @row_sum("));

  const Outcome ptx = dump({"--stage", "trace"}, {"HEDDLE_DUMP=ptx"});
  EXPECT_THAT(ptx.err, StartsWith("heddle: HEDDLE_DUMP=ptx showed nothing: "));  // not reached
  EXPECT_THAT(dump({"--stage", "ptx"}, {"HEDDLE_DUMP=ptx"}).err,
              StartsWith("--- row_sum: ptx ---\n"));
}

TEST(HeddleDumpTest, SaysOnceWhatItDoesNotKnow) {
  const TempDir dir;
  make_npy(dir.file("x.npy"), ir::Scalar::kF32, {2, 2}, [](size_t i) { return i; });
  const Arguments run = {"run", "row_sum", "--device", "interp", "--in", "x=" + dir.file("x.npy")};
  constexpr char kTakes[] =
      " ignored; it takes trace, ir, ptx, cubin, constants or all, several with commas";
  for (const char* word : {"bogus", "1", "PTX", "sass", "trace:ptx"}) {
    expect_one_line(heddle_command(run, {absl::StrCat("HEDDLE_DUMP=", word)}), 0,
                    absl::StrCat("HEDDLE_DUMP: '", word, "'", kTakes));
  }
  const Outcome both = heddle_command(run, {"HEDDLE_DUMP=sass, ir ,bogus"});
  EXPECT_THAT(both.err, AllOf(StartsWith(absl::StrCat("heddle: HEDDLE_DUMP: 'sass', 'bogus'",
                                                      kTakes, "\n--- row_sum: ir ---\n"))));
  EXPECT_EQ(heddle_command(run, {"HEDDLE_DUMP="}).err, "");
}

TEST(HeddleDumpTest, SaysThatTheInterpreterHasNoPtx) {
  const TempDir dir;
  make_npy(dir.file("x.npy"), ir::Scalar::kF32, {2, 2}, [](size_t i) { return i; });
  expect_one_line(
      heddle_command({"run", "row_sum", "--device", "interp", "--in", "x=" + dir.file("x.npy")},
                     {"HEDDLE_DUMP=ptx"}),
      0,
      "HEDDLE_DUMP=ptx showed nothing: no kernel was compiled as far as PTX, which the interpreter "
      "does not need; 'heddle dump KERNEL --stage ptx' shows it without a GPU");
}

}  // namespace
}  // namespace heddle::tools
