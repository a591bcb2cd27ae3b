// Layouts of shared memory from swizzle atoms, and the matrix descriptors that follow from them.
#include "heddle/dsl/mma/descriptor.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/layout/calculator.h"

namespace heddle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> steps_of(const SmemDescriptor& d) {
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < d.steps(); ++i) starts.push_back(d.start(0, i));
  return starts;
}

struct Row {
  Major major;
  int swizzle;
  int64_t stride, leading;
  std::vector<int64_t> starts;
};

// Of f16, 128 rows and a depth of 64: all majors and swizzles.
TEST(SmemDescriptor, OfEachMajorAndSwizzle) {
  const Row rows[] = {
      {Major::k, 128, 1024, 16, {0, 32, 64, 96}},
      {Major::k, 64, 512, 16, {0, 32, 8192, 8224}},
      {Major::k, 32, 256, 16, {0, 4096, 8192, 12288}},
      {Major::k, 0, 128, 2048, {0, 4096, 8192, 12288}},
      {Major::mn, 128, 1024, 8192, {0, 2048, 4096, 6144}},
      {Major::mn, 64, 512, 4096, {0, 1024, 2048, 3072}},
      {Major::mn, 32, 256, 2048, {0, 512, 1024, 1536}},
      {Major::mn, 0, 1024, 128, {0, 256, 512, 768}},
  };
  for (const Row& row : rows) {
    const Layout tile = make_smem_layout<half>({128, 64}, row.major, row.swizzle);
    ASSERT_TRUE(tile.ok()) << tile.error();
    const SmemDescriptor d = make_smem_descriptor<half>(tile, 128);
    ASSERT_TRUE(d.ok()) << tile.to_string() << " " << d.error();
    EXPECT_EQ(d.major(), row.major) << tile.to_string();
    EXPECT_EQ(d.swizzle(), row.swizzle) << tile.to_string();
    EXPECT_EQ(d.stride(), row.stride) << tile.to_string();
    EXPECT_EQ(d.leading(), row.leading) << tile.to_string();
    EXPECT_EQ(steps_of(d), row.starts) << tile.to_string();
    // Under a swizzle a K-major step lies within a line.
    EXPECT_EQ(d.uses_leading(), row.major == Major::mn || row.swizzle == 0);
    EXPECT_TRUE(d.uses_stride());
  }
}

// With the rows' mode first, as CuTe's tile_to_shape() has it without an order.
TEST(SmemDescriptor, OfAnotherOrderOfAtoms) {
  const Layout tile = tile_to_shape(smem_layout_atom<half>(Major::mn, 128), {128, 64});
  const SmemDescriptor d = make_smem_descriptor<half>(tile, 128);
  ASSERT_TRUE(d.ok()) << d.error();
  EXPECT_EQ(d.stride(), 2048);
  EXPECT_EQ(d.leading(), 1024);
  EXPECT_THAT(steps_of(d), ElementsAre(0, 4096, 8192, 12288));
}

TEST(SmemDescriptor, HasTheBitsOfTheHardware) {
  const SmemDescriptor k = make_smem_descriptor<half>(make_smem_layout<half>({128, 64}), 128);
  EXPECT_EQ(k.bits(0), 0x4000004000010000u);
  EXPECT_EQ(k.bits(k.start(0, 2)), 0x4000004000010004u);
  const SmemDescriptor mn =
      make_smem_descriptor<half>(make_smem_layout<half>({128, 64}, Major::mn), 128);
  EXPECT_EQ(mn.bits(0), 0x4000004002000000u);
  const auto kind = [](int swizzle) {
    const Layout tile = make_smem_layout<half>({64, 64}, Major::k, swizzle);
    return make_smem_descriptor<half>(tile, 64).bits(0) >> 62;
  };
  EXPECT_EQ(kind(0), 0u);
  EXPECT_EQ(kind(128), 1u);
  EXPECT_EQ(kind(64), 2u);
  EXPECT_EQ(kind(32), 3u);
}

// A tile of 64 x 128 x 64 by m64n128k16: where the parts of A (64 x 64) and of B (128 x 64, which lies
// MN-major as a row-major 64 x 128) start, along m, n and k.
TEST(SmemDescriptor, OfSeed003) {
  const SmemDescriptor a = make_smem_descriptor<half>(make_smem_layout<half>({64, 64}), 64);
  ASSERT_TRUE(a.ok()) << a.error();
  EXPECT_EQ(a.row_parts(), 1);
  EXPECT_EQ(a.stride(), 1024);
  EXPECT_THAT(steps_of(a), ElementsAre(0, 32, 64, 96));
  const SmemDescriptor b =
      make_smem_descriptor<half>(make_smem_layout<half>({128, 64}, Major::mn), 128);
  ASSERT_TRUE(b.ok()) << b.error();
  EXPECT_EQ(b.row_parts(), 1);
  EXPECT_EQ(b.leading(), 8192);
  EXPECT_EQ(b.stride(), 1024);
  EXPECT_THAT(steps_of(b), ElementsAre(0, 2048, 4096, 6144));
  // A of 128 rows in parts of 64, B of 256 in parts of 128.
  const SmemDescriptor tall = make_smem_descriptor<half>(make_smem_layout<half>({128, 64}), 64);
  EXPECT_EQ(tall.row_parts(), 2);
  EXPECT_EQ(tall.start(1, 0), 8192);
  EXPECT_EQ(tall.start(1, 3), 8192 + 96);
  const SmemDescriptor wide =
      make_smem_descriptor<half>(make_smem_layout<half>({256, 64}, Major::mn), 128);
  EXPECT_EQ(wide.start(1, 1), 2 * 8192 + 2048);
}

// The part of an operand that is one atom wide has no use for an offset.
TEST(SmemDescriptor, SaysWhichOffsetsAreUnused) {
  const SmemDescriptor a =
      make_smem_descriptor<half>(make_smem_layout<half>({128, 64}, Major::mn), 64);
  ASSERT_TRUE(a.ok()) << a.error();
  EXPECT_FALSE(a.uses_leading());
  EXPECT_EQ(a.start(1, 0), 8192);
  const SmemDescriptor narrow = make_smem_descriptor<half>(make_smem_layout<half>({8, 64}), 8);
  ASSERT_TRUE(narrow.ok()) << narrow.error();
  EXPECT_FALSE(narrow.uses_stride());
}

TEST(SmemDescriptor, OfOtherWidths) {
  const SmemDescriptor bytes =
      make_smem_descriptor<float8_e4m3>(make_smem_layout<float8_e4m3>({64, 128}), 64);
  ASSERT_TRUE(bytes.ok()) << bytes.error();
  EXPECT_EQ(bytes.step(), 32);
  EXPECT_EQ(bytes.stride(), 1024);
  EXPECT_THAT(steps_of(bytes), ElementsAre(0, 32, 64, 96));
  const SmemDescriptor words = make_smem_descriptor<float>(make_smem_layout<float>({64, 64}), 64);
  ASSERT_TRUE(words.ok()) << words.error();
  EXPECT_EQ(words.step(), 8);
  EXPECT_THAT(steps_of(words), ElementsAre(0, 32, 64, 96, 8192, 8224, 8256, 8288));
}

// Slices and tiles of staged tiles are as canonical as the whole.
TEST(SmemDescriptor, OfPartsOfTiles) {
  const Layout staged = make_smem_layout<half>({128, 128, 3});
  const Layout stage = slice({_, _, 2}, staged);
  const SmemDescriptor d = make_smem_descriptor<half>(stage, 64);
  ASSERT_TRUE(d.ok()) << d.error();
  EXPECT_EQ(d.stride(), 1024);
  EXPECT_EQ(d.start(1, 4), 8192 + 16384);
  const SmemDescriptor half_tile =
      make_smem_descriptor<half>(local_tile(stage, {64, 64}, {1, 1}), 64);
  ASSERT_TRUE(half_tile.ok()) << half_tile.error();
  EXPECT_THAT(steps_of(half_tile), ElementsAre(0, 32, 64, 96));
}

std::string mistake_of(const Layout& tile, int64_t rows) {
  const SmemDescriptor d = make_smem_descriptor<half>(tile, rows);
  return d.ok() ? "" : d.error() + "; " + d.fix();
}

TEST(SmemDescriptor, SaysWhyALayoutIsNotCanonical) {
  EXPECT_EQ(mistake_of(make_smem_layout<half>({64, 64}), 64), "");
  EXPECT_THAT(
      mistake_of(make_layout({64, 64}, {64, 1}), 64),
      HasSubstr("element (1, 0) is 64 elements behind the first, and a matrix descriptor with "
                "no swizzle has it 8 behind; let lines be contiguous along the depth"));
  // Columns of 72 elements.
  EXPECT_THAT(
      mistake_of(composition(Swizzle(3, 3, 3), make_layout({64, 64}, {1, 72})), 64),
      HasSubstr("element (0, 1) is 72 elements behind the first, and a matrix descriptor with "
                "a swizzle of 128 bytes has it 64 behind; let lines be contiguous along the "
                "rows, 64 elements apart"));
  // Parts may lie anywhere, and have to be alike.
  EXPECT_EQ(mistake_of(make_layout({64, {8, 2, 2}}, {8, {1, 512, 4096}}), 64), "");
  EXPECT_THAT(mistake_of(make_layout({64, {16, 2, 2}}, {16, {1, 16, 1024}}), 64),
              HasSubstr("element (1, 0) is 16 elements behind"));
  EXPECT_THAT(mistake_of(make_layout({64, {8, 2, 3}}, {8, {1, 512, 4}}), 64),
              HasSubstr("starts at byte 8; let each part start at a multiple of 16 bytes"));
  EXPECT_THAT(mistake_of(make_layout({64, {8, 3, 2}}, {8, {1, 512, 4096}}), 64),
              HasSubstr("element (0, 24) is 3072 elements behind element (0, 16)"));
  EXPECT_THAT(mistake_of(make_smem_layout<half>({64, 8}, Major::k, 0), 64),
              HasSubstr("has 8 columns; a product takes a multiple of 16"));
  EXPECT_THAT(mistake_of(make_smem_layout<half>({96, 64}), 64),
              HasSubstr("has 96 rows; an instruction takes 64"));
  EXPECT_THAT(mistake_of(make_smem_layout<half>({192, 64}, Major::mn), 96),
              HasSubstr("lies in lines of 64 elements under a swizzle of 128 bytes, of which "
                        "instructions of 96 rows take no whole number; take a narrower swizzle"));
  EXPECT_THAT(mistake_of(composition(Swizzle(3, 4, 3), make_layout({64, 64}, {64, 1})), 64),
              HasSubstr("is swizzled as no matrix descriptor can say; for elements of 16 bits, use "
                        "S<1,3,3>, S<2,3,3> or S<3,3,3>, or none"));
  EXPECT_THAT(mistake_of(make_layout({64, {8, 2}}, {8, {1, 512 * 512}}), 64),
              HasSubstr("has core matrices 524288 bytes apart"));
  EXPECT_THAT(mistake_of(make_layout(64), 64), HasSubstr("has no two modes"));
  EXPECT_THAT(mistake_of(make_layout({64, SymInt::unknown()}), 64), HasSubstr("has no two modes"));
  const SmemDescriptor words =
      make_smem_descriptor<float>(make_smem_layout<float>({64, 64}, Major::mn), 64);
  EXPECT_THAT(words.error(), HasSubstr("is contiguous along its rows, of elements of 32 bits"));
}

TEST(SmemDescriptor, IsPrinted) {
  EXPECT_EQ(to_string(make_smem_descriptor<half>(make_smem_layout<half>({128, 64}), 64)),
            "K-major, a swizzle of 128 bytes\nstart: 0\nLBO: 16 bytes, not used\nSBO: 1024 bytes\n"
            "k-steps of 16 elements: 0, 32, 64, 96\nparts of 64 rows: 0, 8192\n"
            "bits: 0x4000004000010000\n");
  EXPECT_THAT(to_string(make_smem_descriptor<half>(make_layout(64), 64)),
              HasSubstr("error: the tile has no two modes of host numbers; slice"));
}

}  // namespace
}  // namespace heddle
