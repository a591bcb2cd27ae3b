// The table of atoms: shapes and types as PTX has them, and fragments as CUTLASS's traits and the PTX ISA's figures
// give them.
#include "heddle/ir/mma_atom.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MmaTypes warp(Scalar a, Scalar b, Scalar d) { return {MmaKind::kMma, a, b, d}; }
MmaTypes group(Scalar a, Scalar b, Scalar d) { return {MmaKind::kWgmma, a, b, d}; }

// ((4, 8, warps), (…)) : ((…), (…)).
std::vector<std::pair<int, int>> modes(const std::array<MmaMode, 3>& modes) {
  std::vector<std::pair<int, int>> result;
  for (const MmaMode& mode : modes) result.emplace_back(mode.extent, mode.stride);
  return result;
}
using P = std::pair<int, int>;

TEST(MmaAtom, FindsRowsByTypesAndShape) {
  const MmaTypes bf16 = group(Scalar::kBF16, Scalar::kBF16, Scalar::kF32);
  const MmaAtom* const atom = find_mma_atom(bf16, 128, 16);
  ASSERT_NE(atom, nullptr);
  EXPECT_EQ(mma_name(*atom, bf16, 128), "wgmma m64n128k16 bf16 x bf16 + f32");
  EXPECT_EQ(find_mma_atom(bf16, 12, 16), nullptr);
  EXPECT_EQ(find_mma_atom(bf16, 264, 16), nullptr);
  EXPECT_EQ(find_mma_atom(bf16, 0, 16), nullptr);
  EXPECT_EQ(find_mma_atom(bf16, 128, 8), nullptr);
  EXPECT_EQ(find_mma_atom(group(Scalar::kBF16, Scalar::kBF16, Scalar::kF16)), nullptr);
  EXPECT_EQ(find_mma_atom(group(Scalar::kBF16, Scalar::kF16, Scalar::kF32)), nullptr);
  EXPECT_NE(find_mma_atom(warp(Scalar::kE4M3, Scalar::kE5M2, Scalar::kF32), 8, 32), nullptr);
  EXPECT_EQ(find_mma_atom(MmaTypes{MmaKind::kFma, Scalar::kF32, Scalar::kF32, Scalar::kF32})->m, 1);
}

TEST(MmaAtom, HasTheWidthsOfIntegers) {
  std::set<int> widths;
  const MmaTypes bytes = group(Scalar::kI8, Scalar::kI8, Scalar::kI32);
  for (int n = 0; n <= 300; ++n) {
    if (find_mma_atom(bytes, n, 32) != nullptr) widths.insert(n);
  }
  EXPECT_THAT(widths, ElementsAre(8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208,
                                  224, 240, 256));
}

TEST(MmaAtom, MixedBytesNeedALaterVersion) {
  EXPECT_EQ(find_mma_atom(group(Scalar::kU8, Scalar::kU8, Scalar::kI32))->feature, Feature::kWgmma);
  EXPECT_EQ(find_mma_atom(group(Scalar::kU8, Scalar::kI8, Scalar::kI32))->feature,
            Feature::kMixedWgmma);
}

TEST(MmaAtom, IsNamedInMessages) {
  EXPECT_THAT(mma_types_text(MmaKind::kMma),
              HasSubstr("tf32 x tf32 + f32, e4m3 or e5m2 x e4m3 or e5m2 + f32"));
  EXPECT_EQ(mma_shapes_text(warp(Scalar::kTF32, Scalar::kTF32, Scalar::kF32)), "m16n8k4, m16n8k8");
  EXPECT_EQ(mma_shapes_text(group(Scalar::kI8, Scalar::kU8, Scalar::kI32)),
            "m64nNk32 with N 8, 24, or a multiple of 16 up to 256");
  EXPECT_EQ(to_string(*find_mma_atom(warp(Scalar::kBF16, Scalar::kBF16, Scalar::kF32), 8, 16)),
            "m16n8k16 bf16 x bf16 + f32");
  EXPECT_EQ(to_string(*find_mma_atom(group(Scalar::kTF32, Scalar::kTF32, Scalar::kF32))),
            "m64nNk8 tf32 x tf32 + f32, N a multiple of 8 up to 256");
  EXPECT_TRUE(is_mma_input(MmaKind::kWgmma, Scalar::kTF32));
  EXPECT_FALSE(is_mma_input(MmaKind::kWgmma, Scalar::kF32));
  EXPECT_TRUE(is_mma_accumulator(MmaKind::kMma, Scalar::kI32));
}

MmaFragment fragment(const MmaTypes& types, MmaOperand operand, int n, int k) {
  const Scalar scalar = operand == MmaOperand::kA   ? types.a
                        : operand == MmaOperand::kB ? types.b
                                                    : types.accumulator;
  return fragment_of(*find_mma_atom(types, n, k), operand, scalar, n);
}

// Values of CUTLASS's traits.
TEST(MmaFragment, OfWarpsAreThoseOfTheTraits) {
  const MmaTypes bf16 = warp(Scalar::kBF16, Scalar::kBF16, Scalar::kF32);
  const MmaFragment a = fragment(bf16, MmaOperand::kA, 8, 16);
  EXPECT_THAT(modes(a.thread), ElementsAre(P(4, 32), P(8, 1), P(1, 16)));
  EXPECT_THAT(modes(a.value), ElementsAre(P(2, 16), P(2, 8), P(2, 128)));
  const MmaFragment b = fragment(bf16, MmaOperand::kB, 8, 16);
  EXPECT_THAT(modes(b.thread), ElementsAre(P(4, 16), P(8, 1), P(1, 16)));
  EXPECT_THAT(modes(b.value), ElementsAre(P(2, 8), P(1, 8), P(2, 64)));
  const MmaFragment d = fragment(bf16, MmaOperand::kAccumulator, 8, 16);
  EXPECT_THAT(modes(d.thread), ElementsAre(P(4, 32), P(8, 1), P(1, 16)));
  EXPECT_THAT(modes(d.value), ElementsAre(P(2, 16), P(2, 8), P(1, 128)));

  const MmaTypes tf32 = warp(Scalar::kTF32, Scalar::kTF32, Scalar::kF32);
  const MmaFragment tf32_a = fragment(tf32, MmaOperand::kA, 8, 8);
  EXPECT_THAT(modes(tf32_a.thread), ElementsAre(P(4, 16), P(8, 1), P(1, 16)));
  EXPECT_THAT(modes(tf32_a.value), ElementsAre(P(1, 16), P(2, 8), P(2, 64)));
  EXPECT_EQ(fragment(tf32, MmaOperand::kA, 8, 4).values(), 2);
  EXPECT_EQ(fragment(tf32, MmaOperand::kB, 8, 4).values(), 1);

  const MmaTypes bytes = warp(Scalar::kI8, Scalar::kU8, Scalar::kI32);
  const MmaFragment byte_a = fragment(bytes, MmaOperand::kA, 8, 32);
  EXPECT_THAT(modes(byte_a.thread), ElementsAre(P(4, 64), P(8, 1), P(1, 16)));
  EXPECT_THAT(modes(byte_a.value), ElementsAre(P(4, 16), P(2, 8), P(2, 256)));
  EXPECT_EQ(fragment(bytes, MmaOperand::kB, 8, 16).values(), 4);
}

TEST(MmaFragment, OfWarpGroupsAreThoseOfTheTraits) {
  const MmaTypes f16 = group(Scalar::kF16, Scalar::kF16, Scalar::kF32);
  const MmaFragment d = fragment(f16, MmaOperand::kAccumulator, 128, 16);
  EXPECT_THAT(modes(d.thread), ElementsAre(P(4, 128), P(8, 1), P(4, 16)));
  EXPECT_THAT(modes(d.value), ElementsAre(P(2, 64), P(2, 8), P(16, 512)));
  const MmaFragment a = fragment(f16, MmaOperand::kA, 128, 16);
  EXPECT_THAT(modes(a.thread), ElementsAre(P(4, 128), P(8, 1), P(4, 16)));
  EXPECT_THAT(modes(a.value), ElementsAre(P(2, 64), P(2, 8), P(2, 512)));
  const MmaTypes float8 = group(Scalar::kE4M3, Scalar::kE4M3, Scalar::kF32);
  const MmaFragment bytes = fragment(float8, MmaOperand::kA, 64, 32);
  EXPECT_THAT(modes(bytes.thread), ElementsAre(P(4, 256), P(8, 1), P(4, 16)));
  EXPECT_THAT(modes(bytes.value), ElementsAre(P(4, 64), P(2, 8), P(2, 1024)));
}

// PTX's figure of m16n8k16's a: a4 of lane 5 is in row 5 / 4 and column 5 % 4 * 2 + 8.
TEST(MmaFragment, IsEvaluated) {
  const MmaTypes f16 = warp(Scalar::kF16, Scalar::kF16, Scalar::kF16);
  const MmaFragment a = fragment(f16, MmaOperand::kA, 8, 16);
  EXPECT_EQ(a.at(5, 4), (MmaElement{1, 10}));
  EXPECT_EQ(a.at(5, 3), (MmaElement{9, 3}));
  const MmaFragment d =
      fragment(group(Scalar::kF16, Scalar::kF16, Scalar::kF16), MmaOperand::kAccumulator, 64, 16);
  EXPECT_EQ(d.at(32 + 7, 5), (MmaElement{17, 15}));
}

// Every row: each element is held once.
TEST(MmaFragment, CoversItsMatrix) {
  for (const MmaAtom& atom : mma_atoms()) {
    const int n = atom.n == MmaWidths::kOne ? 1 : atom.n == MmaWidths::kEight ? 8 : 48;
    ASSERT_TRUE(contains(atom.n, n));
    for (int s = 1; s < kScalarCount; ++s) {
      const auto scalar = static_cast<Scalar>(s);
      for (const MmaOperand operand : {MmaOperand::kA, MmaOperand::kB, MmaOperand::kAccumulator}) {
        const bool has = operand == MmaOperand::kA   ? atom.a.contains(scalar)
                         : operand == MmaOperand::kB ? atom.b.contains(scalar)
                                                     : atom.accumulator == scalar;
        const bool in_memory = operand == MmaOperand::kB && atom.kind == MmaKind::kWgmma;
        if (!has || in_memory) continue;
        const MmaFragment f = fragment_of(atom, operand, scalar, n);
        EXPECT_EQ(f.threads(), info(atom.kind).threads());
        std::set<std::pair<int, int>> held;
        for (int t = 0; t < f.threads(); ++t) {
          for (int v = 0; v < f.values(); ++v) {
            const MmaElement e = f.at(t, v);
            EXPECT_TRUE(e.row < f.rows && e.column < f.columns);
            held.emplace(e.row, e.column);
          }
        }
        EXPECT_EQ(held.size(), static_cast<size_t>(f.rows * f.columns));
        EXPECT_EQ(f.threads() * f.values(), f.rows * f.columns);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ir
