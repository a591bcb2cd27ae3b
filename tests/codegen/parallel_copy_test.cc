#include "heddle/codegen/parallel_copy.h"

#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::codegen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Operand reg(uint64_t number, RegClass c = RegClass::kB32) { return {c, false, number}; }

std::vector<Copy> sequence(std::vector<Copy> copies, uint32_t in_use = 100) {
  RegisterFile registers;
  for (uint32_t i = 0; i < in_use; ++i) {
    for (int c = 0; c < kRegClassCount; ++c) registers.fresh(static_cast<RegClass>(c));
  }
  std::vector<Copy> moves;
  sequence_copies(copies, registers, &moves);
  return moves;
}

// Does the moves one after the other, and compares with all copies done at once.
void expect_same_effect(const std::vector<Copy>& copies) {
  const auto key = [](const Operand& o) {
    return o.payload * kRegClassCount + static_cast<uint64_t>(o.reg_class);
  };
  std::map<uint64_t, uint64_t> contents;
  const auto read = [&](const Operand& o) {
    if (o.is_constant) return uint64_t{1000000} + o.payload;
    const auto it = contents.find(key(o));
    return it == contents.end() ? key(o) : it->second;
  };
  for (const Copy& move : sequence(copies)) contents[key(move.to)] = read(move.from);
  std::map<uint64_t, uint64_t> untouched;
  for (const Copy& copy : copies) {
    const uint64_t wanted =
        copy.from.is_constant ? uint64_t{1000000} + copy.from.payload : key(copy.from);
    EXPECT_EQ(read(copy.to), wanted);
  }
  // Nothing but the destinations and scratch registers has changed.
  for (const auto& content : contents) {
    const uint64_t k = content.first;
    const bool is_destination =
        std::any_of(copies.begin(), copies.end(), [&](const Copy& c) { return key(c.to) == k; });
    EXPECT_TRUE(is_destination || k >= 100 * kRegClassCount);
  }
}

TEST(ParallelCopy, KeepsIndependentCopies) {
  EXPECT_THAT(sequence({{reg(0), reg(5)}, {reg(1), reg(6)}}),
              ElementsAre(Copy{reg(0), reg(5)}, Copy{reg(1), reg(6)}));
}

TEST(ParallelCopy, DropsCopiesToTheSameRegister) {
  EXPECT_THAT(sequence({{reg(0), reg(0)}, {reg(1), reg(1)}}), IsEmpty());
  EXPECT_THAT(sequence({{reg(0), reg(0)}, {reg(1), reg(0)}}), ElementsAre(Copy{reg(1), reg(0)}));
}

TEST(ParallelCopy, ReadsBeforeItWrites) {
  // b = a; c = b: c first.
  EXPECT_THAT(sequence({{reg(1), reg(0)}, {reg(2), reg(1)}}),
              ElementsAre(Copy{reg(2), reg(1)}, Copy{reg(1), reg(0)}));
}

TEST(ParallelCopy, SwapsWithOneScratchRegister) {
  EXPECT_THAT(sequence({{reg(0), reg(1)}, {reg(1), reg(0)}}),
              ElementsAre(Copy{reg(100), reg(0)}, Copy{reg(0), reg(1)}, Copy{reg(1), reg(100)}));
}

TEST(ParallelCopy, RotatesWithOneScratchRegister) {
  const std::vector<Copy> rotation = {{reg(0), reg(1)}, {reg(1), reg(2)}, {reg(2), reg(0)}};
  EXPECT_THAT(sequence(rotation), SizeIs(4));
  expect_same_effect(rotation);
}

TEST(ParallelCopy, SharesASource) {
  expect_same_effect({{reg(0), reg(3)}, {reg(1), reg(3)}, {reg(3), reg(0)}});
  EXPECT_THAT(sequence({{reg(0), reg(3)}, {reg(1), reg(3)}}), SizeIs(2));
}

TEST(ParallelCopy, MixesConstantsIn) {
  const std::vector<Copy> copies = {
      {reg(0), Operand::b32(7)}, {reg(1), reg(0)}, {reg(2), reg(1)}, {reg(3), Operand::b32(7)}};
  EXPECT_THAT(sequence(copies), SizeIs(4));
  expect_same_effect(copies);
}

TEST(ParallelCopy, TellsClassesApart) {
  // %r0 and %rd0 are two registers.
  const Operand wide0 = reg(0, RegClass::kB64);
  const Operand wide1 = reg(1, RegClass::kB64);
  EXPECT_THAT(sequence({{reg(0), reg(1)}, {wide1, wide0}}), SizeIs(2));
  expect_same_effect({{reg(0), reg(1)}, {reg(1), reg(0)}, {wide1, wide0}, {wide0, wide1}});
}

TEST(ParallelCopy, PassesInitialValuesThatAliasDestinations) {
  // A loop starts with (b, a, b, 0) in the registers a, b, c, d.
  expect_same_effect(
      {{reg(0), reg(1)}, {reg(1), reg(0)}, {reg(2), reg(1)}, {reg(3), Operand::b32(0)}});
}

TEST(ParallelCopy, MatchesAnOracleOnRandomCopies) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int registers = 1 + static_cast<int>(random() % 20);
    std::vector<uint64_t> order(static_cast<size_t>(registers));
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Copy> copies;
    for (int i = 0; i < registers; ++i) {
      if (random() % 4 == 0) continue;
      const Operand from = random() % 8 == 0 ? Operand::b32(random() % 3)
                                             : reg(random() % static_cast<unsigned>(registers));
      copies.push_back({reg(order[static_cast<size_t>(i)]), from});
    }
    expect_same_effect(copies);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace heddle::codegen
