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
#include "ir/interp/run_text.h"
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

// What has no bits beyond its type: a meaning may give more.
const RegisteredOp is_odd(
    {.row = op_row("test.is_odd", "a:i32 -> bool", kPure),
     .summary = "the lowest bit",
     .ptx = {{"{ .reg .b32 x;\n and.b32 x, %1, 1;\n setp.ne.b32 %0, x, 0; }"}},
     .meaning = [](absl::Span<const uint64_t> in, absl::Span<uint64_t> out) { out[0] = in[0]; }});
const RegisteredOp minus({.row = op_row("test.minus", "a:i32 -> i32", kPure),
                          .summary = "-a",
                          .ptx = {{"neg.s32 %0, %1;"}},
                          .meaning = [](absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {
                            out[0] = -in[0];
                          }});
// Illegal for 0: nothing may run it where the program does not.
const RegisteredOp quotient({.row = op_row("test.quotient", "value:i32 count:i32 -> i32", kPure,
                                           kNotSpeculatable),
                             .summary = "x / y",
                             .ptx = {{"div.s32 %0, %1, %2;"}},
                             .meaning = [](absl::Span<const uint64_t> in,
                                           absl::Span<uint64_t> out) { out[0] = in[0] / in[1]; }});
const RegisteredOp parts({.row = op_row("test.parts", "a:T -> T u32", DataClass::kInteger),
                          .summary = "a, and something",
                          .ptx = {{"mov.b32 %0, %2;\n mov.b32 %1, %2;"}}});
const RegisteredOp real({.row = op_row("test.real", "a:T b:T -> T", DataClass::kFloat, kPure),
                         .summary = "a + b, a constant",
                         .ptx = {{"add.rn.f32 %0, %1, %#2;", Scalar::kF32},
                                 {"add.rn.f16 %0, %1, %#2;", Scalar::kF16}}});

// The sum over the lanes of a warp.
const RegisteredOp total(
    {.row = op_row("test.total", "value:i32 mask:u32? -> i32", Scope::kWarp, rows::poison("value")),
     .summary = "the sum over the lanes that take part",
     .ptx = {{"redux.sync.add.s32 %0, %1, %2;"}},
     .warp_meaning = [](uint32_t lanes, absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {
       uint64_t sum = 0;
       for (int i = 0; i < 32; ++i) sum += (lanes >> i & 1) * in[i];
       for (int i = 0; i < 32; ++i) out[i] = sum + (in[32 + i] == 0xFFFFFFFF);
     }});

std::string kernel_of(absl::string_view body) {
  return absl::StrCat("kernel @k(", kParams, ") block(32, 1, 1) target(sm_90a) {\n", body, "}\n");
}

TEST(CustomOps, MayBeAKernelsFirst) {
  const RunResult result = run_text(kernel_of(R"(
    %a = test.minus %n : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %s = add %n, %one : i32
    store %y, %s, %zero
    store %y, %a, %one
)"),
                                    "", {memory(2), number(5)});
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.memory[0], (std::vector<uint64_t>{6, 0xFFFFFFFB}));
}

// A mask that is not given is one of all lanes; and a warp's result depends on each lane's value.
TEST(CustomOps, OfWarpsDependOnAllLanes) {
  const RunResult sum = run_text(kernel_of(R"(
    %t = thread_idx {axis = x} : i32
    %zero = const 0 : i32
    %s = test.total %t : i32
    store %y, %s, %zero
)"),
                                 "O3", {memory(1), number(0)});
  EXPECT_EQ(sum.error, "");
  EXPECT_EQ(sum.memory[0], (std::vector<uint64_t>{31 * 16 + 1}));
  EXPECT_THAT(run_text(kernel_of(R"(
    %t = thread_idx {axis = x} : i32
    %zero = const 0 : i32
    %three = const 3 : i32
    %nothing = undef : i32
    %c = eq %t, %three : bool
    %v = select %c, %nothing, %t : i32
    %s = test.total %v : i32
    store %y, %s, %zero
)"),
                       "", {memory(1), number(0)})
                  .error,
              HasSubstr("this op from outside is given a value that nobody has written"));
}

TEST(CustomOps, FoldToBitsOfTheirType) {
  Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %seven = const 7 : i32
    %zero = const 0 : i32
    %o = test.is_odd %seven : bool
    %m = test.minus %seven : i32
    %s = select %o, %m, %t : i32
    %c = eq %t, %n : bool
    if %c {
      %q = test.quotient %seven, %zero : i32
      store %y, %q, %t
      yield
    }
    store %y, %s, %t
)");
  ASSERT_TRUE(run_pipeline(kernel, "fold,dce", {.verify_each = true}).ok());
  const std::string text = print(kernel);
  EXPECT_THAT(text, HasSubstr("const -7 : i32"));
  EXPECT_THAT(text, HasSubstr("store %y, %s, %t"));
  EXPECT_THAT(text, HasSubstr("test.quotient"));
}

TEST(CustomOps, WorkOnElementsOfOneShape) {
  EXPECT_EQ(wrong("%u = bitcast %n : u32\n%a, %b = test.parts %u : u32, u32\nstore %y, %n, %n\n"),
            "");
  EXPECT_THAT(wrong("%u = const 1 : vec<u32, 4>\n%a, %b = test.parts %u : vec<u32, 4>, u32\n"),
              HasSubstr("works element by element, and its result 2 is u32"));
}

TEST(CustomOps, HaveNumbersOfSomeTypes) {
  EXPECT_EQ(wrong("%f = const 1.5 : f32\n%g = test.real %f, %f : f32\nstore %y, %n, %n\n"), "");
  EXPECT_THAT(wrong("%f = const 1.5 : f16\n%g = test.real %f, %f : f16\n"),
              HasSubstr("%#2 of the PTX of 'test.real' is f16, of which PTX has no numbers"));
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
  EXPECT_EQ(
      refusal({.row = op_row("monus", "a:i32 -> i32", kPure), .ptx = {form}}),
      "the op 'monus' is refused: an op from outside is called by its owner's name, a dot and a "
      "name, in small letters, digits and '_', such as acme.dot4");
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
  const auto says = [&](OpInfo row, absl::string_view why) {
    EXPECT_THAT(refusal({.row = row, .ptx = {form}}), HasSubstr(std::string(why))) << row.mnemonic;
  };
  says(op_row("rcp.approx", "a:u32 -> u32", kPure), "there is an op of that name");
  says(op_row("test.j", "a:i32 -> i32 i32", kPure),
       "it is pure and has 2 results; leave kPure out");
  says(op_row("test.k", "a:i32 ->", kPure), "it is pure and has 0 results");
  says(op_row("test.l", "a:i32 b:i32? -> i32"), "only the mask of a warp's op need not be given");
  says(op_row("test.m", "a:i32 mask:u32? -> i32"), "only the mask of a warp's op");
  says(op_row("test.n", "a:i32 -> i32", kPure, Scope::kWarp), "leave kPure out");
  says(op_row("test.o", "a:i32 -> i32", kCheap, kVolatile), "it is cheap");
  says(op_row("test.p", "a:i32 -> i32", kCheap, kPure, kNotSpeculatable), "it is cheap");
  says(op_row("test.q", "a:i32 -> i32", kCommutative, kPure), "it is commutative");
  says(op_row("test.r", "a:i32 b:u32 -> i32", kCommutative, kPure), "it is commutative");
  says(op_row("test.s", "address:i64 offset:i32 -> i32"), "an operand called offset");
  says(op_row("test.t", "a:u32 -> B", kPure), "shaped like T, and its signature has no T");
  EXPECT_THAT(refusal({.row = op_row("test.u", "a:i32 b:i32 -> i32", kCommutative, kPure),
                       .ptx = {{"add.s32 %0, %1, %#2;"}}}),
              HasSubstr("may be swapped away"));
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
