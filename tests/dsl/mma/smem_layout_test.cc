// Layouts of shared memory from swizzle atoms, and the boxes that fill them.
#include "heddle/dsl/mma/smem_layout.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

TEST(SmemLayout, ChoosesTheWidestSwizzle) {
  EXPECT_EQ(make_smem_layout<half>({128, 64}).to_string(),
            "S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))");
  EXPECT_EQ(make_smem_layout<half>({128, 32}).to_string(),
            "S<2,3,3> o 0 o ((8,16),(32,1)):((32,256),(1,0))");
  EXPECT_EQ(make_smem_layout<half>({128, 48}).to_string(),
            "S<1,3,3> o 0 o ((8,16),(16,3)):((16,128),(1,2048))");
  EXPECT_EQ(make_smem_layout<half>({128, 8}).to_string(), "((8,16),(8,1)):((8,64),(1,0))");
  EXPECT_EQ(make_smem_layout<half>({192, 64}, Major::mn).to_string(),
            "S<3,3,3> o 0 o ((64,3),(8,8)):((1,4096),(64,512))");
  EXPECT_EQ(make_smem_layout<half>({96, 64}, Major::mn).to_string(),
            "S<2,3,3> o 0 o ((32,3),(8,8)):((1,2048),(32,256))");
  // Elements of 8 and 32 bits.
  EXPECT_EQ(make_smem_layout<int8_t>({64, 128}).swizzle(), Swizzle(3, 4, 3));
  EXPECT_EQ(make_smem_layout<int8_t>({64, 64}).swizzle(), Swizzle(2, 4, 3));
  EXPECT_EQ(make_smem_layout<float>({64, 32}).swizzle(), Swizzle(3, 2, 3));
}

TEST(SmemLayout, RepeatsTilesOverStages) {
  EXPECT_EQ(make_smem_layout<half>({128, 128, 4}).to_string(),
            "S<3,3,3> o 0 o ((8,16),(64,2),(1,4)):((64,512),(1,8192),(0,16384))");
  EXPECT_EQ(size(make_smem_layout<half>({128, 64, 3, 2})).value(), 128 * 64 * 6);
}

TEST(SmemLayout, SaysWhatNoAtomDivides) {
  EXPECT_THAT(make_smem_layout<half>({128, 12}).error(),
              HasSubstr("a K-major tile of (128,12) elements of f16 has 24 contiguous bytes in 128 "
                        "lines; take a multiple of 16 bytes and one of 8 lines"));
  EXPECT_THAT(make_smem_layout<half>({12, 64}).error(),
              HasSubstr("has 128 contiguous bytes in 12 lines"));
  EXPECT_THAT(make_smem_layout<half>({128, 32}, Major::k, 128).error(),
              HasSubstr("take a multiple of 128 bytes, or a narrower swizzle, and one of 8 lines"));
  EXPECT_THAT(make_smem_layout<half>({128, 64}, Major::k, 48).error(),
              HasSubstr("a swizzle of 48 bytes; there are those of 32, 64 and 128"));
  EXPECT_THAT(make_smem_layout<half>({128, SymInt::unknown()}).error(),
              HasSubstr("which is not (rows, depth) of host numbers"));
  EXPECT_THAT(make_smem_layout<half>(IntTuple(128)).error(),
              HasSubstr("which is not (rows, depth)"));
}

std::string box(const SmemBox& b) {
  return b.ok() ? b.extents.to_string() + " x " + std::to_string(b.count) + " under " +
                      std::to_string(b.swizzle)
                : b.error();
}

TEST(SmemBox, IsOnePieceOfMemory) {
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({128, 64}))), "(128,64) x 1 under 128");
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({128, 128}))), "(128,64) x 2 under 128");
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({128, 96}))), "(128,32) x 3 under 64");
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({128, 64}, Major::mn))),
            "(64,64) x 2 under 128");
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({128, 64}, Major::k, 0))),
            "(128,8) x 8 under 0");
  EXPECT_EQ(box(box_of<float>(make_smem_layout<float>({64, 64}))), "(64,32) x 2 under 128");
  // Not more than 256 elements along a mode.
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({384, 64}))), "(192,64) x 2 under 128");
  // Of a stage, a part of the rows, and a layout without atoms.
  EXPECT_EQ(box(box_of<half>(slice({_, _, 1}, make_smem_layout<half>({128, 64, 3})))),
            "(128,64) x 1 under 128");
  EXPECT_EQ(box(box_of<half>(local_tile(make_smem_layout<half>({128, 256}), {64, 256}, {1, 0}))),
            "(64,64) x 4 under 128");
  EXPECT_EQ(box(box_of<float>(make_layout({16, 32}, {32, 1}))), "(16,32) x 1 under 0");
  EXPECT_EQ(box(box_of<float>(make_layout({16, 32}, {40, 1}))), "(1,32) x 16 under 0");
  // Rows that are longer than the swizzle's.
  EXPECT_EQ(box(box_of<half>(composition(Swizzle(3, 3, 3), make_layout({64, 128}, {128, 1})))),
            "(1,64) x 128 under 128");
  EXPECT_EQ(box(box_of<float>(make_layout({4, 8, 16}, {128, 16, 1}))), "(4,8,16) x 1 under 0");
  const SmemBox tall = box_of<half>(make_smem_layout<half>({128, 64}));
  EXPECT_EQ(tall.extent(0), 128);
  EXPECT_EQ(tall.extent(1), 64);
}

TEST(SmemBox, SaysWhereThereIsNone) {
  EXPECT_THAT(box(box_of<half>(make_layout({16, 16}, {2, 32}))),
              HasSubstr("(16,16):(2,32) is contiguous along no mode"));
  EXPECT_THAT(box(box_of<float>(make_smem_layout<half>({64, 64}))),
              HasSubstr("is swizzled as the copy engine cannot"));
  EXPECT_THAT(box(box_of<half>(make_layout({16, SymInt::unknown()}))),
              HasSubstr("has not one to five modes of host numbers"));
  EXPECT_EQ(box_of<half>(make_layout({16, 16}, {2, 32})).extent(0), 1);
}

}  // namespace
}  // namespace heddle
