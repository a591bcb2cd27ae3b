// Tiles whose depths units share: each block along k of each tile is one unit's, units have the same work,
// and waits cannot be for ever.
#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

struct Case {
  int tiles, depth, units;
};
// A share, as the kernel tells of it.
struct Share {
  int tile, first, behind, lowest, ends;
};
constexpr int kMost = 64, kWords = 5;

// The shares of each unit, in their order. A unit is two blocks.
std::vector<std::vector<Share>> shares_of(const Case& c) {
  static const auto kernel =
      define_kernel("shares(counts, y, columns, depth)",
                    [](Tensor<int32_t, 1> counts, Tensor<int32_t, 3> y, Int columns, Int depth) {
                      const StreamKTiles tiles(1, columns, 1, depth, {.cluster = 2});
                      For(tiles, [&](const TileShare& share) {
                        const Int at = counts(block_idx.x);
                        const Int words[] = {share.column, share.first, share.behind, share.lowest,
                                             select(share.ends, 1, 0)};
                        for (int i = 0; i < kWords; ++i) y(block_idx.x, at, i) = words[i];
                        counts(block_idx.x) = at + 1;
                      });
                    });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const int blocks = 2 * c.units;
  const auto zeros = [&](int count) {
    return device.upload<int32_t>(std::vector<int32_t>(static_cast<size_t>(count))).value();
  };
  const Buffer counts = zeros(blocks), y = zeros(blocks * kMost * kWords);
  EXPECT_THAT(
      kernel.launch(stream, {.grid = blocks, .block = 1}, as_tensor<int32_t>(counts, {blocks}),
                    as_tensor<int32_t>(y, {blocks, kMost, kWords}), c.tiles, c.depth),
      IsOk());
  const std::vector<int32_t> count = counts.download<int32_t>(stream).value();
  const std::vector<int32_t> words = y.download<int32_t>(stream).value();
  std::vector<std::vector<Share>> all;
  for (int block = 0; block < blocks; block += 2) {
    std::vector<Share>& mine = all.emplace_back();
    for (int i = 0; i < count[static_cast<size_t>(block)]; ++i) {
      const int32_t* const w = &words[static_cast<size_t>((block * kMost + i) * kWords)];
      const int32_t* const other = w + kMost * kWords;
      EXPECT_TRUE(std::equal(w, w + kWords, other)) << "the blocks of a unit differ";
      mine.push_back({w[0], w[1], w[2], w[3], w[4]});
    }
  }
  return all;
}

class StreamK : public ::testing::TestWithParam<Case> {};

TEST_P(StreamK, SharesAllDepths) {
  const Case& c = GetParam();
  const std::vector<std::vector<Share>> units = shares_of(c);
  // Who has each block along k.
  std::vector<std::vector<int>> owner(static_cast<size_t>(c.tiles),
                                      std::vector<int>(static_cast<size_t>(c.depth), -1));
  std::vector<int> work;
  for (int unit = 0; unit < c.units; ++unit) {
    int sum = 0;
    bool has_waited = false;
    for (const Share& share : units[static_cast<size_t>(unit)]) {
      SCOPED_TRACE(testing::Message() << "unit " << unit << ", tile " << share.tile);
      ASSERT_LT(share.first, share.behind);
      EXPECT_EQ(share.ends, share.behind == c.depth);
      sum += share.behind - share.first;
      for (int k = share.first; k < share.behind; ++k) {
        int& one = owner[static_cast<size_t>(share.tile)][static_cast<size_t>(k)];
        EXPECT_EQ(one, -1);
        one = unit;
      }
      // Whoever waits has handed over what others wait for.
      if (share.ends == 0) {
        EXPECT_FALSE(has_waited);
      }
      has_waited |= share.ends == 1 && share.first > 0;
    }
    work.push_back(sum);
  }
  for (int unit = 0; unit < c.units; ++unit) {
    for (const Share& share : units[static_cast<size_t>(unit)]) {
      if (share.ends == 0) continue;
      // The owner waits for lower units alone, each of which has a share of the tile.
      EXPECT_EQ(share.lowest, owner[static_cast<size_t>(share.tile)][0]);
      EXPECT_LE(share.lowest, unit);
      const auto& of_tile = owner[static_cast<size_t>(share.tile)];
      EXPECT_TRUE(std::is_sorted(of_tile.begin(), of_tile.end()));
      EXPECT_EQ(of_tile.back(), unit);
      EXPECT_LE(unit - share.lowest, 7) << "eight shares of a tile are the most";
    }
  }
  for (const auto& of_tile : owner) {
    EXPECT_EQ(std::count(of_tile.begin(), of_tile.end(), -1), 0);
  }
  // All have the same work, but where there are fewer tiles than units and the depth is too short.
  if (c.tiles >= c.units) {
    EXPECT_LE(*std::max_element(work.begin(), work.end()),
              *std::min_element(work.begin(), work.end()) + 1);
  }
}

// Whole waves, some tiles more, fewer than units, one, depths too short to share, and some that divide.
INSTANTIATE_TEST_SUITE_P(All, StreamK,
                         ::testing::Values(Case{8, 5, 4}, Case{5, 16, 4}, Case{13, 7, 10},
                                           Case{26, 3, 10}, Case{11, 1, 4}, Case{3, 64, 10},
                                           Case{1, 64, 10}, Case{1, 64, 4}, Case{3, 7, 10},
                                           Case{2, 9, 3}, Case{1, 1, 4}, Case{7, 2, 1},
                                           Case{4, 12, 6}));

}  // namespace
}  // namespace heddle
