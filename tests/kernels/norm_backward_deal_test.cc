// Which deals norms' backward passes take, and that the rows of a block or cluster begin alike.
#include "heddle/kernels/norm/backward_deal_internal.h"
#include "heddle/runtime/interp_backend.h"
#include "support/matchers.h"

namespace heddle::kernels {
namespace {

using ::testing::StartsWith;

DeviceInfo h200() {
  DeviceInfo info = runtime::InterpBackend::default_info();
  info.sm_count = 132;
  info.limits.max_shared_per_block = 232448;
  info.cluster_launch = true;
  return info;
}
BackwardProblem rows_of(int64_t columns, int bytes, int sums = 1) {
  const bool aligned = columns % (16 / bytes) == 0;
  return {
      {{.columns = columns, .element_bytes = bytes, .aligned = aligned, .alike = true, .inputs = 2},
       10000},
      sums};
}
std::string chosen(const BackwardProblem& problem) {
  return deal_backward(problem, h200()).to_string();
}

TEST(NormBackwardDeals, AreWhatAnH200IsFastestWith) {
  const struct {
    int64_t columns;
    int bytes, sums;
    const char* deal;
  } cases[] = {
      {1023, 4, 1, "held threads=64 rows=1 blocks=1 vectors=4 kept=0 peeled, 8 a multiprocessor"},
      {1023, 4, 2,
       "staged 4 threads=64 rows=1 blocks=1 vectors=4 kept=0 peeled, 4 a multiprocessor"},
      {8192, 4, 2, "held threads=512 rows=1 blocks=1 vectors=4 kept=0, 1 a multiprocessor"},
      {16384, 4, 1, "staged 4 threads=64 rows=1 blocks=16 vectors=4 kept=0, 4 a multiprocessor"},
      {32771, 4, 1,
       "staged 4 threads=128 rows=1 blocks=16 vectors=4 kept=0 peeled, 2 a multiprocessor"},
      {65536, 4, 1, "staged 3 threads=128 rows=1 blocks=16 vectors=8 kept=0, 2 a multiprocessor"},
      {131072, 4, 2, "staged 3 threads=256 rows=1 blocks=16 vectors=8 kept=0, 1 a multiprocessor"},
      {262144, 4, 1, "apart"},
      {1023, 2, 1, "held threads=64 rows=1 blocks=1 vectors=2 kept=0 peeled, 8 a multiprocessor"},
      {1024, 2, 1, "staged 4 threads=64 rows=1 blocks=1 vectors=2 kept=0, 4 a multiprocessor"},
      {2048, 2, 1, "staged 4 threads=128 rows=1 blocks=1 vectors=2 kept=0, 2 a multiprocessor"},
      {4096, 2, 1, "staged 4 threads=256 rows=1 blocks=1 vectors=2 kept=0, 1 a multiprocessor"},
      {4095, 2, 1,
       "staged 4 threads=256 rows=1 blocks=1 vectors=2 kept=0 peeled, 2 a multiprocessor"},
      {8192, 2, 2, "staged 4 threads=512 rows=1 blocks=1 vectors=2 kept=0, 1 a multiprocessor"},
      {16384, 2, 2, "staged 4 threads=512 rows=1 blocks=2 vectors=2 kept=0, 1 a multiprocessor"},
      {32768, 2, 1, "staged 3 threads=512 rows=1 blocks=2 vectors=4 kept=0, 1 a multiprocessor"},
      {65536, 2, 1, "staged 3 threads=128 rows=1 blocks=16 vectors=4 kept=0, 4 a multiprocessor"},
      {65536, 2, 2, "staged 4 threads=128 rows=1 blocks=16 vectors=4 kept=0, 2 a multiprocessor"},
      {131072, 2, 1, "staged 3 threads=256 rows=1 blocks=16 vectors=4 kept=0, 2 a multiprocessor"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(chosen(rows_of(c.columns, c.bytes, c.sums)), c.deal)
        << c.columns << " of " << c.bytes << " bytes, " << c.sums;
  }
}

TEST(NormBackwardDeals, DoWithoutClusters) {
  DeviceInfo without = h200();
  without.cluster_launch = false;
  EXPECT_THAT(deal_backward(rows_of(8192, 2), without).to_string(), StartsWith("held "));
  EXPECT_EQ(deal_backward(rows_of(32768, 2), without).to_string(), "apart");
  BackwardProblem unlike = rows_of(16383, 4);
  unlike.rows.of.alike = false;
  EXPECT_EQ(chosen(unlike), "apart");
}

TEST(NormBackwardDeals, TakeNoLargerClustersThanADeviceHas) {
  DeviceInfo consumer = h200();
  consumer.compute_major = 12;
  for (const BackwardDeal& deal : backward_deals(rows_of(16384, 4), consumer))
    EXPECT_LE(deal.rows.blocks, 8) << deal.to_string();
}

// Rows of every length up to what the largest clusters hold are read once, by threads of which most have something to do.
TEST(NormBackwardDeals, HoldRowsOfEveryLength) {
  for (const int bytes : {2, 4}) {
    for (const int sums : {1, 2}) {
      for (int64_t columns = 1030; columns <= 131072; columns += 3) {
        const BackwardDeal deal = deal_backward(rows_of(columns, bytes, sums), h200());
        ASSERT_NE(deal.to_string(), "apart") << columns;
        const int64_t places =
            int64_t{deal.rows.blocks} * deal.rows.threads * deal.rows.vectors * deal.rows.width;
        ASSERT_GE(places, columns / deal.rows.width * deal.rows.width) << columns;
        ASSERT_LE(places, columns * 3 / 2) << columns << ": " << deal.to_string();
      }
    }
  }
}

TEST(NormBackwardDeals, ABlocksRowsBeginAlike) {
  for (const int bytes : {2, 4}) {
    for (const int64_t columns : {1023, 4095, 8191, 32771, 65537}) {
      const BackwardProblem problem = rows_of(columns, bytes);
      for (const BackwardDeal& deal : backward_deals(problem, h200())) {
        if (!deal.rows.peeled) continue;
        EXPECT_EQ(turn_groups(deal, 100000, h200()) % deal.rows.width, 0) << deal.to_string();
        EXPECT_EQ(turn_groups(deal, 3, h200()), 3) << deal.to_string();
        DeviceInfo small = h200();
        small.sm_count = 16;
        EXPECT_EQ(turn_groups(deal, 100000, small) % deal.rows.width, 0) << deal.to_string();
      }
    }
  }
}

}  // namespace
}  // namespace heddle::kernels
