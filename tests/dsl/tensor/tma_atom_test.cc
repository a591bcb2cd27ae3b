// TMA copy atoms: tiles of every major and swizzle, slices for a cluster, and what no boxes can fill.
#include "heddle/dsl/tensor/tma_atom.h"

#include <string>
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

std::vector<half> numbers(int count) {
  std::vector<half> values;
  for (int i = 0; i < count; ++i) values.emplace_back(static_cast<float>(i % 2039));
  return values;
}

// y is x, tile by tile through shared memory of a layout; both have rows (or, transposed, columns) of
// `pitch` elements.
void check_tiles(const Layout& layout, bool transposed) {
  SCOPED_TRACE(layout.to_string() + (transposed ? " of a transposed matrix" : ""));
  constexpr int kRows = 150, kColumns = 104;
  const int tile_rows = static_cast<int>(size(get(layout, 0)).value());
  const int tile_columns = static_cast<int>(size(get(layout, 1)).value());
  const auto kernel = local_kernel("tiles", [&](Tensor<const half, 2> x, Tensor<half, 2> y) {
    const auto tile = make_smem_tensor<half>(layout);
    const auto from =
        select(x, transposed ? std::initializer_list<int>{1, 0} : std::initializer_list<int>{0, 1});
    const auto to =
        select(y, transposed ? std::initializer_list<int>{1, 0} : std::initializer_list<int>{0, 1});
    const TmaAtom load = make_tma_atom(TmaLoad{}, from, tile),
                  store = make_tma_atom(TmaStore{}, to, tile);
    EXPECT_EQ(load.bytes(), tile_rows * tile_columns * 2);
    const Mbarrier full(1);
    If(thread_idx.x == 0, [&] {
      load.prefetch();
      full.init(0, 1u);
      fence_mbarrier_init();
    });
    sync_threads();
    const IntTuple extents = {tile_rows, tile_columns};
    If(thread_idx.x == 0, [&] {
      full.expect_tx(0, load.bytes());
      const auto there = local_tile(from, extents, {block_idx.y, block_idx.x});
      load.prefetch(there);
      copy(load.with(full, 0), there, tile);
    });
    full.wait(0, 0u);
    If(thread_idx.x == 0, [&] {
      copy(store, tile, local_tile(to, extents, {block_idx.y, block_idx.x}));
      bulk_commit();
      bulk_wait();
    });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<half> values = numbers(kRows * kColumns);
  const Buffer x = device.upload<half>(values).value();
  const Buffer y = device.upload<half>(std::vector<half>(values.size(), half(-1.0f))).value();
  const int64_t rows = transposed ? kColumns : kRows, columns = transposed ? kRows : kColumns;
  TensorRef<const half, 2> in = as_tensor<const half>(x, {kRows, kColumns});
  TensorRef<half, 2> out = as_tensor<half>(y, {kRows, kColumns});
  ASSERT_THAT(kernel.launch(stream,
                            {.grid = {(columns + tile_columns - 1) / tile_columns,
                                      (rows + tile_rows - 1) / tile_rows, 1},
                             .block = 32},
                            in, out),
              IsOk());
  const std::vector<half> got = y.download<half>(stream).value();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(values[i])) << i;
  }
}

TEST(TmaAtom, MovesTilesOfEveryLayout) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  for (const int swizzle : {0, 32, 64, 128}) {
    check_tiles(make_smem_layout<half>({64, 64}, Major::k, swizzle), false);
    check_tiles(make_smem_layout<half>({64, 64}, Major::mn, swizzle), true);
  }
  check_tiles(make_smem_layout<half>({128, 128}, Major::k), false);
  check_tiles(make_layout({16, 40}, {40, 1}), false);
}

// Each block of a cluster loads one slice of a tile, for both.
TEST(TmaAtom, SharesTilesInACluster) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto kernel = define_kernel("shared(x, y)", [](Tensor<const half, 2> x, Tensor<half, 3> y) {
    const auto tile = make_smem_tensor<half>(make_smem_layout<half>({32, 64}));
    const TmaAtom load = make_tma_atom(TmaLoad{.slices = 2}, x, tile);
    EXPECT_EQ(load.box(0), 16);
    EXPECT_EQ(load.box(1), 64);
    const Mbarrier full(1);
    If(thread_idx.x == 0, [&] {
      full.init(0, 1u);
      fence_mbarrier_init();
    });
    sync_cluster();
    If(thread_idx.x == 0, [&] {
      full.expect_tx(0, load.bytes());
      const auto there = local_tile(x, {32, 64}, {0, 0});
      load.prefetch(there, cluster_rank());
      copy(load.with(full, 0, Multicast(3u), cluster_rank()), there, tile);
    });
    full.wait(0, 0u);
    for (int r = 0; r < 32; ++r) y(cluster_rank(), r, thread_idx.x) = tile(r, thread_idx.x);
    sync_cluster();
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<half> values = numbers(32 * 64);
  const Buffer x = device.upload<half>(values).value();
  const Buffer y = device.allocate(2 * values.size() * sizeof(half)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 2, .block = 64, .cluster = 2},
                            as_tensor<const half>(x, {32, 64}), as_tensor<half>(y, {2, 32, 64})),
              IsOk());
  const std::vector<half> got = y.download<half>(stream).value();
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(values[i % values.size()])) << i;
  }
}

// The error of a kernel that makes an atom and copies a tile with it.
template <class Make>
std::string mistake(const Make& make) {
  const auto kernel = local_kernel(
      "mistake", [&](Tensor<const half, 2> x, Tensor<const float, 2> f) { make(x, f); });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {128, 1, 1};
  options.stage = Stage::kPtx;
  const Signature signature{tensor({kAny, kAny}), tensor({kAny, kAny})};
  return std::string(kernel.compile(signature, options).status().message());
}

TEST(TmaAtom, SaysWhatNoBoxesCanFill) {
  using Halves = Tensor<const half, 2>;
  using Floats = Tensor<const float, 2>;
  const auto tile_of = [](const Layout& layout) { return make_smem_tensor<half>(layout); };
  EXPECT_THAT(mistake([&](const Halves&, const Floats& f) {
                make_tma_atom(TmaLoad{}, f, tile_of(make_smem_layout<half>({64, 64})));
              }),
              HasSubstr("has elements of another type than the tile\n"
                        "  fix: the copy engine converts nothing: make both of one type"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        make_tma_atom(TmaLoad{}, x, tile_of(make_smem_layout<half>({64, 64, 2})));
      }),
      HasSubstr("has other modes than (rows, columns)\n  fix: slice it until two are left"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        make_tma_atom(TmaLoad{}, zipped_divide(x, {64, 64}),
                      tile_of(make_smem_layout<half>({64, 64})));
      }),
      HasSubstr("has not the modes of a parameter\n  fix: pass the parameter, or select() of its "
                "modes in another order"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        make_tma_atom(TmaLoad{.slices = 3}, x, tile_of(make_smem_layout<half>({64, 64})));
      }),
      HasSubstr("cannot be cut into 3 equal slices of boxes\n  fix: let as many blocks share it as "
                "divide its rows"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        make_tma_atom(TmaLoad{}, x, tile_of(make_smem_layout<half>({64, 64}, Major::mn)));
      }),
      HasSubstr("is not contiguous along the mode that the tile is contiguous along\n  fix: the "
                "copy engine transposes nothing: give the tile the tensor's major"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        const auto tile = tile_of(make_smem_layout<half>({64, 64}));
        const TmaAtom load = make_tma_atom(TmaLoad{}, x, tile);
        copy(load.with(Mbarrier(1), 0), local_tile(x, {32, 64}, {0, 0}), tile);
      }),
      HasSubstr("beside a TMA atom of tiles of 64 x 64\n  fix: cut tensors into tiles of the "
                "atom's extents"));
}

}  // namespace
}  // namespace heddle
