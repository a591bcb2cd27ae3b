// Results of what warps and blocks do together: known to be the same where they are, and nowhere
// else.
#include <array>
#include <random>
#include <string>
#include <vector>

#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/text/printer.h"
#include "ir/interp/harness.h"
#include "ir/text/parse_text.h"
#include "ir/text/print_scope.h"

namespace heddle::ir {

namespace {

// The level of %r after these ops.
Scope level(absl::string_view block, absl::string_view body) {
  constexpr absl::string_view prelude = R"(
  %tx = thread_idx {axis = x} : i32
  %bx = block_idx {axis = x} : i32
  %lane = lane_id : i32
  %warp = warp_id : i32
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c2 = const 2 : i32
  %c3 = const 3 : i32
  %c4 = const 4 : i32
  %c8 = const 8 : i32
  %c16 = const 16 : i32
  %odd = and %tx, %c1 : i32
  %q = eq %odd, %c0 : bool
  %l = and %lane, %c3 : i32
  %slots = shared {extents = [4]} : view<f32, shared, 1>
  %words = shared {extents = [32]} : view<i32, shared, 1>
)";
  const Kernel kernel =
      parse_body(block, "%n: i32, %p: bool, %x: view<f32, global, 1> [?] strides [1]",
                 absl::StrCat(prelude, body));
  return Uniformity(kernel).of(value_named(kernel, "r"));
}

// v and what `lanes` away has, combined.
std::string step(absl::string_view combine, absl::string_view type, absl::string_view from,
                 int lanes, absl::string_view to, absl::string_view attrs = "") {
  return absl::StrCat("%s_", to, " = shfl.xor %", from, ", %c", lanes, attrs, " : ", type, "\n%",
                      to, " = ", combine, " %", from, ", %s_", to, " : ", type, "\n");
}
std::string butterfly(absl::string_view combine, absl::string_view type, absl::string_view from) {
  return step(combine, type, from, 16, "b16") + step(combine, type, "b16", 8, "b8") +
         step(combine, type, "b8", 4, "b4") + step(combine, type, "b4", 2, "b2") +
         step(combine, type, "b2", 1, "r");
}

TEST(UniformityCollectives, LanesThatExchangeWhatTheyHave) {
  EXPECT_EQ(level("256, 1, 1", butterfly("add", "i32", "tx")), Scope::kWarp);
  EXPECT_EQ(level("256, 1, 1", "%f = convert %tx : f32\n" + butterfly("add", "f32", "f")),
            Scope::kWarp);
  EXPECT_EQ(level("256, 1, 1", butterfly("max", "i32", "tx")), Scope::kWarp);
  EXPECT_EQ(level("?", butterfly("max", "i32", "tx")), Scope::kWarp);
  EXPECT_EQ(level("32, 1, 1", butterfly("add", "i32", "tx")), Scope::kBlock);
  // The difference has another sign in the other lane; one distance is missing; another value.
  EXPECT_EQ(level("256, 1, 1", butterfly("sub", "i32", "tx")), Scope::kThread);
  EXPECT_EQ(
      level("256, 1, 1", step("add", "i32", "tx", 16, "a") + step("add", "i32", "a", 8, "b") +
                             step("add", "i32", "b", 4, "c") + step("add", "i32", "c", 2, "r")),
      Scope::kThread);
  EXPECT_EQ(
      level("256, 1, 1", step("add", "i32", "tx", 16, "a") + step("add", "i32", "a", 8, "b") +
                             step("add", "i32", "b", 4, "c") + step("add", "i32", "c", 2, "d") +
                             "%s = shfl.xor %c, %c1 : i32\n%r = add %d, %s : i32\n"),
      Scope::kThread);
  // Two bits at once are one exchange, not two.
  EXPECT_EQ(
      level("256, 1, 1", step("add", "i32", "tx", 16, "a") + step("add", "i32", "a", 8, "b") +
                             step("add", "i32", "b", 4, "c") + step("add", "i32", "c", 3, "r")),
      Scope::kThread);
  // Across the segment's border a lane has its own.
  EXPECT_EQ(
      level("256, 1, 1", step("add", "i32", "tx", 16, "a", " {width = 16}") +
                             step("add", "i32", "a", 8, "b") + step("add", "i32", "b", 4, "c") +
                             step("add", "i32", "c", 2, "d") + step("add", "i32", "d", 1, "r")),
      Scope::kThread);
}

TEST(UniformityCollectives, SumsOfSmallIntegersAreTakenInI32) {
  std::string body = "%v16 = convert %tx : i8\n";
  int from = 16;
  for (const int lanes : {16, 8, 4, 2, 1}) {
    absl::StrAppend(&body, "%s", lanes, " = shfl.xor %v", from, ", %c", lanes, " : i8\n", "%a",
                    lanes, " = convert %v", from, " : i32\n%b", lanes, " = convert %s", lanes,
                    " : i32\n%t", lanes, " = add %a", lanes, ", %b", lanes, " : i32\n%",
                    lanes == 1 ? "r" : absl::StrCat("v", lanes / 2), " = convert %t", lanes,
                    " : i8\n");
    from = lanes / 2;
  }
  EXPECT_EQ(level("256, 1, 1", body), Scope::kWarp) << body;
}

// A lane whose own value went through fewer bits than its neighbour's has another sum than that one.
TEST(UniformityCollectives, BothSidesAreConvertedAlike) {
  const auto converted = [](absl::string_view own, absl::string_view other) {
    return level("256, 1, 1",
                 absl::StrCat(step("add", "i32", "tx", 16, "a"), step("add", "i32", "a", 8, "b"),
                              step("add", "i32", "b", 4, "c"), step("add", "i32", "c", 2, "d"),
                              "%s = shfl.xor %d, %c1 : i32\n%e = convert %d : ", own,
                              "\n%f = convert %e : i32\n%g = convert %s : ", other,
                              "\n%h = convert %g : i32\n%r = add %f, %h : i32\n"));
  };
  for (const absl::string_view own : {"i8", "u8", "i16", "f32"}) {
    for (const absl::string_view other : {"i8", "u8", "i16", "f32"}) {
      EXPECT_EQ(converted(own, other), own == other ? Scope::kWarp : Scope::kThread)
          << own << " " << other;
    }
  }
}

// What block_reduce does: a value a warp in shared memory, which the lanes of every warp read
// alike.
TEST(UniformityCollectives, ValuesOfAllWarpsCombinedByEach) {
  const std::string load = "%v = load %slots, %l : f32\n";
  const std::string sum = step("add", "f32", "v", 2, "a", " {width = 4}") +
                          step("add", "f32", "a", 1, "r", " {width = 4}");
  EXPECT_EQ(level("128, 1, 1", load + sum), Scope::kBlock);
  EXPECT_EQ(level("64, 2, 1", load + sum), Scope::kBlock);
  EXPECT_EQ(level("?", load + sum), Scope::kBlock);
  EXPECT_EQ(level("128, 1, 1", load + step("add", "f32", "v", 2, "r", " {width = 4}")),
            Scope::kThread);
  // Each warp reads another slot.
  EXPECT_EQ(level("128, 1, 1", "%v = load %slots, %warp : f32\n%r = add %v, %v : f32\n"),
            Scope::kWarp);
  EXPECT_EQ(level("128, 1, 1", "%w = add %l, %warp : i32\n%v = load %slots, %w : f32\n" + sum),
            Scope::kWarp);
  // By one lane, whatever combines them.
  EXPECT_EQ(level("128, 1, 1", load + step("sub", "f32", "v", 2, "a", " {width = 4}") +
                                   "%r = shfl.idx %a, %c0 {width = 4} : f32\n"),
            Scope::kBlock);
  EXPECT_EQ(level("96, 1, 1",
                  "%v = load %slots, %l : f32\n%d = shfl.down %v, %c2 : f32\n"
                  "%e = add %v, %d : f32\n%r = shfl.idx %e, %c1 : f32\n"),
            Scope::kBlock);
  EXPECT_EQ(level("128, 1, 1", "%r = shfl.idx %tx, %c0 : i32\n"), Scope::kWarp);
  EXPECT_EQ(level("128, 1, 1", load + "%r = shfl.idx %v, %c4 {width = 4} : f32\n"), Scope::kThread);
}

TEST(UniformityCollectives, OneInstructionOverWordsThatAllWarpsRead) {
  const std::string load = "%v = load %words, %lane : i32\n%o = gt %v, %c0 : bool\n";
  for (const char* gather :
       {"redux %v {op = add} : i32", "vote.any %o : bool", "vote.all %o : bool",
        "vote.uni %o : bool", "ballot %o : u32", "match.all %v : u32"}) {
    const std::string body = absl::StrCat(load, "%r = ", gather, "\n");
    EXPECT_EQ(level("256, 1, 1", body), Scope::kBlock) << body;
    // A last warp of 8 lanes reads 8 of the words.
    EXPECT_EQ(level("40, 1, 1", body), Scope::kWarp) << body;
    EXPECT_EQ(level("?", body), Scope::kWarp) << body;
  }
  EXPECT_EQ(level("256, 1, 1", "%r = redux %tx {op = add} : i32\n"), Scope::kWarp);
  EXPECT_EQ(level("256, 1, 1", load + "%m = ballot %q : u32\n%r = vote.any %o, %m : bool\n"),
            Scope::kWarp);
}

// The warp's last lanes, or its first, have no such neighbour and keep their own.
TEST(UniformityCollectives, NeighboursThatSomeLanesDoNotHave) {
  for (const absl::string_view shuffle : {"down", "up"}) {
    for (const absl::string_view attrs : {"", " {width = 16}", " {width = 8}"}) {
      const std::string body = absl::StrCat(
          "%v = load %slots, %l : f32\n%d = shfl.", shuffle, " %v, %c1", attrs, " : f32\n",
          step("add", "f32", "d", 2, "a"), step("add", "f32", "a", 1, "r"));
      EXPECT_EQ(level("128, 1, 1", body), Scope::kThread) << body;
    }
  }
}

// Lanes of different groups get what their own group makes.
TEST(UniformityCollectives, GroupsOfLanesGatherForThemselves) {
  for (const char* gather :
       {"redux %tx, %m {op = add} : i32", "vote.any %q, %m : bool", "vote.all %q, %m : bool",
        "vote.uni %q, %m : bool", "ballot %q, %m : u32", "match.all %tx, %m : u32"}) {
    const auto of = [&](absl::string_view mask) {
      return level("256, 1, 1", absl::StrCat("%m = ", mask, " : u32\n%r = ", gather, "\n"));
    };
    EXPECT_EQ(of("match.any %l"), Scope::kThread) << gather;
    EXPECT_EQ(of("ballot %q"), Scope::kWarp) << gather;
  }
}

// A thread's neighbours agree on more than it shows: what chooses between two values counts too.
TEST(UniformityCollectives, ConditionsAndTripsCount) {
  const std::string load = "%v = load %slots, %l : f32\n%w = load %slots, %c0 : f32\n";
  const std::string sum = step("add", "f32", "u", 2, "a", " {width = 4}") +
                          step("add", "f32", "a", 1, "r", " {width = 4}");
  const auto choose = [&](absl::string_view condition) {
    return level(
        "128, 1, 1",
        absl::StrCat(load, "%z = eq %l, %c0 : bool\n%k = eq %warp, %c0 : bool\n", "%u = if ",
                     condition, " : f32 {\nyield %v\n} else {\nyield %w\n}\n", sum));
  };
  EXPECT_EQ(choose("%z"), Scope::kBlock);
  EXPECT_EQ(choose("%p"), Scope::kBlock);
  EXPECT_EQ(choose("%k"), Scope::kWarp);
  EXPECT_EQ(choose("%q"), Scope::kThread);
  const auto loop = [&](absl::string_view stop) {
    return level("128, 1, 1",
                 absl::StrCat(load, "%u = for %i in %c0 .. ", stop,
                              " step %c1 carry(%c = %v) : f32 {\n%d = add %c, %v : f32\n",
                              "yield %d\n}\n", sum));
  };
  EXPECT_EQ(loop("%n"), Scope::kBlock);
  EXPECT_EQ(loop("%l"), Scope::kBlock);
  EXPECT_EQ(loop("%tx"), Scope::kThread);
}

// What may synchronise single threads does not reach what lies between two barriers.
TEST(UniformityCollectives, BarriersSettleWhatTheyEnclose) {
  const std::string lock = "%z = load %x, %c0 {volatile = 1} : f32\n";
  const std::string load = "%v = load %slots, %l : f32\n";
  const std::string store = "store %slots, %z, %c0\n";
  const std::string sum = step("add", "f32", "v", 2, "a", " {width = 4}") +
                          step("add", "f32", "a", 1, "r", " {width = 4}");
  const auto of = [&](const std::string& body) { return level("128, 1, 1", lock + body); };
  EXPECT_EQ(of(load + sum), Scope::kThread);
  EXPECT_EQ(of(store + load + sum), Scope::kThread);
  EXPECT_EQ(of(store + "barrier\n" + load + sum), Scope::kBlock);
  EXPECT_EQ(of("barrier\n" + load + sum + store), Scope::kThread);
  EXPECT_EQ(of("barrier\n" + load + sum + "barrier\n" + store), Scope::kBlock);
  EXPECT_EQ(of("barrier\n" + load + sum + "if %p {\nbarrier\nyield\n}\n" + store), Scope::kThread);
  EXPECT_EQ(of("barrier\n" + load + sum + "if %q {\n" + store + "yield\n}\n"), Scope::kThread);
  EXPECT_EQ(of("barrier\n" + load + sum +
               "%far = map_shared %slots, %c0 : view<f32, shared_cluster, 1>\n"),
            Scope::kThread);
  // In a loop, the next trip's store comes behind this one's load.
  const auto loop = [&](const std::string& trip) {
    return of("for %i in %c0 .. %n step %c1 {\n" + trip + "yield\n}\n");
  };
  EXPECT_EQ(loop(store + "barrier\n" + load + sum), Scope::kThread);
  EXPECT_EQ(loop("barrier\n" + store + "barrier\n" + load + sum), Scope::kBlock);
  EXPECT_EQ(loop("barrier\n" + load + sum), Scope::kBlock);
  EXPECT_EQ(of("barrier\nfor %i in %c0 .. %n step %c1 {\n" + load + sum + "yield\n}\n"),
            Scope::kBlock);
  EXPECT_EQ(of("barrier\nfor %i in %c0 .. %n step %c1 {\n" + load + sum + store + "yield\n}\n"),
            Scope::kThread);
  // What comes behind the region of the barrier is in the same phase.
  const std::string settled = "barrier\n" + load + sum + "yield\n}\n";
  for (const std::string start :
       {"for %i in %c0 .. %n step %c1 {\n", "if %p {\n", "while {\nyield %p\n} do {\n"}) {
    EXPECT_EQ(of(start + settled), Scope::kBlock) << start;
    EXPECT_EQ(of(start + settled + store), Scope::kThread) << start;
    EXPECT_EQ(of(start + settled + "barrier\n" + store), Scope::kBlock) << start;
    EXPECT_EQ(of("if %p {\n" + start + settled + "yield\n}\n" + store), Scope::kThread) << start;
  }
  // A branch runs once: what comes before its barrier, or in the other branch, does not come again.
  EXPECT_EQ(of("if %p {\n" + store + settled), Scope::kBlock);
  EXPECT_EQ(of("if %p {\nbarrier\n" + load + sum + "yield\n} else {\n" + store + "yield\n}\n"),
            Scope::kBlock);
  EXPECT_EQ(loop("if %p {\n" + store + settled), Scope::kThread);
}

// Only a block's own array is known to be written by nobody else.
TEST(UniformityCollectives, BarriersSettleOwnArraysAlone) {
  const auto behind_lock = [](const std::string& view) {
    return level("128, 1, 1", "%z = load %x, %c0 {volatile = 1} : f32\n" + view +
                                  "barrier\n%r = load %s, %c0 : f32\n");
  };
  EXPECT_EQ(behind_lock("%s = shared {extents = [4]} : view<f32, shared, 1>\n"), Scope::kBlock);
  EXPECT_EQ(behind_lock("%s = shared.dynamic %n : view<f32, shared, 1>\n"), Scope::kThread);
  EXPECT_EQ(behind_lock("%s = subview %slots, %c0, %c4 : view<f32, shared, 1>\n"), Scope::kThread);
  EXPECT_EQ(behind_lock("%s = subview %x, %c0, %c4 : view<f32, global, 1>\n"), Scope::kThread);
  EXPECT_EQ(level("128, 1, 1",
                  "%z = load %x, %c1 {volatile = 1} : f32\nbarrier\n%r = load %x, %c0 : f32\n"),
            Scope::kThread);
}

// A loop until all agree: the condition is what the last trip's reduction left in a variable.
TEST(UniformityCollectives, LoopUntilConvergence) {
  EXPECT_EQ(
      level("128, 1, 1",
            "%t = const 0x3f800000 : f32\n%e = var %t : var<f32>\nwhile {\n"
            "%r = var.load %e : f32\n%go = gt %r, %t : bool\nyield %go\n} do {\n"
            "%v = load %slots, %l : f32\n" +
                step("max", "f32", "v", 2, "a", " {width = 4}") +
                step("max", "f32", "a", 1, "b", " {width = 4}") + "var.store %e, %b\nyield\n}\n"),
      Scope::kBlock);
}

// Whatever the analysis says of random programs of lanes holds when they run.
class RandomLanes {
 public:
  RandomLanes(uint64_t seed, int threads) : random_(seed), threads_(threads) {}

  void check() {
    interp::KernelTest t;
    t.kernel.block = {threads_, 1, 1};
    const ValueId in = t.tensor("in", Scalar::kI32, {64});
    std::vector<ValueId> values = {t.op(Opcode::kLaneId, {}, kI32Type), t.thread(),
                                   t.op(Opcode::kWarpId, {}, kI32Type), t.i32(pick(64))};
    for (int i = 0; i < kOps; ++i) values.push_back(make(t, in, values));
    const ValueId out = t.tensor("out", Scalar::kI32, {kOps, threads_});
    const size_t first = values.size() - kOps;
    for (int i = 0; i < kOps; ++i) {
      t.store(out, t.op(Opcode::kAdd, {t.thread(), t.i32(i * threads_)}), values[first + i]);
    }
    std::vector<int32_t> data(64);
    for (int32_t& one : data) one = pick(1000);
    t.fill(0, data);
    ASSERT_OK(t.run({.block = {threads_, 1, 1}, .checks = false}));
    const std::vector<int32_t> got = t.read<int32_t>(1);
    const Uniformity uniformity(t.kernel);
    for (int i = 0; i < kOps; ++i) {
      const Scope level = uniformity.of(values[first + i]);
      ++levels[static_cast<size_t>(level)];
      if (level < Scope::kWarp) continue;
      const int group = level == Scope::kWarp ? 32 : level == Scope::kWarpGroup ? 128 : threads_;
      for (int thread = 0; thread < threads_; ++thread) {
        ASSERT_EQ(got[i * threads_ + thread], got[i * threads_ + thread / group * group])
            << "thread " << thread << " of a " << name_of(level) << ", value " << i << " of\n"
            << print(t.kernel);
      }
    }
  }

  static inline std::array<int, kScopeCount> levels = {};

 private:
  static constexpr int kOps = 24;

  int pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  // Mostly one of the last.
  ValueId any(const std::vector<ValueId>& values) {
    const int back = pick(3) == 0 ? pick(static_cast<int>(values.size())) : pick(3);
    return values[values.size() - 1 - static_cast<size_t>(back)];
  }

  ValueId make(interp::KernelTest& t, ValueId in, const std::vector<ValueId>& values) {
    const ValueId v = any(values);
    const int64_t width = int64_t{1} << (pick(3) == 0 ? pick(6) : 5);
    const auto shuffle = [&](Opcode opcode, ValueId with) {
      return t.op(opcode, {v, with}, Type::none(), {{AttrKey::kWidth, width}});
    };
    constexpr Opcode kCombine[] = {Opcode::kAdd, Opcode::kMax, Opcode::kXor, Opcode::kSub};
    switch (pick(10)) {
      case 0:
        return t.op(Opcode::kAnd, {pick(2) == 0 ? values[0] : v, t.i32(pick(32))});
      case 1:
        return t.load(in, t.op(Opcode::kAnd, {v, t.i32(63)}));
      case 2:
        return shuffle(Opcode::kShflIdx, pick(2) == 0 ? t.i32(pick(33)) : any(values));
      case 3:
        return shuffle(pick(2) == 0 ? Opcode::kShflUp : Opcode::kShflDown, t.i32(pick(32)));
      case 4:
        return t.op(Opcode::kRedux, {v}, Type::none(), {{AttrKey::kOp, pick(3)}});
      case 5: {
        const ValueId odd = t.op(Opcode::kEq, {t.op(Opcode::kAnd, {v, t.i32(1)}), t.i32(0)});
        return t.op(Opcode::kSelect, {odd, any(values), any(values)});
      }
      case 6: {
        const ValueId low = t.op(Opcode::kLt, {v, t.i32(pick(40))});
        return t.op(Opcode::kConvert, {t.op(Opcode::kBallot, {low})}, kI32Type);
      }
      case 7:
        return t.op(kCombine[pick(4)], {v, any(values)});
      default: {
        const ValueId other =
            shuffle(Opcode::kShflXor, t.i32(pick(4) == 0 ? pick(32) : 1 << pick(5)));
        const Opcode combine = kCombine[pick(4)];
        return pick(2) == 0 ? t.op(combine, {v, other}) : t.op(combine, {other, v});
      }
    }
  }

  std::mt19937_64 random_;
  const int threads_;
};

TEST(UniformityCollectives, HoldsInRandomPrograms) {
  for (const int threads : {32, 64, 160, 256}) {
    for (uint64_t seed = 0; seed < 250; ++seed) {
      RandomLanes(seed * 4 + static_cast<uint64_t>(threads), threads).check();
      if (HasFatalFailure()) return;
    }
  }
  // The programs are not all of one kind.
  for (const Scope scope : {Scope::kThread, Scope::kWarp, Scope::kBlock, Scope::kGrid}) {
    EXPECT_GT(RandomLanes::levels[static_cast<size_t>(scope)], 500) << name_of(scope);
  }
}

}  // namespace
}  // namespace heddle::ir
