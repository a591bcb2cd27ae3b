// Rows that are dealt out by items: each item of each row has one thread, also where rows are cut into slabs.
#include "heddle/kernels/items.h"

#include <vector>

#include "gtest/gtest.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr int kThreads = 32;

void check_items(int rows, int items, int64_t most_threads, int64_t slabs) {
  SCOPED_TRACE(testing::Message() << rows << " x " << items << " by " << most_threads);
  const auto kernel = define_kernel("count(slab, y)", [](Int slab, Tensor<int32_t, 2> y) {
    const kernels::ItemOfRow at = kernels::item_of_row(slab, y.shape(0), y.shape(1), kThreads);
    If(at.inside, [&] { atomic_add(y(at.row, at.item), 1); });
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<int32_t> zero(static_cast<size_t>(rows * items));
  const Buffer y = device.upload(absl::MakeConstSpan(zero)).value();
  const kernels::ItemGrid grid = kernels::item_grid(rows, items, kThreads, most_threads);
  EXPECT_EQ(grid.shape.grid.y, slabs);
  ASSERT_THAT(kernel.launch(stream, grid.shape, grid.slab, as_tensor<int32_t>(y, {rows, items})),
              IsOk());
  EXPECT_THAT(y.download<int32_t>(stream).value(), testing::Each(1));
}

TEST(Items, HaveAThreadEach) {
  for (const int items : {1, 3, 32, 100}) {
    check_items(1, items, int64_t{1} << 31, 1);
    check_items(57, items, int64_t{1} << 31, 1);
  }
  check_items(57, 3, 40, 5);    // slabs of 13 rows: the last has 5
  check_items(64, 4, 64, 4);    // of 16
  check_items(7, 100, 99, 7);   // of one row, which has more than that many items
  check_items(7, 100, 250, 4);  // of two
}

}  // namespace
}  // namespace heddle
