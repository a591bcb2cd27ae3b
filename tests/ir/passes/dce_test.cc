#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams = "%y: view<i32, global, 1> [?] strides [1], %n: i32, %p: bool";
constexpr absl::string_view kConstants = "%z = const 0 : i32\n%o = const 1 : i32\n";

void expect_dce(absl::string_view before, absl::string_view after) {
  expect_passes("dce", kParams, absl::StrCat(kConstants, before), absl::StrCat(kConstants, after));
}

TEST(Dce, RemovesWhatNothingNeeds) {
  expect_dce(R"(
    %a = add %n, %o : i32
    %b = load %y, %a : i32
    %c = mul %b, %b : i32
    %d = div %c, %n : i32
    %e = shfl.idx %n, %z : i32
    %s = shared {extents = [4]} : view<i32, shared, 1>
    store %y, %o, %z
)",
             "store %y, %o, %z\n");
}

TEST(Dce, KeepsEffects) {
  constexpr absl::string_view text = R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    store %s, %n, %z
    barrier
    %a = load %y, %z {volatile = 1} : i32
    assert %p {message = "p"}
    if %p {
      store %y, %o, %z
      yield
    }
)";
  expect_dce(text, text);
}

TEST(Dce, EmptyIfsAndLoops) {
  expect_dce(R"(
    if %p {
      %a = add %n, %o : i32
      yield
    }
    %r = for %i in %z .. %n step %o carry(%c = %z) : i32 {
      %d = add %c, %i : i32
      yield %d
    }
    %w = while carry(%e = %z) : i32 {
      %g = lt %e, %n : bool
      yield %g
    } do(%f) {
      %h = add %f, %o : i32
      yield %h
    }
    store %y, %o, %z
)",
             "store %y, %o, %z\n");
}

TEST(Dce, CarriedValuesThatOnlyKeepEachOtherAlive) {
  expect_dce(R"(
    %r, %s, %t = for %i in %z .. %n step %o carry(%a = %z, %b = %o, %c = %n) : i32, i32, i32 {
      %d = add %a, %c : i32
      %e = add %b, %o : i32
      %f = add %c, %a : i32
      store %y, %e, %i
      yield %f, %e, %d
    }
    store %y, %s, %z
)",
             R"(
    %s = for %i in %z .. %n step %o carry(%b = %o) : i32 {
      %e = add %b, %o : i32
      store %y, %e, %i
      yield %e
    }
    store %y, %s, %z
)");
}

TEST(Dce, WhatACarriedValueNeeds) {
  // %a decides what is stored, %b only what %a becomes.
  constexpr absl::string_view text = R"(
    %r, %s = for %i in %z .. %n step %o carry(%a = %z, %b = %o) : i32, i32 {
      store %y, %a, %i
      %e = add %b, %o : i32
      yield %b, %e
    }
)";
  expect_dce(text, text);
}

TEST(Dce, WhileKeepsItsConditionsValues) {
  expect_dce(R"(
    %r, %s, %t = while carry(%a = %z, %b = %o, %c = %n) : i32, i32, i32 {
      %g = lt %b, %n : bool
      yield %g
    } do(%d, %e, %f) {
      %h = add %d, %f : i32
      %i = add %e, %o : i32
      store %y, %o, %e
      yield %h, %i, %f
    }
    store %y, %o, %z
)",
             R"(
    %s = while carry(%b = %o) : i32 {
      %g = lt %b, %n : bool
      yield %g
    } do(%e) {
      %i = add %e, %o : i32
      store %y, %o, %e
      yield %i
    }
    store %y, %o, %z
)");
}

TEST(Dce, ResultsOfIfs) {
  expect_dce(R"(
    %r, %s = if %p : i32, i32 {
      %a = add %n, %o : i32
      yield %a, %o
    } else {
      %b = mul %n, %n : i32
      yield %b, %z
    }
    store %y, %s, %z
)",
             R"(
    %s = if %p : i32 {
      yield %o
    } else {
      yield %z
    }
    store %y, %s, %z
)");
}

TEST(Dce, VariablesNobodyReads) {
  expect_dce(R"(
    %s = var %z : var<i32>
    %t = var %z : var<i32>
    %u = var %o : var<i32>
    var.store %s, %n
    %a = var.load %t : i32
    var.store %s, %a
    if %p {
      %c = var.load %u : i32
      var.store %t, %c
      yield
    }
    %b = var.load %t : i32
    store %y, %b, %z
)",
             R"(
    %t = var %z : var<i32>
    %u = var %o : var<i32>
    if %p {
      %c = var.load %u : i32
      var.store %t, %c
      yield
    }
    %b = var.load %t : i32
    store %y, %b, %z
)");
}

TEST(Dce, StoresThatReadVariables) {
  // %t is read only by a store to %s, which is read.
  constexpr absl::string_view text = R"(
    %s = var %z : var<i32>
    %t = var %z : var<i32>
    var.store %t, %n
    %a = var.load %t : i32
    var.store %s, %a
    %b = var.load %s : i32
    store %y, %b, %o
)";
  expect_dce(text, text);
}

TEST(Dce, SaysWhetherAnythingWent) {
  Kernel kernel = parse_body("32, 1, 1", kParams, "%z = const 0 : i32\nstore %y, %n, %z\n");
  EXPECT_FALSE(dce(kernel));
}

}  // namespace
}  // namespace heddle::ir
