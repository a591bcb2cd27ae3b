// The layouts and tensors of dsl/FROM_CUDA.md, run on the test device: what stands in its Heddle
// column stands here between the marks.
#include <string>
#include <vector>

#include "dsl/from_cuda/compile.h"
#include "dsl/language/run_ints.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

// <page>
// y = x by tiles of 32 x 64 through shared memory, 256 threads, 16 bytes each at a time.
const auto through_shared =
    define_kernel("through_shared(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      const IntTuple extents{x.shape(0), x.shape(1)};
      const auto block = [](const auto& t) {
        return local_tile(t, {32, 64}, {block_idx.y, block_idx.x});
      };
      const auto shared = make_smem_tensor<float>(
          make_composed_layout(Swizzle(3, 2, 3), 0, make_layout({32, 64}, {64, 1})));

      const TiledCopy in = make_tiled_copy(make_copy_atom<float>(CopyAsync{128}),  // cp.async
                                           make_layout({16, 16}, {16, 1}), make_layout({1, 4}));
      const ThrCopy thread = in.get_slice(thread_idx.x);
      const auto where = thread.partition_S(block(make_identity_tensor(extents)));
      copy_if(in, within(where, extents), thread.partition_S(block(x)),
              thread.partition_D(shared));  // zeros outside of x
      copy_async_commit();
      copy_async_wait(0);
      sync_threads();
      copy_if(within(where, extents), thread.partition_S(shared), thread.partition_D(block(y)));
    });
// </page>

std::vector<float> counted(int count) {
  const auto values = counting(count);
  return std::vector<float>(values.begin(), values.end());
}

TEST(FromCudaLayouts, ThroughSharedMemory) {
  const Stream stream = test_device().create_stream().value();
  const auto values = counted(40 * 72);
  const Buffer x = test_device().upload(absl::MakeConstSpan(values)).value();
  const Buffer y = test_device().allocate(values.size() * sizeof(float)).value();
  ASSERT_THAT(
      through_shared.launch(stream, {.grid = {2, 2}, .block = 256},
                            as_tensor<const float>(x, {40, 72}), as_tensor<float>(y, {40, 72})),
      IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), values);
  const ArgumentSpec matrix = tensor({kAny, 72}).aligned(16);
  expect_compiles(through_shared, {matrix, matrix});
}

TEST(FromCudaLayouts, TilesAndParts) {
  const auto kernel = define_kernel(
      "parts(x, p, m, n, y)",
      [](Tensor<const float, 2> x, Pointer<const float> p, Int m, Int n, Tensor<float, 2> y) {
        // <page>
        const auto tile = local_tile(x, {32, 64}, {block_idx.y, block_idx.x});
        Float element = tile(3, 5);
        const auto row = tile(3, _);
        const auto matrix = make_tensor(p, make_layout({m, n}, {n, 1}));
        const auto square = make_tensor(Shared<float>(1024), make_layout({32, 32}));
        const auto padded = make_smem_tensor<float>(make_layout({32, 32}, {33, 1}));
        const auto banked = make_smem_tensor<float>(
            make_composed_layout(Swizzle(5, 0, 5), 0, make_layout({32, 32}, {32, 1})));
        const auto sums = make_tensor<float>({4, 2});
        fill(sums, 0.0f);

        const auto threads = make_layout({8, 32}, {32, 1});
        const auto part = [&](const auto& t) { return local_partition(t, threads, thread_idx.x); };
        const auto mine = part(tile);
        const auto values = make_fragment_like(mine);
        const auto where =
            part(local_tile(make_identity_tensor({m, n}), {32, 64}, {block_idx.y, block_idx.x}));
        copy(mine, values);
        copy_if(within(where, {m, n}), mine, values);
        If(within(where(0, 1), {m, n}), [&] { sums(0, 1) = values(0, 1); });
        gemm(make_tensor(p, make_layout({4, 3})), make_tensor(p, make_layout({2, 3})), sums);
        const FastDivmod by(n);
        const Divmod<int32_t> parts = by.divmod(m);
        // </page>
        copy(part(local_tile(matrix, {32, 32}, {0, 0})), part(square));
        copy(part(square), part(padded));
        copy(part(padded), part(banked));
        copy(values, part(local_tile(y, {32, 64}, {0, 0})));
        sync_threads();
        copy(part(select(banked, {1, 0})), part(local_tile(y, {32, 32}, {0, 0})));
        sync_threads();
        If(thread_idx.x == 0, [&] {
          y(31, 63) =
              element + row(7) + sums(3, 1) + cast<float>(parts.quotient * 100 + parts.remainder);
        });
      });
  const Stream stream = test_device().create_stream().value();
  const auto values = counted(32 * 64);
  const Buffer x = test_device().upload(absl::MakeConstSpan(values)).value();
  const Buffer y = test_device().allocate(values.size() * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 256}, as_tensor<const float>(x, {32, 64}),
                            reinterpret_cast<const float*>(x.address()), 32, 64,
                            as_tensor<float>(y, {32, 64})),
              IsOk());
  const auto got = y.download<float>(stream).value();
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 64; ++j) {
      // The left half came through shared memory, and was turned there.
      const int want = j < 32 ? j * 64 + i : i * 64 + j;
      if (i == 31 && j == 63) continue;
      ASSERT_EQ(got[i * 64 + j], want) << i << " " << j;
    }
  }
  // a(m,k) = m + 4k, b(n,k) = n + 2k: the sum over k of a(3,k) * b(1,k) is 3*1 + 7*3 + 11*5.
  EXPECT_EQ(got[31 * 64 + 63], (3 * 64 + 5) + (3 * 64 + 7) + 79 + 32);
}

// c(m,n) = the sum over k of a(m,k) * b(n,k), as CuTe's tutorial writes it: tiles of 32 x 16 x 8
// for 64 threads, each of which has 4 x 2 sums.
const auto tutorial = define_kernel(
    "tutorial(a, b, c)",
    [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 2> c) {
      // <page>
      const Tiler tiler{32, 16, 8};  // m, n, k
      const IntTuple block{block_idx.x, block_idx.y, _};
      const auto tiles_a = local_tile(a, tiler, block, {1, _, 1});  // (32,8,tiles)
      const auto tiles_b = local_tile(b, tiler, block, {_, 1, 1});  // (16,8,tiles)
      const auto tile_c = local_tile(c, tiler, block, {1, 1, _});   // (32,16)
      const auto shared_a = make_smem_tensor<float>(make_layout({32, 8}));
      const auto shared_b = make_smem_tensor<float>(make_layout({16, 8}));

      const Layout threads = make_layout({8, 8});
      const auto rows = local_partition(shared_a, threads, thread_idx.x, {1, _});     // (4,8)
      const auto columns = local_partition(shared_b, threads, thread_idx.x, {_, 1});  // (2,8)
      const auto own = local_partition(tile_c, threads, thread_idx.x);                // (4,2)
      const auto sums = make_fragment_like(own);
      fill(sums, 0.0f);
      const auto part = [&](const auto& t) { return local_partition(t, threads, thread_idx.x); };
      for (Int k : range(a.shape(1) / 8)) {
        copy(part(tiles_a(_, _, k)), part(shared_a));
        copy(part(tiles_b(_, _, k)), part(shared_b));
        sync_threads();
        gemm(rows, columns, sums);
        sync_threads();
      }
      copy(sums, own);
      // </page>
    });

TEST(FromCudaLayouts, TutorialProduct) {
  const int m = 64, n = 32, k = 24;
  const auto small = [](int count) {
    std::vector<float> values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7 % 11 - 5));
    return values;
  };
  const std::vector<float> a = small(m * k), b = small(n * k);
  const Stream stream = test_device().create_stream().value();
  const Buffer x = test_device().upload(absl::MakeConstSpan(a)).value();
  const Buffer y = test_device().upload(absl::MakeConstSpan(b)).value();
  const Buffer z = test_device().allocate(m * n * sizeof(float)).value();
  ASSERT_THAT(tutorial.launch(stream, {.grid = {m / 32, n / 16}, .block = 64},
                              as_tensor<const float>(x, {m, k}), as_tensor<const float>(y, {n, k}),
                              as_tensor<float>(z, {m, n})),
              IsOk());
  const auto c = z.download<float>(stream).value();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[j * k + l];
      ASSERT_EQ(c[i * n + j], sum) << i << " " << j;
    }
  }
}

TEST(FromCudaLayouts, Atoms) {
  const auto kernel = define_kernel("atoms(x, y)", [](Tensor<const half, 2> x, Tensor<half, 2> y) {
    const auto tile = local_tile(x, {16, 16}, {0, 0});
    const auto out = local_tile(y, {16, 16}, {0, 0});
    const auto shared = make_smem_tensor<half>(make_layout({16, 16}, {16, 1}));
    const auto turned = make_smem_tensor<half>(make_layout({16, 16}));
    // <page>
    const TiledCopy tiled = make_tiled_copy(make_copy_atom<half>(CopyUniversal{128}),
                                            make_layout({16, 2}, {2, 1}), make_layout({1, 8}));
    const ThrCopy thread = tiled.get_slice(thread_idx.x);
    copy(tiled, thread.partition_S(tile), thread.partition_D(shared));
    sync_threads();

    const Layout fragments = make_layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}});
    const TiledCopy rows(make_copy_atom<half>(LdMatrix{4}), fragments, {16, 16});
    const TiledCopy columns(make_copy_atom<half>(LdMatrix{4, true}), fragments, {16, 16});
    const auto a = make_tensor<half>(make_layout({{2, 2, 2}, 1, 1}));
    const ThrCopy lane = rows.get_slice(thread_idx.x);
    copy(rows, lane.partition_S(shared), lane.retile(a));
    // </page>
    // Thread and value to the matrix's element, as the tensor cores have it.
    copy(a(_, 0, 0), composition(turned, fragments)(thread_idx.x, _));
    sync_threads();
    const ThrCopy other = columns.get_slice(thread_idx.x);
    copy(columns, other.partition_S(turned), other.retile(a));
    copy(a(_, 0, 0), composition(out, fragments)(thread_idx.x, _));
  });
  std::vector<half> values;
  for (int i = 0; i < 256; ++i) values.push_back(half(static_cast<float>(i)));
  const Stream stream = test_device().create_stream().value();
  const Buffer x = test_device().upload(absl::MakeConstSpan(values)).value();
  const Buffer y = test_device().allocate(values.size() * sizeof(half)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 32}, as_tensor<const half>(x, {16, 16}),
                            as_tensor<half>(y, {16, 16})),
              IsOk());
  const auto got = y.download<half>(stream).value();
  for (int i = 0; i < 256; ++i) ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(i)) << i;
}

TEST(FromCudaLayouts, OnTheHost) {
  // <page>
  const Layout layout = make_layout({8, 4}, GenRowMajor{});
  SymInt elements = size(layout);
  IntTuple columns = get(shape(layout), 1);
  std::string text = layout.to_string();
  // </page>
  EXPECT_EQ(text, "(8,4):(4,1)");
  EXPECT_EQ(elements, 32);
  EXPECT_EQ(columns, IntTuple(4));
}

}  // namespace
}  // namespace heddle
