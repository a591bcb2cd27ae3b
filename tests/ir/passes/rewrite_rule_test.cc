#include "heddle/ir/passes/rewrite_rule.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kParams =
    "%x: view<i32, global, 1> [?] strides [1], %y: view<f32, global, 1> [?] strides [1], "
    "%n: i32, %f: f32, %g: f32";

// The kernel's text after rules, verified; or what is wrong.
std::string after(absl::string_view body, std::vector<RewriteRule> rules) {
  Kernel kernel = parse_body("32, 1, 1", kParams, body);
  PassRegistry registry;
  EXPECT_TRUE(
      registry.add(rewrite_pass({.name = "mine", .summary = "Rewrite"}, std::move(rules))).ok());
  const Status status =
      run_pipeline(kernel, "mine,dce", {.registry = &registry, .verify_each = true});
  return status.ok() ? print(kernel) : std::string(status.message());
}

TEST(RewriteRules, ReplaceWhatTheyMatch) {
  const std::string text = after(R"(
    %t = thread_idx {axis = x} : i32
    %s = sqrt %g : f32
    %q = div %f, %s : f32
    store %y, %q, %t
)",
                                 {{.match = "(div a (sqrt b))", .replace = "(mul a (rsqrt b))"}});
  EXPECT_THAT(text, HasSubstr("%0 = rsqrt %g : f32"));
  EXPECT_THAT(text, HasSubstr("%q = mul %f, %0 : f32"));
  EXPECT_THAT(text, Not(HasSubstr("div")));
  EXPECT_THAT(text, Not(HasSubstr("= sqrt")));
}

TEST(RewriteRules, MatchCommutativeOpsEitherWayAndNamesTwice) {
  const std::vector<RewriteRule> rules = {{.match = "(add a (mul a 3))", .replace = "(mul a 4)"}};
  const auto body = [](absl::string_view sum) {
    return absl::StrCat(R"(
    %t = thread_idx {axis = x} : i32
    %three = const 3 : i32
    %m = mul %three, %n : i32
    %s = )",
                        sum, " : i32\n    store %x, %s, %t\n");
  };
  EXPECT_THAT(after(body("add %m, %n"), rules), HasSubstr("%s = mul %n, %0"));
  EXPECT_THAT(after(body("add %n, %m"), rules), HasSubstr("%0 = const 4 : i32"));
  EXPECT_THAT(after(body("add %m, %t"), rules), HasSubstr("%s = add %m, %t"));
  EXPECT_THAT(after(body("sub %m, %n"), rules), HasSubstr("%s = sub %m, %n"));
}

TEST(RewriteRules, AskAConditionAndFacts) {
  constexpr absl::string_view kBody = R"(
    %t = thread_idx {axis = x} : i32
    %c = const 2 : i32
    %a = div %t, %c : i32
    %b = div %n, %c : i32
    %s = add %a, %b : i32
    store %x, %s, %t
)";
  const std::string text =
      after(kBody, {{.match = "(div a 2)",
                     .when = [](const RuleMatch& m) { return m.range("a").min >= 0; },
                     .replace = "(shr a 1)"}});
  EXPECT_THAT(text, HasSubstr("%a = shr %t, "));
  EXPECT_THAT(text, HasSubstr("%b = div %n, %c"));
  // The first rule that matches is taken; what rules have made is left alone.
  const std::string first = after(kBody, {{.match = "(div a 2)", .replace = "(div (div a 2) 2)"},
                                          {.match = "(div a 2)", .replace = "a"}});
  EXPECT_THAT(first, HasSubstr("%a = div %1, "));
  const std::string gone = after(kBody, {{.match = "(div a 2)", .replace = "a"}});
  EXPECT_THAT(gone, HasSubstr("%s = add %t, %n"));
}

TEST(RewriteRules, NumbersHaveTheTypesOfTheirPlaces) {
  constexpr absl::string_view kBody = R"(
    %t = thread_idx {axis = x} : i32
    %two = const 2 : i32
    %d = mul %t, %two : i32
    store %x, %d, %t
)";
  const std::string wrong =
      after(kBody, {{.match = "(mul a 2)", .replace = "(select true (shl a 1) 7)"}});
  EXPECT_THAT(wrong, HasSubstr("'true' of"));
  const std::string right =
      after(kBody, {{.match = "(mul a 2)", .replace = "(select (lt a 9) (shl a 1) 7)"}});
  EXPECT_THAT(right, HasSubstr("const 1 : u32"));
  EXPECT_THAT(right, HasSubstr("const 7 : i32"));
}

TEST(RewriteRules, LeaveAttributesAlone) {
  const std::string text = after(R"(
    %t = thread_idx {axis = x} : i32
    %s = mul %f, %g {ftz = 1} : f32
    store %y, %s, %t
)",
                                 {{.match = "(mul a b)", .replace = "a"}});
  EXPECT_THAT(text, HasSubstr("mul %f, %g"));
}

TEST(RewriteRules, MistakesAreNamed) {
  const auto wrong = [](std::string match, std::string replace) {
    return after(R"(
    %t = thread_idx {axis = x} : i32
    %s = add %t, %n : i32
    store %x, %s, %t
)",
                 {{.match = std::move(match), .replace = std::move(replace)}});
  };
  EXPECT_EQ(wrong("(ad a b)", "a"),
            "pass 'mine': there is no op 'ad'; did you mean 'add'? in the pattern '(ad a b)'");
  EXPECT_EQ(wrong("(add a b", "a"), "pass 'mine': a ')' is missing in the pattern '(add a b'");
  EXPECT_EQ(wrong("(add a)", "a"),
            "pass 'mine': 'add' takes 2 operands, not 1 in the pattern '(add a)'");
  EXPECT_EQ(wrong("a", "a"), "pass 'mine': the pattern 'a' is no op");
  EXPECT_EQ(wrong("(add a b) c", "a"),
            "pass 'mine': 'c' stands behind its end in the pattern '(add a b) c'");
  EXPECT_EQ(wrong("(store a b c)", "a"),
            "pass 'mine': 'store' is no pure op with one result in the pattern '(store a b c)'");
  EXPECT_EQ(wrong("(add a b)", "(extract a)"),
            "pass 'mine': 'extract' needs attributes, which patterns have none of in the "
            "replacement '(extract a)'");
  EXPECT_EQ(wrong("(add a b)", "(sub a c)"),
            "pass 'mine': 'c' of '(sub a c)' is no name of the pattern '(add a b)'");
  EXPECT_EQ(wrong("(add a b)", "(convert:f31 a)"),
            "pass 'mine': 'f31' is no type in the replacement '(convert:f31 a)'");
  EXPECT_THAT(
      wrong("(add a b)", "(convert:i64 a)"),
      HasSubstr("the rule '(add a b) -> (convert:i64 a)' gives i64 in the place of i32; end "
                "it with an op of that type, such as (convert:i32 …)"));
  EXPECT_THAT(wrong("(add a b)", "(add a 1.5)"), HasSubstr("1.5"));
  EXPECT_EQ(wrong("(add a 2.5x)", "a"),
            "pass 'mine': '2.5x' is no number in the pattern '(add a 2.5x)'");
  EXPECT_EQ(wrong("(add a b)", "(add a -)"),
            "pass 'mine': '-' is no number in the replacement '(add a -)'");
  EXPECT_EQ(wrong("", "a"), "pass 'mine': the pattern of a rule is empty");
  EXPECT_EQ(wrong("(add a b)", " "), "pass 'mine': the replacement of a rule is empty");
}

// What a condition asks for and the pattern has not.
TEST(RewriteRules, ConditionsAskForNamesOfThePattern) {
  EXPECT_EQ(
      after(R"(
    %t = thread_idx {axis = x} : i32
    %s = add %t, %n : i32
    store %x, %s, %t
)",
            {{.match = "(add a b)",
              .when = [](const RuleMatch& m) { return m.type("c") == m.type("a"); },
              .replace = "a"}}),
      "pass 'mine': RuleMatch asks for 'c', which the pattern of a rule on 'add' does not name");
}

TEST(RewriteRules, OfOneArchitecture) {
  PassRegistry registry;
  ASSERT_TRUE(registry
                  .add(rewrite_pass({.name = "mine", .summary = "", .targets = {"sm_90a"}},
                                    {{.match = "(add a b)", .replace = "a"}}))
                  .ok());
  for (const absl::string_view target : {"sm_90a", "sm_80"}) {
    Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %s = add %t, %n : i32
    store %x, %s, %t
)");
    kernel.target = find_target(target);
    ASSERT_TRUE(run_pipeline(kernel, "mine", {.registry = &registry}).ok());
    EXPECT_EQ(print(kernel).find("store %x, %s, %t") == std::string::npos, target == "sm_90a");
  }
}

}  // namespace
}  // namespace heddle::ir
