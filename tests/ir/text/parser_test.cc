#include "heddle/ir/text/parser.h"

#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/text_samples.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;

std::string reprinted(absl::string_view text, PrintOptions options = {}) {
  const StatusOr<Kernel> kernel = parse(text, "sample.ir");
  return kernel.ok() ? print(*kernel, options) : std::string(kernel.status().message());
}

std::string error_of(absl::string_view text) {
  const StatusOr<Kernel> kernel = parse(text, "k.ir");
  return kernel.ok() ? "no error" : std::string(kernel.status().message());
}

// A kernel with these lines as its body, from line 2 on.
std::string with_body(absl::string_view body) {
  return absl::StrCat("kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %p: bool) {\n",
                      body, "\n}\n");
}

TEST(Parser, ReadsBackWhatThePrinterWrites) {
  for (const absl::string_view text : kSamples) EXPECT_EQ(reprinted(text), std::string(text));
}

TEST(Parser, HeadersReadBack) {
  const char header[] =
      "kernel @k(%x: f32) block(64, 2, 1) cluster(2, 1, 1) min_blocks(3) target(sm_90a) {\n}\n";
  EXPECT_EQ(print(parse(header, "k.ir").value()), header);
}

TEST(Parser, PlacesReadBack) {
  const std::string text = R"(kernel @k(%n: i32) block(1, 1, 1) cluster(1, 1, 1) target(sm_90a) {
  %0 = add %n, %n : i32 loc("a \"b\".cc":14)
  %1 = lt %0, %n : bool
  if %1 {
    yield loc("a \"b\".cc":16)
  } loc("a \"b\".cc":15)
}
)";
  EXPECT_EQ(reprinted(text, {.locs = true}), text);
}

TEST(Parser, AnElseThatWasLeftOutStandsAtItsIf) {
  const Kernel kernel =
      parse(with_body("if %p {\n yield\n }"), "k.ir", {.text_as_source = true}).value();
  const Op& branch = kernel.op(kernel.region(kernel.body()).first);
  EXPECT_EQ(kernel.loc(branch.loc).line, 2);
  const Op& implied = kernel.op(kernel.region(branch.regions[1]).first);
  EXPECT_EQ(implied.opcode, Opcode::kYield);
  EXPECT_EQ(kernel.loc(implied.loc).line, 2);
}

TEST(Parser, TheTextCanBeTheSource) {
  const Kernel kernel =
      parse(with_body("%0 = add %n, %n : i32\n%1 = add %n, %n : i32 loc(\"a.cc\":9)"), "k.ir",
            {.text_as_source = true})
          .value();
  const OpId first = kernel.region(kernel.body()).first;
  EXPECT_EQ(kernel.loc(first).file, "k.ir");
  EXPECT_EQ(kernel.loc(first).line, 2);
  EXPECT_EQ(kernel.loc(kernel.op(first).next).file, "a.cc");
  EXPECT_EQ(kernel.loc(kernel.op(first).next).line, 9);
}

TEST(Parser, TakesCommentsAndFreeLayout) {
  EXPECT_EQ(reprinted("; a comment\nkernel @k(%n: i32) { ; another\n"
                      "  if   %p.q { yield } }"),
            "sample.ir:3:8: %p.q is not defined before this line; define it above");
  EXPECT_EQ(reprinted("kernel @k(%a: bool){if %a{yield}else{barrier\nyield}}"),
            "kernel @k(%a: bool) block(?) cluster(1, 1, 1) target(sm_90a) {\n"
            "  if %a {\n    yield\n  } else {\n    barrier\n    yield\n  }\n}\n");
}

TEST(Parser, AnOpWithoutOperandsEndsWithItsLine) {
  const Kernel kernel = parse(with_body("barrier\n%0 = add %n,\n %n : i32"), "k.ir").value();
  const OpId first = kernel.region(kernel.body()).first;
  EXPECT_TRUE(kernel.op(first).operands.empty());
  EXPECT_EQ(kernel.op(kernel.op(first).next).operands.size(), 2u);
}

TEST(Parser, KeepsHintsWithoutTheirNumbers) {
  const Kernel kernel =
      parse(with_body("%acc.7 = add %n, %n : i32\n%12 = add %n, %n : i32"), "k.ir").value();
  const OpId first = kernel.region(kernel.body()).first;
  EXPECT_EQ(kernel.text(kernel.value(kernel.op(first).result()).name), "acc");
  EXPECT_FALSE(valid(kernel.value(kernel.op(kernel.op(first).next).result()).name));
}

struct Mistake {
  const char* name;
  const char* body;
  const char* message;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class ParserMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ParserMistake, IsLocatedAndExplained) {
  EXPECT_EQ(error_of(with_body(GetParam().body)), absl::StrCat("k.ir:", GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Body, ParserMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"UnknownOp", "%0 = lod %x, %n : f32", "2:6: unknown op 'lod'; did you mean 'load'?"},
        {"OpLikeNoOther", "frobnicate %x", "2:1: unknown op 'frobnicate'"},
        {"Redefinition", "%a = add %n, %n : i32\n%a = add %n, %n : i32",
         "3:1: %a is already defined at line 2; give this value another name"},
        {"RedefinedParameter", "%n = add %n, %n : i32",
         "2:1: %n is already defined at line 1; give this value another name"},
        {"RedefinedInARegion", "if %p {\n%n = const 1 : i32\nyield\n}",
         "3:1: %n is already defined at line 1; give this value another name"},
        {"NotDefined", "%a = add %b, %n : i32",
         "2:10: %b is not defined before this line; define it above"},
        {"NearlyDefined", "%count = add %n, %n : i32\n%a = add %cout, %n : i32",
         "3:10: %cout is not defined before this line; did you mean %count?"},
        {"DefinedInARegionThatEnded",
         "if %p {\n%a = add %n, %n : i32\nyield\n}\n%b = add %a, %n : i32",
         "6:10: %a is defined at line 3 inside a region that has ended; yield it from there"},
        {"DefinedInASibling",
         "if %p {\n%a = const 1 : i32\nyield\n} else {\n%b = add %a, %n : i32\nyield\n}",
         "6:10: %a is defined at line 3 inside a region that has ended; yield it from there"},
        {"ResultInsideItsOp", "%a = if %p : i32 {\nyield %a\n} else {\nyield %n\n}",
         "3:7: %a is a result of the op at line 2, so it does not exist inside that op's regions; "
         "use what the region is given"},
        {"UnknownAttribute", "%a = thread_idx {axes = x} : i32",
         "2:18: 'thread_idx' has no attribute 'axes'; it has axis"},
        {"AttributeOfAnotherOp", "%a = add %n, %n {axis = x} : i32",
         "2:18: 'add' has no attribute 'axis'; it has ftz"},
        {"AttributeTwice", "%a = thread_idx {axis = x, axis = y} : i32",
         "2:28: the attribute 'axis' is given twice"},
        {"WrongEnumerator", "%a = thread_idx {axis = w} : i32",
         "2:25: the attribute 'axis' is one of x, y, z, not 'w'"},
        {"AttributeIsNoNumber", "%a = extent %x {dim = x} : i32",
         "2:23: expected value of the attribute, found 'x'"},
        {"AttributeIsTooLarge", "%a = extent %x {dim = 99999999999999999999} : i32",
         "2:23: '99999999999999999999' is out of range for value of the attribute: it goes from "
         "-9223372036854775808 to 9223372036854775807"},
        {"BitsAsAttribute", "%a = const 1 {bits = 1} : i32",
         "2:15: 'const' has no attribute 'bits'; it has none"},
        {"WrongType", "%a = add %n, %n : i33",
         "2:19: 'i33' is not a type; types look like i32, bool, vec<f32, 4>, frag<f32, 64>, "
         "view<const f32, global, 2>"},
        {"WrongTypeArguments", "%a = splat %n : vec<i32>",
         "2:17: 'vec<i32>' is not a type; types look like i32, bool, vec<f32, 4>, frag<f32, 64>, "
         "view<const f32, global, 2>"},
        {"OpenType", "%a = splat %n : vec<i32, 4\n",
         "2:17: the type that starts here has no closing '>'; types look like i32, bool, vec<f32, "
         "4>, frag<f32, 64>, view<const f32, global, 2>"},
        {"NoType", "%a = add %n, %n",
         "2:6: 'add' has 1 named result but 0 types; write them as %a, %b = op ... : f32, i32"},
        {"TypeWithoutResult", "store %x, %n, %n : f32",
         "2:1: 'store' has 0 named results but 1 type; write them as %a, %b = op ... : f32, i32"},
        {"TypeIsASymbol", "%a = add %n, %n : (i32)",
         "2:19: expected a type, found '('; types look like i32, bool, vec<f32, 4>, frag<f32, 64>, "
         "view<const f32, global, 2>"},
        {"MissingYield", "if %p {\nbarrier\n}",
         "4:1: this region of 'if' does not end in a yield; add one, with the values that it hands "
         "over"},
        {"MissingYieldInFor", "for %i in %n .. %n step %n {\n}",
         "3:1: this region of 'for' does not end in a yield; add one, with the values that it "
         "hands "
         "over"},
        {"OpBehindYield", "if %p {\nyield\nbarrier\n}",
         "4:1: expected '}' behind the yield, which ends its region, found 'barrier'"},
        {"YieldInTheBody", "yield",
         "2:1: a yield ends the region of an op; the kernel's body has none"},
        {"IfWithResultsWithoutElse", "%a = if %p : i32 {\nyield %n\n}",
         "5:1: this 'if' has results, so it needs an 'else' that yields them too"},
        {"CarriesMoreThanItReturns", "for %i in %n .. %n step %n carry(%a = %n) {\nyield %a\n}",
         "2:1: 'for' carries 1 value but has 0 results; it has one for each"},
        {"DoNamesTooFew", "%r = while carry(%a = %n) : i32 {\nyield %p\n} do {\nyield %n\n}",
         "4:6: 'do' names 0 values, but the loop carries 1"},
        {"NoDo", "while {\nyield %p\n}",
         "5:1: expected 'do' behind the condition of 'while', found '}'"},
        {"NoStep", "for %i in %n .. %n {\nyield\n}",
         "2:20: expected 'step' behind the loop's bounds, found '{'"},
        {"TwoOpsOnALine", "barrier barrier",
         "2:9: expected the end of the line, found 'barrier'; each op has a line of its own"},
        {"LiteralOutOfRange", "%a = const 3000000000 : i32",
         "2:12: '3000000000' is not a value of i32"},
        {"LiteralIsMissing", "%a = const : i32",
         "2:12: expected a number, true or false behind 'const', found ':'"},
        {"OperandIsANumber", "%a = add %n, 1 : i32",
         "2:14: expected a value such as %x, found '1'"},
        {"UnknownCharacter", "%a = add %n & %n : i32", "2:13: unexpected character '&'"},
        {"NamelessValue", "% = add %n, %n : i32", "2:1: a value's name follows '%'"},
        {"OpenString", "assert %p {message = \"oh}\n",
         "2:22: this string has no closing quote; strings end on the line that they start on"},
        {"BadEscape", "assert %p {message = \"\\q\"}",
         "2:22: this string has a bad escape: Unknown escape sequence: \\q"},
        {"BadPlace", "barrier loc(\"a.cc\":-1)",
         "2:20: '-1' is out of range for line: it goes from 0 to 2147483647"},
    }),
    [](const auto& test) { return std::string(test.param.name); });

class ParserHeaderMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ParserHeaderMistake, IsLocatedAndExplained) {
  EXPECT_THAT(error_of(GetParam().body),
              ::testing::StartsWith(absl::StrCat("k.ir:", GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Header, ParserHeaderMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"Nothing", "",
         "1:1: expected 'kernel' at the start of a kernel, found the end of the text"},
        {"NoName", "kernel (", "1:8: expected '@' before the kernel's name, found '('"},
        {"NoType", "kernel @k(%x)", "1:13: expected ':' before the parameter's type, found ')'"},
        {"NoExtents", "kernel @k(%x: view<f32, global, 1>) {}",
         "1:35: expected '[' before the view's extents, found ')'"},
        {"NegativeExtent", "kernel @k(%x: view<f32, global, 1> [-1] strides [1]) {}",
         "1:37: '-1' is out of range for length in elements (or '?'): it goes from 0 to "
         "9223372036854775807"},
        {"UnknownTarget", "kernel @k() target(sm_70) {}",
         "1:20: unknown target 'sm_70'; there are sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, "
         "sm_100a, sm_103, sm_103a, sm_110, sm_110a, sm_120, sm_120a"},
        {"EmptyBlock", "kernel @k() block(0, 1, 1) {}",
         "1:19: '0' is out of range for extent: it goes from 1 to 2147483647"},
        {"UnknownFact", "kernel @k(%n: i32) facts(%n aligned 4) {}",
         "1:29: unknown fact 'aligned'; there are align, extent_div, "},
        {"FactOfNoMode",
         "kernel @k(%x: view<f32, global, 1> [?] strides [1]) facts(%x extent_div 1 4) {}",
         "1:62: %x has no mode 1"},
        {"OpenBody", "kernel @k() {", "1:14: the kernel's body is not closed; add '}'"},
        {"TwoKernels", "kernel @k() {}\nkernel @l() {}",
         "2:1: expected nothing behind the kernel, found 'kernel'"},
    }),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Parser, RefusesBottomlessNesting) {
  std::string text = "kernel @k(%p: bool) {";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&text, "if %p {");
  EXPECT_THAT(error_of(text), HasSubstr("regions nest deeper than 200"));
  std::string types = "kernel @k(%p: ";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&types, "var<");
  EXPECT_THAT(error_of(types), HasSubstr("the type that starts here has no closing '>'"));
}

// Whatever the text, nothing crashes, and what is read can be printed and read again.
TEST(Parser, SurvivesMutatedText) {
  std::mt19937 random(20240807);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutated(kSamples[i % std::size(kSamples)], random);
    const StatusOr<Kernel> kernel = parse(text, "mutant.ir");
    if (!kernel.ok()) {
      ASSERT_TRUE(absl::StartsWith(kernel.status().message(), "mutant.ir:")) << kernel.status();
      continue;
    }
    ++accepted;
    const std::string printed = print(*kernel, {.locs = true});
    const StatusOr<Kernel> again = parse(printed, "printed.ir");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    ASSERT_EQ(print(*again, {.locs = true}), printed);
  }
  EXPECT_GT(accepted, 200);
}

}  // namespace
}  // namespace heddle::ir
