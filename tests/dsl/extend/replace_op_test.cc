// Passes that are written in the language.
#include "heddle/dsl/extend/replace_op.h"

#include <string>
#include <vector>

#include "dsl/extend/results_of.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/extend/custom_function.h"
#include "heddle/heddle.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A mark for the sum over a block.
const CustomFunction<int32_t(int32_t)> block_sum(
    {.row = ir::op_row("mark.block_sum", "a:T -> T", ir::DataClass::kNumber, ir::Scope::kBlock),
     .summary = "the sum of the block's values"});
// The largest element of a vector, by a loop with variables.
const CustomFunction<float(float)> bent({.row = ir::op_row("mark.bent", "a:T -> T",
                                                           ir::DataClass::kFloat, ir::kPure),
                                         .summary = "a curve"});

StatusOr<bool> add_up(ir::PassContext& context) {
  return replace_ops(context, block_sum.op().opcode(),
                     [](const Int& part) -> Int { return block_reduce(part, plus{}); });
}
StatusOr<bool> bend(ir::PassContext& context) {
  const StatusOr<bool> scalars =
      replace_ops(context, bent.op().opcode(), [](const Float& x) -> Float {
        Var<float> y(x);
        If(x < 0.0f, [&] { y = x * 0.5f; });
        return y + 1.0f;
      });
  if (!scalars.ok()) return scalars;
  const StatusOr<bool> vectors = replace_ops(
      context, bent.op().opcode(),
      [](const Vec<float, 2>& x) -> Vec<float, 2> { return select(x < 0.0f, x * 0.5f, x) + 1.0f; });
  if (!vectors.ok()) return vectors;
  return *scalars || *vectors;
}

const ir::RegisteredPass add_up_pass({.name = "test-add-up",
                                      .summary = "Add up what is marked",
                                      .run = add_up,
                                      .before = "promote-vars"});
const ir::RegisteredPass bend_pass({.name = "test-bend",
                                    .summary = "Compute curves that are marked",
                                    .run = bend,
                                    .before = "promote-vars"});

TEST(ReplaceOps, PutsWhatAFunctionComputesInTheirPlace) {
  const auto sums = results_of<int32_t>(256, [] {
    Var<int32_t> sum(0);
    For(range(3), [&](const Int& i) { sum += block_sum(thread_idx.x * i); });
    return Int(sum);
  });
  ASSERT_THAT(sums.status(), IsOk());
  for (const int32_t sum : *sums) EXPECT_EQ(sum, 3 * 255 * 128);
}

TEST(ReplaceOps, ChoosesByTypes) {
  const auto curves = results_of<float>(32, [] {
    const Float x = cast<float>(thread_idx.x) - 16.0f;
    const Vec<float, 2> both = Vec<float, 2>(bent(Vec<float, 2>(x, -x)));
    return bent(x) + both[0] * 100.0f + both[1] * 10000.0f;
  });
  ASSERT_THAT(curves.status(), IsOk());
  const auto curve = [](float x) { return (x < 0 ? x / 2 : x) + 1; };
  for (int t = 0; t < 32; ++t) {
    const float x = static_cast<float>(t - 16);
    EXPECT_EQ((*curves)[t], curve(x) + curve(x) * 100 + curve(-x) * 10000) << t;
  }
}

// The mark is a collective: the verifier knows before anything takes its place.
TEST(ReplaceOps, LeavesTheMarksRules) {
  const auto wrong = results_of<int32_t>(64, [] {
    Var<int32_t> sum(0);
    If(thread_idx.x < 8, [&] { sum = block_sum(1); });
    return Int(sum);
  });
  EXPECT_THAT(std::string(wrong.status().message()),
              AllOf(HasSubstr("'mark.block_sum' under a condition that differs between threads"),
                    HasSubstr("replace_op_test.cc")));
}

constexpr char kMarked[] = R"(
    %t = thread_idx {axis = x} : i32
    %s = mark.block_sum %t : i32
    store %y, %s, %t
)";

TEST(ReplaceOps, ReportsWhatTheFunctionMayNotDo) {
  ir::Kernel kernel = ir::parse_body("?", "%y: view<i32, global, 1> [?] strides [1]", kMarked);
  const Status status = ir::run_pipeline(kernel, "test-add-up", {});
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("what replaces 'mark.block_sum'"),
                    HasSubstr("block_reduce() in a kernel whose block is dynamic")));
}

// Where no pass has come by, there is nothing to print or to run.
TEST(ReplaceOps, MarksThatAreLeftAreReported) {
  const auto compile = [](Stage stage) {
    const auto kernel = local_kernel(
        "left", [&](Tensor<int32_t, 1> y) { y(thread_idx.x) = block_sum(thread_idx.x); });
    CompileOptions options{.block = {32, 1, 1}, .target = "sm_90a", .stage = stage};
    options.passes = "promote-vars,dce";
    const auto compiled = kernel.compile(Signature{tensor({kAny})}, options);
    return std::string(compiled.status().message());
  };
  EXPECT_THAT(compile(Stage::kPtx),
              AllOf(HasSubstr("the op 'mark.block_sum' has no PTX"),
                    HasSubstr("if it is a mark for a pass, run the pass before"),
                    HasSubstr("replace_op_test.cc")));
}

}  // namespace
}  // namespace heddle
