// The fuzzer itself: its programs are right, what breaks one is found, and made small.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_split.h"
#include "fuzz/coverage.h"
#include "fuzz/differential.h"
#include "fuzz/generator.h"
#include "fuzz/pipelines.h"
#include "fuzz/reducer.h"
#include "fuzz/shapes.h"
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

// What it takes for the same in all threads of a block is so: thread_idx once more is not. The oracle
// looks at all warps of a block, where the interpreter looks at each.
TEST(Generator, PromisesWhatHolds) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Kernel kernel = random_program(seed);
    ASSERT_EQ(consult_oracle(kernel, inputs_for(kernel, seed)).error, "") << "seed " << seed;
  }
}

// A mistake in what few programs have shows late.
TEST(Generator, MakesWhatPassesLookFor) {
  const ir::PassRegistry registry;
  Coverage coverage;
  Differential differential(registry);
  const std::vector<std::string> passes[] = {absl::StrSplit(ir::kExactPipeline, ',')};
  constexpr uint64_t kPrograms = 400;
  // unroll-loads and early-loads change more in other pipelines: here others come before.
  constexpr int64_t kFew = kPrograms / 100;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Kernel kernel = random_program(seed);
    coverage.add(kernel);
    EXPECT_EQ(differential.check(kernel, seed, passes), Verdict::kSame) << seed;
  }
  for (const std::string& shape : known_shapes()) {
    EXPECT_GE(coverage.programs_with().at(shape), 3 * kFew) << shape;
  }
  std::map<std::string, int64_t> changed = differential.counts().programs_changed_by;
  for (const std::string& pass : passes[0]) EXPECT_GE(changed[pass], kFew) << pass;
}

TEST(Generator, TheSameSeedGivesTheSameProgram) {
  EXPECT_EQ(print(random_program(7)), print(random_program(7)));
  EXPECT_NE(print(random_program(7)), print(random_program(8)));
}

// So that a failing seed can be reproduced with any compiler. A change of the generator changes the number.
TEST(Generator, ASeedMeansTheSameProgramToEveryCompiler) {
  uint64_t hash = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    for (const char c : print(random_program(seed))) hash = hash * 31 + static_cast<uint8_t>(c);
  }
  EXPECT_EQ(hash, 7145614070877490421u);
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

// A mistake that the interpreter, and so every pass, makes in the same way.
TEST(Differential, FindsWhatTheInterpreterMakesOfAnOpByTheOracle) {
  const ir::PassRegistry registry;
  const std::pair<Opcode, Opcode> kMistakes[] = {
      {Opcode::kAdd, Opcode::kSub},    {Opcode::kMin, Opcode::kMax},
      {Opcode::kLt, Opcode::kLe},      {Opcode::kShr, Opcode::kShl},
      {Opcode::kFloor, Opcode::kCeil}, {Opcode::kShflUp, Opcode::kShflDown},
  };
  for (const auto& mistake : kMistakes) {
    const Opcode from = mistake.first;
    Differential differential(registry, [&](const Kernel& kernel, const Inputs& inputs) {
      Kernel mistaken = kernel;
      (void)spoil(mistaken, mistake.first, mistake.second);
      return consult_oracle(mistaken, inputs);
    });
    int found = 0;
    for (uint64_t seed = 0; seed < 4000 && found == 0; ++seed) {
      const Kernel kernel = random_program(seed);
      if (!contains(kernel, from)) continue;
      if (differential.check(kernel, seed, {}) != Verdict::kDiffers) continue;
      ++found;
      EXPECT_TRUE(differential.failure().passes.empty());
      EXPECT_NE(differential.failure().what.find("oracle"), std::string::npos);
    }
    EXPECT_EQ(found, 1) << ir::info(from).mnemonic;
  }
}

TEST(Differential, TellsWhatTheOracleDoesNotKnow) {
  const ir::PassRegistry registry;
  Differential differential(registry,
                            [](const Kernel&, const Inputs&) { return Outcome{"unheard of"}; });
  EXPECT_EQ(differential.check(random_program(0), 0, {}), Verdict::kDiffers);
  EXPECT_EQ(differential.failure().what, "the oracle says: unheard of");
}

TEST(Coverage, CountsOpsByTypeAndNamesWhatIsNotThere) {
  Coverage coverage;
  Kernel kernel("k");
  ir::Builder b(kernel);
  const ir::ValueId one = b.constant(ir::kF32Type, 0x3F800000);
  b.create(Opcode::kAdd, {one, one});
  b.create(Opcode::kConvert, {one}, ir::Type::of(ir::Scalar::kI8));
  coverage.add(kernel);
  EXPECT_EQ(coverage.ops(), 3);
  EXPECT_EQ(coverage.made().at("add").at("f32"), 1);
  EXPECT_EQ(coverage.made().at("convert").at("f32 -> i8"), 1);
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  EXPECT_TRUE(has(coverage.never_made(), "sub"));
  EXPECT_FALSE(has(coverage.never_made(), "add"));
  EXPECT_TRUE(has(coverage.never_made_of_type(), "add i64"));
  EXPECT_FALSE(has(coverage.never_made_of_type(), "add f32"));
}

TEST(Pipelines, AreEightAndHaveNamesOfTheirOwn) {
  std::set<absl::string_view> names;
  for (const NamedPipeline& pipeline : pipelines()) names.insert(pipeline.name);
  EXPECT_EQ(names.size(), 8u);
}

// What no pipeline runs, no program tests.
TEST(Pipelines, RunEveryPassAloneAndAmongOthers) {
  const ir::PassRegistry registry;
  std::mt19937_64 random(1);
  const Kernel kernel("k");
  const auto lists = pipelines_for({kernel, registry, random});
  for (const ir::Pass& pass : registry.passes()) {
    const auto runs = [&](const std::vector<std::string>& list) {
      return std::any_of(list.begin(), list.end(), [&](const std::string& name) {
        return name.substr(0, name.find('{')) == pass.name;
      });
    };
    EXPECT_GE(std::count_if(lists.begin(), lists.end(), runs), 2) << pass.name;
  }
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
