// Registers, and what the interpreter declines.
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/interp/lower/registers.h"
#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

using ::testing::HasSubstr;

TEST(InterpRegisters, ShareBytesWhenTheirLivesDoNotMeet) {
  RegisterPlan plan;
  const uint32_t a = plan.add(128);
  const uint32_t b = plan.add(128);
  const uint32_t c = plan.add(128);
  plan.touch(a, 0);
  plan.touch(b, 1);
  plan.touch(a, 1);  // a's last use makes b: they may not overlap
  plan.touch(c, 2);
  plan.touch(b, 2);
  EXPECT_EQ(plan.allocate(), 256u);
  EXPECT_NE(plan.offset(a), plan.offset(b));
  EXPECT_EQ(plan.offset(a), plan.offset(c));
}

TEST(InterpRegisters, WhatALoopReadsLivesToItsEnd) {
  RegisterPlan plan;
  const uint32_t outside = plan.add(128);
  const uint32_t inside = plan.add(128);
  const uint32_t later = plan.add(128);
  plan.touch(outside, 0);
  plan.begin_loop(1);
  plan.touch(outside, 1);
  plan.begin_loop(2);
  plan.touch(inside, 2);
  plan.touch(inside, 3);
  plan.end_loop(3);
  plan.touch(later, 4);
  plan.end_loop(5);
  plan.allocate();
  EXPECT_NE(plan.offset(later), plan.offset(outside));
  EXPECT_EQ(plan.offset(later), plan.offset(inside));
}

TEST(InterpRegisters, PermanentOnesAndOddSizes) {
  RegisterPlan plan;
  const uint32_t small = plan.add(1);
  const uint32_t kept = plan.add_permanent(96);
  const uint32_t never = plan.add(1 << 20);
  (void)never;
  plan.touch(kept, 0);
  plan.touch(small, 1);
  EXPECT_EQ(plan.allocate(), 128u);
  EXPECT_EQ(plan.offset(kept) % 32, 0u);
  EXPECT_EQ(plan.offset(small) % 32, 0u);
}

TEST(InterpCompile, DeclinesWithTheLine) {
  KernelTest constants;
  const int64_t extents[] = {4};
  const ValueId table = constants.kernel.add_param(
      "table", Type::view(Scalar::kF32, Space::kParam, 1), extents, extents);
  constants.line(12);
  constants.load(table, constants.i32(0));
  constants.b.yield({});
  const Status status = compile(constants.kernel).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "kernel.cc:12: error: the interpreter does not run accesses to param memory (kernel "
            "'k')\n");
}

// Nor does a division by 0 do harm on the host.
TEST(InterpCompile, WhatTheHostComputesIsNoPartOfTheKernel) {
  const auto counters = [](bool required) {
    KernelTest t;
    const ValueId out = t.tensor("out", Scalar::kI32, {32});
    const ValueId zero = t.scalar_param("zero", Scalar::kI32, 0);
    if (required) {
      const auto text = static_cast<int64_t>(index_of(t.kernel.intern("% is 0")));
      const ValueId quotient = t.op(Opcode::kDiv, {t.i32(7), zero});
      t.op(Opcode::kRequire, {t.op(Opcode::kEq, {quotient, zero}), quotient}, Type::none(),
           {{AttrKey::kMessage, text}});
      t.op(Opcode::kLaunchGrid, {t.op(Opcode::kDiv, {t.i32(8), zero}), t.i32(1), t.i32(1)});
    }
    t.store(out, t.thread(), t.op(Opcode::kAdd, {t.thread(), zero}));
    Counters counted;
    const Status status = t.run({.counters = &counted});
    EXPECT_TRUE(status.ok()) << status.message();
    return counted;
  };
  const Counters with = counters(true), without = counters(false);
  EXPECT_EQ(with, without) << with.lane_ops << " results of arithmetic, not " << without.lane_ops;
}

TEST(InterpCompile, ProgramsAreValues) {
  // The kernel may go; a copy runs as well as the original.
  std::optional<Program> program;
  {
    Kernel kernel("gone");
    kernel.block = {32, 1, 1};
    Builder b(kernel);
    b.set_loc(kernel.intern_loc("gone.cc", 3));
    b.create(Opcode::kAssert, {b.constant(kBoolType, 0)}, Type::none(),
             {{AttrKey::kMessage, static_cast<int64_t>(index_of(kernel.intern("no")))}});
    b.yield({});
    const Program first = *compile(kernel);
    program = first;
  }
  EXPECT_EQ(program->name(), "gone");
  EXPECT_EQ(program->block().x, 32);
  EXPECT_EQ(program->param_bytes(), 0);
  EXPECT_TRUE(program->checks());
  Memory memory;
  EXPECT_THAT(std::string(run(*program, {.block = {32, 1, 1}}, memory).message()),
              HasSubstr("gone.cc:3: error: assertion failed: no (kernel 'gone'"));
}

}  // namespace
}  // namespace heddle::ir::interp
