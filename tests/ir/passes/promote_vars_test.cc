#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams =
    "%y: view<i32, global, 1> [?] strides [1], %n: i32, %p: bool, %q: bool";

constexpr absl::string_view kConstants =
    "%z = const 0 : i32\n%o = const 1 : i32\n%k = const 5 : i32\n";

void expect_promoted(absl::string_view before, absl::string_view after) {
  expect_passes("promote-vars", kParams, absl::StrCat(kConstants, before),
                absl::StrCat(kConstants, after));
}

TEST(PromoteVars, StraightLine) {
  expect_promoted(R"(
    %s = var %z {name = "s"} : var<i32>
    %a = var.load %s : i32
    %b = add %a, %n : i32
    var.store %s, %b
    var.store %s, %k
    %c = var.load %s : i32
    %d = add %b, %c : i32
    store %y, %d, %z
)",
                  R"(
    %b = add %z, %n : i32
    %d = add %b, %k : i32
    store %y, %d, %z
)");
}

TEST(PromoteVars, ForCarriesWhatItsBodyWrites) {
  expect_promoted(R"(
    %s = var %z {name = "s"} : var<i32>
    %r = var %k : var<i32>
    for %i in %z .. %n step %o {
      %a = var.load %s : i32
      %b = var.load %r : i32
      %c = add %a, %b : i32
      var.store %s, %c
      yield
    }
    %d = var.load %s : i32
    store %y, %d, %z
)",
                  R"(
    %d = for %i in %z .. %n step %o carry(%a = %z) : i32 {
      %c = add %a, %k : i32
      yield %c
    }
    store %y, %d, %z
)");
}

TEST(PromoteVars, NamesOfVariablesGoOn) {
  Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %z = const 0 : i32
    %o = const 1 : i32
    %s = var %z {name = "sum"} : var<i32>
    for %i in %z .. %n step %o {
      var.store %s, %i
      yield
    }
    %d = var.load %s : i32
    store %y, %d, %z
)");
  promote_vars(kernel);
  const std::string text = print(kernel);
  EXPECT_NE(text.find("%sum = for"), std::string::npos) << text;
  EXPECT_NE(text.find("carry(%sum.1 = "), std::string::npos) << text;
}

TEST(PromoteVars, IfGivesWhatItsBranchesWrite) {
  expect_promoted(R"(
    %s = var %z : var<i32>
    %r = var %z : var<i32>
    %both = var %z : var<i32>
    if %p {
      var.store %s, %k
      var.store %both, %o
      yield
    } else {
      %a = var.load %s : i32
      %b = add %a, %n : i32
      var.store %r, %b
      var.store %both, %o
      yield
    }
    %c = var.load %s : i32
    %d = var.load %r : i32
    %e = var.load %both : i32
    %f = add %c, %d : i32
    %g = add %e, %f : i32
    store %y, %g, %z
)",
                  R"(
    %c, %d = if %p : i32, i32 {
      yield %k, %z
    } else {
      %b = add %z, %n : i32
      yield %z, %b
    }
    %f = add %c, %d : i32
    %g = add %o, %f : i32
    store %y, %g, %z
)");
}

TEST(PromoteVars, NestedRegions) {
  expect_promoted(R"(
    %s = var %z : var<i32>
    %t = for %i in %z .. %n step %o carry(%c = %k) : i32 {
      %inner = var %c : var<i32>
      for %j in %z .. %i step %o {
        if %p {
          %a = var.load %s : i32
          %b = add %a, %j : i32
          var.store %s, %b
          var.store %inner, %a
          yield
        }
        yield
      }
      %d = var.load %inner : i32
      yield %d
    }
    %e = var.load %s : i32
    %f = add %e, %t : i32
    store %y, %f, %z
)",
                  R"(
    %t, %s = for %i in %z .. %n step %o carry(%c = %k, %s.1 = %z) : i32, i32 {
      %s.2, %inner = for %j in %z .. %i step %o carry(%s.3 = %s.1, %inner.1 = %c) : i32, i32 {
        %s.4, %inner.2 = if %p : i32, i32 {
          %b = add %s.3, %j : i32
          yield %b, %s.3
        } else {
          yield %s.3, %inner.1
        }
        yield %s.4, %inner.2
      }
      yield %inner, %s.2
    }
    %f = add %s, %t : i32
    store %y, %f, %z
)");
}

TEST(PromoteVars, WhileWhoseConditionReads) {
  expect_promoted(R"(
    %s = var %z : var<i32>
    %u = undef : i32
    %r = var %u : var<i32>
    while {
      %a = var.load %s : i32
      %g = lt %a, %n : bool
      yield %g
    } do {
      %b = var.load %s : i32
      %c = add %b, %o : i32
      var.store %s, %c
      var.store %r, %b
      yield
    }
    %d = var.load %s : i32
    %e = var.load %r : i32
    %f = add %d, %e : i32
    store %y, %f, %z
)",
                  R"(
    %u = undef : i32
    %d, %e = while carry(%s = %z, %r = %u) : i32, i32 {
      %g = lt %s, %n : bool
      yield %g
    } do(%s.1, %r.1) {
      %c = add %s.1, %o : i32
      yield %c, %s.1
    }
    %f = add %d, %e : i32
    store %y, %f, %z
)");
}

// do { … } while (…) in the only way that a traced condition can say it.
TEST(PromoteVars, WhileWhoseConditionWrites) {
  expect_promoted(R"(
    %s = var %z : var<i32>
    %t = while carry(%c = %k) : i32 {
      %a = var.load %s : i32
      %b = add %a, %o : i32
      var.store %s, %b
      store %y, %c, %b
      %g = lt %b, %n : bool
      yield %g
    } do(%d) {
      %e = var.load %s : i32
      %f = add %d, %e : i32
      yield %f
    }
    %h = var.load %s : i32
    %i = add %h, %t : i32
    store %y, %i, %z
)",
                  R"(
    %yes = const true : bool
    %t, %last, %s = while carry(%c = %k, %go = %yes, %s.1 = %z) : i32, bool, i32 {
      yield %go
    } do(%c.1, %go.1, %s.2) {
      %b = add %s.2, %o : i32
      store %y, %c.1, %b
      %g = lt %b, %n : bool
      %r = if %g : i32 {
        %f = add %c.1, %b : i32
        yield %f
      } else {
        yield %c.1
      }
      yield %r, %g, %b
    }
    %i = add %s, %t : i32
    store %y, %i, %z
)");
}

TEST(PromoteVars, VariableOfALoopBodyStartsAnew) {
  expect_promoted(R"(
    for %i in %z .. %n step %o {
      %s = var %i : var<i32>
      if %p {
        var.store %s, %z
        yield
      }
      %a = var.load %s : i32
      store %y, %a, %i
      yield
    }
)",
                  R"(
    for %i in %z .. %n step %o {
      %a = if %p : i32 {
        yield %z
      } else {
        yield %i
      }
      store %y, %a, %i
      yield
    }
)");
}

TEST(PromoteVars, SaysWhetherThereWasAnything) {
  Kernel kernel = parse_body("32, 1, 1", kParams, "%z = const 0 : i32\nstore %y, %n, %z\n");
  EXPECT_FALSE(promote_vars(kernel));
}

}  // namespace
}  // namespace heddle::ir
