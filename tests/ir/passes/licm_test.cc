#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams =
    "%x: view<const i32, global, 1> [?] strides [1], %y: view<i32, global, 1> [?] strides [1], "
    "%n: i32, %m: i32, %p: bool";
constexpr absl::string_view kConstants =
    "%z = const 0 : i32\n%o = const 1 : i32\n%k = const 8 : i32\n";

void expect_licm(absl::string_view before, absl::string_view after) {
  expect_passes("licm", kParams, absl::StrCat(kConstants, before), absl::StrCat(kConstants, after));
}
void expect_unmoved(absl::string_view text) { expect_licm(text, text); }

TEST(Licm, PureOpsLeaveAllLoopsThatDoNotChangeThem) {
  expect_licm(R"(
    for %i in %z .. %n step %o {
      for %j in %z .. %m step %o {
        %c = const 3 : i32
        %a = mul %n, %c : i32
        %b = mul %i, %c : i32
        %d = add %a, %b : i32
        %e = add %d, %j : i32
        store %y, %e, %z
        yield
      }
      yield
    }
)",
              R"(
    %c = const 3 : i32
    %a = mul %n, %c : i32
    for %i in %z .. %n step %o {
      %b = mul %i, %c : i32
      %d = add %a, %b : i32
      for %j in %z .. %m step %o {
        %e = add %d, %j : i32
        store %y, %e, %z
        yield
      }
      yield
    }
)");
}

TEST(Licm, OutOfIfsInLoopsButNotOutOfIfsAlone) {
  expect_licm(R"(
    if %p {
      %u = add %n, %m : i32
      for %i in %z .. %n step %o {
        if %p {
          %a = mul %n, %m : i32
          store %y, %a, %i
          yield
        }
        yield
      }
      store %y, %u, %z
      yield
    }
)",
              R"(
    if %p {
      %u = add %n, %m : i32
      %a = mul %n, %m : i32
      for %i in %z .. %n step %o {
        if %p {
          store %y, %a, %i
          yield
        }
        yield
      }
      store %y, %u, %z
      yield
    }
)");
}

TEST(Licm, CarriedValuesStay) {
  expect_unmoved(R"(
    %r = for %i in %z .. %n step %o carry(%c = %z) : i32 {
      %a = add %c, %n : i32
      yield %a
    }
    store %y, %r, %z
)");
}

TEST(Licm, GuardedOpsOnlyWhereTheyAreSureToRun) {
  // The loop may not run at all.
  expect_unmoved(R"(
    for %i in %z .. %n step %o {
      %a = div %n, %m : i32
      store %y, %a, %i
      yield
    }
)");
  expect_licm(R"(
    for %i in %z .. %k step %o {
      %a = div %n, %m : i32
      store %y, %a, %i
      if %p {
        %b = rem %n, %m : i32
        store %y, %b, %i
        yield
      }
      yield
    }
)",
              R"(
    %a = div %n, %m : i32
    for %i in %z .. %k step %o {
      store %y, %a, %i
      if %p {
        %b = rem %n, %m : i32
        store %y, %b, %i
        yield
      }
      yield
    }
)");
  // A divisor that is sure not to be zero makes a division as safe as anything.
  expect_licm(R"(
    for %i in %z .. %n step %o {
      %a = div %n, %k : i32
      store %y, %a, %i
      yield
    }
)",
              R"(
    %a = div %n, %k : i32
    for %i in %z .. %n step %o {
      store %y, %a, %i
      yield
    }
)");
  // One that may be -1 is as safe where it does not divide the smallest number.
  for (const absl::string_view op : {"div", "rem"}) {
    const auto divided = [&](absl::string_view promises, bool moved) {
      const std::string division = absl::StrCat("%a = ", op, " %d, %e : i32\n");
      const std::string loop = "for %i in %z .. %n step %o {\n";
      const std::string rest = "store %y, %a, %i\nyield\n}\n";
      expect_licm(absl::StrCat(promises, loop, division, rest),
                  absl::StrCat(promises, moved ? division + loop : loop + division, rest));
    };
    const std::string any = "%d = assume_range %n {max = 7} : i32\n";
    const std::string not_smallest = "%d = assume_range %n {min = -2147483647} : i32\n";
    const std::string to_minus_one = "%e = assume_range %m {min = -3, max = -1} : i32\n";
    const std::string to_minus_two = "%e = assume_range %m {min = -3, max = -2} : i32\n";
    divided(any + to_minus_one, false);
    divided(not_smallest + to_minus_one, true);
    divided(any + to_minus_two, true);
  }
  // The kernel may end first.
  expect_unmoved(R"(
    for %i in %z .. %k step %o {
      assert %p {message = "m is not zero"}
      %a = div %n, %m : i32
      store %y, %a, %i
      yield
    }
)");
}

TEST(Licm, LoadsOfMemoryThatNothingWrites) {
  expect_licm(R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    for %i in %z .. %k step %o {
      %a = load %x, %n : i32
      store %s, %a, %z
      yield
    }
    store %y, %n, %z
)",
              R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    %a = load %x, %n : i32
    for %i in %z .. %k step %o {
      store %s, %a, %z
      yield
    }
    store %y, %n, %z
)");
  // Each loop for itself.
  expect_licm(R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    for %i in %z .. %k step %o {
      %a = load %x, %n : i32
      store %s, %a, %z
      yield
    }
    for %j in %z .. %k step %o {
      %b = load %x, %n : i32
      store %y, %b, %j
      yield
    }
)",
              R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    %a = load %x, %n : i32
    for %i in %z .. %k step %o {
      store %s, %a, %z
      yield
    }
    for %j in %z .. %k step %o {
      %b = load %x, %n : i32
      store %y, %b, %j
      yield
    }
)");
  // %y may be %x, or another thread may have written before the barrier.
  expect_unmoved(R"(
    for %i in %z .. %k step %o {
      %a = load %x, %n : i32
      store %y, %a, %i
      yield
    }
)");
  expect_unmoved(R"(
    for %i in %z .. %k step %o {
      %a = load %x, %n : i32
      barrier
      store %y, %a, %i
      yield
    }
)");
  expect_unmoved(R"(
    for %i in %z .. %k step %o {
      %a = load %x, %n {volatile = 1} : i32
      yield
    }
    store %y, %n, %z
)");
}

TEST(Licm, LoadsByTheFactThatNothingOverlaps) {
  const auto text = [](absl::string_view extra) {
    return absl::StrCat(kConstants, "for %i in %z .. %k step %o {\n%a = load %x, %n : i32\n", extra,
                        "store %y, %a, %i\nyield\n}\n");
  };
  Kernel kernel = parse_body("32, 1, 1", kParams, text("barrier\n"));
  kernel.set_fact({FactKind::kNoOverlap, 0, 0}, 1);
  EXPECT_TRUE(licm(kernel));
  ASSERT_EQ(kernel.facts_read().size(), 1u);
  EXPECT_EQ(kernel.facts_read()[0], (Guard{{FactKind::kNoOverlap, 0, 0}, 1}));
  // Not read where it would not help: %y itself is written.
  Kernel own = parse_body("32, 1, 1", kParams,
                          absl::StrCat(kConstants,
                                       "for %i in %z .. %k step %o {\n"
                                       "%a = load %y, %n : i32\nstore %y, %a, %i\n"
                                       "yield\n}\n"));
  own.set_fact({FactKind::kNoOverlap, 1, 0}, 1);
  EXPECT_FALSE(licm(own));
  EXPECT_TRUE(own.facts_read().empty());
}

TEST(Licm, WhileConditionsRunAtLeastOnce) {
  expect_licm(R"(
    %r = while carry(%c = %z) : i32 {
      %a = load %x, %n : i32
      %g = lt %c, %a : bool
      yield %g
    } do(%d) {
      %b = load %x, %m : i32
      %e = add %d, %b : i32
      yield %e
    }
    store %y, %r, %z
)",
              R"(
    %a = load %x, %n : i32
    %r = while carry(%c = %z) : i32 {
      %g = lt %c, %a : bool
      yield %g
    } do(%d) {
      %b = load %x, %m : i32
      %e = add %d, %b : i32
      yield %e
    }
    store %y, %r, %z
)");
}

TEST(Licm, ConvergentOpsStay) {
  expect_unmoved(R"(
    for %i in %z .. %n step %o {
      %a = shfl.idx %n, %z : i32
      %v = vote.any %p : bool
      %b = select %v, %a, %z : i32
      store %y, %b, %i
      yield
    }
)");
}

TEST(Licm, FragmentsDoNotLeaveForNothing) {
  expect_unmoved(R"(
    for %i in %z .. %n step %o {
      %acc = const 0.0 : frag<f32, 64>
      %pending = wgmma.begin %acc : pending<f32, 64>
      %done = wgmma.wait %pending {groups = 0} : frag<f32, 64>
      %v = extract %done {index = 0} : f32
      %t = convert %v : i32
      store %y, %t, %i
      yield
    }
)");
}

TEST(Licm, ALoopWritesInItsBodyWhatItsConditionReads) {
  expect_unmoved(R"(
    %w = while carry(%c = %z) : i32 {
      %v = load %y, %z : i32
      %g = lt %v, %k : bool
      yield %g
    } do(%d) {
      %e = add %d, %o : i32
      store %y, %e, %z
      yield %e
    }
    store %y, %w, %o
)");
}

// The cluster may have no block of that rank where the condition fails.
TEST(Licm, NothingOutsideOfItsConditionIsMapped) {
  expect_unmoved(R"(
    %s = shared {extents = [8]} : view<i32, shared, 1>
    for %i in %z .. %n step %o {
      if %p {
        %far = map_shared %s, %m : view<i32, shared_cluster, 1>
        store %far, %i, %z
        store %y, %i, %i
        yield
      }
      yield
    }
)");
  expect_licm(R"(
    %s = shared {extents = [8]} : view<i32, shared, 1>
    for %i in %z .. %k step %o {
      %far = map_shared %s, %m : view<i32, shared_cluster, 1>
      store %far, %i, %z
        store %y, %i, %i
      yield
    }
)",
              R"(
    %s = shared {extents = [8]} : view<i32, shared, 1>
    %far = map_shared %s, %m : view<i32, shared_cluster, 1>
    for %i in %z .. %k step %o {
      store %far, %i, %z
        store %y, %i, %i
      yield
    }
)");
}

TEST(Licm, PromisesMoveWhereTheyAreSureToBeMade) {
  expect_licm(R"(
    for %i in %z .. %k step %o {
      %a = assume_range %n {min = 0} : i32
      %u = assume_uniform %m : i32
      %b = add %a, %u : i32
      %c = add %b, %i : i32
      store %y, %c, %i
      yield
    }
)",
              R"(
    %a = assume_range %n {min = 0} : i32
    %u = assume_uniform %m : i32
    %b = add %a, %u : i32
    for %i in %z .. %k step %o {
      %c = add %b, %i : i32
      store %y, %c, %i
      yield
    }
)");
  // The loop may not run; the branch may not; the kernel may have ended.
  expect_unmoved(R"(
    for %i in %z .. %n step %o {
      %a = assume_range %m {min = 0} : i32
      store %y, %a, %i
      yield
    }
    for %j in %z .. %k step %o {
      if %p {
        %c = assume_range %m {min = 0} : i32
        store %y, %c, %j
        yield
      }
      assert %p {message = "p"}
      %b = assume_range %m {max = 7} : i32
      store %y, %b, %j
      yield
    }
)");
}

}  // namespace
}  // namespace heddle::ir
