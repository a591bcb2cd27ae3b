// Threads together in dsl/LANGUAGE.md, as values_test.cc has its values.
#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using Floats = Tensor<float, 1>;
using Ints = Tensor<int32_t, 1>;
using Words = Tensor<uint32_t, 1>;

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);

// <page>
Float gelu(const Float& x, SourceLoc loc = SourceLoc::current()) {
  CallerLines lines(loc);
  return 0.5f * x * (1.0f + erf(x * 0.70710678f));
}
// </page>

TEST(Guide, ThreadsTogether) {
  const auto kernel = define_kernel("threads(x, y, arrived)", [](Floats x, Ints y, Words arrived) {
    Shared<half, 2> h({16, 16});
    Shared<int32_t> bins(256);
    // <page>
    Int i = block_idx.x * block_dim.x + thread_idx.x;
    use(grid_dim.x);
    use(lane_id());
    use(warp_id());
    use(threads_per_block());

    sync_threads();
    sync_warp();
    named_barrier_sync(1, 64);
    named_barrier_arrive(1, 64);

    Float v = x(i);
    Int n = y(i);
    use(shfl(v, 0));
    use(shfl_up(v, 1));
    use(shfl_down(v, 1));
    use(shfl_xor(v, 16));
    use(vote_any(v > 0));
    use(vote_all(v > 0));
    use(ballot(v > 0));
    use(match_any(n));
    use(redux_add(n));
    If(elect_one(), [&] { y(0) = n; });
    use(warp_reduce(v, plus()));
    use(block_reduce(v, maximum()));
    use(cluster_reduce(v, minimum()));
    use(warp_scan(v, plus()));
    use(warp_scan_exclusive(n, Int(0), plus(), 8));
    use(block_scan(v, maximum()));
    use(block_scan_exclusive(n, Int(0), plus()));
    use(cluster_scan(n, plus()));
    use(cluster_scan_exclusive(n, Int(0), plus()));
    ValueAt<float> best = block_reduce(ValueAt<float>{v, i}, argmax());
    use(best.value);
    use(grid_reduce(v, plus(), x, arrived(0)));
    use(grid_scan(v, plus(), x, arrived(0)));
    use(grid_compact(v > 0, y, arrived(0)).place);
    use(grid_broadcast(v, 0, 5, x, arrived(0)));
    use(is_last_block(arrived(0)));
    Compacted kept = block_compact(v > 0);
    use(kept.place);
    use(warp_compact(v > 0).count);
    use(cluster_compact(v > 0).count);
    use(block_broadcast(v, 5));
    use(cluster_broadcast(v, 0, 5));
    Gathered<Float> all = block_all_gather(v);
    use(all(i));
    use(cluster_all_gather(v)(i));
    use(warp_all_gather(v, 8)[0]);
    use(warp_reduce_scatter(std::vector<Float>{v, v}, plus()));
    use(block_reduce_scatter(std::vector<Float>{v, v}, plus()));
    use(cluster_reduce_scatter(std::vector<Float>{v, v}, plus()));
    use(warp_sort(v, [](const Float& a, const Float& b) { return a < b; }));
    block_sort(bins, 256, [](const Int& a, const Int& b) { return a < b; });
    use(warp_reduce(v, [](Float a, Float b) { return a * b; }));
    Fragment<half> f = ldmatrix(h.at(lane_id() % 16, lane_id() / 16 * 8), 4);
    stmatrix(h.at(lane_id() % 16, lane_id() / 16 * 8), f);
    use(mma(Fragment<float>(4, 0.0f), f, ldmatrix(h.at(lane_id() % 16, 0), 2, true)));

    sync_cluster();
    use(map_shared(bins, cluster_rank() ^ 1)(0));
    sync_grid(arrived(0));
    grid_dependency_wait();
    grid_dependency_launch();

    Int old = atomic_add(y(0), 1);
    atomic_max(y(0), n);
    atomic_cas(y(0), old, n);
    atomic_exchange(y(0), n);
    atomic_add(x.vec<4>(4 * i), Vec<float, 4>(1.0f));
    atomic_add(y(0), 1, MemoryOrder::acq_rel, MemoryScope::block);
    use(atomic_load(y(0), MemoryOrder::acquire));
    atomic_store(y(0), 0, MemoryOrder::release);
    memory_fence();

    device_assert(i < x.shape(0), "too many threads");
    device_printf("%d of %d\n", i, n);
    If(n < 0, [] { device_trap(); });
    Int64 begin = clock64();
    nanosleep(100);
    UInt top = inline_ptx<uint32_t>({"bfind.u32 %0, %1;",
                                     [](uint32_t bits) -> uint32_t {
                                       return 31u - static_cast<uint32_t>(__builtin_clz(bits));
                                     }},
                                    bitcast<uint32_t>(n));
    // </page>
    y(i) = cast<int>(begin) + cast<int>(top) + cast<int>(gelu(v));
  });
  expect_compiles(kernel, {kAligned, kAligned, tensor({1})});
}

}  // namespace
}  // namespace heddle
