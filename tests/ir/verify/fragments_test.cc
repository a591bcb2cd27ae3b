#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

class FragmentMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(FragmentMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_body(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Fragments, FragmentMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"ReadWhilePending", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%e = extract %q {index = 0} : f32
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>)",
         "4: operand 1 of 'extract', %q, is pending: the tensor cores may still write it; settle "
         "it with wgmma.wait first, and use what the wait returns"},
        {"AddedWhilePending", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%e = add %q, %q : frag<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>)",
         "4: operand 1 of 'add', %q, is pending: the tensor cores may still write it; settle it "
         "with wgmma.wait first, and use what the wait returns"},
        {"ChosenWhilePending", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%e = select %p, %q, %q : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>)",
         "4: operand 2 of 'select', %q, is pending: the tensor cores may still write it; settle it "
         "with wgmma.wait first, and use what the wait returns"},
        {"PendingInAVariable", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%v = var %q : var<pending<f32, 4>>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>)",
         "4: operand 1 of 'var', %q, is pending: the tensor cores may still write it; settle it "
         "with wgmma.wait first, and use what the wait returns"},
        {"SettledUsedAfterItsTie", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
%e = extract %z {index = 0} : f32)",
         "5: operand 1 of 'extract', %z, is used after 'wgmma.begin' took its registers; use what "
         "that op returned"},
        {"PendingUsedTwice", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
%t = wgmma.wait %q {groups = 0} : frag<f32, 4>)",
         "5: operand 1 of 'wgmma.wait', %q, is used after 'wgmma.wait' took its registers; use "
         "what that op returned"},
        {"TiedTwiceInOneOp", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%s, %t = wgmma.wait %q, %q {groups = 0} : frag<f32, 4>, frag<f32, 4>)",
         "4: operand 2 of 'wgmma.wait', %q, is used after 'wgmma.wait' took its registers; use "
         "what that op returned"},
        {"UsedAfterATieInABranch", R"(%z = const 0.0 : frag<f32, 4>
if %p {
%q = wgmma.begin %z : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
}
%e = extract %z {index = 0} : f32)",
         "8: operand 1 of 'extract', %z, is used after 'wgmma.begin' took its registers; use what "
         "that op returned"},
        {"NeverSettled", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>)",
         "3: %q is still pending when its region ends: nothing takes it; settle it with "
         "wgmma.wait, or yield it to the loop that carries it"},
        {"ArgumentNeverSettled", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%y = const 0.0 : frag<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
yield %o
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "4: %a is still pending when its region ends: nothing takes it; settle it with "
         "wgmma.wait, or yield it to the loop that carries it"},
        {"JoinedByAnIf", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%y = const 0.0 : frag<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
%j = if %p : pending<f32, 4> {
%t = wgmma.wait %o {groups = 0} : frag<f32, 4>
yield %q
} else {
%u = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield %o
}
%s = wgmma.wait %j {groups = 0} : frag<f32, 4>)",
         "6: this 'if' joins two pending fragments in %j, which takes copies while the tensor "
         "cores write them; settle them with wgmma.wait in both branches, and yield what it "
         "returns"},
        {"TakenInOneBranchOnly", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
if %p {
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
})",
         "4: %q is pending, and only the first branch of this 'if' takes it, with 'wgmma.wait'; "
         "settle it before the if, or in both branches"},
        {"TakenInTheElseOnly", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
if %p {
yield
} else {
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
})",
         "4: %q is pending, and only the second branch of this 'if' takes it, with 'wgmma.wait'; "
         "settle it before the if, or in both branches"},
        {"SettledTakenOnEachTrip", R"(%z = const 0.0 : frag<f32, 4>
for %i in %n .. %n step %n {
%q = wgmma.begin %z : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
})",
         "4: 'wgmma.begin' takes the registers of %z on every trip of a 'for', but it is made "
         "once, outside; carry it through the loop: carry(... = %z)"},
        {"PendingTakenOnEachTrip", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
for %i in %n .. %n step %n {
if %p {
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
} else {
%t = wgmma.wait %q {groups = 0} : frag<f32, 4>
yield
}
yield
})",
         "6: 'wgmma.wait' takes the registers of %q on every trip of a 'for', but it is made once, "
         "outside; carry it through the loop: carry(... = %q)\n"
         "9: 'wgmma.wait' takes the registers of %q on every trip of a 'for', but it is made once, "
         "outside; carry it through the loop: carry(... = %q)"},
        {"YieldedInAnotherPosition", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%y = const 0.0 : frag<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
%r, %s = for %i in %n .. %n step %n carry(%a = %q, %b = %o) : pending<f32, 4>, pending<f32, 4> {
yield %b, %a
}
%t, %u = wgmma.wait %r, %s {groups = 0} : frag<f32, 4>, frag<f32, 4>)",
         "7: value 1 of this yield, %b, is not in the registers of %a, in which the loop carries "
         "it; yield in this position what wgmma made of %a, or "
         "settle that and begin what is yielded in the same trip\n"
         "7: value 2 of this yield, %a, is not in the registers of %b, in which the loop carries "
         "it; yield in this position what wgmma made of %b, or "
         "settle that and begin what is yielded in the same trip"},
        {"WaitsForNoGroup", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%a = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %a, %a : pending<f32, 4>
%o = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "7: this wait does not settle %r: the wgmma that writes it is in no commit group; close "
         "the group with wgmma.commit before the wait"},
        {"WaitLeavesItInFlight", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%a = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %a, %a : pending<f32, 4>
wgmma.commit
wgmma.commit
%o = wgmma.wait %r {groups = 2} : frag<f32, 4>)",
         "9: this wait does not settle %r: the newest 2 commit groups may still be in flight, its "
         "own among them; wait with {groups = 1} or fewer"},
        {"CommittedInALoopThatMayMakeNoTrip", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %d, %d : pending<f32, 4>
%l = for %i in %n .. %n step %n carry(%a = %r) : pending<f32, 4> {
wgmma.commit
yield %a
}
%w = while carry(%b = %l) : pending<f32, 4> {
yield %p
} do(%e) {
wgmma.commit
yield %e
}
%o = wgmma.wait %w {groups = 0} : frag<f32, 4>)",
         "17: this wait does not settle %w: the wgmma that writes it is in no commit group; close "
         "the group with wgmma.commit before the wait"},
        {"CommittedBehindTheNextTripsWait", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%l = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%o = wgmma.wait %a {groups = 0} : frag<f32, 4>
%b = wgmma.begin %o : pending<f32, 4>
%r = wgmma %b, %d, %d : pending<f32, 4>
yield %r
}
wgmma.commit
%e = wgmma.wait %l {groups = 0} : frag<f32, 4>)",
         "7: this wait does not settle %a: the wgmma that writes it is in no commit group; close "
         "the group with wgmma.commit before the wait"},
        {"NextTripsWaitLeavesItInFlight", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%l = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%o = wgmma.wait %a {groups = 1} : frag<f32, 4>
%b = wgmma.begin %o : pending<f32, 4>
%r = wgmma %b, %d, %d : pending<f32, 4>
wgmma.commit
yield %r
}
%e = wgmma.wait %l {groups = 0} : frag<f32, 4>)",
         "7: this wait does not settle %a: the newest 1 commit groups may still be in flight, its "
         "own among them; wait with {groups = 0} or fewer"},
        // Groups are counted where fragments are right.
        {"ReadWhilePendingAndWaitsForNoGroup",
         R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%a = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %a, %a : pending<f32, 4>
%e = extract %r {index = 0} : f32
%o = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "7: operand 1 of 'extract', %r, is pending: the tensor cores may still write it; settle "
         "it with wgmma.wait first, and use what the wait returns"},
        {"BegunWhileTheArgumentIsPending", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%y = const 0.0 : frag<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
%t = wgmma.wait %a {groups = 0} : frag<f32, 4>
yield %o
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "8: value 1 of this yield, %o, is begun while %a still is in the registers of %a, in "
         "which "
         "the loop carries it; use it in front of that wgmma.begin, or carry the settled fragment "
         "and begin it in the loop"},
        {"BegunWhileARenameOfWhatWasSettledIsUsed", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%t = wgmma.wait %a {groups = 0} : frag<f32, 4>
%v = slice %t {index = 0} : vec<f32, 2>
%e = extract %v {index = 1} : f32
%o = wgmma.begin %t : pending<f32, 4>
%u = if %p : f32 {
  yield %e
} else {
  %d = const 0.0 : f32
  yield %d
}
yield %o
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "15: value 1 of this yield, %o, is begun while %e still is in the registers of %a, in "
         "which the loop carries it; use it in front of that wgmma.begin, or carry the settled "
         "fragment and begin it in the loop"},
        {"BegunWhileWhatAnInnerLoopCarriedIsUsed", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%b = for %j in %n .. %n step %n carry(%d = %a) : pending<f32, 4> {
  yield %d
}
%t = wgmma.wait %b {groups = 0} : frag<f32, 4>
%m = neg %t : frag<f32, 4>
%o = wgmma.begin %m : pending<f32, 4>
%e = extract %t {index = 0} : f32
yield %o
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "12: value 1 of this yield, %o, is begun while %t still is in the registers of %a, in "
         "which the loop carries it; use it in front of that wgmma.begin, or carry the settled "
         "fragment and begin it in the loop"},
        {"TakenByTheConditionOfAWhile", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = while carry(%a = %q) : pending<f32, 4> {
%t = wgmma.wait %a {groups = 0} : frag<f32, 4>
yield %p
} do(%b) {
yield %b
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "5: the condition of a 'while' takes the registers of %a, which the loop carries past it; "
         "use it in the loop's body instead"},
    }),
    mistake_name);

TEST(VerifierFragments, NotesWhereTheRegistersWent) {
  const Kernel kernel = parse(with_body(R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%s = wgmma.wait %q {groups = 0} : frag<f32, 4>
%e = extract %z {index = 0} : f32)"),
                              "k.ir", {.text_as_source = true})
                            .value();
  const Diagnostics wrong = verify(kernel);
  ASSERT_EQ(wrong.size(), 1u);
  ASSERT_EQ(wrong[0].notes.size(), 1u);
  EXPECT_EQ(wrong[0].notes[0].place.line, 3);
  EXPECT_EQ(wrong[0].notes[0].message, "its registers were taken here");
  EXPECT_EQ(wrong[0].op, "%e = extract %z {index = 0} : f32");
}

struct Allowed {
  const char* name;
  const char* body;
};

void PrintTo(const Allowed& allowed, std::ostream* out) { *out << allowed.name; }

class FragmentAllowed : public ::testing::TestWithParam<Allowed> {};

TEST_P(FragmentAllowed, IsNoMistake) { EXPECT_EQ(mistakes_of(with_body(GetParam().body)), ""); }

INSTANTIATE_TEST_SUITE_P(
    Fragments, FragmentAllowed,
    ::testing::ValuesIn(std::vector<Allowed>{
        // Both branches settle it, and the if joins what is settled.
        {"SettledInBothBranches", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%s = if %p : frag<f32, 4> {
  %t = wgmma.wait %q {groups = 0} : frag<f32, 4>
  yield %t
} else {
  %u = wgmma.wait %q {groups = 0} : frag<f32, 4>
  yield %u
}
%e = extract %s {index = 0} : f32)"},
        // A branch may take a settled fragment that the other branch reads.
        {"TakenInOneBranchReadInTheOther", R"(%z = const 0.0 : frag<f32, 4>
%e = if %p : f32 {
  %q = wgmma.begin %z : pending<f32, 4>
  %s = wgmma.wait %q {groups = 0} : frag<f32, 4>
  %a = extract %s {index = 0} : f32
  yield %a
} else {
  %b = extract %z {index = 0} : f32
  yield %b
})"},
        // Between its wait and its begin, a carried fragment is like any other.
        {"RescaledInALoop", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
%t = wgmma.wait %a {groups = 0} : frag<f32, 4>
%e = extract %t {index = 0} : f32
%d = add %e, %e : f32
%m = neg %t : frag<f32, 4>
%g = extract %t {index = 1} : f32
%o = wgmma.begin %m : pending<f32, 4>
%k = add %d, %d : f32
yield %o
}
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)"},
        {"SettledInALoop", R"(%z = const 0.0 : frag<f32, 4>
%r = for %i in %n .. %n step %n carry(%a = %z) : frag<f32, 4> {
  %q = wgmma.begin %a : pending<f32, 4>
  %s = wgmma.wait %q {groups = 0} : frag<f32, 4>
  yield %s
}
%e = extract %z {index = 0} : f32)"},
        {"PendingThroughNestedLoops", R"(%z = const 0.0 : frag<f32, 4>
%y = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
%r, %s = for %i in %n .. %n step %n carry(%a = %q, %b = %o) : pending<f32, 4>, pending<f32, 4> {
  %inner = for %j in %n .. %n step %n carry(%d = %b) : pending<f32, 4> {
    yield %d
  }
  %e = while carry(%g = %a) : pending<f32, 4> {
    yield %p
  } do(%l) {
    %settled = wgmma.wait %l {groups = 0} : frag<f32, 4>
    %again = wgmma.begin %settled : pending<f32, 4>
    yield %again
  }
  yield %e, %inner
}
%t, %u = wgmma.wait %r, %s {groups = 0} : frag<f32, 4>, frag<f32, 4>)"},
        {"WaitOnTheNextTrip",
         R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%l = for %i in %n .. %n step %n carry(%a = %q) : pending<f32, 4> {
  %o = wgmma.wait %a {groups = 0} : frag<f32, 4>
  %b = wgmma.begin %o : pending<f32, 4>
  %r = wgmma %b, %d, %d : pending<f32, 4>
  wgmma.commit
  yield %r
}
%e = wgmma.wait %l {groups = 0} : frag<f32, 4>)"},
        {"WaitOneGroupBehind",
         R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%y = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%o = wgmma.begin %y : pending<f32, 4>
%r = wgmma %q, %d, %d : pending<f32, 4>
wgmma.commit
%t = wgmma %o, %d, %d : pending<f32, 4>
wgmma.commit
%a = wgmma.wait %r {groups = 1} : frag<f32, 4>
%b = wgmma.wait %t {groups = 0} : frag<f32, 4>)"},
    }),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace heddle::ir
