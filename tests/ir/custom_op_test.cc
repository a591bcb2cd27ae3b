#include "heddle/ir/custom_op.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// a - b where that is not negative, else 0.
const RegisteredOp monus({.row = op_row("test.monus", "a:T b:T -> T", DataClass::kInteger, kPure),
                          .summary = "the difference, or 0 where that is negative",
                          .ptx = {{"sub.sat.s32 %0, %1, %2;", Scalar::kI32}},
                          .meaning = [](absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {
                            const int64_t d =
                                static_cast<int32_t>(in[0]) - int64_t{static_cast<int32_t>(in[1])};
                            out[0] = static_cast<uint32_t>(d < 0 ? 0 : d);
                          }});
// A pure op without a meaning, and one that has an effect.
const RegisteredOp twin({.row = op_row("test.twin", "a:i32 -> i32", kPure),
                         .summary = "a",
                         .ptx = {{"mov.b32 %0, %1;"}}});
const RegisteredOp poke(
    {.row = op_row("test.poke", "a:i32 ->", kVolatile),
     .summary = "an event",
     .ptx = {{"pmevent %#0;", Scalar::kNone, {"", 90, FeatureInfo::Extent::kOnwards, 78}}},
     .check = [](const Kernel& kernel, const Op& op) -> std::optional<OpFault> {
       if (kernel.constant_int(op.a()).value_or(0) < 16) {
         return std::nullopt;
       }
       return OpFault{"there are 16 events", "name one of 0 to 15"};
     }});

constexpr absl::string_view kParams = "%y: view<i32, global, 1> [?] strides [1], %n: i32";

std::string wrong(absl::string_view body, absl::string_view target = "sm_90a") {
  const StatusOr<Kernel> kernel =
      parse(absl::StrCat("kernel @k(", kParams, ") block(32, 1, 1) target(", target, ") {\n", body,
                         "}\n"),
            "test.ir");
  if (!kernel.ok()) return std::string(kernel.status().message());
  return to_string(verify(*kernel));
}

TEST(CustomOps, ComeAndGoAsText) {
  const std::string text = print(parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %m = test.monus %n, %t : i32
    store %y, %m, %t
)"));
  EXPECT_THAT(text, HasSubstr("%m = test.monus %n, %t : i32"));
  EXPECT_EQ(print(parse_kernel(text)), text);
}

TEST(CustomOps, AreHeldAgainstTheirRows) {
  EXPECT_THAT(wrong("%m = test.monus %n : i32\n"), HasSubstr("'test.monus' takes 2 operands"));
  EXPECT_THAT(wrong("%f = const 1.0 : f32\n%m = test.monus %f, %f : f32\n"),
              HasSubstr("operand 1 of 'test.monus' is f32"));
  EXPECT_THAT(wrong("%m = test.monus %n, %n : u32\n"), HasSubstr("test.monus"));
  EXPECT_THAT(wrong("%u = bitcast %n : u32\n%m = test.monus %u, %u : u32\n"),
              AllOf(HasSubstr("the op 'test.monus' has no PTX of u32 for sm_90a"),
                    HasSubstr("give its CustomOp a form for that")));
  EXPECT_THAT(wrong("%z = const 3 : i32\ntest.poke %z\n", "sm_80"),
              HasSubstr("the op 'test.poke' has no PTX for sm_80"));
  EXPECT_THAT(wrong("%z = const 16 : i32\ntest.poke %z\n"),
              AllOf(HasSubstr("there are 16 events"), HasSubstr("name one of 0 to 15")));
  EXPECT_THAT(wrong("test.poke %n\n"),
              HasSubstr("%#0 of the PTX of 'test.poke' is no constant operand"));
  EXPECT_EQ(wrong("%z = const 3 : i32\ntest.poke %z\nstore %y, %n, %z\n"), "");
  EXPECT_THAT(wrong("%m = test.monsu %n, %n : i32\n"),
              HasSubstr("unknown op 'test.monsu'; did you mean 'test.monus'?"));
}

// They are folded, merged and removed by their traits and meanings.
TEST(CustomOps, AreOptimised) {
  Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %five = const 5 : i32
    %two = const 2 : i32
    %c = test.monus %five, %two : i32
    %a = test.monus %n, %t : i32
    %b = test.monus %n, %t : i32
    %unused = test.twin %t : i32
    %kept = test.twin %five : i32
    test.poke %two
    test.poke %two
    %s = add %a, %b : i32
    %u = add %s, %c : i32
    %v = add %u, %kept : i32
    store %y, %v, %t
)");
  ASSERT_TRUE(run_pipeline(kernel, "O3", {.verify_each = true}).ok());
  const std::string text = print(kernel);
  EXPECT_THAT(text, Not(HasSubstr("test.monus %five")));
  EXPECT_THAT(text, HasSubstr("const 3 : i32"));
  EXPECT_EQ(absl::StrContains(text, "%unused"), false) << text;
  const auto count = [&](absl::string_view word) {
    return std::vector<absl::string_view>(absl::StrSplit(text, word)).size() - 1;
  };
  EXPECT_EQ(count("test.monus"), 1u) << text;
  EXPECT_EQ(count("test.poke"), 2u) << text;
  EXPECT_EQ(count("test.twin"), 1u) << text;  // without a meaning it is not folded
}

TEST(CustomOps, AreRefusedWithTheReason) {
  const auto refusal = [](CustomOp op) {
    const RegisteredOp refused(std::move(op));
    EXPECT_FALSE(refused.status().ok());
    return std::string(refused.status().message());
  };
  const PtxForm form = {"mov.b32 %0, %1;"};
  EXPECT_EQ(refusal({.row = op_row("test.monus", "a:i32 -> i32", kPure), .ptx = {form}}),
            "the op 'test.monus' is refused: there is an op of that name");
  EXPECT_EQ(refusal({.row = op_row("monus", "a:i32 -> i32", kPure), .ptx = {form}}),
            "the op 'monus' is refused: its name is not that of whose op it is, a dot and small "
            "letters, as acme.dot4");
  EXPECT_EQ(refusal({.row = op_row("test.a", "a:i32! -> i32", kPure), .ptx = {form}}),
            "the op 'test.a' is refused: it takes or gives a 'i32!', and ops from outside have "
            "scalars, vectors and fragments alone");
  EXPECT_THAT(refusal({.row = op_row("test.b", "a:i32 -> i32", kPure), .ptx = {{"mov %0, %2;"}}}),
              HasSubstr("its PTX names %2, which is no value of it"));
  EXPECT_THAT(refusal({.row = op_row("test.c", "a:i32 -> i32", kPure), .ptx = {{"mov %1, %#0;"}}}),
              HasSubstr("its PTX names %#0, which is no operand of it"));
  EXPECT_THAT(refusal({.row = op_row("test.d", "view:V a:i32 -> i32", kPure), .ptx = {form}}),
              HasSubstr("it takes or gives a 'V'"));
  EXPECT_THAT(refusal({.row = op_row("test.e", "values:X* -> i32", kPure), .ptx = {form}}),
              HasSubstr("it takes any number of values"));
  EXPECT_THAT(refusal({.row = op_row("test.f", "a:i32 -> i32", kRegions), .ptx = {form}}),
              HasSubstr("traits that need code inside Heddle"));
  EXPECT_THAT(refusal({.row = op_row("test.g", "a:i32 -> i32", Scope::kBlock), .ptx = {form}}),
              HasSubstr("more than a warp's threads run it together"));
  EXPECT_THAT(refusal({.row = op_row("test.h", "a:i32 -> i32", kPure, kVolatile), .ptx = {form}}),
              HasSubstr("it is pure and has a side effect"));
  EXPECT_THAT(refusal({.row = op_row("test.i", "a:i32 -> i32", Scope::kWarp),
                       .ptx = {form},
                       .meaning = [](absl::Span<const uint64_t>, absl::Span<uint64_t>) {}}),
              HasSubstr("it has a warp_meaning"));
  // The parser knows them.
  EXPECT_THAT(wrong("%m = test.a %n : i32\n"),
              HasSubstr("the op 'test.a' is refused: it takes or gives"));
}

TEST(CustomOps, AreAmongAllOps) {
  EXPECT_THAT(all_opcodes(), Contains(monus.opcode()));
  EXPECT_EQ(info(monus.opcode()).mnemonic, "test.monus");
  EXPECT_EQ(operand_index(monus.opcode(), OperandName::kB), 1);
  EXPECT_EQ(operand_index(monus.opcode(), OperandName::kView), -1);
  EXPECT_EQ(custom_op(Opcode::kAdd), nullptr);
  EXPECT_EQ(opcode_from_mnemonic("test.monus"), monus.opcode());
}

}  // namespace
}  // namespace heddle::ir
