// Which deals norms take.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/norm/norm_deal_internal.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::kernels {
namespace {

using ::testing::StartsWith;

DeviceInfo h200() {
  DeviceInfo info = runtime::InterpBackend::default_info();
  info.limits.max_shared_per_block = 232448;
  info.cluster_launch = true;
  return info;
}
struct Rows {
  int64_t columns;
  int bytes;
  bool centred = false;
  int inputs = 1;
};
NormProblem problem_of(const Rows& rows) {
  return {{{.columns = rows.columns,
            .element_bytes = rows.bytes,
            .aligned = rows.columns % (16 / rows.bytes) == 0,
            .alike = true,
            .inputs = rows.inputs},
           10000},
          rows.centred};
}
std::string chosen(const Rows& rows) { return deal_norm(problem_of(rows), h200()).to_string(); }

TEST(NormDeals, AreWhatAnH200IsFastestWith) {
  // Rows with edges, in turn.
  EXPECT_EQ(chosen({8191, 2, true}),
            "staged 4 threads=256 rows=1 blocks=1 vectors=4 kept=0 peeled, 2 a multiprocessor");
  EXPECT_EQ(chosen({32771, 2, true}),
            "staged 4 threads=512 rows=1 blocks=2 vectors=4 kept=0 peeled, 1 a multiprocessor");
  EXPECT_EQ(chosen({32771, 2}), chosen({32771, 2, true}));
  EXPECT_EQ(chosen({131071, 2, true}),
            "staged 4 threads=256 rows=1 blocks=16 vectors=4 kept=0 peeled, 2 a multiprocessor");
  EXPECT_EQ(chosen({32771, 4, true}),
            "staged 4 threads=64 rows=1 blocks=16 vectors=8 kept=0 peeled, 4 a multiprocessor");
  EXPECT_EQ(chosen({131071, 4, true}),
            "staged 3 threads=256 rows=1 blocks=16 vectors=8 kept=0 peeled, 2 a multiprocessor");
  // Others, and those without edges, once.
  EXPECT_EQ(chosen({1023, 2, true}), "threads=16 rows=8 blocks=1 vectors=8 kept=0");
  EXPECT_EQ(chosen({1023, 2}), "threads=32 rows=4 blocks=1 vectors=4 kept=0");
  for (const Rows& rows :
       {Rows{131071, 2}, Rows{131071, 4}, Rows{8191, 4, true}, Rows{8192, 2, true}})
    EXPECT_THAT(chosen(rows), StartsWith("threads=")) << rows.columns;
  // Without edges, and of 32 bits, whole warps.
  EXPECT_EQ(chosen({1024, 2, true}), "threads=32 rows=4 blocks=1 vectors=4 kept=0");
  EXPECT_EQ(chosen({511, 4, true}), "threads=32 rows=4 blocks=1 vectors=4 kept=0");
  // Of long sums, in registers.
  EXPECT_EQ(chosen({131072, 4, false, 2}), "threads=512 rows=1 blocks=8 vectors=8 kept=0");
  EXPECT_EQ(chosen({262144, 4, true, 2}), "threads=512 rows=1 blocks=16 vectors=8 kept=0");
  EXPECT_EQ(chosen({262144, 2, false, 2}), "threads=512 rows=1 blocks=16 vectors=4 kept=0");
  EXPECT_EQ(chosen({65536, 4, false, 2}), "threads=128 rows=1 blocks=16 vectors=4 kept=2");
}

// Rows of one matrix wait in shared memory, and those of two in other kernels.
TEST(NormDeals, LeaveOtherRowsInSharedMemory) {
  EXPECT_GT(deal_norm(problem_of({262144, 4}), h200()).rows.kept, 0);
  EXPECT_GT(deal_rows(problem_of({262144, 4, false, 2}).rows.of, h200()).kept, 0);
}

TEST(NormDeals, AreLegal) {
  DeviceInfo small = h200();
  small.compute_major = 12;  // clusters of 8
  for (const DeviceInfo& device : {h200(), small}) {
    for (const Rows& rows :
         {Rows{257, 2, true}, Rows{1023, 2, true}, Rows{1030, 2, true}, Rows{2049, 2, true},
          Rows{20001, 2}, Rows{33333, 4, true}, Rows{262143, 2, true}, Rows{262144, 4, false, 2},
          Rows{1 << 20, 4, true}, Rows{(1 << 30) + 4096, 4, true}}) {
      for (const TurnDeal& deal : norm_deals(problem_of(rows), device)) {
        const RowDeal& of = deal.rows;
        SCOPED_TRACE(testing::Message() << rows.columns << ": " << deal.to_string());
        EXPECT_LE(of.threads * of.rows, 1024);
        EXPECT_LE(of.blocks, device.compute_major == 9 ? 16 : 8);
        // A thread for each element at the edges.
        EXPECT_GE(of.threads, of.peeled ? 2 * of.width : 1);
        const int64_t places =
            int64_t{of.blocks} * of.threads * of.vectors * of.width * std::max(of.kept, 1);
        EXPECT_TRUE(of.in_parts || places >= rows.columns / of.width * of.width);
      }
    }
  }
}

TEST(NormDeals, DoWithoutClusters) {
  DeviceInfo without = h200();
  without.cluster_launch = false;
  const NormProblem problem = problem_of({8191, 2, true});
  for (const TurnDeal& deal : norm_deals(problem, without)) EXPECT_FALSE(deal.in_turn());
  EXPECT_THAT(deal_norm(problem, without).to_string(), StartsWith("threads="));
}

}  // namespace
}  // namespace heddle::kernels
