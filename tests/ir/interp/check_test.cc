// What the interpreter finds wrong, by the text that the user reads: kernels that the verifier would refuse,
// and what single kernels cannot say. The rest is in tests/filetests/interp/.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/interp/harness.h"
#include "ir/text/parse_text.h"

namespace heddle::ir::interp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Guards the ops that follow with a condition; end_guard() ends that.
void guard(KernelTest& t, ValueId condition) { t.b.begin_if(condition); }
void end_guard(KernelTest& t) {
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
}

// A check may be the result of an if, as any pure value may: the access knows that it failed, and
// where.
TEST(InterpCheck, ChecksThatPassThroughRegions) {
  for (const bool checks : {true, false}) {
    KernelTest t;
    const ValueId x = t.tensor("x", Scalar::kF32, {64});
    const ValueId i = t.thread();
    const ValueId far = t.op(Opcode::kAdd, {i, t.i32(40)});
    const Type result[] = {Type::check()};
    const OpId branch = t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(16)}), result);
    t.b.yield({t.op(Opcode::kBounds, {x, i})});
    t.b.next_region();
    t.b.yield({t.op(Opcode::kBounds, {x, far})});
    t.b.end_region();
    t.op(Opcode::kStore, {x, t.f32(1), i, t.kernel.op(branch).result()});
    const Status status = t.run({.checks = checks});
    EXPECT_EQ(status.ok(), !checks);
    if (checks) {
      EXPECT_THAT(
          std::string(status.message()),
          HasSubstr("writes 'x' at element offset 24, outside the extents of 'x' (kernel 'k', "
                    "block (0, 0, 0), thread (24, 0, 0) and 7 more of its warp)"));
    }
  }
}

TEST(InterpCheck, HugeExtentsDoNotWrap) {
  KernelTest t;
  const ValueId x = t.dynamic_tensor("x", Scalar::kI32, {int64_t{1} << 33}, {1});
  const ValueId out = t.tensor("out", Scalar::kI32, {4});
  const ValueId top = t.i32(INT32_MAX);
  const ValueId ok = t.op(Opcode::kBounds, {x, top}, Type::none(), {{AttrKey::kWidth, 4}});
  t.op(Opcode::kStore, {x, t.op(Opcode::kSplat, {t.i32(3)}, Type::vector(Scalar::kI32, 4)),
                        t.op(Opcode::kSub, {top, t.i32(3)}), ok});
  t.store(out, t.i32(0), t.i32(1));
  ASSERT_OK(t.run({.block = {1, 1, 1}}));
}

// --- Asserts and loops ---

TEST(InterpCheck, Asserts) {
  for (const bool checks : {true, false}) {
    KernelTest t("checked");
    t.line(11);
    const int64_t message = index_of(t.kernel.intern("rows must be even"));
    const ValueId lane = t.op(Opcode::kLaneId, {});
    t.op(Opcode::kAssert, {t.op(Opcode::kLt, {lane, t.i32(5)})}, Type::none(),
         {{AttrKey::kMessage, message}});
    EXPECT_EQ(
        t.failure({.grid = {1, 2, 1}, .block = {3, 2, 1}, .checks = checks}),
        "kernel.cc:11: error: assertion failed: rows must be even (kernel 'checked', block (0, 0, "
        "0), thread (2, 1, 0))\n");
  }
}

TEST(InterpCheck, AnEndlessLoopSaysWhatItWaitsFor) {
  KernelTest t;
  const ValueId flag = t.tensor("flag", Scalar::kI32, {1});
  t.fill<int32_t>(0, {0});
  t.line(5);
  t.b.begin_while({});
  t.line(6);
  const ValueId seen = t.op(Opcode::kLoad, {flag, t.i32(0)}, kI32Type, {{AttrKey::kVolatile, 1}});
  t.b.yield({t.op(Opcode::kEq, {seen, t.i32(0)})});
  t.b.next_region();
  t.b.yield({});
  t.line(5);
  t.b.end_region();
  const std::string report =
      "kernel.cc:5: error: this while loop has not ended after 1,000 instructions of its block: "
      "thread (0, 0, 0) is still in it (kernel 'k', block (0, 0, 0))\n"
      "  kernel.cc:6: whether it goes on depends on what is read of 'flag' here\n";
  const std::string fix = "  fix: let another thread of the block write what it waits for";
  const std::string raise =
      "; where it is only long, raise the limit by Device::set_max_instructions()\n";
  EXPECT_EQ(t.failure({.block = {1, 1, 1}, .options = {.max_instructions = 1000}}),
            report + fix + raise);
  EXPECT_EQ(
      t.failure({.grid = {2, 1, 1}, .block = {1, 1, 1}, .options = {.max_instructions = 1000}}),
      report + fix +
          ", or make the launch cooperative: other blocks start when this one has ended" + raise);
  // Not where all blocks run already.
  const auto advises = [&](int blocks, bool cooperative) {
    const std::string text = t.failure({.grid = {blocks, 1, 1},
                                        .block = {1, 1, 1},
                                        .cooperative = cooperative,
                                        .options = {.max_instructions = 1000}});
    EXPECT_THAT(text, HasSubstr(fix));
    return absl::StrContains(text, "cooperative");
  };
  EXPECT_FALSE(advises(2, true));
  t.kernel.cluster = {2, 1, 1};
  EXPECT_FALSE(advises(2, false));
  EXPECT_TRUE(advises(4, false));
  EXPECT_FALSE(advises(4, true));
}

// What is said of a loop in this body that does not end.
std::string report_of_endless(absl::string_view body) {
  const Kernel kernel = parse_body(
      "1, 1, 1", "%flag: view<i32, global, 1> [1] strides [1], %n: i32",
      absl::StrCat("%z = const 0 : i32\n%one = const 1 : i32\n%yes = eq %z, %n : bool\n", body));
  const Program program = compile(kernel).value();
  Memory memory;
  const uint64_t flag = memory.allocate(4, 256, "flag").value();
  const int32_t zero = 0;
  EXPECT_TRUE(memory.copy_from_host(flag, &zero, sizeof(zero)).ok());
  std::vector<std::byte> params(static_cast<size_t>(program.param_bytes()));
  std::memcpy(params.data(), &flag, sizeof(flag));  // n is 0
  return std::string(run(program, {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params}, memory,
                         {.max_instructions = 1000})
                         .message());
}

constexpr char kReads[] = "whether it goes on depends on what is read of 'flag' here";
constexpr char kWrite[] = "fix: let another thread of the block write what it waits for";
constexpr char kNothing[] = "and nothing that its condition depends on changes there";
constexpr char kChange[] = "fix: change in the loop what its condition depends on";

TEST(InterpCheck, AnEndlessLoopFindsWhatIsReadWhereverItIs) {
  const std::string test = "%go = eq %v, %z : bool\nyield %go\n} do {\nyield\n}\n";
  for (const absl::string_view read :
       {"load %flag, %z : i32", "load %flag, %z {volatile = 1} : i32",
        "atomic.load %flag, %z {order = acquire} : i32", "atomic %flag, %z, %z {op = or} : i32",
        "atomic.cas %flag, %one, %one, %z : i32"}) {
    const std::string inner = absl::StrCat("%r = ", read, "\nyield %r\n}");
    const std::string loops[] = {
        absl::StrCat("while {\n%v = ", read, "\n", test),
        absl::StrCat("while {\n%r = ", read, "\n%v = mul %r, %r : i32\n", test),
        absl::StrCat("while {\n%v = if %yes : i32 {\n", inner, " else {\nyield %one\n}\n", test),
        absl::StrCat("while {\n%v = if %yes : i32 {\nyield %z\n} else {\n", inner, "\n", test),
        absl::StrCat("while {\n%v = for %i in %one .. %z step %one carry(%a = %z) : i32 {\n", inner,
                     "\n", test),
        absl::StrCat("%end = while carry(%v = %z) : i32 {\n%go = eq %v, %z : bool\nyield %go\n} "
                     "do(%w) {\n",
                     inner, "\n"),
    };
    for (const std::string& loop : loops) {
      const std::string report = report_of_endless(loop);
      EXPECT_THAT(report, HasSubstr(kReads)) << loop;
      EXPECT_THAT(report, HasSubstr(kWrite)) << loop;
      EXPECT_THAT(report, Not(HasSubstr(kNothing))) << loop;
    }
  }
}

TEST(InterpCheck, AnEndlessLoopWaitsForNothingThatIsBeforeIt) {
  const std::string end =
      "yield %go\n} do {\n%other = load %flag, %z : i32\n"
      "%more = add %other, %one : i32\nstore %flag, %more, %z\nyield\n}\n";
  const std::string loops[] = {
      absl::StrCat("while {\n%go = eq %n, %z : bool\n", end),
      absl::StrCat("while {\n%go = const true : bool\n", end),
      absl::StrCat("while {\n%t = thread_idx {axis = x} : i32\n%go = eq %t, %z : bool\n", end),
      absl::StrCat("%v = load %flag, %z : i32\nwhile {\n%go = eq %v, %z : bool\n", end),
      absl::StrCat("%v = atomic.load %flag, %z : i32\n%go = eq %v, %z : bool\nwhile {\n", end),
      absl::StrCat("%v = for %i in %z .. %one step %one carry(%a = %one) : i32 {\nyield %i\n}\n"
                   "while {\n%go = eq %v, %z : bool\n",
                   end),
      absl::StrCat("while {\n%v = if %yes : i32 {\nyield %n\n} else {\nyield %one\n}\n%go = eq "
                   "%v, %z : bool\n",
                   end),
      absl::StrCat("for %i in %z .. %one step %one {\nwhile {\n%go = eq %i, %z : bool\n", end,
                   "yield\n}\n"),
  };
  for (const std::string& loop : loops) {
    const std::string report = report_of_endless(loop);
    EXPECT_THAT(report, HasSubstr(kNothing)) << loop;
    EXPECT_THAT(report, HasSubstr(kChange)) << loop;
    EXPECT_THAT(report, Not(HasSubstr(kReads))) << loop;
  }
}

TEST(InterpCheck, AnEndlessLoopWhoseConditionChangesMayComeToAnEnd) {
  const std::string again = "yield %go\n} do {\nyield\n}\n";
  const std::string loops[] = {
      "%r = while carry(%a = %z) : i32 {\n%go = ge %a, %z : bool\nyield %go\n} do(%b) {\n"
      "%c = rem %b, %one : i32\nyield %c\n}\n",
      "%r, %s = while carry(%a = %z, %e = %z) : i32, i32 {\n%go = eq %a, %e : bool\nyield %go\n} "
      "do(%b, %f) {\nyield %f, %b\n}\n",
      absl::StrCat("while {\n%v = for %i in %one .. %z step %one carry(%a = %z) : i32 {\n"
                   "yield %i\n}\n%go = eq %v, %z : bool\n",
                   again),
      absl::StrCat("while {\n%v = if %yes : u64 {\n%c = clock : u64\nyield %c\n} else {\n"
                   "%d = clock : u64\nyield %d\n}\n%go = eq %v, %v : bool\n",
                   again),
  };
  for (const std::string& loop : loops) {
    const std::string report = report_of_endless(loop);
    EXPECT_THAT(report, HasSubstr("fix: check that its condition becomes false")) << loop;
    EXPECT_THAT(report, Not(HasSubstr(kNothing))) << loop;
    EXPECT_THAT(report, Not(HasSubstr(kReads))) << loop;
  }
}

TEST(InterpCheck, AnEndlessLoopSaysThatNothingChanges) {
  for (const bool changes : {false, true}) {
    KernelTest t;
    const ValueId n = t.scalar_param("n", Scalar::kI32, 1);
    t.line(5);
    const ValueId init[] = {n, t.i32(0)};
    const OpId loop = t.b.begin_while(init);
    const auto test_args = t.kernel.region(t.kernel.op(loop).regions[0]).args;
    t.b.yield({t.op(Opcode::kNe, {test_args[0], t.i32(0)})});
    t.b.next_region();
    const auto args = t.kernel.region(t.b.region()).args;
    // What the loop counts besides is not what its condition looks at.
    const ValueId count = t.op(Opcode::kAdd, {args[1], t.i32(1)});
    t.b.yield({changes ? t.op(Opcode::kAdd, {args[0], t.i32(2)}) : args[0], count});
    t.b.end_region();
    const std::string text = t.failure({.block = {1, 1, 1}, .options = {.max_instructions = 1000}});
    EXPECT_THAT(text, HasSubstr(changes ? "(0, 0, 0) is still in it (kernel"
                                        : "(0, 0, 0) is still in it, and nothing that its "
                                          "condition depends on changes there (kernel"));
    EXPECT_THAT(text, HasSubstr(changes ? "fix: check that its condition becomes false;"
                                        : "fix: change in the loop what its condition depends "
                                          "on;"));
  }
}

// --- Barriers ---

TEST(InterpCheck, ABarrierThatHalfAWarpReaches) {
  for (const bool checks : {true, false}) {
    KernelTest t;
    t.line(10);
    guard(t, t.op(Opcode::kLt, {t.thread(), t.i32(40)}));
    t.line(11);
    t.op(Opcode::kBarrier, {});
    end_guard(t);
    EXPECT_EQ(
        t.failure({.block = {64, 1, 1}, .checks = checks}),
        "kernel.cc:11: error: barrier reached by only some threads of a warp: thread (32, 0, 0) "
        "waits here for thread (40, 0, 0), which cannot arrive (kernel 'k', block (0, 0, 0))\n"
        "  kernel.cc:10: thread (40, 0, 0) does not take the then branch of this if\n"
        "  fix: move the barrier out of the branch or loop, or make its condition the same for "
        "the block\n");
  }
}

TEST(InterpCheck, ABarrierInALoopThatLanesHaveLeft) {
  KernelTest t;
  t.line(20);
  t.b.begin_for(t.i32(0), t.thread(), t.i32(1), {});
  t.line(21);
  t.op(Opcode::kBarrier, {});
  t.b.yield({});
  t.b.end_region();
  EXPECT_THAT(t.failure({}), HasSubstr("kernel.cc:20: thread (0, 0, 0) has left this for loop"));
}

TEST(InterpCheck, ABarrierThatOtherWarpsNeverReach) {
  KernelTest t;
  t.line(10);
  guard(t, t.op(Opcode::kLt, {t.thread(), t.i32(64)}));
  t.line(11);
  t.op(Opcode::kBarrier, {});
  end_guard(t);
  EXPECT_EQ(
      t.failure({.block = {128, 1, 1}}),
      "kernel.cc:11: error: barrier that not every thread reaches: thread (0, 0, 0) waits here for "
      "ever; warps 0 to 1 are at the barrier of kernel.cc:11, warps 2 to 3 are at its end (kernel "
      "'k', block (0, 0, 0))\n"
      "  thread (64, 0, 0) has finished the kernel\n"
      "  fix: move it out of the branch or loop, or make its condition the same for all who must "
      "arrive\n");
}

TEST(InterpCheck, TwoDifferentBarriers) {
  KernelTest t;
  t.line(10);
  guard(t, t.op(Opcode::kLt, {t.thread(), t.i32(32)}));
  t.line(11);
  t.op(Opcode::kBarrier, {});
  t.b.yield({});
  t.b.next_region();
  t.line(13);
  t.op(Opcode::kBarrier, {});
  t.b.yield({});
  t.b.end_region();
  EXPECT_EQ(
      t.failure({.block = {64, 1, 1}}),
      "kernel.cc:11: error: barrier that not every thread reaches: thread (0, 0, 0) waits here for "
      "ever; warp 0 is at the barrier of kernel.cc:11, warp 1 is at the barrier of kernel.cc:13 "
      "(kernel 'k', block (0, 0, 0))\n"
      "  kernel.cc:13: thread (32, 0, 0) waits here\n"
      "  fix: move it out of the branch or loop, or make its condition the same for all who must "
      "arrive\n");
}

// --- Warp collectives ---

TEST(InterpCheck, ACollectiveWithoutAMaskInDivergentCode) {
  KernelTest t;
  t.line(10);
  guard(t, t.op(Opcode::kGe, {t.thread(), t.i32(4)}));
  t.line(11);
  t.op(Opcode::kBallot, {t.b.constant(kBoolType, 1)});
  end_guard(t);
  EXPECT_EQ(
      t.failure({}),
      "kernel.cc:11: error: this warp collective needs all threads of the warp, and lane 0 is not "
      "active here (kernel 'k', block (0, 0, 0), thread (4, 0, 0) and 27 more of its warp)\n"
      "  kernel.cc:10: thread (0, 0, 0) does not take the then branch of this if\n"
      "  fix: move it out of the branch or loop, or give it the mask of the lanes that are "
      "there\n");
}

// --- Several mistakes ---

TEST(InterpCheck, CollectsAsManyAsAskedForEachOpOnce) {
  for (const int limit : {1, 2, 10}) {
    KernelTest t;
    const ValueId x = t.tensor("x", Scalar::kF32, {8});
    const ValueId out = t.tensor("out", Scalar::kF32, {32});
    const ValueId i = t.thread();
    t.line(1);
    t.op(Opcode::kStore, {x, t.f32(1), i, t.op(Opcode::kBounds, {x, i})});
    t.line(2);
    const ValueId y = t.op(Opcode::kLoad, {x, i, t.op(Opcode::kBounds, {x, i})}, kF32Type);
    t.store(out, i, y);
    t.line(3);
    t.op(Opcode::kAssert, {t.op(Opcode::kLt, {i, t.i32(1)})}, Type::none(),
         {{AttrKey::kMessage, static_cast<int64_t>(index_of(t.kernel.intern("one")))}});
    const std::string message = t.failure({.grid = {3, 1, 1}, .options = {.max_reports = limit}});
    for (int line = 1; line <= 3; ++line) {
      const std::string found = absl::StrCat("kernel.cc:", line, ": error");
      EXPECT_EQ(message.find(found) != std::string::npos, line <= limit) << message;
      EXPECT_EQ(message.find(found), message.rfind(found));
    }
    if (limit == 10) {
      // Lanes that did nothing wrong went on.
      EXPECT_EQ(t.read<float>(1)[7], 1);
      EXPECT_EQ(t.read<float>(1)[8], 0);
    }
  }
}

}  // namespace
}  // namespace heddle::ir::interp
