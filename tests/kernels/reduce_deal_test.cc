// Which rows are reduced together, in shared memory, where nothing was tuned.
#include "heddle/kernels/reduce/rows_deal_internal.h"
#include "heddle/runtime/interp_backend.h"
#include "support/matchers.h"

namespace heddle::kernels {
namespace {

using ::testing::Not;
using ::testing::StartsWith;

std::string chosen(Reduction reduction, int64_t columns, int bytes, bool packed = true,
                   int64_t rows = 1 << 20) {
  const bool aligned = columns % (16 / bytes) == 0;
  const RowsOf of{
      .columns = columns, .element_bytes = bytes, .aligned = aligned, .alike = true, .rows = rows};
  return deal_rows_reduce({{of, rows}, packed, reduction}, runtime::InterpBackend::default_info())
      .to_string();
}

TEST(RowsReduceDeals, TakeShortOddRowsTogether) {
  for (const int64_t columns : {17, 31, 63}) {
    for (const int bytes : {2, 4})
      EXPECT_EQ(chosen(Reduction::kSum, columns, bytes), "together threads=64") << columns;
  }
  EXPECT_EQ(chosen(Reduction::kSum, 129, 2), "together threads=64");
  for (const Reduction costly : {Reduction::kVar, Reduction::kArgmax, Reduction::kArgmin}) {
    EXPECT_EQ(chosen(costly, 95, 4), "together threads=64");
    EXPECT_EQ(chosen(costly, 191, 2), "together threads=64");
    EXPECT_THAT(chosen(costly, 129, 4), Not(StartsWith("together")));
    EXPECT_THAT(chosen(costly, 255, 2), Not(StartsWith("together")));
  }
}

// The fewest lanes that have two vectors of a row, or as many fewer as leave half of their places at most empty; a warp has up to
// eight of each lane.
TEST(RowsReduceDeals, FillWarps) {
  EXPECT_EQ(chosen(Reduction::kSum, 64, 2), "threads=4 rows=32 blocks=1 vectors=2 kept=0");
  EXPECT_EQ(chosen(Reduction::kSum, 129, 4), "threads=16 rows=8 blocks=1 vectors=3 kept=0");
  EXPECT_EQ(chosen(Reduction::kSum, 1023, 4), "threads=32 rows=4 blocks=1 vectors=8 kept=0");
  EXPECT_EQ(chosen(Reduction::kSum, 1024, 4), "threads=32 rows=4 blocks=1 vectors=8 kept=0");
  EXPECT_THAT(chosen(Reduction::kSum, 1028, 4), StartsWith("threads=288 rows=1 "));
  EXPECT_THAT(chosen(Reduction::kSum, 1024, 4, true, 500), StartsWith("threads=256 rows=1 "))
      << "few rows";
  EXPECT_THAT(chosen(Reduction::kSum, 2048, 1), StartsWith("threads=32 rows=4 "));
  EXPECT_THAT(chosen(Reduction::kSum, 4096, 1), StartsWith("threads=256 rows=1 "));
}

TEST(RowsReduceDeals, TakeOthersApart) {
  EXPECT_THAT(chosen(Reduction::kSum, 32, 2), Not(StartsWith("together"))) << "aligned";
  EXPECT_THAT(chosen(Reduction::kSum, 127, 4), Not(StartsWith("together"))) << "long";
  EXPECT_THAT(chosen(Reduction::kSum, 31, 2, false), Not(StartsWith("together"))) << "not packed";
  EXPECT_THAT(chosen(Reduction::kSum, 31, 2, true, 100), Not(StartsWith("together"))) << "few";
}

}  // namespace
}  // namespace heddle::kernels
