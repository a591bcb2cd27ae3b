#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams =
    "%y: view<f32, global, 1> [?] strides [1], %a: f32, %b: f32, %c: f32, %d: f32, "
    "%i: i32, %j: i32";
constexpr absl::string_view kConstants = "%z = const 0 : i32\n%o = const 1 : i32\n";

void expect_contract(absl::string_view before, absl::string_view after) {
  expect_passes("contract", kParams, absl::StrCat(kConstants, before),
                absl::StrCat(kConstants, after));
}

TEST(Contract, SumsOfProducts) {
  expect_contract("%m = mul %a, %b : f32\n%s = add %m, %c : f32\nstore %y, %s, %z\n",
                  "%s = fma %a, %b, %c : f32\nstore %y, %s, %z\n");
  expect_contract("%m = mul %a, %b : f32\n%s = add %c, %m : f32\nstore %y, %s, %z\n",
                  "%s = fma %a, %b, %c : f32\nstore %y, %s, %z\n");
  expect_contract("%m = mul %a, %b : f32\n%s = sub %m, %c : f32\nstore %y, %s, %z\n",
                  "%n = neg %c : f32\n%s = fma %a, %b, %n : f32\nstore %y, %s, %z\n");
  expect_contract("%m = mul %a, %b : f32\n%s = sub %c, %m : f32\nstore %y, %s, %z\n",
                  "%n = neg %a : f32\n%s = fma %n, %b, %c : f32\nstore %y, %s, %z\n");
  // One of two products.
  expect_contract(
      "%m = mul %a, %b : f32\n%n = mul %c, %d : f32\n%s = add %m, %n : f32\nstore %y, %s, %z\n",
      "%n = mul %c, %d : f32\n%s = fma %a, %b, %n : f32\nstore %y, %s, %z\n");
}

TEST(Contract, ProductsThatOthersUseStay) {
  constexpr absl::string_view twice =
      "%m = mul %a, %b : f32\n%s = add %m, %c : f32\nstore %y, %s, %z\nstore %y, %m, %o\n";
  expect_contract(twice, twice);
  constexpr absl::string_view squared =
      "%m = mul %a, %b : f32\n%s = add %m, %m : f32\nstore %y, %s, %z\n";
  expect_contract(squared, squared);
  // A product outside the loop is computed once.
  constexpr absl::string_view outside =
      "%m = mul %a, %b : f32\nfor %k in %z .. %i step %o {\n%t = convert %k : f32\n"
      "%s = add %m, %t : f32\nstore %y, %s, %k\nyield\n}\n";
  expect_contract(outside, outside);
}

TEST(Contract, Integers) {
  expect_contract("%m = mul %i, %j : i32\n%s = add %m, %o : i32\nstore %y, %a, %s\n",
                  "%s = fma %i, %j, %o : i32\nstore %y, %a, %s\n");
  constexpr absl::string_view difference =
      "%m = mul %i, %j : i32\n%s = sub %m, %i : i32\nstore %y, %a, %s\n";
  expect_contract(difference, difference);
}

TEST(Contract, Vectors) {
  expect_contract(
      "%v = splat %a : vec<f32, 4>\n%m = mul %v, %v : vec<f32, 4>\n"
      "%s = add %m, %v : vec<f32, 4>\nstore %y, %s, %z\n",
      "%v = splat %a : vec<f32, 4>\n%s = fma %v, %v, %v : vec<f32, 4>\nstore %y, %s, %z\n");
}

TEST(Contract, FlushingOpsFuseWithEachOtherAlone) {
  expect_contract(
      "%m = mul %a, %b {ftz = 1} : f32\n%s = add %m, %c {ftz = 1} : f32\nstore %y, %s, %z\n",
      "%s = fma %a, %b, %c {ftz = 1} : f32\nstore %y, %s, %z\n");
  for (const absl::string_view text :
       {"%m = mul %a, %b {ftz = 1} : f32\n%s = add %m, %c : f32\nstore %y, %s, %z\n",
        "%m = mul %a, %b : f32\n%s = add %m, %c {ftz = 1} : f32\nstore %y, %s, %z\n",
        "%m = mul %a, %b {ftz = 1} : f32\n%s = sub %c, %m : f32\nstore %y, %s, %z\n",
        "%m = mul %a, %b : f32\n%s = sub %m, %c {ftz = 1} : f32\nstore %y, %s, %z\n"}) {
    expect_contract(text, text);
  }
}

}  // namespace
}  // namespace heddle::ir
