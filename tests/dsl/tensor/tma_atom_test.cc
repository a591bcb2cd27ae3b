// TMA copy atoms: tiles of every major and swizzle, slices for a cluster, and what no boxes can fill.
#include "heddle/dsl/tensor/tma_atom.h"

#include <string>
#include <vector>

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
using ::testing::Not;

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

// z is x, and y twice x, each tile through shared memory of a layout, by a store and by two reductions.
template <int Rank>
void check_modes(const int (&extents)[Rank], const IntTuple& tile_shape, const Layout& layout,
                 int64_t boxes) {
  SCOPED_TRACE(layout.to_string());
  int64_t shape[Rank], count = 1;
  for (int mode = 0; mode < Rank; ++mode) count *= shape[mode] = extents[mode];
  using In = Tensor<const float, Rank>;
  using Out = Tensor<float, Rank>;
  const auto kernel = local_kernel("modes", [&](In x, Out y, Out z) {
    const auto tile = make_smem_tensor<float>(layout);
    const TmaAtom load = make_tma_atom(TmaLoad{}, x, tile);
    const TmaAtom store = make_tma_atom(TmaStore{}, z, tile);
    const TmaAtom add = make_tma_atom(TmaReduce{TmaReduction::add}, y, tile);
    int64_t box = 4;
    for (int mode = 0; mode < rank(layout); ++mode) box *= load.box(mode);
    EXPECT_EQ(load.bytes() / box, boxes);
    const Mbarrier full(1);
    If(thread_idx.x == 0, [&] {
      full.init(0, 1u);
      fence_mbarrier_init();
    });
    sync_threads();
    // Tiles by their number; modes that the tile has not are gone through one by one.
    IntTuple whole = tile_shape;
    for (int mode = rank(layout); mode < Rank; ++mode) whole = append(whole, 1);
    const auto tile_of = [&](const auto& tensor) {
      IntTuple at;
      SymInt number(block_idx.x);
      for (int mode = Rank - 1; mode >= 0; --mode) {
        const int size = static_cast<int>(get(whole, mode).value().value());
        const int tiles = (extents[mode] + size - 1) / size;
        at = prepend(at, mod(number, tiles));
        number = floor_div(number, tiles);
      }
      return local_tile(tensor, whole, Rank == 1 ? get(at, 0) : at);
    };
    If(thread_idx.x == 0, [&] {
      full.expect_tx(0, load.bytes());
      copy(load.with(full, 0), tile_of(x), tile);
    });
    full.wait(0, 0u);
    If(thread_idx.x == 0, [&] {
      copy(store, tile, tile_of(z));
      copy(add, tile, tile_of(y));
      copy(add, tile, tile_of(y));
      bulk_commit();
      bulk_wait();
    });
  });
  int64_t tiles = 1;
  for (int mode = 0; mode < Rank; ++mode) {
    const int64_t size =
        mode < rank(tile_shape) ? get(tile_shape, mode).value().value() : int64_t{1};
    tiles *= (extents[mode] + size - 1) / size;
  }
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  const Buffer x = device.upload<float>(values).value();
  const Buffer y = device.upload<float>(std::vector<float>(values.size(), 0.0f)).value();
  const Buffer z = device.upload<float>(std::vector<float>(values.size(), -1.0f)).value();
  const auto of = [&](auto* type, const Buffer& buffer) {
    using T = std::remove_pointer_t<decltype(type)>;
    return as_tensor<T>(buffer, shape);
  };
  const float* const in = nullptr;
  float* const out = nullptr;
  ASSERT_THAT(
      kernel.launch(stream, {.grid = tiles, .block = 32}, of(in, x), of(out, y), of(out, z)),
      IsOk());
  const std::vector<float> sums = y.download<float>(stream).value();
  const std::vector<float> copies = z.download<float>(stream).value();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(copies[i], values[i]) << i;
    ASSERT_EQ(sums[i], 2 * values[i]) << i;
  }
}

TEST(TmaAtom, HasOneToFiveModes) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  check_modes({1000}, 128, make_layout(128), 1);
  check_modes({1000}, 512, make_layout(512), 2);
  // Images of rows of pixels of channels: one box; and, where a row of all images lies behind the other, a box each.
  check_modes({3, 9, 10, 20}, {2, 4, 5, 8}, make_layout({2, 4, 5, 8}, GenRowMajor{}), 1);
  check_modes({3, 9, 10, 20}, {2, 4, 4, 8}, make_layout({2, 4, 4, 8}, {32, 64, 8, 1}), 4);
  check_modes({2, 3, 5, 6, 8}, {1, 2, 3, 2, 8}, make_layout({1, 2, 3, 2, 8}, GenRowMajor{}), 1);
}

// The error of a kernel that makes an atom and copies a tile with it.
template <class Make>
std::string mistake(const Make& make) {
  const auto kernel = local_kernel(
      "mistake", [&](Tensor<const half, 2> x, Tensor<const float, 2> f) { make(x, f); });
  return compile_error(kernel, {tensor({kAny, kAny}), tensor({kAny, kAny})});
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
      HasSubstr("has more modes than the tensor's 2\n  fix: slice it until as many are left"));
  // A line of 16 bytes under a slice of 4 rows, and one of a swizzle under 4 lines.
  for (const Layout& layout : {make_layout({16, 8}, {8, 1}), make_smem_layout<half>({16, 64})}) {
    EXPECT_THAT(mistake([&](const Halves& x, const Floats&) {
                  make_tma_atom(TmaLoad{.slices = 4}, x, tile_of(layout));
                }),
                HasSubstr("has boxes at places that are no multiples of 128 bytes"));
  }
  const auto copied = [&](const TmaLoad& load, const auto& there) {
    return mistake([&](const Halves& x, const Floats&) {
      const auto tile = tile_of(make_smem_layout<half>({64, 64}));
      const Mbarrier full(1);
      copy(make_tma_atom(load, x, tile).with(full, 0), there(x), tile);
    });
  };
  EXPECT_THAT(
      copied({},
             [](const Halves& x) {
               return local_tile(select(x, {1, 0}), {64, 64}, {0, 0});
             }),
      HasSubstr("is no tile of the tensor that its TMA atom is made of\n  fix: cut tiles from "
                "that tensor, with its modes in the same order"));
  // A tile of another parameter, with the same modes.
  using Same = Tensor<const half, 2>;
  const auto other = [&](const auto& use) {
    const auto kernel = local_kernel("other", [&](Same x, Same y) {
      const auto tile = tile_of(make_smem_layout<half>({64, 64}));
      use(make_tma_atom(TmaLoad{}, x, tile), local_tile(y, {64, 64}, {0, 0}), tile);
    });
    return compile_error(kernel, {tensor({kAny, kAny}), tensor({kAny, kAny})});
  };
  EXPECT_THAT(other([](const TmaAtom& load, const auto& there, const auto& tile) {
                const Mbarrier full(1);
                copy(load.with(full, 0), there, tile);
              }),
              HasSubstr("copy: tensor<ptr<f16, gmem> o (64,64):(?,1)> is no tile of the tensor"));
  EXPECT_THAT(
      other([](const TmaAtom& load, const auto& there, const auto&) { load.prefetch(there); }),
      HasSubstr("prefetch: tensor<ptr<f16, gmem> o (64,64):(?,1)> is no tile of the tensor"));
  EXPECT_THAT(
      copied({.slices = 2},
             [](const Halves& x) {
               return local_tile(x, {64, 64}, {0, 0});
             }),
      HasSubstr("a TMA atom of 2 slices without the blocks that share them\n  fix: give with() the "
                "blocks and the slice, or make an atom without slices"));
  EXPECT_THAT(mistake([&](const Halves& x, const Floats&) {
                make_tma_atom(TmaLoad{}, x, tile_of(make_layout({8, 16}, {24, 1})));
              }),
              HasSubstr("has boxes at places that are no multiples of 128 bytes\n  fix: "
                        "make_smem_layout() makes layouts for the copy engine"));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        make_tma_atom(TmaLoad{}, select(x, {0, 0}), tile_of(make_smem_layout<half>({64, 64})));
      }),
      HasSubstr("has two modes along one of a parameter"));
  // Tiles that the boxes of another layout fill, or none.
  const auto beside = [&](const Layout& layout) {
    return mistake([&](const Halves& x, const Floats&) {
      const TmaAtom load = make_tma_atom(TmaLoad{}, x, tile_of(make_smem_layout<half>({64, 64})));
      copy(load.with(Mbarrier(1), 0), local_tile(x, {64, 64}, {0, 0}), tile_of(layout));
    });
  };
  for (const Layout& layout :
       {make_smem_layout<half>({64, 64}, Major::k, 64), make_smem_layout<half>({64, 64}, Major::mn),
        make_layout({64, 64}, {64, 1})}) {
    EXPECT_THAT(
        beside(layout),
        HasSubstr("of f16, whose boxes lie otherwise\n  fix: make the atom of the tile that "
                  "it copies, or of one with the same layout"));
  }
  EXPECT_THAT(beside(make_layout({64, 64}, {2, 128})), HasSubstr("is contiguous along no mode"));
  EXPECT_THAT(beside(slice({_, _, 1}, make_smem_layout<half>({64, 64, 2}))),
              Not(HasSubstr("boxes")));
  EXPECT_THAT(
      mistake([&](const Halves& x, const Floats&) {
        const TmaAtom load = make_tma_atom(TmaLoad{}, x, tile_of(make_layout({64, 64}, {64, 1})));
        copy(load.with(Mbarrier(1), 0), local_tile(x, {64, 64}, {0, 0}),
             make_smem_tensor<int16_t>(make_layout({64, 64}, {64, 1})));
      }),
      HasSubstr("beside a TMA atom of tiles of (64,64):(64,1) of f16"));
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
