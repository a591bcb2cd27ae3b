// What threads do together: barriers, shuffles, votes.
#include <numeric>

#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

// A block-wide sum in shared memory, halving the active threads between barriers.
TEST(InterpBlock, BarriersHoldSeveralWarpsInStep) {
  for (const int threads : {256, 128, 32}) {
    KernelTest t;
    const ValueId x = t.tensor("x", Scalar::kI32, {2, threads});
    const ValueId out = t.tensor("out", Scalar::kI32, {2});
    const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{threads});
    const ValueId sums = t.op(Opcode::kShared, {}, Type::view(Scalar::kI32, Space::kShared, 1),
                              {{AttrKey::kExtents, list}});
    const ValueId i = t.thread();
    const ValueId block = t.axis(Opcode::kBlockIdx, 0);
    t.store(sums, i, t.load(x, t.op(Opcode::kFma, {block, t.i32(threads), i})));
    t.op(Opcode::kBarrier, {});
    const ValueId init[] = {t.i32(threads / 2)};
    t.b.begin_while(init);
    t.b.yield({t.op(Opcode::kGt, {t.kernel.region(t.b.region()).args[0], t.i32(0)})});
    t.b.next_region();
    const ValueId half = t.kernel.region(t.b.region()).args[0];
    t.b.begin_if(t.op(Opcode::kLt, {i, half}));
    t.store(sums, i,
            t.op(Opcode::kAdd, {t.load(sums, i), t.load(sums, t.op(Opcode::kAdd, {i, half}))}));
    t.b.yield({});
    t.b.next_region();
    t.b.yield({});
    t.b.end_region();
    t.op(Opcode::kBarrier, {});
    t.b.yield({t.op(Opcode::kDiv, {half, t.i32(2)})});
    t.b.end_region();
    t.b.begin_if(t.op(Opcode::kEq, {i, t.i32(0)}));
    t.store(out, block, t.load(sums, t.i32(0)));
    t.b.yield({});
    t.b.next_region();
    t.b.yield({});
    t.b.end_region();
    std::vector<int32_t> values(2 * threads);
    std::iota(values.begin(), values.end(), 1);
    t.fill(0, values);
    ASSERT_OK(t.run({.grid = {2, 1, 1}, .block = {threads, 1, 1}}));
    const std::vector<int32_t> got = t.read<int32_t>(1);
    EXPECT_EQ(got[0], threads * (threads + 1) / 2);
    EXPECT_EQ(got[1], threads * threads + threads * (threads + 1) / 2);
  }
}

// One warp waits in a while loop for what another one stores: loops give way, so this ends.
TEST(InterpBlock, WhileLoopsGiveWayToOtherWarps) {
  KernelTest t;
  const ValueId flag = t.tensor("flag", Scalar::kI32, {1});
  const ValueId out = t.tensor("out", Scalar::kI32, {64});
  const ValueId i = t.thread();
  t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(32)}));
  t.b.begin_while({});
  const ValueId seen = t.op(Opcode::kLoad, {flag, t.i32(0)}, kI32Type, {{AttrKey::kVolatile, 1}});
  t.b.yield({t.op(Opcode::kEq, {seen, t.i32(0)})});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
  t.b.yield({});
  t.b.next_region();
  t.store(flag, t.i32(0), t.i32(1));
  t.b.yield({});
  t.b.end_region();
  t.store(out, i, i);
  t.fill<int32_t>(0, {0});
  ASSERT_OK(t.run({.block = {64, 1, 1}, .options = {.max_instructions = 10000}}));
  EXPECT_EQ(t.read<int32_t>(1)[5], 5);
}

// --- Shuffles, against the wording of ops.def ---

int source_of(Opcode opcode, int lane, int64_t i, int width) {
  if (i < 0) return lane;
  const int64_t begin = lane / width * width;
  const int64_t source = opcode == Opcode::kShflIdx    ? begin + i
                         : opcode == Opcode::kShflUp   ? lane - i
                         : opcode == Opcode::kShflDown ? lane + i
                                                       : lane ^ i;
  return source < begin || source >= begin + width ? lane : static_cast<int>(source);
}

TEST(InterpShuffle, EachKindAndWidth) {
  for (const Opcode opcode :
       {Opcode::kShflIdx, Opcode::kShflUp, Opcode::kShflDown, Opcode::kShflXor}) {
    for (const int width : {1, 2, 4, 8, 16, 32}) {
      for (const int index : {0, 1, 2, 3, 5, 7, 16, 31, 32, 1000, -1, -8}) {
        KernelTest t;
        const ValueId out = t.tensor("out", Scalar::kI32, {64});
        const ValueId i = t.thread();
        const ValueId got = t.op(opcode, {t.op(Opcode::kMul, {i, t.i32(3)}), t.i32(index)},
                                 Type::none(), {{AttrKey::kWidth, width}});
        t.store(out, i, got);
        ASSERT_OK(t.run({.block = {64, 1, 1}}));
        const std::vector<int32_t> values = t.read<int32_t>(0);
        for (int k = 0; k < 64; ++k) {
          EXPECT_EQ(values[k], 3 * (k / 32 * 32 + source_of(opcode, k % 32, index, width)))
              << info(opcode).mnemonic << " " << index << " width " << width << " lane " << k;
        }
      }
    }
  }
}

TEST(InterpShuffle, EachTypeVectorsAndLanesOfTheirOwn) {
  for (const Scalar s : {Scalar::kBool, Scalar::kF16, Scalar::kF32, Scalar::kI64}) {
    KernelTest t;
    const Type pair = Type::vector(s, 2);
    const ValueId x = t.tensor("x", s, {32, 2});
    const ValueId out = t.tensor("out", s, {32, 2});
    const ValueId i = t.thread();
    const ValueId offset = t.op(Opcode::kMul, {i, t.i32(2)});
    // Lane l reads lane (7 l) % 32.
    const ValueId lane = t.op(Opcode::kAnd, {t.op(Opcode::kMul, {i, t.i32(7)}), t.i32(31)});
    t.store(out, offset, t.op(Opcode::kShflIdx, {t.load(x, offset, pair), lane}));
    const size_t bytes = static_cast<size_t>(info(s).bits) / 8;
    std::vector<uint8_t> data(64 * bytes);
    for (size_t k = 0; k < data.size(); ++k) {
      data[k] = s == Scalar::kBool ? k % 5 == 0 : static_cast<uint8_t>(k * 11);
    }
    t.fill(0, data);
    ASSERT_OK(t.run({}));
    const std::vector<uint8_t> got = t.read<uint8_t>(1);
    for (size_t k = 0; k < 32; ++k) {
      for (size_t part = 0; part < 2 * bytes; ++part) {
        EXPECT_EQ(got[k * 2 * bytes + part], data[k * 7 % 32 * 2 * bytes + part]);
      }
    }
  }
}

TEST(InterpShuffle, APartOfTheWarpWithItsMask) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kI32, {32});
  const ValueId i = t.thread();
  t.store(out, i, t.i32(-1));
  t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(8)}));
  t.store(out, i, t.op(Opcode::kShflXor, {i, t.i32(4), t.u32(0xFF)}));
  t.b.yield({});
  t.b.next_region();
  t.store(out, i, t.op(Opcode::kShflXor, {i, t.i32(1), t.u32(0xFFFFFF00)}));
  t.b.yield({});
  t.b.end_region();
  ASSERT_OK(t.run({}));
  const std::vector<int32_t> got = t.read<int32_t>(0);
  for (int k = 0; k < 32; ++k) EXPECT_EQ(got[k], k < 8 ? k ^ 4 : k ^ 1);
}

TEST(InterpVote, SeesTheLanesOfTheMask) {
  // Lanes 0 to 15 use mask 0xFFFF, the others the rest, in one instruction.
  for (const uint32_t holds : {0u, 0xFFFFu, 0x80u, 0xFFFFFFFFu, 0xFFFF0000u, 0xFFFE0001u}) {
    KernelTest t;
    const ValueId pattern = t.scalar_param("holds", Scalar::kU32, holds);
    const ValueId out = t.tensor("out", Scalar::kU32, {32, 4});
    const ValueId i = t.thread();
    const ValueId shifted = t.op(Opcode::kShr, {pattern, t.op(Opcode::kConvert, {i}, kU32Type)});
    const ValueId predicate =
        t.op(Opcode::kEq, {t.op(Opcode::kAnd, {shifted, t.u32(1)}), t.u32(1)});
    const ValueId mask = t.op(
        Opcode::kSelect, {t.op(Opcode::kLt, {i, t.i32(16)}), t.u32(0xFFFF), t.u32(0xFFFF0000)});
    const ValueId row = t.op(Opcode::kMul, {i, t.i32(4)});
    int column = 0;
    for (const Opcode opcode :
         {Opcode::kVoteAny, Opcode::kVoteAll, Opcode::kVoteUni, Opcode::kBallot}) {
      ValueId vote = t.op(opcode, {predicate, mask});
      if (opcode != Opcode::kBallot) vote = t.op(Opcode::kConvert, {vote}, kU32Type);
      t.store(out, t.op(Opcode::kAdd, {row, t.i32(column++)}), vote);
    }
    ASSERT_OK(t.run({}));
    const std::vector<uint32_t> got = t.read<uint32_t>(1);
    for (int k = 0; k < 32; ++k) {
      const uint32_t named = k < 16 ? 0xFFFFu : 0xFFFF0000u;
      const uint32_t yes = holds & named;
      EXPECT_EQ(got[k * 4 + 0], yes != 0 ? 1u : 0u);
      EXPECT_EQ(got[k * 4 + 1], yes == named ? 1u : 0u);
      EXPECT_EQ(got[k * 4 + 2], yes == named || yes == 0 ? 1u : 0u);
      EXPECT_EQ(got[k * 4 + 3], yes);
    }
  }
}

TEST(InterpVote, APartialWarpVotesWithTheThreadsItHas) {
  KernelTest t;
  const ValueId out = t.tensor("out", Scalar::kU32, {40});
  const ValueId i = t.thread();
  const ValueId all = t.op(Opcode::kVoteAll, {t.op(Opcode::kGe, {i, t.i32(0)})});
  const ValueId ballot = t.op(Opcode::kBallot, {all});
  t.op(Opcode::kWarpSync, {});
  t.store(out, i, ballot);
  ASSERT_OK(t.run({.block = {40, 1, 1}}));
  const std::vector<uint32_t> got = t.read<uint32_t>(0);
  EXPECT_EQ(got[0], 0xFFFFFFFFu);
  EXPECT_EQ(got[39], 0xFFu);
}

}  // namespace
}  // namespace heddle::ir::interp
