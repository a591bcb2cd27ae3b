// Bulk copies between global memory and the shared memories of a cluster, from lambda to result on
// whatever device the tests run on.
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// One thread has tiles brought by bulk copies and sends them back; all wait at barriers in turn.
TEST(BulkCopy, FeedsAPipelineThroughMbarriers) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  constexpr int kTile = 256, kTiles = 5;
  const auto got = run("bulk", {.block = 64}, kTile * kTiles,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t, 2> in({2, kTile}), out({2, kTile});
                         const Mbarrier full(2);
                         const Bool leads = thread_idx.x == 0;
                         const auto fetch = [&](const Int& tile) {
                           full.expect_tx(tile % 2, kTile * 4);
                           bulk_load(in.at(tile % 2, 0), x.at(tile * kTile), kTile, full, tile % 2);
                         };
                         If(leads, [&] {
                           full.init(0, 1);
                           full.init(1, 1);
                           fence_mbarrier_init();
                         });
                         sync_threads();
                         If(leads, [&] { fetch(0); });
                         for (const Int tile : range(kTiles)) {
                           If(leads & (tile + 1 < kTiles), [&] { fetch(tile + 1); });
                           full.wait(tile % 2, cast<uint32_t>(tile / 2 % 2));
                           for (int i = 0; i < kTile; i += 64) {
                             const Int at = thread_idx.x + i;
                             out(tile % 2, at) = in(tile % 2, kTile - 1 - at) + 1;
                           }
                           fence_async();
                           sync_threads();
                           If(leads, [&] {
                             bulk_store(y.at(tile * kTile), out.at(tile % 2, 0), kTile);
                             bulk_commit();
                             bulk_wait();
                           });
                         }
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kTile * kTiles; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], i / kTile * kTile + kTile - i % kTile) << i;
  }
}

// Each block of a cluster brings a quarter of the tile to all four.
TEST(BulkCopy, ReachesSeveralBlocksAtOnce) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  constexpr int kTile = 256, kPart = 64;
  const auto got = run("multicast", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> tile(kTile);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x;
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           full.expect_tx(0, kTile * 4);
                         });
                         sync_cluster();
                         If(t == 0, [&] {
                           const Int part = cluster_rank() * kPart;
                           bulk_load(tile.at(part), x.with(L2Evict::last).at(part), kPart, full, 0,
                                     Multicast(0b1111));
                         });
                         full.wait(0, 0u);
                         Var<int32_t> sum(0);
                         for (int i = 0; i < kTile; i += 64) sum = sum * 2 + tile(t + i);
                         y(block_idx.x * 64 + t) = sum;
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const int t = i % 64;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], 15 * t + 4 * 64 + 2 * 128 + 192) << i;
  }
}

TEST(BulkCopy, ReachesOnlyTheBlocksOfItsMask) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("mask", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> tile(64);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x, rank = cluster_rank();
                         tile(t) = -1;
                         const Bool gets = rank % 2 == 1;
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           If(gets, [&] { full.expect_tx(0, 64 * 4); });
                         });
                         fence_async();
                         sync_cluster();
                         If((t == 0) & (rank == 2), [&] {
                           const UInt ranks = cast<uint32_t>(rank) * 5u;  // 1 and 3
                           bulk_load(tile.at(0), x.at(64), 64, full, 0, Multicast(ranks));
                         });
                         If(gets, [&] { full.wait(0, 0u); });
                         y(block_idx.x * 64 + t) = tile(63 - t);
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const bool gets = i / 64 % 2 == 1;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], gets ? 127 - i % 64 : -1) << i;
  }
}

// Each thread stores to the next block of its cluster, one value and two together, and no barrier of all
// threads comes between.
TEST(StoreAsync, ReachesTheNextBlock) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("store_async", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> came(192);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x, place = block_idx.x * 64 + t;
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           full.expect_tx(0, 192 * 4);
                         });
                         sync_cluster();
                         const Int next = (cluster_rank() + 1) % cluster_size();
                         const auto theirs = map_shared(came, next);
                         const Mbarrier told(map_shared(full.words(), next));
                         const Int mine = x(place);
                         store_async(theirs.at(t), mine, told, 0);
                         store_async(theirs.at(64 + 2 * t), Vec<int32_t, 2>(mine, -mine), told, 0);
                         full.wait(0, 0u);
                         y(place) = came(t) * 3 + came(64 + 2 * t) + came(65 + 2 * t);
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const int cluster = i / 256, block = (i / 64 + 3) % 4;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], 3 * (cluster * 256 + block * 64 + i % 64)) << i;
  }
}

// What a block has written to global memory, a bulk copy of its own brings back.
TEST(BulkCopy, ReadsWhatTheBlockWrote) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto got = run("written", {.grid = 4, .block = 64}, 256,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> tile(64);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x, start = block_idx.x * 64;
                         y(start + t) = x(start + t) * 2;
                         fence_async(FenceSpace::global);
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                         });
                         sync_threads();
                         If(t == 0, [&] {
                           full.expect_tx(0, 64 * 4);
                           bulk_load(tile.at(0), y.at(start), 64, full, 0);
                         });
                         full.wait(0, 0u);
                         y(start + t) = tile(63 - t);
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], 2 * (i / 64 * 64 + 63 - i % 64)) << i;
  }
}

// Each block of a cluster sends its tile to the next one.
TEST(BulkCopy, GoesFromBlockToBlock) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("send", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> mine(64), came(64);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x, place = block_idx.x * 64 + t;
                         mine(t) = x(place);
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           full.expect_tx(0, 64 * 4);
                         });
                         fence_async();
                         sync_cluster();
                         If(t == 0, [&] {
                           const Int next = (cluster_rank() + 1) % cluster_size();
                           bulk_copy(map_shared(came, next).at(0), mine.at(0), 64,
                                     Mbarrier(map_shared(full.words(), next)), 0);
                         });
                         full.wait(0, 0u);
                         y(place) = came(t);
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const int block = i / 64, from = block / 4 * 4 + (block + 3) % 4;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], from * 64 + i % 64) << i;
  }
}

// Two tiles in turn go out; each is written again when it has been read.
TEST(BulkCopy, TilesAreFreeOnceTheyAreRead) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  constexpr int kTile = 64, kTiles = 9;
  const auto got = run(
      "out", {.block = 64}, kTile * kTiles, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t, 2> tiles({2, kTile});
        const Int t = thread_idx.x;
        If(t == 0, [&] { bulk_prefetch(x.at(0), kTile * kTiles); });
        for (const Int tile : range(kTiles)) {
          If(t == 0, [] { bulk_wait_read(1); });
          sync_threads();
          tiles(tile % 2, t) = x(tile * kTile + t) * 3;
          fence_async();
          sync_threads();
          If(t == 0, [&] {
            bulk_store(y.with(L2Evict::first, 50).at(tile * kTile), tiles.at(tile % 2, 0), kTile);
            bulk_commit();
          });
        }
        If(t == 0, [] { bulk_wait(); });
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kTile * kTiles; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i * 3);
}

TEST(BulkCopy, BecomesItsInstructions) {
  const auto kernel = define_kernel("k", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const Shared<float> tile(64);
    const Mbarrier full(1);
    const Mbarrier theirs(map_shared(full.words(), 1));
    bulk_load(tile.at(0), x.with(L2Evict::first).at(0), 64, full, 0, Multicast(0b11));
    bulk_copy(map_shared(tile, 1).at(0), tile.at(0), 64, theirs, 0);
    full.wait(0, 0u);
    bulk_add(y.at(0), tile.at(0), 64);
    bulk_wait_read(2);
    copy_async_if<4>(y.shape(0) > 4, tile.at(0), x.at(0));
  });
  const auto compiled = kernel.compile(
      Signature{tensor({64}).aligned(16), tensor({kAny})},
      CompileOptions{
          .block = {32, 1, 1}, .cluster = {2, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  for (const char* line : {
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
           ".L2::cache_hint [",
           "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [",
           "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ",
           "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [",
           "cp.async.bulk.wait_group.read 2;",
           "cp.async.cg.shared.global [heddle_shared], [",
           "selp.b32 ",
       }) {
    EXPECT_THAT(compiled->ptx(), HasSubstr(line));
  }
}

TEST(BulkCopy, MistakesAreReported) {
  if (test_device_name() != "interp") GTEST_SKIP() << "checks are the interpreter's";
  const auto message = [](auto body) {
    return std::string(run("wrong", {.grid = 2, .block = 32, .cluster = 2}, 128,
                           [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                             const Mbarrier bar(1);
                             const Shared<int32_t> tile(64);
                             If(thread_idx.x == 0, [&] {
                               bar.init(0, 1);
                               fence_mbarrier_init();
                               tile(0) = 1;
                             });
                             sync_cluster();
                             If(thread_idx.x == 0, [&] { body(bar, tile, x, y); });
                             y(thread_idx.x) = 1;
                             sync_cluster();
                           })
                           .status()
                           .message());
  };
  const auto other = [](const auto& array) { return map_shared(array, cluster_rank() ^ 1); };
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto& x, auto&) {
                bulk_load(tile.at(0), x.at(0), 64, bar, 0, Multicast(0b101));
              }),
              HasSubstr("a bulk copy to block 2 of a cluster of 2"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto& x, auto&) {
                bulk_load(tile.at(0), x.at(0), 64, bar, 0, Multicast(0));
              }),
              HasSubstr("a bulk copy to none of the cluster's blocks"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto& x, auto&) {
                bulk_load(tile.at(0), x.at(96), 64, bar, 0);
              }),
              HasSubstr("a bulk copy that leaves the tensor's memory"));
  EXPECT_THAT(message([](const Mbarrier&, auto& tile, auto&, auto& y) {
                bulk_store(y.at(0), tile.at(0), 64);
              }),
              HasSubstr("a bulk copy of bytes that nobody has written"));
  EXPECT_THAT(message([&](const Mbarrier& bar, auto& tile, auto& x, auto&) {
                bulk_load(other(tile).at(0), x.at(0), 64, bar, 0);
              }),
              HasSubstr("that tells another block's mbarrier than its destination's"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto&, auto&) {
                const auto own = map_shared(tile, cluster_rank());
                bulk_copy(own.at(4), tile.at(0), 4, Mbarrier(map_shared(bar.words(), 0)), 0);
              }),
              HasSubstr("a bulk copy of bytes that nobody has written"));
  EXPECT_THAT(message([&](const Mbarrier& bar, auto& tile, auto&, auto&) {
                for (int i = 0; i < 4; ++i) tile(i) = i;
                const auto own = map_shared(tile, cluster_rank());
                bulk_copy(own.at(4), tile.at(0), 4, Mbarrier(other(bar.words())), 0);
              }),
              HasSubstr("a bulk copy from the block's own shared memory to its own"));
  // What the verifier says, on any device.
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto& x, auto&) {
                bulk_load(map_shared(tile, 0).at(0), x.at(0), 64, bar, 0, Multicast(1));
              }),
              HasSubstr("'bulk.load' reaches the block's own shared memory alone"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto& tile, auto&, auto&) {
                bulk_copy(tile.at(32), tile.at(0), 32, bar, 0);
              }),
              HasSubstr("'bulk.copy' goes to another block's shared memory"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto&, auto&, auto&) {
                Mbarrier(map_shared(bar.words(), 0)).wait(0, 0u);
              }),
              HasSubstr("'mbarrier.wait' reaches the block's own shared memory alone"));
}

}  // namespace
}  // namespace heddle
