// The memory and the asynchronous copies of dsl/LANGUAGE.md, as values_test.cc has its values.
#include <vector>

#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

using Floats = Tensor<float, 1>;

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);

// <page>
struct Particle {
  Float x, y, z;
  Int charge;
};
// </page>

TEST(Guide, Memory) {
  // <page>
  const auto kernel =
      define_kernel("memory(x, y, p, q, a)", [](Tensor<const float, 2> x, Tensor<float, 1> y,
                                                Tensor<Particle, 1> p, Pointer<float> q, Float a) {
        // </page>
        const Int i = thread_idx.x, j = lane_id();
        const int width = x.vector_width();
        // <page>
        Float element = x(i, j);
        Int rows = x.shape(0);
        Vec<float, 4> quad = x.vec<4>(i, 4 * j);
        Fragment<float> some = x.elements(width, i, width * j);
        y(i) = element;
        y(i) += a;
        y.vec<4>(4 * i) *= 2;
        auto before = y(0);
        Particle one = p(i);
        p(i) = Particle{one.x, one.y, 0.0f, one.charge};
        q[i] = a;
        UInt64 address = address_of(y.at(i));
        Float there = pointer<float>(address)[0];

        Shared<float> s(32);
        Shared<float, 2> tile({32, 33});
        Shared<Particle> particles(64);
        Shared<float> rest = dynamic_shared<float>(rows);
        Local<float> mine(16);
        Constant<float> table(std::vector<float>{0.25f, 0.5f, 0.25f});

        use(x.with(Cache::streaming)(i, j));
        use(x.with(L2Evict::last)(i, j));
        use(y.as_volatile()(i));
        Fragment<float> four = x.assume_aligned().elements(4, i, 4 * j);
        y.prefetch(i);
        // </page>
        particles(i) = one;
        use(four[0]);
        use(particles(j));
        s(j) = there;
        rest(j) = before;
        tile(i % 32, j) = quad[0];
        mine(j % 16) = table(j % 3);
        y(i) = mine(j % 8) + some[0] + s(0) + tile(j, j) + rest(0);
      });
  expect_compiles(
      kernel, {tensor({kAny, 1024}).aligned(32), kAligned, tensor({kAny, 4}), pointer(), scalar()});
}

TEST(Guide, AsynchronousCopies) {
  const auto kernel = define_kernel("copies(x, y)", [](Tensor<const float, 1> x, Floats y) {
    Shared<float> s(256);
    const Int i = thread_idx.x;
    Var<int32_t> n(x.shape(0));
    // <page>
    copy_async<4>(s.at(4 * i), x.at(4 * i));
    copy_async_if<4>(i < n, s.at(4 * i), x.at(4 * i));
    copy_async_commit();
    copy_async_wait(1);

    Mbarrier full(1);
    If(i == 0, [&] {
      full.init(0, 1);
      fence_mbarrier_init();
      full.expect_tx(0, 256 * sizeof(float));
      bulk_load(s.at(0), x.at(0), 256, full, 0);
    });
    sync_threads();
    full.wait(0, 0u);

    full.arrive(0);
    full.arrive(0, 31);
    full.announce_tx(0, 128);
    full.arrive(0, MemoryOrder::relaxed);
    full.wait(0, 0u, MemoryOrder::acquire, MemoryScope::block);
    If(!full.test(0, 0u), [&] { n += 1; });
    copy_async_arrive(full, 0);
    full.inval(0);
    // </page>
    const Float sum = s(i) * 2.0f, rest = s(i) - sum;
    // <page>
    pin(sum);
    pin({sum, rest});
    pin_with_early_loads(sum);
    // </page>
    s(i) = sum + rest;
    // <page>
    fence_async();
    sync_threads();
    If(i == 0, [&] {
      bulk_store(y.at(0), s.at(0), 256);
      bulk_add(y.at(0), s.at(0), 256);
      bulk_commit();
      bulk_wait();
    });
    bulk_copy(map_shared(s, 1).at(0), s.at(0), 256, Mbarrier(map_shared(full.words(), 1)), 0);
    store_async(map_shared(s, 1).at(i), sum, Mbarrier(map_shared(full.words(), 1)), 0);
    fence_async(FenceSpace::global);
    // </page>
  });
  expect_compiles(kernel, {kAligned, kAligned});
}

TEST(Guide, TensorCores) {
  const auto kernel = define_kernel("product(a, b, d, maps)", [](Tensor<const half, 2> a,
                                                                 Tensor<const half, 2> b,
                                                                 Tensor<float, 2> d,
                                                                 Tensor<uint64_t, 1> maps) {
    const Mbarrier full(1);
    // <page>
    const TensorMap a_map(a, {64, 64}, {.swizzle = 128});
    const TensorMap b_map(b, {64, 64}, {.swizzle = 128});
    const TensorMap d_map(d, {64, 32});
    const Layout rows = make_smem_layout<half>({64, 64, 3});
    const auto a_tiles = make_smem_tensor<half>(rows);
    const SmemBox box = box_of(a_tiles(_, _, 0));
    // </page>
    const Shared<uint64_t> staging(16);
    const Int first = 64 * block_idx.z;
    const Int64 height = a.shape64(0) - cast<int64_t>(first);
    // <page>
    const TensorMap part =
        a_map.replace(staging.at(0), maps.at(0), a.at(first, 0), {height, 64}, {64, 1});
    // </page>
    part.prefetch();
    const auto a_tile = a_tiles(_, _, 0);
    const auto b_tile = a_tiles(_, _, 1);
    EXPECT_EQ(box.extent(0), 64);
    const Shared<float, 2> sums({64, 32});
    const Int row = 64 * block_idx.y, column = 64 * block_idx.x;
    If(thread_idx.x == 0, [&] {
      full.init(0, 1);
      fence_mbarrier_init();
      // <page>
      full.expect_tx(0, a_map.bytes() + b_map.bytes());
      tma_load(a_tile.at({0, 0}), a_map, {row, 0}, full, 0);
      tma_load(b_tile.at({0, 0}), b_map, {column, 0}, full, 0);
      // </page>
    });
    sync_threads();
    full.wait(0, 0u);
    // <page>
    Accumulator<float> sum = wgmma_begin<float>(64);
    sum = wgmma(sum, a_tile, b_tile, false);
    wgmma_commit();
    const Fragment<float> out = wgmma_wait(sum);
    const TiledMma tiled = make_tiled_mma(make_mma_atom(Wgmma<half, half, float>{64}), {1, 1, 1});
    const ThrMma mine = tiled.get_slice(thread_idx.x);
    const auto none = make_accumulator<float>(tiled, {64, 64});
    const Tensor<float> c = settle(gemm(mine, a_tile, b_tile, none, false));
    const auto where = mine.partition_C(make_identity_tensor({64, 64}));
    // </page>
    EXPECT_EQ(size(c).value(), size(where).value());
    sums(thread_idx.x / 2, 0) = out[0];
    fence_async();
    sync_threads();
    If(thread_idx.x == 0, [&] {
      // <page>
      tma_store(d_map, {row, column}, sums.at(0, 0));
      tma_add(d_map, {row, column}, sums.at(0, 0));
      // </page>
      bulk_commit();
      bulk_wait();
    });
  });
  expect_compiles(
      kernel, {tensor({kAny, kAny}), tensor({kAny, kAny}), tensor({kAny, kAny}), tensor({kAny})});
}

TEST(Guide, Im2col) {
  const auto kernel =
      define_kernel("filter(x, y)", [](Tensor<const float, 4> x, Tensor<float, 1> y) {
        const Mbarrier full(1);
        const Shared<float, 2> tile({64, 32});
        const Int row = block_idx.y, column = block_idx.x, r = block_idx.z / 3, s = block_idx.z % 3;
        // <page>
        const Im2colMap pixels(x, {.pixels = 64, .channels = 32}, {-1, -1}, {-1, -1});
        tma_load(tile.at(0, 0), pixels, {0, row, column, 0}, {r, s}, full, 0);
        // </page>
        const auto a_tile = make_smem_tensor<float>(make_smem_layout<float>({64, 32}));
        // <page>
        const auto images = make_im2col_atom(x, a_tile, {-1, -1}, {-1, -1});
        copy(images.with(full, 0), images.at({0, row, column, 0}, {r, s}), a_tile);
        copy(BulkStore{}, make_smem_tensor<float>(make_layout(256)), local_tile(y, 256, row));
        // </page>
        full.wait(0, 0u);
        y(thread_idx.x) = tile(0, 0);
      });
  expect_compiles(kernel, {tensor({kAny, kAny, kAny, kAny}), tensor({kAny})});
}

}  // namespace
}  // namespace heddle
