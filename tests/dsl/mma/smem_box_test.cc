// The boxes that fill tiles in shared memory, by value, and what none fills.
#include "heddle/dsl/mma/smem_box.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/mma/smem_layout.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(box(box_of<float>(make_layout({16, 32}, {64, 1}))), "(1,32) x 16 under 0");
  EXPECT_EQ(box(box_of<float>(make_layout(64))), "(64) x 1 under 0");
  // More lines than a box has are cut where the swizzle begins anew, and others where 128 bytes do.
  EXPECT_EQ(box(box_of<half>(make_smem_layout<half>({264, 64}))), "(88,64) x 3 under 128");
  EXPECT_EQ(box(box_of<half>(make_layout({320, 8}, {8, 1}))), "(160,8) x 2 under 0");
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
  EXPECT_THAT(
      box(box_of<half>(make_layout({16, 4}, {4, 1}))),
      HasSubstr("box_of: (16,4):(4,1) has lines of 8 bytes; the copy engine moves multiples "
                "of 16 bytes"));
  EXPECT_THAT(box(box_of<half>(composition(Swizzle(3, 3, 3), make_layout({64, 32}, {32, 1})))),
              HasSubstr("has lines of 64 bytes under a swizzle of 128; the copy engine's lines are "
                        "as long as the swizzle"));
  // Rows that are longer than the swizzle's, and rows of 160 bytes.
  EXPECT_THAT(box(box_of<half>(composition(Swizzle(3, 3, 3), make_layout({64, 128}, {128, 1})))),
              HasSubstr("has boxes at places that are no multiples of 128 bytes"));
  EXPECT_THAT(box(box_of<float>(make_layout({16, 32}, {40, 1}))),
              HasSubstr("(16,32):(40,1) has boxes at places that are no multiples of 128 bytes; "
                        "make_smem_layout() makes layouts for the copy engine"));
  EXPECT_EQ(box_of<half>(make_layout({16, 16}, {2, 32})).extent(0), 1);
}

}  // namespace
}  // namespace heddle
