// Bulk copy atoms: tiles that lie densely, from lambda to result, and what one copy cannot move.
#include "heddle/dsl/tensor/bulk_atom.h"

#include <string>

#include "dsl/language/compile_error.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 8, kColumns = 32, kTile = kRows * kColumns;

// Each block stores its tile of x, and then adds it, twice: y = 3 x.
TEST(BulkAtom, MovesDenseTiles) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto got = run("bulk_atom", {.grid = 3, .block = 32}, 3 * kTile,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Layout rows = make_layout({kRows, kColumns}, {kColumns, 1});
                         const auto tile = make_smem_tensor<int32_t>(rows);
                         const auto of = [&](const auto& all) {
                           return local_tile(all, kTile, block_idx.x).with_layout(rows);
                         };
                         const Mbarrier full(1);
                         If(thread_idx.x == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           full.expect_tx(0, kTile * 4);
                           copy(BulkLoad{}.with(full, 0), of(x), tile);
                         });
                         sync_threads();
                         full.wait(0, 0u);
                         If(thread_idx.x == 0, [&] {
                           copy(BulkStore{}, tile, of(y));
                           bulk_commit();
                           bulk_wait();
                           copy(BulkReduce{TmaReduction::add}, tile, of(y));
                           copy(BulkReduce{TmaReduction::add}, tile, of(y));
                           bulk_commit();
                           bulk_wait();
                         });
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 3 * kTile; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 3 * i) << i;
}

// The first block of a cluster loads for both.
TEST(BulkAtom, ReachesSeveralBlocks) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run(
      "bulk_multicast", {.grid = 2, .block = 32, .cluster = 2}, 64,
      [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const auto tile = make_smem_tensor<int32_t>(make_layout(32));
        const Mbarrier full(1);
        If(thread_idx.x == 0, [&] {
          full.init(0, 1);
          fence_mbarrier_init();
          full.expect_tx(0, 128);
        });
        sync_cluster();
        If(thread_idx.x == 0 && cluster_rank() == 0,
           [&] { copy(BulkLoad{}.with(full, 0, Multicast(0b11)), local_tile(x, 32, 1), tile); });
        full.wait(0, 0u);
        y(block_idx.x * 32 + thread_idx.x) = tile(thread_idx.x);
        sync_cluster();
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 32 + i % 32) << i;
}

template <class T, class Use>
std::string mistake(const Layout& layout, const IntTuple& extents, const Use& use) {
  const auto kernel = local_kernel("mistake", [&](Tensor<float, 2> x) {
    use(local_tile(x, extents, {0, 0}), make_smem_tensor<T>(layout));
  });
  return compile_error(kernel, {tensor({kAny, 32})});
}

TEST(BulkAtom, SaysWhatOneCopyCannotMove) {
  const auto store = [](const auto& global, const auto& tile) { copy(BulkStore{}, tile, global); };
  EXPECT_EQ(mistake<float>(make_layout({8, 32}, {32, 1}), {8, 32}, store), "");
  EXPECT_THAT(mistake<int32_t>(make_layout({8, 32}, {32, 1}), {8, 32}, store),
              HasSubstr("of another type\n  fix: the copy engine converts nothing"));
  // Another order, a part of a row of all, fewer elements.
  for (const auto& [layout, extents] : {std::pair<Layout, IntTuple>{make_layout({8, 32}), {8, 32}},
                                        {make_layout({8, 16}, {16, 1}), {8, 16}},
                                        {make_layout({4, 32}, {32, 1}), {8, 32}}}) {
    EXPECT_THAT(
        mistake<float>(layout, extents, store),
        HasSubstr("whose elements do not lie one behind the other in the same order\n  fix: "
                  "copy a part that does, or by a TMA atom, which knows strides"));
  }
  // Alike on both sides: rows with gaps between them; a gap and one place twice, which reach over as many as they are.
  for (const Layout& layout : {make_layout({2, 4}, {8, 1}), make_layout({2, 2}, {0, 3})}) {
    const auto kernel = local_kernel("mistake", [&](Tensor<float, 1> x) {
      copy(BulkStore{}, make_smem_tensor<float>(layout), local_tile(x, 32, 0).with_layout(layout));
    });
    EXPECT_THAT(compile_error(kernel, {tensor({kAny})}),
                HasSubstr("do not lie one behind the other"));
  }
  EXPECT_THAT(mistake<float>(make_layout({1, 2}, {2, 1}), {1, 2}, store),
              HasSubstr("of 8 bytes\n  fix: bulk copies are multiples of 16 bytes"));
}

}  // namespace
}  // namespace heddle
