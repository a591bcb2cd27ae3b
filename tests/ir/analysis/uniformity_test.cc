#include "heddle/ir/analysis/uniformity.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "ir/text/parse_text.h"
#include "ir/text/print_scope.h"

namespace heddle::ir {

namespace {

constexpr absl::string_view kParams = "%n: i32, %p: bool, %x: view<f32, global, 1> [?] strides [1]";

constexpr absl::string_view kPrelude = R"(
  %tx = thread_idx {axis = x} : i32
  %ty = thread_idx {axis = y} : i32
  %tz = thread_idx {axis = z} : i32
  %bx = block_idx {axis = x} : i32
  %lane = lane_id : i32
  %warp = warp_id : i32
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c4 = const 4 : i32
  %c16 = const 16 : i32
  %c32 = const 32 : i32
  %c33 = const 33 : i32
  %c63 = const 63 : i32
  %c128 = const 128 : i32
  %c256 = const 256 : i32
  %s2 = const 2 : u32
  %s5 = const 5 : u32
  %s7 = const 7 : u32
)";

class Analysed {
 public:
  Analysed(absl::string_view block, absl::string_view body)
      : kernel(parse_body(block, kParams, absl::StrCat(kPrelude, body))), uniformity(kernel) {}
  Scope of(absl::string_view name) const { return uniformity.of(value_named(kernel, name)); }
  // The only op of that kind.
  OpId op(Opcode opcode) const {
    OpId found = OpId::kNone;
    kernel.walk([&](OpId id) {
      if (kernel.op(id).opcode == opcode) found = id;
    });
    return found;
  }
  // How the region around that op runs.
  Scope control_of(Opcode opcode) const { return uniformity.control(kernel.op(op(opcode)).parent); }

  Kernel kernel;
  Uniformity uniformity;
};

// The level of %r after these ops.
Scope level(absl::string_view block, absl::string_view body) {
  return Analysed(block, body).of("r");
}

// Of blocks of a cluster along x and y.
TEST(Uniformity, WholeClusters) {
  const auto level = [](absl::string_view cluster, absl::string_view ops) {
    const Kernel kernel = parse_kernel(absl::StrCat(
        "kernel @test() block(64, 1, 1) cluster(", cluster,
        ") target(sm_90a) {\n  %x = block_idx {axis = x} : i32\n",
        "  %y = block_idx {axis = y} : i32\n  %c2 = const 2 : i32\n  %c4 = const 4 : i32\n  %c6 = "
        "const 6 : i32\n",
        "  %s1 = const 1 : u32\n  %s2 = const 2 : u32\n  %t = thread_idx {axis = x} : i32\n  %r = ",
        ops, "\n}\n"));
    return Uniformity(kernel).of(value_named(kernel, "r"));
  };
  EXPECT_EQ(level("4, 1, 1", "div %x, %c4 : i32"), Scope::kCluster);
  EXPECT_EQ(level("4, 1, 1", "shr %x, %s2 : i32"), Scope::kCluster);
  EXPECT_EQ(level("2, 1, 1", "div %x, %c6 : i32"), Scope::kCluster);
  EXPECT_EQ(level("4, 1, 1", "add %y, %c2 : i32"), Scope::kCluster);
  EXPECT_EQ(level("2, 2, 1", "div %y, %c2 : i32"), Scope::kCluster);
  // Parts of clusters, and of threads.
  EXPECT_EQ(level("4, 1, 1", "div %x, %c2 : i32"), Scope::kBlock);
  EXPECT_EQ(level("4, 1, 1", "div %x, %c6 : i32"), Scope::kBlock);
  EXPECT_EQ(level("4, 1, 1", "shr %x, %s1 : i32"), Scope::kBlock);
  EXPECT_EQ(level("4, 1, 1", "div %c4, %x : i32"), Scope::kBlock);
  EXPECT_EQ(level("2, 2, 1", "add %y, %c2 : i32"), Scope::kBlock);
  EXPECT_EQ(level("4, 1, 1", "div %t, %c4 : i32"), Scope::kThread);
}

TEST(Uniformity, Sources) {
  const Analysed flat("256, 1, 1", "");
  EXPECT_EQ(flat.of("tx"), Scope::kThread);
  EXPECT_EQ(flat.of("ty"), Scope::kGrid);
  EXPECT_EQ(flat.of("bx"), Scope::kBlock);
  EXPECT_EQ(flat.of("lane"), Scope::kThread);
  EXPECT_EQ(flat.of("warp"), Scope::kWarp);
  EXPECT_EQ(flat.of("c32"), Scope::kGrid);
  EXPECT_EQ(flat.of("n"), Scope::kGrid);
  EXPECT_EQ(flat.of("x"), Scope::kGrid);
  EXPECT_EQ(level("256, 1, 1", "%r = grid_dim {axis = x} : i32\n"), Scope::kGrid);
  EXPECT_EQ(level("?", "%r = block_dim {axis = x} : i32\n"), Scope::kGrid);
  const Analysed dynamic("?", "");
  EXPECT_EQ(dynamic.of("ty"), Scope::kThread);
}

TEST(Uniformity, BlockShape) {
  const Analysed wide("32, 4, 2", "");
  EXPECT_EQ(wide.of("tx"), Scope::kThread);
  EXPECT_EQ(wide.of("ty"), Scope::kWarp);
  EXPECT_EQ(wide.of("tz"), Scope::kWarpGroup);
  const Analysed wider("128, 4, 2", "");
  EXPECT_EQ(wider.of("ty"), Scope::kWarpGroup);
  const Analysed square("16, 16, 1", "");
  EXPECT_EQ(square.of("ty"), Scope::kThread);
  EXPECT_EQ(square.of("tz"), Scope::kGrid);
  // A block of one warp: what the warp agrees on, the block does.
  EXPECT_EQ(Analysed("32, 1, 1", "").of("warp"), Scope::kBlock);
  EXPECT_EQ(Analysed("1, 1, 1", "").of("lane"), Scope::kBlock);
}

TEST(Uniformity, PureOpsTakeTheLeast) {
  EXPECT_EQ(level("256, 1, 1", "%r = add %bx, %n : i32\n"), Scope::kBlock);
  EXPECT_EQ(level("256, 1, 1", "%r = add %warp, %n : i32\n"), Scope::kWarp);
  EXPECT_EQ(level("256, 1, 1", "%r = select %p, %bx, %tx : i32\n"), Scope::kThread);
}

TEST(Uniformity, WarpsAndWarpGroupsFromThreadIndices) {
  const auto flat = [](absl::string_view body) { return level("512, 1, 1", body); };
  EXPECT_EQ(flat("%r = div %tx, %c32 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = shr %tx, %s5 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = div %tx, %c128 : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = div %tx, %c256 : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = shr %tx, %s7 : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = div %tx, %c16 : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = div %tx, %c33 : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = and %tx, %c32 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%m = const -32 : i32\n%r = and %tx, %m : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = and %tx, %c33 : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%a = rem %tx, %c128 : i32\n%r = div %a, %c32 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = div %warp, %c4 : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = shr %warp, %s2 : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = rem %warp, %c4 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%a = mul %warp, %c32 : i32\n%b = add %a, %lane : i32\n"
                 "%r = div %b, %c128 : i32\n"),
            Scope::kWarpGroup);
  // Scaled, and as unsigned and wide numbers.
  EXPECT_EQ(flat("%a = mul %tx, %c4 : i32\n%r = div %a, %c128 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%a = shl %tx, %s2 : i32\n%b = convert %a : u32\n%r = shr %b, %s7 : u32\n"),
            Scope::kWarp);
  EXPECT_EQ(flat("%a = convert %tx : i64\n%r = shr %a, %s7 : i64\n"), Scope::kWarpGroup);
  // Neither factor is shared: one is 0 or 1 by the thread.
  EXPECT_EQ(flat("%a = and %tx, %c1 : i32\n%b = mul %tx, %c32 : i32\n%d = mul %a, %b : i32\n"
                 "%r = div %d, %c32 : i32\n"),
            Scope::kThread);
  // Everything is in the first warp.
  EXPECT_EQ(level("32, 1, 1", "%r = div %tx, %c32 : i32\n"), Scope::kGrid);
  // Nothing is known of a block that the launch decides.
  EXPECT_EQ(level("?", "%r = div %tx, %c32 : i32\n"), Scope::kThread);
}

TEST(Uniformity, WholeGridIndex) {
  const auto at = [](absl::string_view add) {
    return level("256, 1, 1",
                 absl::StrCat("%a = mul %bx, %c256 : i32\n", add, "%r = shr %g, %s5 : i32\n"));
  };
  // The product may wrap; its low bits are zero all the same.
  EXPECT_EQ(at("%g = add %a, %tx : i32\n"), Scope::kWarp);
  EXPECT_EQ(at("%g = add %tx, %a : i32\n"), Scope::kWarp);
  EXPECT_EQ(at("%g = fma %bx, %c256, %tx : i32\n"), Scope::kWarp);
  EXPECT_EQ(at("%b = add %a, %tx : i32\n%g = add %b, %c16 : i32\n"), Scope::kThread);
  EXPECT_EQ(at("%b = add %a, %tx : i32\n%g = sub %b, %c32 : i32\n"), Scope::kWarp);
  EXPECT_EQ(at("%b = add %a, %tx : i32\n%g = add %b, %n : i32\n"), Scope::kThread);
}

TEST(Uniformity, Comparisons) {
  const auto flat = [](absl::string_view body) { return level("256, 1, 1", body); };
  EXPECT_EQ(flat("%r = lt %tx, %c32 : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = ge %tx, %c128 : bool\n"), Scope::kWarpGroup);
  EXPECT_EQ(flat("%r = gt %c32, %tx : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = le %tx, %c63 : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = lt %c63, %tx : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = le %tx, %c32 : bool\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = lt %tx, %c33 : bool\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = eq %tx, %c32 : bool\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = lt %tx, %n : bool\n"), Scope::kThread);
  EXPECT_EQ(flat("%a = mul %n, %c32 : i32\n%r = lt %tx, %a : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = lt %tx, %c256 : bool\n"), Scope::kGrid);  // always true
}

TEST(Uniformity, BlocksOfSeveralDimensions) {
  constexpr absl::string_view linear = "%a = mul %ty, %c16 : i32\n%t = add %a, %tx : i32\n";
  EXPECT_EQ(level("16, 16, 1", absl::StrCat(linear, "%r = div %t, %c32 : i32\n")), Scope::kWarp);
  EXPECT_EQ(level("16, 16, 1", absl::StrCat(linear, "%r = shr %t, %s7 : i32\n")),
            Scope::kWarpGroup);
  EXPECT_EQ(level("16, 16, 1", "%r = div %ty, %c4 : i32\n"), Scope::kWarp);
  EXPECT_EQ(level("16, 16, 1", "%d = const 8 : i32\n%r = div %ty, %d : i32\n"), Scope::kWarpGroup);
  EXPECT_EQ(level("16, 16, 1", "%d = const 8 : i32\n%r = div %tx, %d : i32\n"), Scope::kThread);
  // x starts again at 0 in the middle of a warp.
  EXPECT_EQ(level("48, 4, 1", "%r = div %tx, %c32 : i32\n"), Scope::kThread);
  EXPECT_EQ(level("64, 4, 1", "%r = div %tx, %c32 : i32\n"), Scope::kWarp);
  EXPECT_EQ(level("64, 4, 1", "%r = div %tx, %c128 : i32\n"), Scope::kGrid);
  EXPECT_EQ(level("192, 4, 1", "%r = div %tx, %c128 : i32\n"), Scope::kWarp);
}

TEST(Uniformity, Loads) {
  const auto flat = [](absl::string_view body) { return level("256, 1, 1", body); };
  EXPECT_EQ(flat("%r = load %x, %bx : f32\n"), Scope::kBlock);
  EXPECT_EQ(flat("%r = load %x, %tx : f32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = load %x, %c0 {volatile = 1} : f32\n"), Scope::kThread);
  constexpr absl::string_view shared = "%s = shared {extents = [64]} : view<f32, shared, 1>\n";
  EXPECT_EQ(flat(absl::StrCat(shared, "%r = load %s, %c0 : f32\n")), Scope::kBlock);
  // A lock needs a volatile access; what it guards may differ from thread to thread.
  EXPECT_EQ(flat("%v = load %x, %c1 {volatile = 1} : f32\n%r = load %x, %c0 : f32\n"),
            Scope::kThread);
  EXPECT_EQ(flat("%m = const 3 : u32\nwarp.sync %m\n%r = load %x, %c0 : f32\n"), Scope::kThread);
  EXPECT_EQ(flat("%m = const 4294967295 : u32\nwarp.sync %m\n%r = load %x, %c0 : f32\n"),
            Scope::kGrid);
}

TEST(Uniformity, ShufflesAndVotes) {
  const auto flat = [](absl::string_view body) { return level("256, 1, 1", body); };
  EXPECT_EQ(flat("%r = shfl.idx %tx, %c0 : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = shfl.idx %tx, %lane : i32\n"), Scope::kThread);
  // There is no such lane, or may be none: everyone gets their own value.
  EXPECT_EQ(flat("%r = shfl.idx %tx, %c33 : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = shfl.idx %tx, %n : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%c31 = const 31 : i32\n%k = and %n, %c31 : i32\n%r = shfl.idx %tx, %k : i32\n"),
            Scope::kWarp);
  EXPECT_EQ(flat("%r = shfl.idx %tx, %c0 {width = 8} : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%m = ballot %p : u32\n%r = shfl.idx %tx, %c0, %m : i32\n"), Scope::kWarp);
  EXPECT_EQ(flat("%m = convert %tx : u32\n%r = shfl.idx %tx, %c0, %m : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = shfl.xor %tx, %c1 : i32\n"), Scope::kThread);
  EXPECT_EQ(flat("%r = shfl.xor %bx, %c1 : i32\n"), Scope::kBlock);
  EXPECT_EQ(flat("%q = eq %tx, %c0 : bool\n%r = vote.any %q : bool\n"), Scope::kWarp);
  EXPECT_EQ(flat("%r = vote.any %p : bool\n"), Scope::kGrid);
  EXPECT_EQ(flat("%r = ballot %p : u32\n"), Scope::kBlock);
  EXPECT_EQ(level("40, 1, 1", "%r = ballot %p : u32\n"), Scope::kWarp);
  EXPECT_EQ(level("32, 1, 1", "%q = eq %tx, %c0 : bool\n%r = vote.all %q : bool\n"), Scope::kBlock);
}

TEST(Uniformity, IfJoinsWithItsCondition) {
  const auto flat = [](absl::string_view condition, absl::string_view a, absl::string_view b) {
    return level("256, 1, 1",
                 absl::StrCat("%q = lt %tx, %c33 : bool\n%w = lt %tx, %c32 : bool\n%r = if ",
                              condition, " : i32 {\nyield ", a, "\n} else {\nyield ", b, "\n}\n"));
  };
  EXPECT_EQ(flat("%p", "%c0", "%bx"), Scope::kBlock);
  EXPECT_EQ(flat("%q", "%c0", "%c1"), Scope::kThread);
  EXPECT_EQ(flat("%w", "%c0", "%c1"), Scope::kWarp);
  EXPECT_EQ(flat("%q", "%bx", "%bx"), Scope::kBlock);
}

TEST(Uniformity, ValuesThatLeaveALoop) {
  const auto loop = [](absl::string_view stop, absl::string_view next) {
    return Analysed("256, 1, 1",
                    absl::StrCat("%r, %u = for %i in %c0 .. ", stop,
                                 " step %c1 carry(%a = %c0, %same = %bx) : i32, i32 {\n",
                                 "%next = ", next, "\nyield %next, %same\n}\n"));
  };
  const Analysed uniform = loop("%n", "add %a, %i : i32");
  EXPECT_EQ(uniform.of("r"), Scope::kGrid);
  EXPECT_EQ(uniform.of("i"), Scope::kGrid);
  EXPECT_EQ(uniform.of("u"), Scope::kBlock);
  // Threads in the same trip agree; threads that have left after other numbers of trips do not.
  const Analysed temporal = loop("%tx", "add %a, %i : i32");
  EXPECT_EQ(temporal.of("a"), Scope::kGrid);
  EXPECT_EQ(temporal.of("r"), Scope::kThread);
  EXPECT_EQ(temporal.of("u"), Scope::kBlock);
  // The second trip sees what the first one computed.
  const Analysed varying = loop("%n", "add %a, %tx : i32");
  EXPECT_EQ(varying.of("a"), Scope::kThread);
  EXPECT_EQ(varying.of("r"), Scope::kThread);
}

TEST(Uniformity, FixpointThroughNestedLoops) {
  const Analysed k("256, 1, 1", R"(
    %r, %s = for %i in %c0 .. %n step %c1 carry(%a = %c0, %b = %c0) : i32, i32 {
      %t = for %j in %c0 .. %a step %c1 carry(%c = %b) : i32 {
        %d = add %c, %c1 : i32
        yield %d
      }
      yield %t, %tx
    }
)");
  // %b differs from the second trip on, then %t, then %a, then the inner loop's trips.
  EXPECT_EQ(k.of("b"), Scope::kThread);
  EXPECT_EQ(k.of("a"), Scope::kThread);
  EXPECT_EQ(k.of("j"), Scope::kGrid);
}

TEST(Uniformity, TripsThatAgreeAlthoughStartsDiffer) {
  const auto control = [](absl::string_view stop) {
    return Analysed("256, 1, 1", absl::StrCat("%m = mul %n, %c256 : i32\n%k = const 1000 : i32\n",
                                              "for %i in %tx .. ", stop, " step %c256 {\nbarrier\n",
                                              "yield\n}\n"))
        .control_of(Opcode::kBarrier);
  };
  EXPECT_EQ(control("%n"), Scope::kThread);
  EXPECT_EQ(control("%k"), Scope::kThread);   // 4 trips, or 3
  EXPECT_EQ(control("%c256"), Scope::kGrid);  // exactly one
  EXPECT_EQ(control("%m"), Scope::kGrid);     // n each
  EXPECT_EQ(Analysed("200, 1, 1",
                     "%k = const 1000 : i32\nfor %i in %tx .. %k step %c256 {\n"
                     "barrier\nyield\n}\n")
                .control_of(Opcode::kBarrier),
            Scope::kGrid);  // 4 trips from 0 to 199
}

TEST(Uniformity, While) {
  const auto loop = [](absl::string_view condition) {
    return Analysed("256, 1, 1",
                    absl::StrCat("%r = while carry(%a = %c0) : i32 {\n%go = ", condition,
                                 " : bool\nwarp.sync\nyield %go\n} do(%b) {\nbarrier\n",
                                 "%next = add %b, %c1 : i32\nyield %next\n}\n"));
  };
  const Analysed uniform = loop("lt %a, %n");
  EXPECT_EQ(uniform.of("r"), Scope::kGrid);
  EXPECT_EQ(uniform.control_of(Opcode::kBarrier), Scope::kGrid);
  const Analysed divergent = loop("lt %a, %tx");
  EXPECT_EQ(divergent.of("a"), Scope::kGrid);
  EXPECT_EQ(divergent.of("b"), Scope::kGrid);
  EXPECT_EQ(divergent.of("r"), Scope::kThread);
  EXPECT_EQ(divergent.control_of(Opcode::kBarrier), Scope::kThread);
  // The condition's region runs again with those that go on.
  EXPECT_EQ(divergent.control_of(Opcode::kWarpSync), Scope::kThread);
  EXPECT_EQ(loop("lt %a, %warp").control_of(Opcode::kBarrier), Scope::kWarp);
}

TEST(Uniformity, CauseIsTheOpThatNarrows) {
  const Analysed k("256, 1, 1", R"(
    %q = eq %tx, %c0 : bool
    %b = eq %bx, %c0 : bool
    if %b {
      if %q {
        if %p {
          barrier
          yield
        }
        yield
      }
      warp.sync
      yield
    }
)");
  const RegionId innermost = k.kernel.op(k.op(Opcode::kBarrier)).parent;
  EXPECT_EQ(k.uniformity.control(innermost), Scope::kThread);
  const OpId cause = k.uniformity.cause(innermost);
  ASSERT_TRUE(valid(cause));
  EXPECT_EQ(k.kernel.op(cause).condition(), value_named(k.kernel, "q"));
  const RegionId outer = k.kernel.op(k.op(Opcode::kWarpSync)).parent;
  EXPECT_EQ(k.uniformity.control(outer), Scope::kBlock);
  EXPECT_EQ(k.kernel.op(k.uniformity.cause(outer)).condition(), value_named(k.kernel, "b"));
  EXPECT_EQ(k.uniformity.control(k.kernel.body()), Scope::kGrid);
  EXPECT_FALSE(valid(k.uniformity.cause(k.kernel.body())));
}

TEST(Uniformity, Slots) {
  const auto slot = [](absl::string_view body) {
    return level("256, 1, 1", absl::StrCat("%v = var %c0 : var<i32>\n%q = eq %tx, %c0 : bool\n",
                                           body, "%r = var.load %v : i32\n"));
  };
  EXPECT_EQ(slot(""), Scope::kGrid);
  EXPECT_EQ(slot("var.store %v, %bx\n"), Scope::kBlock);
  EXPECT_EQ(slot("var.store %v, %tx\n"), Scope::kThread);
  EXPECT_EQ(slot("if %p {\nvar.store %v, %c1\nyield\n}\n"), Scope::kGrid);
  EXPECT_EQ(slot("if %q {\nvar.store %v, %c1\nyield\n}\n"), Scope::kThread);
  EXPECT_EQ(slot("for %i in %c0 .. %tx step %c1 {\nvar.store %v, %i\nyield\n}\n"), Scope::kThread);
  // A later store reaches an earlier read through the loop.
  EXPECT_EQ(level("256, 1, 1",
                  "%v = var %c0 : var<i32>\nfor %i in %c0 .. %n step %c1 {\n"
                  "%r = var.load %v : i32\nvar.store %v, %tx\nyield\n}\n"),
            Scope::kThread);
  // Threads that share the slot's region agree on what is stored there, although not all run it.
  EXPECT_EQ(level("256, 1, 1",
                  "%q = eq %tx, %c0 : bool\nif %q {\n%v = var %c0 : var<i32>\n"
                  "var.store %v, %c1\n%r = var.load %v : i32\nyield\n}\n"),
            Scope::kGrid);
}

TEST(Uniformity, NeverReadsFacts) {
  const Analysed k("256, 1, 1",
                   "%e = extent %x {dim = 0} : i32\n%m = mul %e, %c4 : i32\n"
                   "%r = lt %tx, %m : bool\nfor %i in %tx .. %m step %c256 {\nyield\n}\n");
  EXPECT_EQ(k.of("r"), Scope::kThread);
  EXPECT_TRUE(k.kernel.facts_read().empty());
}

// A promise says more of a value, never less.
TEST(Uniformity, PromisesForwardWhatIsKnown) {
  const Analysed a("128, 1, 1", R"(
    %r = assume_range %tx {min = 0, max = 127} : i32
    %w = div %r, %c32 : i32
    %g = lt %w, %c1 : bool
    %e = expect %g {likely = 1} : bool
    %s = add %r, %c128 : i32
    %h = lt %r, %c32 : bool
    %u = assume_uniform %w : i32
    %l = assume_range %lane {max = 31} : i32
    %v = shr %u, %s2 : i32
)");
  EXPECT_EQ(a.of("r"), Scope::kThread);
  EXPECT_EQ(a.of("w"), Scope::kWarp);
  EXPECT_EQ(a.of("g"), Scope::kWarp);
  EXPECT_EQ(a.of("e"), Scope::kWarp);
  EXPECT_EQ(a.of("h"), Scope::kWarp);
  EXPECT_EQ(a.of("u"), Scope::kBlock);
  EXPECT_EQ(a.of("l"), Scope::kThread);
  EXPECT_EQ(a.of("v"), Scope::kBlock);
}

TEST(Uniformity, PromisesTakeNothingAway) {
  for (const absl::string_view value : {"n", "bx", "warp", "tx"}) {
    const Analysed a("256, 1, 1",
                     absl::StrCat("%range = assume_range %", value, " {min = 0} : i32\n",
                                  "%same = assume_uniform %", value, " : i32\n"));
    EXPECT_EQ(a.of("range"), a.of(value)) << value;
    EXPECT_EQ(a.of("same"), std::max(a.of(value), Scope::kBlock)) << value;
  }
  EXPECT_EQ(level("256, 1, 1", "%r = at_launch %n : i32\n"), Scope::kGrid);
  EXPECT_EQ(level("256, 1, 1", "%r = expect %p {likely = 1} : bool\n"), Scope::kGrid);
}

}  // namespace
}  // namespace heddle::ir
