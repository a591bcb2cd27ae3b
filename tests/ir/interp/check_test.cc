// What the interpreter finds wrong, by the text that the user reads.
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

ValueId shared_array(KernelTest& t, absl::string_view name, int64_t extent) {
  const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{extent});
  const ValueId view =
      t.op(Opcode::kShared, {}, Type::view(Scalar::kF32, Space::kShared, 1),
           {{AttrKey::kExtents, list},
            {AttrKey::kName, static_cast<int64_t>(index_of(t.kernel.intern(name)))}});
  return view;
}

TEST(InterpCheck, BoundsPerView) {
  // x(row, N) lies inside the allocation, in the next row: only the view's extents know.
  KernelTest t("row_sum");
  const ValueId x = t.dynamic_tensor("x", Scalar::kF32, {4, 100}, {128, 1});
  const ValueId out = t.tensor("out", Scalar::kF32, {128});
  const ValueId i = t.thread();
  t.line(14);
  const ValueId ok = t.op(Opcode::kBounds, {x, t.i32(2), i});
  t.line(15);
  const ValueId value = t.op(Opcode::kLoad, {x, t.op(Opcode::kAdd, {i, t.i32(256)}), ok}, kF32Type);
  t.store(out, i, value);
  t.fill(0, std::vector<float>(484, 1));
  EXPECT_EQ(
      t.failure({.grid = {2, 1, 1}, .block = {104, 1, 1}}),
      "kernel.cc:15: error: reads x(2, 100), outside its extents (4, 100): index 100 of mode 1 "
      "is not in [0, 100) (kernel 'row_sum', block (0, 0, 0), thread (100, 0, 0) and 3 more of "
      "its warp)\n"
      "  fix: guard the access with an If, or check the extents that the launch passes\n");
}

TEST(InterpCheck, BoundsOfNegativeIndicesAndOfVectors) {
  KernelTest negative;
  const ValueId x = negative.tensor("x", Scalar::kF32, {8});
  const ValueId before = negative.op(Opcode::kSub, {negative.thread(), negative.i32(1)});
  negative.op(Opcode::kStore,
              {x, negative.f32(0), before, negative.op(Opcode::kBounds, {x, before})});
  EXPECT_THAT(
      negative.failure({.block = {8, 1, 1}}),
      HasSubstr("writes x(-1), outside its extents (8): index -1 of mode 0 is not in [0, 8)"));

  KernelTest wide;
  const ValueId y = wide.tensor("y", Scalar::kF32, {2, 10});
  const ValueId c =
      wide.op(Opcode::kMul, {wide.op(Opcode::kConvert, {wide.thread()}, kI64Type), wide.i64(4)});
  const ValueId ok =
      wide.op(Opcode::kBounds, {y, wide.i64(0), c}, Type::none(), {{AttrKey::kWidth, 4}});
  wide.op(Opcode::kLoad, {y, c, ok}, Type::vector(Scalar::kF32, 4));
  wide.fill(0, std::vector<float>(20, 1));
  EXPECT_THAT(wide.failure({.block = {3, 1, 1}}),
              HasSubstr("reads 4 elements of y(0, 8), outside its extents (2, 10): its 4 elements "
                        "start at index 8 of mode 1, which has 10"));
}

TEST(InterpCheck, BoundsOfTilesAndExtentsOfEveryWidth) {
  // Coordinates and extents of 32 and 64 bits, in every combination.
  for (const bool wide_coordinate : {false, true}) {
    for (const bool wide_extent : {false, true}) {
      for (const int threads : {5, 6}) {
        KernelTest t;
        const ValueId x = t.tensor("x", Scalar::kF32, {64});
        const ValueId five = t.scalar_param("five", wide_extent ? Scalar::kI64 : Scalar::kI32, 5);
        const ValueId tile = t.op(Opcode::kSubview, {x, t.i32(8), five}, t.kernel.type(x));
        ValueId i = t.thread();
        if (wide_coordinate) i = t.op(Opcode::kConvert, {i}, kI64Type);
        t.op(Opcode::kStore, {tile, t.f32(1), i, t.op(Opcode::kBounds, {tile, i})});
        const absl::Status status = t.run({.block = {threads, 1, 1}});
        EXPECT_EQ(status.ok(), threads == 5) << status.message();
        if (threads == 6) {
          EXPECT_THAT(std::string(status.message()),
                      HasSubstr("writes x(5), outside its extents (5): index 5"));
        }
      }
    }
  }
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
    const absl::Status status = t.run({.checks = checks});
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

TEST(InterpCheck, AnAccessWithoutACheckIsHeldAgainstItsAllocation) {
  KernelTest t("copy");
  const ValueId p = t.pointer("p", Scalar::kF32, 100);
  const ValueId i = t.thread();
  t.line(7);
  t.store(p, t.op(Opcode::kMul, {i, t.i32(4)}), t.f32(1));
  EXPECT_EQ(
      t.failure({}),
      "kernel.cc:7: error: writes 'p' at element offset 100, which is not in memory: 4 bytes "
      "starting 0 bytes past the end of allocation #1 'p' of 400 bytes (kernel 'copy', block (0, "
      "0, 0), thread (25, 0, 0) and 6 more of its warp)\n"
      "  fix: check the index, and that the buffer is alive and as large as the kernel "
      "expects\n");
}

TEST(InterpCheck, FreedAndNullMemory) {
  KernelTest freed;
  freed.store(freed.tensor("x", Scalar::kF32, {32}), freed.thread(), freed.f32(1));
  const std::vector<std::byte> params = freed.params();
  ASSERT_OK(freed.memory.free(freed.address(0)));
  EXPECT_THAT(freed.failure({}), HasSubstr("allocation #1 'x' of 128 bytes, which was freed"));

  KernelTest null;
  const ValueId x = null.tensor("x", Scalar::kF32, {32});
  null.store(x, null.thread(), null.f32(1));
  null.b.yield({});
  const std::vector<std::byte> zeros(8);
  const absl::Status status =
      interp::run(*compile(null.kernel), {.block = {4, 1, 1}, .params = zeros}, null.memory);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 bytes at a null pointer"));
}

TEST(InterpCheck, SharedMemoryEndsWithTheBlocks) {
  KernelTest t;
  const ValueId tile = shared_array(t, "tile", 32);
  t.line(3);
  t.store(tile, t.op(Opcode::kAdd, {t.thread(), t.i32(1)}), t.f32(1));
  EXPECT_THAT(t.failure({}),
              HasSubstr("kernel.cc:3: error: writes 'tile' at element offset 32, which is not in "
                        "memory: 4 bytes at byte 128 of the block's 128 bytes of shared memory"));

  KernelTest dynamic;
  const ValueId d = dynamic.op(Opcode::kDynamicShared, {dynamic.i32(32)},
                               Type::view(Scalar::kF32, Space::kShared, 1));
  dynamic.store(d, dynamic.thread(), dynamic.f32(1));
  EXPECT_THAT(dynamic.failure({.dynamic_shared_bytes = 64}),
              HasSubstr("writes 'dynamic shared memory' at element offset 16, which is not in "
                        "memory: 4 bytes at byte 64 of the block's 64 bytes of shared memory"));
}

TEST(InterpCheck, MisalignedVectors) {
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kF32, {256});
  t.line(4);
  t.load(x, t.op(Opcode::kMul, {t.thread(), t.i32(2)}), Type::vector(Scalar::kF32, 4));
  t.fill(0, std::vector<float>(256, 1));
  EXPECT_EQ(
      t.failure({}),
      "kernel.cc:4: error: reads 4 elements of 'x' at element offset 2, whose address is not a "
      "multiple of 16 as an access of 16 bytes needs (kernel 'k', block (0, 0, 0), thread (1, 0, "
      "0) and 15 more of its warp)\n"
      "  fix: start vectors at a multiple of their width, with aligned data, or access single "
      "elements\n");
}

TEST(InterpCheck, UnwrittenMemory) {
  KernelTest t;
  const ValueId x = t.tensor("x", Scalar::kF32, {32});
  const ValueId out = t.tensor("out", Scalar::kF32, {32});
  const ValueId i = t.thread();
  guard(t, t.op(Opcode::kLt, {i, t.i32(30)}));
  t.store(x, i, t.f32(1));
  end_guard(t);
  t.line(8);
  t.store(out, i, t.load(x, i));
  EXPECT_EQ(
      t.failure({}),
      "kernel.cc:8: error: reads 'x' at element offset 30, which nobody has written (kernel 'k', "
      "block (0, 0, 0), thread (30, 0, 0) and 1 more of its warp)\n"
      "  fix: copy or fill the buffer before the launch, or write it first\n");
}

TEST(InterpCheck, UnwrittenSharedMemoryInEveryBlockAnew) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kF32, {32});
  const ValueId tile = shared_array(t, "tile", 32);
  const ValueId i = t.thread();
  guard(t, t.op(Opcode::kEq, {t.axis(Opcode::kBlockIdx, 0), t.i32(0)}));
  t.store(tile, i, t.f32(1));
  end_guard(t);
  t.line(9);
  t.store(out, i, t.load(tile, i));
  EXPECT_THAT(
      t.failure({.grid = {2, 1, 1}}),
      HasSubstr("kernel.cc:9: error: reads 'tile' at element offset 0, which nobody has written "
                "(kernel 'k', block (1, 0, 0), thread (0, 0, 0) and 31 more of its warp)\n"
                "  fix: store to it first, with a barrier in between where another thread "
                "does"));
}

// --- Values that nobody wrote ---

// A variable that only some lanes give a value, through arithmetic and a loop.
ValueId half_written(KernelTest& t, Type type) {
  const ValueId i = t.thread();
  const ValueId slot = t.op(Opcode::kVar, {t.op(Opcode::kUndef, {}, type)});
  guard(t, t.op(Opcode::kLt, {i, t.i32(20)}));
  t.op(Opcode::kVarStore, {slot, t.b.constant(type, 1)});
  end_guard(t);
  const ValueId value = t.op(Opcode::kVarLoad, {slot});
  return type.scalar == Scalar::kBool ? value : t.op(Opcode::kAdd, {value, value});
}

TEST(InterpCheck, UnwrittenValuesWhereTheyMatter) {
  const struct {
    const char* message;
    void (*use)(KernelTest& t, ValueId x);
    Type type;
  } cases[] = {
      {"this stores a value that nobody has written",
       [](KernelTest& t, ValueId x) { t.store(t.tensor("x", Scalar::kI32, {32}), t.thread(), x); },
       kI32Type},
      {"the address of this access depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) { t.store(t.tensor("x", Scalar::kI32, {32}), x, t.i32(1)); },
       kI32Type},
      {"the condition of this if depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) {
         guard(t, x);
         end_guard(t);
       },
       kBoolType},
      {"the condition of this while loop depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) {
         t.b.begin_while({});
         t.b.yield({x});
         t.b.next_region();
         t.b.yield({});
         t.b.end_region();
       },
       kBoolType},
      {"the range of this for loop depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) {
         t.b.begin_for(t.i32(0), x, t.i32(1), {});
         t.b.yield({});
         t.b.end_region();
       },
       kI32Type},
      {"the condition of this assert depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) {
         t.op(Opcode::kAssert, {x}, Type::none(), {{AttrKey::kMessage, 0}});
       },
       kBoolType},
      {"the lane of this shuffle depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) {
         t.op(Opcode::kShflIdx, {t.i32(1), x});
       },
       kI32Type},
      {"the lane mask of this warp collective depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) { t.op(Opcode::kWarpSync, {x}); }, kU32Type},
      {"the predicate of this vote depends on a value that nobody has written",
       [](KernelTest& t, ValueId x) { t.op(Opcode::kBallot, {x}); }, kBoolType},
  };
  for (const auto& c : cases) {
    KernelTest t;
    // Parameters come first.
    const ValueId x = half_written(t, c.type);
    t.line(21);
    c.use(t, x);
    EXPECT_EQ(
        t.failure({.options = {.max_instructions = 1000}}),
        absl::StrCat("kernel.cc:21: error: ", c.message,
                     " (kernel 'k', block (0, 0, 0), thread (20, 0, 0) and 11 more of its "
                     "warp)\n"
                     "  fix: give the variable an initial value, or write it on every path that "
                     "leads here\n"));
  }
}

TEST(InterpCheck, UnwrittenValuesThatDoNotMatterAreNoMistake) {
  // The accumulator starts undefined, the first trip replaces it; a select drops the bad lanes.
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32});
  const ValueId i = t.thread();
  const ValueId init[] = {t.op(Opcode::kUndef, {}, kI32Type)};
  const OpId loop = t.b.begin_for(t.i32(0), t.i32(3), t.i32(1), init);
  const auto args = t.kernel.region(t.b.region()).args;
  const ValueId first = t.op(Opcode::kEq, {args[0], t.i32(0)});
  t.b.yield({t.op(Opcode::kSelect, {first, t.i32(5), t.op(Opcode::kAdd, {args[1], t.i32(1)})})});
  t.b.end_region();
  const ValueId bad = half_written(t, kI32Type);
  const ValueId good = t.op(Opcode::kSelect, {t.op(Opcode::kLt, {i, t.i32(20)}), bad, t.i32(0)});
  t.store(out, i, t.op(Opcode::kAdd, {t.kernel.op(loop).result(), good}));
  ASSERT_OK(t.run({}));
  EXPECT_EQ(t.read<int32_t>(0)[0], 9);
  EXPECT_EQ(t.read<int32_t>(0)[31], 7);
}

TEST(InterpCheck, PoisonFollowsElementsThroughPacksShufflesAndMerges) {
  for (const int element : {0, 1}) {
    KernelTest t;
    const ValueId out = t.tensor("out", Scalar::kF32, {32});
    const Type pair = Type::vector(Scalar::kF32, 2);
    const ValueId packed =
        t.op(Opcode::kPack, {t.f32(1), t.op(Opcode::kUndef, {}, kF32Type)}, pair);
    const ValueId shuffled = t.op(Opcode::kShflXor, {packed, t.i32(1)});
    const Type result[] = {pair};
    const OpId branch = t.b.begin_if(t.op(Opcode::kLt, {t.thread(), t.i32(40)}), result);
    t.b.yield({shuffled});
    t.b.next_region();
    t.b.yield({t.op(Opcode::kSplat, {t.f32(0)}, pair)});
    t.b.end_region();
    t.store(out, t.thread(),
            t.op(Opcode::kExtract, {t.kernel.op(branch).result()}, kF32Type,
                 {{AttrKey::kIndex, element}}));
    EXPECT_EQ(t.run({}).ok(), element == 0);
  }
}

// --- Asserts, division, loops ---

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

TEST(InterpCheck, IntegerDivisionByZero) {
  for (const Opcode opcode : {Opcode::kDiv, Opcode::kRem}) {
    for (const Type type : {kI32Type, Type::vector(Scalar::kU64, 2)}) {
      KernelTest t;
      const ValueId out = t.tensor("out", type.scalar, {64});
      const ValueId i = t.op(Opcode::kConvert, {t.thread()}, type.element());
      ValueId divisor = t.op(Opcode::kSub, {i, t.b.constant(type.element(), 3)});
      ValueId dividend = i;
      if (type.count > 1) {
        divisor = t.op(Opcode::kPack, {i, divisor}, type);
        dividend = t.op(Opcode::kSplat, {i}, type);
      }
      guard(t, t.op(Opcode::kGt, {t.thread(), t.i32(0)}));
      t.line(6);
      t.store(out, t.op(Opcode::kMul, {t.thread(), t.i32(2)}), t.op(opcode, {dividend, divisor}));
      end_guard(t);
      EXPECT_EQ(
          t.failure({}),
          "kernel.cc:6: error: integer division by zero, whose result no GPU defines (kernel 'k', "
          "block (0, 0, 0), thread (3, 0, 0))\n"
          "  fix: guard the division with an If, or make sure that the divisor is not 0\n");
    }
  }
}

TEST(InterpCheck, AStepOfZeroOrLess) {
  KernelTest t;
  const ValueId step = t.scalar_param("step", Scalar::kI32, 0);
  t.line(5);
  t.b.begin_for(t.i32(0), t.i32(3), step, {});
  t.b.yield({});
  t.b.end_region();
  EXPECT_THAT(
      t.failure({}),
      HasSubstr("kernel.cc:5: error: this for loop's step is 0, but a step that is not a "
                "constant has to be positive (kernel 'k', block (0, 0, 0), thread (0, 0, 0) and "
                "31 more of its warp)"));
}

TEST(InterpCheck, TheInstructionLimitEndsLoops) {
  KernelTest t;
  t.line(5);
  t.b.begin_for(t.i64(0), t.i64(INT64_MAX), t.i64(1), {});
  t.b.yield({});
  t.b.end_region();
  const absl::Status status = t.run({.block = {64, 1, 1}, .options = {.max_instructions = 12345}});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "kernel.cc:5: error: this for loop has not ended after 12,345 instructions of its "
            "block: thread (0, 0, 0) and 31 more of its warp are still in it (kernel 'k', block "
            "(0, 0, 0))\n"
            "  fix: check its range; where it is only long, raise the limit by "
            "Device::set_max_instructions()\n");
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

TEST(InterpCheck, TheInstructionLimitIsOneOfABlock) {
  KernelTest t;
  t.b.begin_for(t.i32(0), t.i32(100), t.i32(1), {});
  t.b.yield({});
  t.b.end_region();
  ASSERT_OK(t.run({.grid = {50, 1, 1}, .options = {.max_instructions = 1000}}));
  ASSERT_OK(t.run({.options = {.max_instructions = 0}}));
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

TEST(InterpCheck, MasksThatNameTheWrongLanes) {
  const struct {
    uint32_t mask;
    const char* message;
  } cases[] = {
      {0xFF, "the mask 0x000000ff of this warp collective names lane 4, which is not active here"},
      {0xE, "this warp collective is run by lane 0, which its mask 0x0000000e leaves out"},
  };
  for (const auto& c : cases) {
    KernelTest t;
    guard(t, t.op(Opcode::kLt, {t.thread(), t.i32(4)}));
    t.op(Opcode::kWarpSync, {t.u32(c.mask)});
    end_guard(t);
    EXPECT_THAT(t.failure({}), HasSubstr(c.message));
  }
  KernelTest t;
  const ValueId mask = t.op(Opcode::kSelect, {t.op(Opcode::kEq, {t.thread(), t.i32(9)}),
                                              t.u32(0xFFFF), t.u32(0xFFFFFFFF)});
  t.op(Opcode::kVoteAny, {t.b.constant(kBoolType, 1), mask});
  EXPECT_THAT(t.failure({}),
              HasSubstr("lanes that run this warp collective together name different "
                        "masks: lane 0 has 0xffffffff"));
}

TEST(InterpCheck, AShuffleThatReadsALaneWhichIsNotThere) {
  KernelTest t;
  t.line(10);
  guard(t, t.op(Opcode::kLt, {t.thread(), t.i32(8)}));
  t.line(11);
  t.op(Opcode::kShflDown, {t.thread(), t.i32(4), t.u32(0xFF)});
  end_guard(t);
  EXPECT_EQ(
      t.failure({}),
      "kernel.cc:11: error: lane 4 reads lane 8, which does not take part in this shuffle (kernel "
      "'k', block (0, 0, 0), thread (4, 0, 0) and 3 more of its warp)\n"
      "  kernel.cc:10: thread (8, 0, 0) does not take the then branch of this if\n"
      "  fix: read only lanes that run the shuffle, or let all lanes run it\n");

  KernelTest partial;
  partial.op(Opcode::kShflDown, {partial.thread(), partial.i32(16)});
  EXPECT_THAT(partial.failure({.block = {24, 1, 1}}),
              HasSubstr("lane 8 reads lane 24, which is no thread: the block ends before it"));
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
