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
    EXPECT_EQ(chosen(costly, 129, 4), "together threads=64");
    EXPECT_THAT(chosen(costly, 255, 2), Not(StartsWith("together")));
  }
}

TEST(RowsReduceDeals, TakeOthersApart) {
  EXPECT_THAT(chosen(Reduction::kSum, 32, 2), Not(StartsWith("together"))) << "aligned";
  EXPECT_THAT(chosen(Reduction::kSum, 127, 4), Not(StartsWith("together"))) << "long";
  EXPECT_THAT(chosen(Reduction::kSum, 31, 2, false), Not(StartsWith("together"))) << "not packed";
  EXPECT_THAT(chosen(Reduction::kSum, 31, 2, true, 100), Not(StartsWith("together"))) << "few";
}

}  // namespace
}  // namespace heddle::kernels
