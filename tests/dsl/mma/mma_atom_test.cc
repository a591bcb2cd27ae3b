// Atoms of products, and their layouts over the threads of a block.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/mma/draw_mma.h"
#include "heddle/dsl/mma/tiled_mma.h"

namespace heddle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// CuTe's MMA_Traits of these instructions.
TEST(MmaAtoms, HaveTheLayoutsOfCuTe) {
  const MmaAtom warp = make_mma_atom(MmaSync<half, half, float>{16, 8, 16});
  EXPECT_EQ(warp.layout_A().to_string(), "((4,8),(2,2,2)):((32,1),(16,8,128))");
  EXPECT_EQ(warp.layout_B().to_string(), "((4,8),(2,2)):((16,1),(8,64))");
  EXPECT_EQ(warp.layout_C().to_string(), "((4,8),(2,2)):((32,1),(16,8))");
  EXPECT_EQ(warp.threads(), 32);
  EXPECT_FALSE(warp.is_async());
  EXPECT_EQ(warp.to_string(), "mma m16n8k16 f16 x f16 + f32");
  const MmaAtom group = make_mma_atom(Wgmma<bfloat16, bfloat16, float>{128});
  EXPECT_EQ(group.layout_A().to_string(), "(128,(64,16)):(0,(1,64))");
  EXPECT_EQ(group.layout_B().to_string(), "(128,(128,16)):(0,(1,128))");
  EXPECT_EQ(group.layout_C().to_string(), "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))");
  EXPECT_EQ(group.shape_mnk().to_string(), "(64,128,16)");
  EXPECT_TRUE(group.is_async());
  EXPECT_EQ(make_mma_atom(Wgmma<half, half, float>{64, OperandSource::rmem}).layout_A().to_string(),
            "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  const Wgmma<float8_e4m3, float8_e4m3, float> bytes{64, OperandSource::rmem};
  EXPECT_EQ(make_mma_atom(bytes).layout_A().to_string(),
            "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))");
  const MmaAtom thread = make_mma_atom(UniversalFma<float>{});
  EXPECT_EQ(thread.layout_C().to_string(), "(1,1):(0,0)");
  EXPECT_EQ(thread.threads(), 1);
}

TEST(MmaAtoms, SayWhichThereAre) {
  EXPECT_THAT(make_mma_atom(MmaSync<half, half, float>{16, 8, 32}).error(),
              HasSubstr("there is no mma m16n8k32 of f16 x f16 + f32; there is m16n8k8, m16n8k16"));
  EXPECT_THAT(make_mma_atom(MmaSync<half, bfloat16, float>{16, 8, 16}).error(),
              HasSubstr("there is no mma of f16 x bf16 + f32; there are those of"));
  EXPECT_THAT(make_mma_atom(MmaSync<half, half, float>{8, 8, 16}).error(),
              HasSubstr("there is no mma m8n8k16"));
  EXPECT_THAT(make_mma_atom(Wgmma<half, half, float>{12}).error(),
              HasSubstr("there is no wgmma m64n12k16 of f16 x f16 + f32; there is m64nNk16"));
}

struct Case {
  const char* atom;
  int m, n, k;  // atoms
};
constexpr Case kCases[] = {{"mma.m16n8k16.f32.f16.f16", 2, 2, 1},
                           {"mma.m16n8k16.f32.f16.f16", 1, 4, 1},
                           {"mma.m16n8k8.f32.tf32.tf32", 2, 1, 2},
                           {"wgmma.m64n32k16.f32.f16.f16", 2, 1, 1},
                           {"fma.f32", 16, 8, 1}};

// Which element of c a thread has: that of its atom, whose place its warp's number says.
TEST(TiledMmas, RepeatAtomsOverThreads) {
  for (const Case& each : kCases) {
    const MmaAtom atom = parse_mma_atom(each.atom);
    ASSERT_TRUE(atom.ok()) << atom.error();
    const TiledMma mma = make_tiled_mma(atom, {each.m, each.n, each.k});
    ASSERT_TRUE(mma.ok());
    EXPECT_EQ(mma.threads(), atom.threads() * each.m * each.n * each.k);
    const int rows = atom.m() * each.m, columns = atom.n() * each.n;
    const Layout c = mma.layout_C_tv();
    ASSERT_TRUE(c.ok()) << c.error();
    const auto values = size(get(atom.layout_C(), 1)).value();
    ASSERT_EQ(size(get(c, 1)).value(), values) << c.to_string();
    for (int thread = 0; thread < mma.threads(); ++thread) {
      const int number = thread / atom.threads();
      const int m = number % each.m, n = number / each.m % each.n;
      for (int value = 0; value < values; ++value) {
        const int64_t in_atom = atom.layout_C()({thread % atom.threads(), value}).value().value();
        const int64_t row = in_atom % atom.m() + m * atom.m();
        const int64_t column = in_atom / atom.m() + n * atom.n();
        ASSERT_EQ(c({thread, value}).value().value(), row + column * rows)
            << each.atom << " thread " << thread << " value " << value;
      }
    }
    EXPECT_EQ(partition_shape_C(mma, {2 * rows, 3 * columns}).to_string(),
              prepend(IntTuple{2, 3}, get(atom.layout_C().shape(), 1)).to_string());
  }
}

TEST(TiledMmas, OrderTilesByPermutations) {
  const MmaAtom atom = make_mma_atom(MmaSync<half, half, float>{16, 8, 16});
  const TiledMma wide = make_tiled_mma(atom, {2, 2, 1}, {_, 32, _});
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(wide.tile_mnk().to_string(), "(32,32,16)");
  EXPECT_EQ(size(get(wide.layout_B_tv(), 1)).value(), 8);
  // Each warp's two atoms of b lie side by side: columns 0 to 15 and 16 to 31.
  const TiledMma together =
      make_tiled_mma(atom, {1, 2, 1}, {_, make_layout({8, 2, 2}, {1, 16, 8}), _});
  ASSERT_TRUE(together.ok());
  const Layout c = together.layout_C_tv();
  EXPECT_EQ(c({0, 0}).value().value(), 0);
  EXPECT_EQ(c({0, 4}).value().value(), 16 * 8);
  EXPECT_EQ(c({32, 0}).value().value(), 16 * 16);
}

TEST(TiledMmas, SayWhatIsWrong) {
  const MmaAtom atom = make_mma_atom(MmaSync<half, half, float>{16, 8, 16});
  EXPECT_THAT(make_tiled_mma(atom, make_layout({2, 2}, {1, 2})).layout_C_tv().error(),
              HasSubstr("atoms (2,2):(1,2); the layout of atoms is (m,n,k)"));
  EXPECT_THAT(make_tiled_mma(atom, make_layout({2, 2, 1}, {1, 3, 0})).layout_C_tv().error(),
              HasSubstr("to each number below its size"));
  EXPECT_THAT(make_tiled_mma(atom, {2, 2, 1}, {_, 24, _}).layout_C_tv().error(),
              HasSubstr("of mode 1; its size is a multiple of what the atoms cover"));
  EXPECT_THAT(make_tiled_mma(atom, {2, 2, 1}, {32, 32}).layout_C_tv().error(),
              HasSubstr("it has a tiler, a number or _ for each of m, n and k"));
}

// All atoms of the table, tiled or not.
TEST(DrawMma, DrawsEveryAtom) {
  std::vector<std::string> names = mma_atom_names();
  EXPECT_THAT(names, testing::Contains("wgmma.m64n8k32.i32.i8.u8"));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end()) << "a row each";
  for (const std::string& name : names) {
    const MmaAtom atom = parse_mma_atom(name);
    ASSERT_TRUE(atom.ok()) << name << ": " << atom.error();
    for (const IntTuple& atoms : {IntTuple{1, 1, 1}, IntTuple{2, 1, 1}}) {
      const std::string svg = mma_svg(make_tiled_mma(atom, atoms));
      EXPECT_THAT(svg,
                  AllOf(StartsWith("<svg"), HasSubstr(">a"), HasSubstr(">b"), HasSubstr(">c: ")))
          << name;
    }
    EXPECT_THAT(mma_html(make_tiled_mma(atom)), HasSubstr("<title>" + atom.to_string()));
  }
}

// Thread 5 of a warp has a's element (1,2) as value 0, b's (2,1) and c's (1,2).
TEST(DrawMma, SaysWhoHasWhat) {
  const std::string svg = mma_svg(make_tiled_mma(parse_mma_atom("mma.m16n8k16.f32.f16.f16")));
  EXPECT_THAT(svg, HasSubstr("coordinate (1,2), index 33, thread 5 value 0<"));
  EXPECT_THAT(svg, HasSubstr("coordinate (2,1), index 18, thread 5 value 0<"));
  EXPECT_THAT(svg, HasSubstr("coordinate (8,7), index 120, thread 3 value 3<")) << "of c";
  const std::string group = mma_svg(make_tiled_mma(parse_mma_atom("wgmma.m64n8k16.f32.f16.f16")));
  EXPECT_THAT(group, HasSubstr("a, a tile in shared memory"));
}

TEST(DrawMma, SaysWhatItDoesNotKnow) {
  for (const char* name : {"mma", "mma.m16n8k16", "mma.m16n8k16.f32.f16", "wgmma.m64n8.f32.f16.f16",
                           "fma", "mmb.m16n8k16.f32.f16.f16", "mma.m16n8k16x.f32.f16.f16"}) {
    EXPECT_THAT(parse_mma_atom(name).error(),
                HasSubstr(std::string("no atom of products is named '") + name + "'"));
  }
  EXPECT_THAT(parse_mma_atom("mma.m16n8k64.f32.f16.f16").error(), HasSubstr("there is no mma"));
  EXPECT_THAT(mma_svg(make_tiled_mma(parse_mma_atom("fma"))), StartsWith("error: no atom"));
  EXPECT_THAT(mma_html(make_tiled_mma(parse_mma_atom("fma"))), StartsWith("error: no atom"));
}

}  // namespace
}  // namespace heddle
