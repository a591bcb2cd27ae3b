// The kernel side of dsl/FROM_CUDA.md: what stands in its Heddle column stands here, between the
// marks, where it is traced, verified and assembled. guide/pages_test.cc compares the two.
#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using Floats = Tensor<float, 1>;
using Ints = Tensor<int32_t, 1>;
using Words = Tensor<uint32_t, 1>;

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);

TEST(FromCudaDevice, ThreadsAndSharedMemory) {
  const auto kernel = define_kernel("threads(x, y, n)", [](Floats x, Ints y, Int n) {
    // <page>
    Int i = block_idx.x * block_dim.x + thread_idx.x;
    use(grid_dim.x);
    use(lane_id());
    use(warp_id());
    use(kWarpSize);

    Shared<float> s(256);
    Shared<float, 2> tile({32, 33});
    Shared<float> all = dynamic_shared<float>(n);
    Shared<float> large(20000);
    s(thread_idx.x) = x(i);
    sync_threads();
    Float neighbour = s((thread_idx.x + 1) % 256);
    y(0) = block_reduce(cast<int>(x(i) > 0), plus());
    y(1) = block_reduce(cast<int>(x(i) > 0), minimum());
    y(2) = block_reduce(cast<int>(x(i) > 0), maximum());
    sync_warp();
    sync_warp(0xffffu);
    named_barrier_sync(1, 64);
    named_barrier_arrive(1, 64);
    // </page>
    tile(lane_id(), warp_id()) = neighbour;
    use(all.shape(0));
    large(0) = 0.0f;
  });
  expect_compiles(kernel, {kAligned, kAligned, scalar()});
}

TEST(FromCudaDevice, Control) {
  const auto kernel = define_kernel("control(x, y, n)", [](Floats x, Ints y, Int n) {
    const bool bias = true;
    // <page>
    Int i = thread_idx.x;
    If(i >= n, [] { Return(); });
    If(x(i) > 0, [&] { y(i) = 1; }).Else([&] { y(i) = -1; });
    Int sign = select(x(i) > 0, 1, -1);
    Float root = If(
        x(i) > 0, [&] { return sqrt(x(i)); }, [&] { return Float(0); });

    Var<float> sum(0.0f);
    for (Int k : range(n)) sum += x(k);
    for (Int k : range(i, n, block_dim.x)) sum += x(k);
    Float total = For(range(n), Float(0), [&](Int k, Float acc) { return acc + x(k); });
    for (int k = 0; k < 4; ++k) sum += x(k);
    for (Int k : range(n).unroll(4)) sum += x(k);

    Var<int32_t> v(1);
    While([&] { return v < n; }, [&] { v *= 2; });
    While([] { return Bool(true); },
          [&] {
            v -= 1;
            If(v <= 0, [] { Break(); });
          });
    for (Int k : range(n)) {
      If(x(k) < 0, [] { Continue(); });
      If(x(k) == 0, [] { Break(); });
      v += k;
    }
    Switch(y(i), Case(0, [&] { v = 1; }), Case({1, 2}, [&] { v = 2; }), Default([&] { v = 3; }));
    If(unlikely(x(i) < 0), [&] { v = 0; });
    assume(n > 0);
    If(n < 0, [] { unreachable(); });
    Int small = assume_range(n, 0, 1023);
    Int even = assume_divisible(n, 2);
    Bool both = (i < n) && (n > 0);
    if (bias) sum += 1.0f;
    // </page>
    y(i) = cast<int>(sum + root + total) + v + sign + cast<int>(both) + small + even;
  });
  expect_compiles(kernel, {kAligned, kAligned, scalar()});
}

TEST(FromCudaDevice, Warps) {
  const auto kernel = define_kernel(
      "warps(x, y, mask, partials, arrived)",
      [](Floats x, Ints y, UInt mask, Floats partials, Words arrived) {
        const Int i = thread_idx.x;
        const Float v = x(i);
        const Int n = y(i);
        Shared<half, 2> h({16, 16});
        Shared<int32_t> bins(256);
        // <page>
        use(shfl(v, 0));
        use(shfl(v, 0, 16));
        use(shfl_up(v, 1));
        use(shfl_down(v, 1));
        use(shfl_xor(v, 16));
        use(shfl(v, 0, 32, mask));
        use(vote_any(v > 0));
        use(vote_all(v > 0));
        use(vote_uniform(v > 0));
        use(ballot(v > 0));
        use(active_mask());
        use(match_any(n));
        Bool same = match_all(n) != 0;
        use(redux_add(n));
        use(redux_or(n));
        use(warp_reduce(v, plus()));
        use(warp_scan(v, plus()));
        use(block_reduce(v, maximum()));
        use(block_scan(v, plus()));
        use(block_scan_exclusive(n, Int(0), plus()));
        Compacted kept = block_compact(n > 0);
        use(grid_reduce(v, plus(), partials, arrived(0)));
        If(is_last_block(arrived(0)), [&] { y(0) = n; });
        use(warp_sort(v, [](const Float& a, const Float& b) { return a < b; }));
        block_sort(bins, 256, [](const Int& a, const Int& b) { return a < b; });
        Fragment<half> f = ldmatrix(h.at(lane_id() % 16, lane_id() / 16 * 8), 4);
        use(ldmatrix(h.at(lane_id() % 16, 0), 2, true));
        stmatrix(h.at(lane_id() % 16, lane_id() / 16 * 8), f);
        use(mma(Fragment<float>(4, 0.0f), f, ldmatrix(h.at(lane_id() % 16, 0), 2, true)));
        If(elect_one(), [&] { y(0) = n; });
        // </page>
        y(i) = cast<int>(same) + kept.place;
      });
  expect_compiles(kernel, {kAligned, kAligned, scalar(), kAligned, kAligned});
}

TEST(FromCudaDevice, AtomicsAndFences) {
  const auto kernel = define_kernel("atomics(x, n, w)", [](Floats x, Ints n, Words w) {
    Shared<int32_t> s(32);
    Vec<float, 4> quad(Float(1.0f));
    // <page>
    atomic_add(x(0), 1.0f);
    Vec<float, 4> sums = atomic_add(x.vec<4>(0), quad);
    Int old = atomic_add(n(0), 1);
    atomic_add(n(0), -old);
    atomic_min(n(0), 3);
    atomic_max(n(0), 3);
    atomic_and(n(0), 3);
    atomic_or(n(0), 3);
    atomic_xor(n(0), 3);
    atomic_inc(w(0), 31);
    atomic_dec(w(0), 31);
    atomic_exchange(n(0), 3);
    atomic_cas(n(0), 0, 1);
    atomic_add(s(0), 1);
    atomic_add(n(0), 1, MemoryOrder::relaxed, MemoryScope::block);
    atomic_add(n(0), 1, MemoryOrder::relaxed, MemoryScope::system);
    use(atomic_load(n(0), MemoryOrder::acquire));
    atomic_store(n(0), 1, MemoryOrder::release);
    atomic_add(n(0), 1, MemoryOrder::acq_rel);
    memory_fence(MemoryScope::gpu, MemoryOrder::seq_cst);
    memory_fence();
    memory_fence(MemoryScope::block);
    memory_fence(MemoryScope::system);
    // </page>
    use(sums);
  });
  expect_compiles(kernel, {kAligned, kAligned, kAligned});
}

TEST(FromCudaDevice, Memory) {
  const auto kernel = define_kernel(
      "memory(x, y, p, rows)",
      [](Tensor<const float, 1> x, Floats y, Pointer<float> p, Tensor<const uint64_t, 1> rows) {
        Shared<float> s(256);
        const Int i = thread_idx.x;
        const int k = 1;
        const Float v = x(i);
        // <page>
        use(x(i));
        use(p[i]);
        use(pointer<const float>(rows(i))[k]);
        use(address_of(x.at(i)));
        use(cast<uint32_t>(address_of(s.at(i))));
        y(i) = v;
        y(i) += v;
        use(x.with(Cache::streaming)(i));
        use(x.with(Cache::l2)(i));
        use(x.with(Cache::last_use)(i));
        y.with(Cache::streaming)(i) = v;
        y.with(Cache::l2)(i) = v;
        y.with(Cache::write_through)(i) = v;
        use(x.with(Cache::evict_first)(i));
        use(x.with(L2Evict::last)(i));
        use(x.with(L2Evict::first, 50)(i));
        x.prefetch(i);
        x.prefetch(i, PrefetchTo::l1);
        Float seen = y.as_volatile()(i);
        Vec<float, 4> q = x.vec<4>(4 * i);
        y.vec<4>(4 * i) = q;

        const Int n = x.shape(0);
        copy_async<4>(s.at(4 * i), x.at(4 * i));
        copy_async_if<4>(i < n, s.at(4 * i), x.at(4 * i));
        copy_async_commit();
        copy_async_wait(1);
        // </page>
        p(i) = seen;
      });
  expect_compiles(kernel, {kAligned, kAligned, pointer(), tensor({kAny})});
}

TEST(FromCudaDevice, ArraysBarriersAndBulkCopies) {
  const std::vector<float> host_array(8, 1.0f);
  const auto kernel = local_kernel("arrays(x, y, arrived)", [&](Tensor<const float, 1> x, Floats y,
                                                                Tensor<uint32_t, 1> arrived) {
    Shared<float> s(256);
    // <page>
    Constant<float> table(host_array);
    Local<float> a(8);
    Mbarrier bar(2);
    bar.init(0, 1);
    bar.arrive(0);
    bar.expect_tx(0, 1024);
    bar.wait(0, 0u);
    fence_mbarrier_init();
    bar.arrive(0, MemoryOrder::release, MemoryScope::block);
    bar.arrive(0, 2);
    bar.wait(0, 0u, MemoryOrder::relaxed, MemoryScope::cluster);
    Bool ended = bar.test(0, 0u);
    bar.announce_tx(0, 1024);
    bar.inval(0);
    copy_async_arrive(bar, 0);
    bulk_load(s.at(0), x.at(0), 256, bar, 0);
    bulk_load(s.at(0), x.at(0), 256, bar, 0, Multicast(0b11));
    bulk_copy(map_shared(s, 1).at(0), s.at(0), 256, Mbarrier(map_shared(bar.words(), 1)), 0);
    store_async(map_shared(s, 1).at(0), 1.0f, Mbarrier(map_shared(bar.words(), 1)), 0);
    bulk_prefetch(x.at(0), 256);
    fence_async();
    bulk_store(y.at(0), s.at(0), 256);
    bulk_add(y.at(0), s.at(0), 256);
    bulk_commit();
    bulk_wait();
    bulk_wait_read(1);
    decrease_registers(40);
    increase_registers(232);
    grid_dependency_wait();
    grid_dependency_launch();
    sync_grid(arrived(0));
    // </page>
    a(thread_idx.x % 8) = table(thread_idx.x % 8);
    y(0) = select(ended, a(0), 0.0f);
  });
  expect_compiles(kernel, {kAligned, kAligned, tensor({1})});
}

TEST(FromCudaDevice, TensorMapsAndTensorCores) {
  const auto kernel = define_kernel(
      "tensor_cores(matrix, y)", [](Tensor<const float, 2> matrix, Tensor<float, 1> y) {
        const Layout rows = composition(Swizzle(3, 3, 3), make_layout({64, 64}, {64, 1}));
        const auto a = make_smem_tensor<half>(rows);
        const auto b = make_smem_tensor<half>(rows);
        const Shared<float, 2> box({8, 32});
        const Mbarrier bar(1);
        const Int row = 8 * block_idx.x;
        // <page>
        const TensorMap map(matrix, {8, 32});
        tma_load(box.at(0, 0), map, {row, 0}, bar, 0);
        bar.wait(0, 0u);
        Accumulator<float> sum = wgmma(wgmma_begin<float>(64), a, b, false);
        wgmma_commit();
        const Fragment<float> d = wgmma_wait(sum);
        // </page>
        y(thread_idx.x) = d[0] + box(0, 0);
      });
  expect_compiles(kernel, {tensor({kAny, kAny}), tensor({kAny})});
}

TEST(FromCudaDevice, Clusters) {
  const auto kernel = define_kernel("clusters(y)", [](Ints y) {
    Shared<int32_t> s(256);
    const Int i = thread_idx.x;
    s(i) = i;
    // <page>
    use(cluster_rank());
    use(cluster_size());
    sync_cluster();
    cluster_arrive();
    cluster_wait();
    Int theirs = map_shared(s, cluster_rank() ^ 1)(i);
    // </page>
    sync_cluster();
    y(i) = theirs;
  });
  expect_compiles(kernel, {kAligned});
}

TEST(FromCudaDevice, Debugging) {
  const auto kernel = define_kernel("debugging(y, n)", [](Tensor<int64_t, 1> y, Int n) {
    const Int i = thread_idx.x;
    // <page>
    device_printf("%d of %d\n", i, n);
    device_assert(i < n, "too many threads");
    If(n < 0, [] { device_trap(); });
    Int64 begin = clock64();
    Int64 now = global_timer();
    nanosleep(100);
    UInt sm = inline_ptx<uint32_t>("mov.u32 %0, %%smid;");
    inline_ptx(PtxText("griddepcontrol.wait;").has_effects());
    // </page>
    y(i) = begin + now + cast<int64_t>(sm);
  });
  expect_compiles(kernel, {kAligned, scalar()});
}

}  // namespace
}  // namespace heddle
