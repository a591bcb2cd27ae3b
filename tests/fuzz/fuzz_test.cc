// The fuzzer itself: its programs are right, what breaks one is found, and made small.
#include "fuzz/differential.h"
#include "fuzz/generator.h"
#include "fuzz/pipelines.h"
#include "fuzz/reducer.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using ir::Opcode;

bool contains(const Kernel& kernel, Opcode opcode) {
  bool found = false;
  kernel.walk([&](ir::OpId id) { found |= kernel.op(id).opcode == opcode; });
  return found;
}

TEST(Generator, MakesProgramsThatAreRight) {
  const ir::PassRegistry registry;
  Differential differential(registry);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Kernel kernel = random_program(seed);
    ASSERT_EQ(to_string(verify(kernel)), "") << "seed " << seed << "\n" << print(kernel);
    ASSERT_EQ(differential.check(kernel, seed, {}), Verdict::kSame)
        << "seed " << seed << ": " << differential.failure().what << "\n"
        << print(kernel);
  }
}

TEST(Generator, TheSameSeedGivesTheSameProgram) {
  EXPECT_EQ(print(random_program(7)), print(random_program(7)));
  EXPECT_NE(print(random_program(7)), print(random_program(8)));
}

TEST(Reducer, LeavesWhatMatters) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Kernel kernel = random_program(seed);
    if (!contains(kernel, Opcode::kWhile)) continue;
    const Kernel small = reduce(kernel, [](const Kernel& candidate) {
      return verify(candidate).empty() && contains(candidate, Opcode::kWhile);
    });
    EXPECT_TRUE(contains(small, Opcode::kWhile));
    // The loop, its condition's constant, a store that makes it a kernel, and where these stood in
    // the two branches of an `if`, that too.
    EXPECT_LE(count_ops(small), 8) << print(small);
  }
}

// The first op of a kind becomes another one.
StatusOr<bool> spoil(Kernel& kernel, Opcode from, Opcode to) {
  bool changed = false;
  kernel.walk([&](ir::OpId id) {
    if (kernel.op(id).opcode != from || changed) return;
    kernel.op(id).opcode = to;
    changed = true;
  });
  return changed;
}

TEST(Differential, FindsAPassThatBreaksPrograms) {
  ir::PassRegistry registry;
  ASSERT_TRUE(registry
                  .add({.name = "spoil",
                        .summary = "Make a mistake",
                        .run = [](Kernel& k) { return spoil(k, Opcode::kSub, Opcode::kAdd); }})
                  .ok());
  Differential differential(registry);
  const std::vector<std::string> passes[] = {{"promote-vars", "spoil"}};
  int found = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const Kernel kernel = random_program(seed);
    if (differential.check(kernel, seed, passes) != Verdict::kDiffers) continue;
    ++found;
    EXPECT_EQ(differential.failure().passes.back(), "spoil");
    if (found > 3) continue;
    const Kernel small = reduce(kernel, [&](const Kernel& candidate) {
      return differential.check(candidate, seed, passes) == Verdict::kDiffers;
    });
    // An offset made of the thread's number in the block takes eight ops for that alone.
    EXPECT_LE(count_ops(small), 16) << print(small);
  }
  EXPECT_GT(found, 3);
}

TEST(Pipelines, HaveTheirNeedsMet) {
  const ir::PassRegistry registry;
  std::mt19937_64 random(1);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Kernel kernel = random_program(seed);
    for (const auto& passes : pipelines_for({kernel, registry, random})) {
      Kernel copy = kernel;
      std::string names;
      for (const std::string& name : passes) names += (names.empty() ? "" : ",") + name;
      EXPECT_TRUE(run_pipeline(copy, names).ok()) << names;
    }
  }
}

}  // namespace
}  // namespace heddle::fuzz
