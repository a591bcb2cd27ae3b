// The code of dsl/SYNCHRONISATION.md, as values_test.cc has its values.
#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using Floats = Tensor<float, 1>;
using Ints = Tensor<int32_t, 1>;

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);

TEST(Guide, Synchronisation) {
  const auto kernel =
      local_kernel("synchronisation(x, y, counters, matrix, maps, words)",
                   [](Tensor<const float, 1> in, Floats out, Ints counters, Tensor<float, 2> matrix,
                      Tensor<uint64_t, 1> maps, Tensor<uint32_t, 1> words) {
                     const Mbarrier full(1);
                     Shared<float> s(256);
                     {
                       const auto& y = counters;
                       // <page>
                       sync_threads();
                       named_barrier_sync(1, 64);
                       named_barrier_arrive(1, 64);
                       sync_warp();
                       cluster_arrive();
                       cluster_wait();
                       cluster_arrive(MemoryOrder::relaxed);
                       cluster_wait();
                       full.init(0, 1);
                       fence_mbarrier_init();
                       full.arrive(0);
                       full.expect_tx(0, 1024);
                       full.announce_tx(0, 1024);
                       full.wait(0, 0u);
                       use(full.test(0, 0u));
                       full.inval(0);
                       copy_async_commit();
                       copy_async_wait(0);
                       copy_async_arrive(full, 0);
                       bulk_commit();
                       bulk_wait();
                       bulk_wait_read(1);
                       fence_async();
                       fence_async(FenceSpace::global);
                       fence_async(FenceSpace::all);
                       memory_fence();
                       atomic_add(y(0), 1);
                       use(atomic_load(y(0), MemoryOrder::acquire));
                       grid_dependency_wait();
                       grid_dependency_launch();
                       // </page>
                     }
                     const auto& x = in;
                     const auto& y = out;
                     const Mbarrier empty(1);
                     const Int other = cluster_rank() ^ 1;
                     const Mbarrier its_empty(map_shared(empty.words(), other));
                     const Mbarrier its_full(map_shared(full.words(), other));
                     const Shared<float> theirs = map_shared(s, other);
                     {
                       const TensorMap map(matrix, {32, 32});
                       const Shared<float, 2> tile({32, 32});
                       const Shared<uint64_t> staging(16);
                       const auto& arrived = words;
                       // <page>
                       tma_load(tile.at(0, 0), map, {0, 0}, full, 0);
                       bulk_copy(theirs.at(0), s.at(0), 256, its_full, 0);
                       bulk_store(y.at(0), s.at(0), 256);
                       bulk_add(y.at(0), s.at(0), 256);
                       tma_store(map, {0, 0}, tile.at(0, 0));
                       tma_add(map, {0, 0}, tile.at(0, 0));
                       const TensorMap moved = map.replace(staging.at(0), maps.at(0),
                                                           matrix.at(0, 0), {64, 32}, {32, 1});
                       sync_grid(arrived(0));
                       // </page>
                       moved.prefetch();
                     }
                     // <page>
                     store_async(theirs.at(0), 1.0f, its_full, 0);
                     If(thread_idx.x == 0, [&] {
                       full.expect_tx(0, 1024);
                       bulk_load(s.at(0), x.at(0), 256, full, 0);
                     });
                     full.wait(0, 0u, MemoryOrder::acquire, MemoryScope::block);

                     its_empty.arrive(0, MemoryOrder::release, MemoryScope::block);

                     Float mine = s(thread_idx.x);
                     fence_async();
                     empty.arrive(0);

                     s(thread_idx.x) = mine * 2.0f;
                     fence_async();
                     sync_threads();
                     If(thread_idx.x == 0, [&] {
                       bulk_store(y.at(0), s.at(0), 256);
                       bulk_commit();
                       bulk_wait_read();
                     });
                     sync_threads();

                     copy_async_arrive(full, 0);
                     full.wait(0, 1u, MemoryOrder::acquire, MemoryScope::block);
                     fence_async();
                     // </page>
                     const SharedArena arena;
                     const SharedRegion main = arena.region("main");
                     const SharedRegion epilogue = arena.region("epilogue");
                     main.array<float>(64)(thread_idx.x % 64) = mine;
                     const Shared<float> taken = epilogue.array<float>(64);
                     // <page>
                     sync_threads();
                     epilogue.begin();
                     // </page>
                     taken(thread_idx.x % 64) = mine;
                     // <page>
                     map_shared(s, other)(thread_idx.x) = mine;
                     its_full.arrive(0, MemoryOrder::release, MemoryScope::cluster);
                     full.wait(0, 1u, MemoryOrder::acquire, MemoryScope::cluster);
                     // </page>
                   });
  expect_compiles(kernel, {kAligned, kAligned, tensor({1}), tensor({64, 32}).aligned(16),
                           tensor({kAny}).aligned(128), tensor({1})});
}

}  // namespace
}  // namespace heddle
