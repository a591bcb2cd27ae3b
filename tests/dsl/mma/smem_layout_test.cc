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
                        "lines; take a multiple of 16 bytes"));
  EXPECT_THAT(
      make_smem_layout<half>({12, 64}).error(),
      HasSubstr("has 12 lines; take a multiple of 8 lines, and guard what is beyond the data"));
  EXPECT_THAT(make_smem_layout<half>({128, 32}, Major::k, 128).error(),
              HasSubstr("take a multiple of 128 bytes, or a narrower swizzle"));
  EXPECT_THAT(make_smem_layout<half>({128, 64}, Major::k, 48).error(),
              HasSubstr("a swizzle of 48 bytes; there are those of 32, 64 and 128"));
  EXPECT_THAT(make_smem_layout<half>({128, SymInt::unknown()}).error(),
              HasSubstr("which is not (rows, depth) of host numbers"));
  EXPECT_THAT(make_smem_layout<half>(IntTuple(128)).error(),
              HasSubstr("which is not (rows, depth)"));
}

}  // namespace
}  // namespace heddle
