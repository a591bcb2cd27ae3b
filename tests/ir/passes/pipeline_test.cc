#include "heddle/ir/passes/pipeline.h"

#include <ctime>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Kernel sample() {
  return parse_body("256, 1, 1", "%y: view<i32, global, 1> [?] strides [1], %n: i32", R"(
    %z = const 0 : i32
    %one = const 1 : i32
    %s = var %z : var<i32>
    for %i in %z .. %n step %one {
      %a = var.load %s : i32
      %two = const 2 : i32
      %m = mul %n, %two : i32
      %b = add %a, %m : i32
      var.store %s, %b
      yield
    }
    %r = var.load %s : i32
    %t = add %r, %z : i32
    store %y, %t, %z
)");
}

std::string refusal(absl::string_view pipeline, const PipelineOptions& options = {}) {
  Kernel kernel = sample();
  const std::string before = print(kernel);
  const Status status = run_pipeline(kernel, pipeline, options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(print(kernel), before);
  return std::string(status.message());
}

TEST(Pipeline, DefaultPipeline) {
  Kernel kernel = sample();
  PipelineReport report;
  const Status status =
      run_pipeline(kernel, kDefaultPipeline, {.verify_each = true, .report = &report});
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::string> names;
  for (const PassRun& run : report.passes) names.push_back(run.name);
  EXPECT_THAT(names,
              ElementsAre("promote-vars", "equal-extents", "unroll", "fold", "if-convert", "narrow",
                          "reduce-strength", "warp-index", "dce", "licm", "cse", "widen-loops",
                          "unroll-loads", "fold", "vectorize", "share-addresses", "lower-division",
                          "dce", "sink", "early-loads", "contract", "pack-arithmetic"));
  EXPECT_TRUE(verify(kernel, Stage::kPureSsa).empty());
  EXPECT_TRUE(report.passes[0].changed);
  EXPECT_EQ(report.passes[0].ops_before, 12);
  EXPECT_EQ(report.passes[0].ops_after, 8);
  EXPECT_FALSE(report.passes[10].changed);
  EXPECT_GT(report.passes[0].microseconds, 0);
  // Nothing is left for another round.
  const std::string once = print(kernel);
  ASSERT_TRUE(run_pipeline(kernel, kDefaultPipeline).ok());
  EXPECT_EQ(print(kernel), once);
}

// Loops in loops, each of which carries a sum of what the one in it gives.
Kernel nest(int depth) {
  std::string body = "%zero = const 0 : i32\n%one = const 1 : i32\n%k = const 1000 : i32\n";
  std::string ends;
  for (int d = 1; d <= depth; ++d) {
    absl::StrAppend(&body, "%r", d, " = for %i", d, " in %zero .. %n step %one carry(%c", d,
                    " = %zero) : i32 {\n");
    ends = absl::StrCat("%s", d, " = add %r", d + 1, ", %c", d, " : i32\n%m", d, " = min %s", d,
                        ", %k : i32\nyield %m", d, "\n}\n", ends);
  }
  absl::StrAppend(&body, "%r", depth + 1, " = add %c", depth, ", %one : i32\n", ends,
                  "store %y, %r1, %zero\n");
  return parse_body("128, 1, 1", "%y: view<i32, global, 1> [?] strides [1], %n: i32", body);
}

TEST(Pipeline, DeepNestsTakeLittleTime) {
  // The deepest takes about a hundredth of a second. Did each loop solve the one in it twice, 4
  // loops more would take 16 times as long.
  for (int depth = 2; depth <= 50; depth += 4) {
    Kernel kernel = nest(depth);
    const std::clock_t start = std::clock();
    ASSERT_TRUE(run_pipeline(kernel, kDefaultPipeline).ok());
    ASSERT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2) << depth << " deep";
    int loops = 0;
    kernel.walk([&](OpId id) { loops += kernel.op(id).opcode == Opcode::kFor; });
    EXPECT_EQ(loops, depth);
  }
}

TEST(Pipeline, EveryBuiltinPassSaysWhatItDoes) {
  std::set<absl::string_view> names;
  for (const Pass& pass : builtin_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
  }
  Kernel kernel = sample();
  EXPECT_TRUE(run_pipeline(kernel, kExactPipeline).ok());
}

// Each pass's file says what the pass declares.
TEST(PassFiles, SayWhatPassesNeedAndKeep) {
  const auto list = [](const Pass::Names& names) {
    return names.empty() ? "nothing" : absl::StrJoin(names, ", ");
  };
  for (const Pass& pass : builtin_passes()) {
    const std::string path = absl::StrCat(HEDDLE_TEST_DATA_DIR "/../ir/passes/",
                                          absl::StrReplaceAll(pass.name, {{"-", "_"}}), ".cc");
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string gives =
        pass.gives.empty() ? "" : absl::StrCat("Gives: ", list(pass.gives), ". ");
    EXPECT_THAT(text, HasSubstr(absl::StrCat("// Needs: ", list(pass.needs), ". ", gives,
                                             "Keeps: ", list(pass.keeps), ".\n")))
        << path;
  }
}

TEST(Pipeline, RefusesByNameBeforeItRuns) {
  EXPECT_EQ(refusal("promote-vars,foldd,dce"),
            "unknown pass 'foldd' in pipeline 'promote-vars,foldd,dce'; did you mean 'fold'?");
  EXPECT_EQ(
      refusal("xyzzy"),
      "unknown pass 'xyzzy' in pipeline 'xyzzy'; there are promote-vars, equal-extents, unroll, "
      "fold, "
      "if-convert, narrow, reduce-strength, warp-index, dce, licm, cse, widen-loops, unroll-loads, "
      "vectorize, "
      "share-addresses, lower-division, "
      "sink, early-loads, contract, pack-arithmetic");
  EXPECT_THAT(refusal("O4,-licm"), HasSubstr("level O4 is none of O0, O1, O2, O3 in pipeline"));
  EXPECT_EQ(
      refusal("fold,,dce"),
      "unknown pass '' in pipeline 'fold,,dce'; there are promote-vars, equal-extents, unroll, "
      "fold, "
      "if-convert, narrow, reduce-strength, warp-index, dce, licm, cse, widen-loops, unroll-loads, "
      "vectorize, "
      "share-addresses, lower-division, "
      "sink, early-loads, contract, pack-arithmetic");
  EXPECT_EQ(refusal("fold,licm"),
            "pass 'licm' needs a kernel without variables, which no pass before it gives; put "
            "'promote-vars' before it in pipeline 'fold,licm'");
  EXPECT_EQ(refusal("fold", {.print_after = "cze"}),
            "unknown pass 'cze' in --print-after; did you mean 'cse'?");
  EXPECT_EQ(refusal("fold", {.stop_after = "dcee"}),
            "unknown pass 'dcee' in --stop-after; did you mean 'dce'?");
}

TEST(Pipeline, AKernelWithoutVariablesNeedsNoPromotion) {
  Kernel kernel = parse_body("32, 1, 1", "%y: view<i32, global, 1> [?] strides [1], %n: i32",
                             "%z = const 0 : i32\nstore %y, %n, %z\n");
  EXPECT_TRUE(run_pipeline(kernel, "licm").ok());
  EXPECT_TRUE(run_pipeline(kernel, "").ok());
  EXPECT_TRUE(run_pipeline(kernel, " fold , dce ").ok());
}

TEST(Pipeline, PassesOfOnesOwn) {
  PassRegistry registry;
  int runs = 0;
  ASSERT_TRUE(registry
                  .add({.name = "demote",
                        .summary = "Count, and pretend to undo promotion",
                        .run =
                            [&](Kernel&) {
                              ++runs;
                              return false;
                            },
                        .needs = {kNoVariables},
                        .breaks = {kNoVariables}})
                  .ok());
  Kernel kernel = sample();
  EXPECT_TRUE(run_pipeline(kernel, "promote-vars,demote", {.registry = &registry}).ok());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(refusal("promote-vars,demote,licm", {.registry = &registry}),
            "pass 'licm' needs a kernel without variables, which 'demote' before it undoes; put "
            "'promote-vars' before it in pipeline 'promote-vars,demote,licm'");
  EXPECT_EQ(runs, 1);
  // Other pipelines know nothing of it.
  EXPECT_THAT(refusal("promote-vars,demote"), HasSubstr("unknown pass 'demote'"));
  const auto nothing = [](Kernel&) { return false; };
  EXPECT_EQ(registry.add({.name = "fold", .summary = "", .run = nothing}).message(),
            "there is a pass 'fold' already; give yours another name");
  EXPECT_EQ(registry.add({.name = "a,b", .summary = "", .run = nothing}).message(),
            "a pass cannot be called 'a,b', because pipelines are names of letters, digits, '-' "
            "and '_' with commas between them");
  EXPECT_EQ(registry.add({.name = "empty", .summary = "", .run = nullptr}).message(),
            "pass 'empty' has no function to run; set Pass::run");
}

TEST(Pipeline, APassThatFailsEndsIt) {
  PassRegistry registry;
  ASSERT_TRUE(registry
                  .add({.name = "fail",
                        .summary = "Fail",
                        .run = [](Kernel&) -> StatusOr<bool> {
                          return ResourceExhaustedError("too much");
                        }})
                  .ok());
  Kernel kernel = sample();
  PipelineReport report;
  EXPECT_EQ(run_pipeline(kernel, "fold,fail,dce", {.registry = &registry, .report = &report}),
            ResourceExhaustedError("pass 'fail': too much"));
  EXPECT_EQ(report.passes.size(), 1u);
}

TEST(Pipeline, VerificationNamesThePass) {
  PassRegistry registry;
  ASSERT_TRUE(registry
                  .add({.name = "break-it",
                        .summary = "Leave a wrong kernel behind",
                        .run =
                            [](Kernel& kernel) {
                              kernel.walk([&](OpId id) {
                                Op& op = kernel.op(id);
                                if (op.opcode == Opcode::kStore) op.operands.pop_back();
                              });
                              return true;
                            }})
                  .ok());
  Kernel kernel = sample();
  const Status status =
      run_pipeline(kernel, "fold,break-it,dce", {.registry = &registry, .verify_each = true});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel 'test' after 'break-it'"));
  // A kernel that was wrong to begin with is nobody's fault but its author's.
  Kernel wrong = sample();
  EXPECT_FALSE(run_pipeline(wrong, "break-it", {.registry = &registry}).ok());
  const Status before = run_pipeline(wrong, "fold", {.verify_each = true});
  EXPECT_EQ(before.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(before.message()), HasSubstr("kernel 'test' before the first pass"));
}

// Nothing is left to do where no store is ever reached: that is no mistake of the program.
TEST(Pipeline, AKernelMayTurnOutToDoNothing) {
  Kernel kernel = parse_body("32, 1, 1", "%y: view<i32, global, 1> [32] strides [1]", R"(
    %i = thread_idx {axis = x} : i32
    %most = const 32 : i32
    %never = ge %i, %most : bool
    %s = var %i : var<i32>
    if %never {
      store %y, %i, %i
      yield
    }
)");
  ASSERT_TRUE(verify(kernel).empty());
  const Status status =
      run_pipeline(kernel, "fold,dce,promote-vars,fold,dce", {.verify_each = true});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(verify(kernel, Stage::kEmittable).empty());
  kernel.walk([&](OpId id) { EXPECT_NE(kernel.op(id).opcode, Opcode::kStore); });
}

TEST(Pipeline, Printing) {
  std::string out;
  const auto append = [&](absl::string_view text) { out.append(text.data(), text.size()); };
  Kernel kernel = sample();
  Kernel expected = sample();
  promote_vars(expected);
  ASSERT_TRUE(
      run_pipeline(kernel, "promote-vars,contract", {.print_after = "all", .print = append}).ok());
  EXPECT_EQ(out, absl::StrCat("; after promote-vars\n", print(expected), "; after contract\n",
                              print(kernel)));
  out.clear();
  Kernel again = sample();
  const std::string traced = print(again);
  ASSERT_TRUE(run_pipeline(again, "promote-vars,promote-vars",
                           {.print_before = "promote-vars",
                            .print_after = "promote-vars",
                            .print = append,
                            .pass_limit = 1})
                  .ok());
  EXPECT_EQ(out, absl::StrCat("; before promote-vars\n", traced, "; after promote-vars\n",
                              print(expected)));
  out.clear();
  ASSERT_TRUE(run_pipeline(again, "promote-vars", {.print_after = "all", .print = append}).ok());
  EXPECT_EQ(out, "; after promote-vars: unchanged\n");
}

TEST(Pipeline, LimitsAndStops) {
  const auto ran = [](const PipelineOptions& options) {
    PipelineReport report;
    PipelineOptions with_report = options;
    with_report.report = &report;
    Kernel kernel = sample();
    EXPECT_TRUE(run_pipeline(kernel, kDefaultPipeline, with_report).ok());
    return report.passes.size();
  };
  EXPECT_EQ(ran({}), 22u);
  EXPECT_EQ(ran({.pass_limit = 0}), 0u);
  EXPECT_EQ(ran({.pass_limit = 2}), 2u);
  EXPECT_EQ(ran({.pass_limit = 100}), 22u);
  EXPECT_EQ(ran({.stop_after = "dce"}), 9u);
}

}  // namespace
}  // namespace heddle::ir
