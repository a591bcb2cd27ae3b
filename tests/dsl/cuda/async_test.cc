// Asynchronous copies, named barriers and clusters, from lambda to result on whatever device the
// tests run on.
#include "absl/strings/str_split.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// Two tiles in turn: while one is worked on, the next is under way.
TEST(CopyAsync, FeedsAPipeline) {
  constexpr int kTile = 128, kTiles = 6;
  const auto got =
      run("pipeline", {.block = 32}, kTile * kTiles,
          [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
            const Shared<int32_t, 2> tiles({2, kTile});
            const Int t = thread_idx.x;
            const auto fetch = [&](Int tile) {
              copy_async<4>(tiles.at(tile % 2, t * 4), x.at(tile * kTile + t * 4));
              copy_async_commit();
            };
            fetch(0);
            for (const Int tile : range(kTiles)) {
              If(tile + 1 < kTiles, [&] { fetch(tile + 1); }).Else([] { copy_async_commit(); });
              copy_async_wait(1);
              sync_threads();
              for (int i = 0; i < 4; ++i) {
                const Int at = kTile - 1 - (t + 32 * i);  // what another thread has fetched
                y(tile * kTile + t + 32 * i) = tiles(tile % 2, at) * 2;
              }
              sync_threads();
            }
          });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kTile * kTiles; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], (i / kTile * kTile + kTile - 1 - i % kTile) * 2);
  }
}

TEST(CopyAsync, TakesFourToSixteenBytes) {
  const auto got =
      run("widths", {.block = 32}, 224, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t> tile(224);
        const Int t = thread_idx.x;
        copy_async(tile.at(t), x.at(t));
        copy_async<2>(tile.at(32 + 2 * t), x.at(32 + 2 * t));
        copy_async<4>(tile.at(96 + 4 * t), x.at(96 + 4 * t));
        copy_async_commit();
        copy_async_wait();
        sync_threads();
        for (int i = 0; i < 7; ++i) y(t + 32 * i) = tile(t + 32 * i);
      });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, counting(224));
  const auto wide =
      run("too_wide", {.block = 32}, 224, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t> tile(512);
        copy_async<8>(tile.at(thread_idx.x * 8), x.at(thread_idx.x * 8));
        y(0) = 1;
      });
  EXPECT_THAT(std::string(wide.status().message()),
              HasSubstr("an asynchronous copy of 8 x i32, which is 32 bytes"));
}

// The last rows of a tile lie behind the tensor's end.
TEST(CopyAsync, FillsWithZerosWhereTheConditionFails) {
  const auto tail = [](bool guarded, int count) {
    return run("tail", {.block = 32}, count, [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
      const Shared<int32_t> wide(128), narrow(96);
      const Int t = thread_idx.x;
      copy_async_if<4>(guarded ? 4 * t < count : t >= 0, wide.at(4 * t), x.at(4 * t));
      copy_async_if(t % 2 == 0, narrow.at(t), x.at(2 * t));
      copy_async_if<2>(false, narrow.at(32 + 2 * t), x.at(1 << 20));
      copy_async_commit();
      copy_async_wait();
      sync_threads();
      for (int i = 0; i < 128; i += 32) {
        If(t + i < count,
           [&] { y(t + i) = wide(127 - (t + i)) + (narrow(t) + narrow(32 + t)) * 1000; });
      }
    });
  };
  constexpr int kCount = 100;
  const auto got = tail(true, kCount);
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kCount; ++i) {
    const int wide = 127 - i < kCount ? 127 - i : 0;
    const int narrow = i % 2 == 0 ? 2 * (i % 32) : 0;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], wide + narrow * 1000) << i;
  }
  if (test_device_name() != "interp") return;
  const auto outside = tail(false, kCount);
  EXPECT_THAT(std::string(outside.status().message()), HasSubstr("async_test.cc"));
  EXPECT_THAT(std::string(outside.status().message()),
              HasSubstr("its 4 elements start at index 100 of mode 0, which has 100"));
}

TEST(CopyAsync, HintsThatItCannotTakeAreReported) {
  const auto message = [](auto body) {
    return std::string(run("hinted", {.block = 32}, 64,
                           [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                             const Shared<int32_t> tile(64);
                             body(tile, x);
                             y(thread_idx.x) = 1;
                           })
                           .status()
                           .message());
  };
  EXPECT_THAT(
      message([](auto& tile, auto& x) { copy_async(tile.at(0), x.with(Cache::streaming).at(0)); }),
      HasSubstr("an asynchronous copy of a view with a Cache"));
  EXPECT_THAT(message([](auto& tile, auto& x) { copy_async(tile.at(0), x.as_volatile().at(0)); }),
              HasSubstr("an asynchronous copy of a view with as_volatile()"));
  EXPECT_THAT(
      message([](auto& tile, auto& x) { copy_async(tile.with(L2Evict::last).at(0), x.at(0)); }),
      HasSubstr("L2Evict for a place in shared memory"));
  EXPECT_THAT(message([](auto& tile, auto& x) {
                copy_async(tile.at(0), x.with(L2Evict::last, 101).at(0));
              }),
              HasSubstr("attribute 'percent' of 'copy.async' is 101"));
}

// Warp 0 makes what warp 1 takes, through two barriers of 64 threads.
TEST(NamedBarrier, HandsOverBetweenWarps) {
  const auto got =
      run("producer", {.block = 64}, 64, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t> box(32);
        const Int lane = lane_id();
        Var<int32_t> sum(0);
        If(
            warp_id() == 0,
            [&] {
              for (const Int i : range(5)) {
                named_barrier_sync(1, 64);  // empty
                box(lane) = x(lane) + i;
                named_barrier_arrive(2, 64);  // full
              }
            },
            [&] {
              for ([[maybe_unused]] const Int i : range(5)) {
                named_barrier_arrive(1, 64);
                named_barrier_sync(2, 64);
                sum += box(31 - lane);
              }
            });
        y(thread_idx.x) = sum;
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], i < 32 ? 0 : 5 * (63 - i) + 10) << i;
  }
}

// Each block adds into the next one's bins, and reads what the one before has added to its own.
TEST(Cluster, ReachesOtherBlocksSharedMemory) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("ring", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t, 2> bins({2, 32});
                         const Int t = thread_idx.x, row = t / 32, lane = t % 32;
                         bins(row, lane) = x(t);
                         sync_cluster();
                         const Shared<int32_t, 2> next =
                             map_shared(bins, (cluster_rank() + 1) % cluster_size());
                         atomic_add(next(row, lane), cluster_rank() * 1000);
                         sync_cluster();
                         const Int own = bins(row, lane);
                         const Int first = map_shared(bins, 0)(1 - row, lane);
                         y(block_idx.x * 64 + t) = own * 10000 + first;
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const int rank = i / 64 % 4, t = i % 64;
    const int own = t + (rank + 3) % 4 * 1000;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], own * 10000 + (t + 32) % 64 + 3000) << i;
  }
}

struct Sent {
  Int from;
  Float half;
};

// Each block stores a struct for each of its threads in its neighbour's array of them.
TEST(Cluster, ReachesOtherBlocksStructs) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run(
      "structs", {.grid = 8, .block = 32, .cluster = 4}, 256,
      [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<Sent, 2> came({2, 16});
        const Int t = thread_idx.x, i = block_idx.x * 32 + t;
        sync_cluster();
        map_shared(came, cluster_rank() ^ 1)(t / 16, t % 16) = Sent{x(i), cast<float>(x(i)) * 0.5f};
        sync_cluster();
        const Sent here = came(t / 16, t % 16);
        y(i) = here.from * 1000 + cast<int32_t>(here.half * 2.0f);
        sync_cluster();
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 256; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], (i ^ 32) * 1001) << i;
}

TEST(Cluster, WaitingUnderAConditionIsReported) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("half", {.grid = 2, .block = 32, .cluster = 2}, 64,
                       [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
                         If(cluster_rank() == 0, [] { sync_cluster(); });
                         y(thread_idx.x) = 1;
                       });
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("async_test.cc"));
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("cluster.arrive"));
}

// Each block of a cluster waits until all have arrived at its own barrier, from afar.
TEST(Mbarrier, IsArrivedAtFromOtherBlocks) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("remote", {.grid = 4, .block = 32, .cluster = 2}, 128,
                       [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
                         const Mbarrier bar(1);
                         const Int t = thread_idx.x;
                         If(t == 0, [&] {
                           bar.init(0, 2);
                           fence_mbarrier_init();
                         });
                         sync_cluster();
                         If(t == 0, [&] {
                           for (int rank = 0; rank < cluster_size(); ++rank) {
                             Mbarrier(map_shared(bar.words(), rank)).arrive(0);
                           }
                         });
                         bar.wait(0, 0u);
                         y(block_idx.x * 32 + t) = t + 1;
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 128; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i % 32 + 1);
}

// Blocks send each other tiles. Arrivals of scope block are enough: bulk copies bring the data.
TEST(Mbarrier, IsArrivedAtWithOrderScopeAndCount) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto got = run("ring", {.grid = 4, .block = 32, .cluster = 2}, 128,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Mbarrier empty(1), full(1);
                         const Shared<int32_t> sent(32), tile(32);
                         const Int t = thread_idx.x, other = 1 - cluster_rank();
                         If(t == 0, [&] {
                           empty.init(0, 32);
                           full.init(0, 1);
                           fence_mbarrier_init();
                         });
                         sync_cluster();
                         const Mbarrier its_empty(map_shared(empty.words(), other));
                         const Mbarrier its_full(map_shared(full.words(), other));
                         Var<int32_t> sum(0);
                         for (const Int round : range(4)) {
                           const UInt parity = cast<uint32_t>(round % 2);
                           If(round > 0, [&] {  // the copy before has read its source
                             empty.wait(0, 1u - parity, MemoryOrder::acquire, MemoryScope::block);
                           });
                           sent(t) = x(t) + round + 100 * cluster_rank();
                           fence_async();
                           sync_threads();
                           If(t == 0, [&] {
                             its_full.announce_tx(0, 128, MemoryScope::cluster);
                             bulk_copy(map_shared(tile, other).at(0), sent.at(0), 32, its_full, 0);
                             its_full.arrive(0, MemoryOrder::release, MemoryScope::block);
                           });
                           full.wait(0, parity, MemoryOrder::acquire, MemoryScope::block);
                           sum += tile(t);
                           sync_warp();
                           If(t == 0, [&] {
                             its_empty.arrive(0, 31, MemoryOrder::release, MemoryScope::block);
                             its_empty.arrive(0, MemoryOrder::release, MemoryScope::block);
                           });
                         }
                         y(block_idx.x * 32 + t) = sum;
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], 4 * (i % 32) + 6 + (i / 32 % 2 == 0 ? 400 : 0)) << i;
  }
}

// While a phase lasts, threads do something else; behind it the barrier's bytes serve as others do.
TEST(Mbarrier, IsTestedAndInvalidated) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no mbarriers";
  const auto got =
      run("tested", {.block = 64}, 64, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Mbarrier bar(1);
        const Shared<int32_t> box(64);
        const Int t = thread_idx.x;
        If(t == 0, [&] {
          bar.init(0, 32);
          fence_mbarrier_init();
        });
        sync_threads();
        If(warp_id() == 0, [&] {
          box(t) = x(t) * 2;
          bar.arrive(0);
        });
        While([&] { return !bar.test(0, 0u); }, [] { nanosleep(20); });
        const Int seen = box(t % 32);
        sync_threads();
        If(t == 0, [&] {
          bar.inval(0);
          bar.words()(0) = UInt64(7);
        });
        sync_threads();
        y(t) = seen + cast<int>(bar.words()(0));
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i % 32 * 2 + 7);
}

TEST(Mbarrier, IsArrivedAtWhenCopiesAreComplete) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no mbarriers";
  const auto got =
      run("copies", {.block = 64}, 256, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Mbarrier full(1);
        const Shared<int32_t> tile(256);
        const Int t = thread_idx.x;
        If(t == 0, [&] {
          full.init(0, 64);
          fence_mbarrier_init();
        });
        sync_threads();
        copy_async<4>(tile.at(4 * t), x.at(4 * t));
        copy_async_arrive(full, 0);
        full.wait(0, 0u);
        // What the other warp copied.
        for (int i = 0; i < 256; i += 64) y(t + i) = tile(255 - t - i);
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 256; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 255 - i);
}

// Warps that only copy, and warps that only read.
TEST(Mbarrier, TellsOthersOfCopies) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no mbarriers";
  for (const bool asynchronously : {true, false}) {
    const auto got =
        run("copies", {.block = 64}, 128, [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
          const Mbarrier full(1);
          const Shared<int32_t> tile(128);
          const Int t = thread_idx.x % 32;
          If(thread_idx.x == 0, [&] {
            full.init(0, 32);
            fence_mbarrier_init();
          });
          sync_threads();
          If(thread_idx.x < 32, [&] {
            copy_async<4>(tile.at(4 * t), x.at(4 * t));
            if (asynchronously) {
              copy_async_arrive(full, 0);
            } else {
              copy_async_commit();
              copy_async_wait(0);
              full.arrive(0);
            }
          }).Else([&] {
            full.wait(0, 0u);
            for (int i = 0; i < 128; i += 32) y(t + i) = tile(127 - t - i);
          });
        });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < 128; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 127 - i);
  }
}

// That a warp has read a tile, by each lane or by one for all of them.
TEST(Mbarrier, TellsOthersOfReads) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no mbarriers";
  for (const int arrivals : {32, 1}) {
    const auto got =
        run("reads", {.block = 64}, 128, [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
          const Mbarrier empty(1);
          const Shared<int32_t> tile(128);
          const Int t = thread_idx.x % 32;
          If(thread_idx.x == 0, [&] {
            empty.init(0, static_cast<uint32_t>(arrivals));
            fence_mbarrier_init();
          });
          If(thread_idx.x < 32, [&] {
            copy_async<4>(tile.at(4 * t), x.at(4 * t));
            copy_async_commit();
            copy_async_wait(0);
          });
          sync_threads();
          If(thread_idx.x < 32, [&] {
            empty.wait(0, 0u);
            for (int i = 0; i < 128; i += 32) tile(t + i) = -1;
          }).Else([&] {
            for (int i = 0; i < 128; i += 32) y(t + i) = tile(127 - t - i);
            sync_warp();
            if (arrivals > 1) {
              empty.arrive(0);
            } else {
              If(t == 0, [&] { empty.arrive(0); });
            }
          });
        });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < 128; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 127 - i);
  }
}

TEST(Mbarrier, OrdersThatItHasNotAreReported) {
  const auto message = [](auto body) {
    return std::string(run("ordered", {.block = 32}, 32,
                           [&](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
                             body(Mbarrier(1));
                             y(thread_idx.x) = 1;
                           })
                           .status()
                           .message());
  };
  const std::string arrival =
      message([](const Mbarrier& bar) { bar.arrive(0, MemoryOrder::acq_rel); });
  EXPECT_THAT(arrival, HasSubstr("'mbarrier.arrive' has no order 'acq_rel'"));
  EXPECT_THAT(arrival, HasSubstr("async_test.cc"));
  EXPECT_THAT(
      message([](const Mbarrier& bar) { bar.wait(0, 0u, MemoryOrder::acquire, MemoryScope::gpu); }),
      HasSubstr("'mbarrier.wait' has no scope 'gpu'"));
  EXPECT_THAT(message([](const Mbarrier&) {
                cluster_arrive(MemoryOrder::acquire);
                cluster_wait();
              }),
              HasSubstr("'cluster.arrive' has no order 'acquire'"));
}

TEST(Mbarrier, MistakesAreReported) {
  if (test_device_name() != "interp") GTEST_SKIP() << "checks are the interpreter's";
  const auto message = [](auto body) {
    return std::string(run("wrong", {.block = 32}, 64,
                           [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                             const Mbarrier bar(1);
                             const Shared<int32_t> tile(64), behind(32);
                             behind(thread_idx.x) = 1;
                             body(bar, tile, x);
                             y(thread_idx.x) = behind(thread_idx.x);
                           })
                           .status()
                           .message());
  };
  EXPECT_THAT(message([](const Mbarrier& bar, auto&, auto&) { bar.wait(0, 0u); }),
              HasSubstr("an mbarrier that nobody has initialised"));
  EXPECT_THAT(message([](const Mbarrier& bar, auto&, auto&) {
                If(thread_idx.x == 0, [&] { bar.init(0, 33); });
                bar.arrive(0);
                bar.wait(0, 0u);
              }),
              HasSubstr("waits here for ever"));
  const auto by_one = [&](auto body) {
    return message([&](auto& bar, auto& tile, auto& x) {
      If(thread_idx.x == 0, [&] {
        bar.init(0, 1);
        body(bar, tile, x);
      });
    });
  };
  EXPECT_THAT(
      by_one([](auto& bar, auto& tile, auto& x) { bulk_load(tile.at(0), x.at(2), 16, bar, 0); }),
      HasSubstr("no multiples of 16 bytes"));
  EXPECT_THAT(by_one([](auto& bar, auto&, auto&) { bar.arrive(1); }),
              HasSubstr("an mbarrier at byte 8 of 'shared memory', which has 8 (kernel"));
  EXPECT_THAT(
      by_one([](auto& bar, auto& tile, auto& x) { bulk_load(tile.at(0), x.at(0), 16, bar, -1); }),
      HasSubstr("an mbarrier at bytes outside shared memory"));
  EXPECT_THAT(
      by_one([](auto& bar, auto& tile, auto& x) { bulk_load(tile.at(32), x.at(0), 36, bar, 0); }),
      HasSubstr(
          "a bulk copy of 144 bytes that touches byte 256 of 'shared memory', which has 256"));
  EXPECT_THAT(by_one([](auto& bar, auto&, auto&) { bar.init(0, 1); }),
              HasSubstr("initialises an mbarrier that is initialised already"));
  EXPECT_THAT(by_one([](auto& bar, auto&, auto&) {
                bar.words()(0) = UInt64(1);
                bar.arrive(0);
              }),
              HasSubstr("or that a store has written over"));
}

TEST(Uniform, APromiseLetsABarrierStandUnderACondition) {
  const auto got =
      run("promised", {.block = 64}, 64, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<int32_t> box(64);
        const Int t = thread_idx.x;
        box(t) = x(t);
        If(assume_uniform(x(t) >= 0), [&] {
          sync_threads();
          y(t) = box(63 - t);
        });
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 63 - i);
  if (test_device_name() != "interp") return;
  const auto broken =
      run("broken", {.block = 64}, 64, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        y(thread_idx.x) = assume_uniform(x(thread_idx.x));
      });
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr("promised to be uniform differs"));
}

// Two warps of a block wait for each other by spinning.
TEST(Memory, WarpsThatSpinLetOthersRun) {
  const auto got =
      run("spin", {.block = 64}, 64, [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
        const Shared<int32_t> turn(1);
        If(thread_idx.x == 0, [&] { turn(0) = 0; });
        sync_threads();
        for (const Int i : range(4)) {
          While([&] { return atomic_load(turn(0)) != warp_id() + 2 * i; }, [] {});
          sync_warp();
          If(lane_id() == 0, [&] { atomic_add(turn(0), 1); });
        }
        y(thread_idx.x) = 1;
      });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ::testing::Each(1));
}

// Anything that is traced, one thing or several; the values stay what they are.
TEST(Pin, TakesWhatIsTraced) {
  const auto body = [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
    const Int t = thread_idx.x;
    Var<int32_t> sum(x(t));
    const Vec<int32_t, 2> pair(x(t));
    pin(sum);
    pin({sum, pair, std::tuple(t, sum > 0), x(t)});
    y(t) = sum + pair[1];
  };
  const auto got = run("pins", {.block = 32}, 32, body);
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 32; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], 2 * i) << i;

  const auto kernel = local_kernel("pins", body);
  const auto compiled = kernel.compile(Signature{tensor({32}), tensor({32})},
                                       CompileOptions{.block = {32, 1, 1}, .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(compiled->ptx(), "pmevent.mask 0;")).size(),
            3u);
}

// The second load starts in front of the first pin, and stays behind the second one's.
TEST(Pin, LetsLoadsStartEarly) {
  const auto body = [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
    const Int t = thread_idx.x, first = x(t);
    pin_with_early_loads(first);
    const Int second = x(t + 32);
    pin(first);
    const Int third = x(t + 64);
    pin_with_early_loads();
    y(t) = first + second + third;
  };
  const auto kernel = local_kernel("early", body);
  const auto compiled = kernel.compile(Signature{tensor({96}), tensor({32})},
                                       CompileOptions{.block = {32, 1, 1}, .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  const std::vector<std::string> parts = absl::StrSplit(compiled->ptx(), "pmevent.mask 0;");
  const auto loads_of = [&](size_t part) {
    return std::vector<std::string>(absl::StrSplit(parts[part], "ld.global")).size() - 1;
  };
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(loads_of(0), 2u);
  EXPECT_EQ(loads_of(1), 0u);
  EXPECT_EQ(loads_of(2), 1u);
}

TEST(Pin, OfNothingIsAMistake) {
  const auto got =
      run("nothing", {.block = 32}, 32, [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) {
        pin({});
        y(thread_idx.x) = 1;
      });
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("this pin has no values"));
}

}  // namespace
}  // namespace heddle
