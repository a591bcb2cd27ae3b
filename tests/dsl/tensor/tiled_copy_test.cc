// Tiled copies over every atom: each thread gets the elements that the layouts say.
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using testing::ElementsAreArray;

constexpr int kRows = 32, kColumns = 64;

template <class T>
std::vector<T> numbers(int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(T(static_cast<float>(i % 2048)));
  return values;
}

// Runs body(x, y) on matrices of kRows x kColumns; gives back y.
template <class T, class Body>
StatusOr<std::vector<T>> run_tile(int threads, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel("tile(x, y)", [&](Tensor<const T, 2> x, Tensor<T, 2> y) {
    body(local_tile(x, {kRows, kColumns}, {0, 0}), local_tile(y, {kRows, kColumns}, {0, 0}));
  });
  const std::vector<T> values = numbers<T>(kRows * kColumns);
  const Buffer x = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer y = device.upload(absl::MakeConstSpan(std::vector<T>(values.size()))).value();
  Status status =
      kernel.launch(stream, {.block = threads}, as_tensor<const T>(x, {kRows, kColumns}),
                    as_tensor<T>(y, {kRows, kColumns}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status;
  return y.download<T>(stream);
}

template <class T>
void expect_same(const StatusOr<std::vector<T>>& got) {
  ASSERT_THAT(got, IsOk());
  const std::vector<T> want = numbers<T>(kRows * kColumns);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(static_cast<float>((*got)[i]), static_cast<float>(want[i])) << i;
  }
}

TEST(TiledCopies, UniversalOfEveryWidth) {
  for (const int bits : {32, 64, 128}) {
    expect_same(run_tile<float>(64, [bits](auto x, auto y) {
      const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyUniversal{bits}),
                                         make_layout({4, 16}, {16, 1}), make_layout({1, 4}));
      const auto mine = tiled.get_slice(thread_idx.x);
      const auto from = mine.partition_S(x);
      const auto to = mine.partition_D(y);
      const auto r = make_fragment_like(from);
      copy(tiled, from, r);
      copy(tiled, r, to);
    }));
  }
}

// Threads and values in a row are a tile of one mode.
TEST(TiledCopies, OfVectors) {
  expect_same(run_tile<float>(16, [](auto x, auto y) {
    const auto tiled =
        make_tiled_copy(make_copy_atom<float>(CopyUniversal{128}), make_layout(16), make_layout(4));
    EXPECT_EQ(tiled.tiler().to_string(), "(64)");
    const auto mine = tiled.get_slice(thread_idx.x);
    for (int row = 0; row < kRows; ++row) {
      copy(tiled, mine.partition_S(x(row, _)), mine.partition_D(y(row, _)));
    }
  }));
}

TEST(TiledCopies, AsynchronousIntoASwizzledTile) {
  for (const int bits : {32, 64, 128}) {
    expect_same(run_tile<float>(64, [bits](auto x, auto y) {
      const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyAsync{bits}),
                                         make_layout({4, 16}, {16, 1}), make_layout({1, 4}));
      const auto tile = make_smem_tensor<float>(
          make_composed_layout(Swizzle(3, 2, 3), 0, make_layout({kRows, kColumns}, {kColumns, 1})));
      const auto mine = tiled.get_slice(thread_idx.x);
      copy(tiled, mine.partition_S(x), mine.partition_D(tile));
      copy_async_commit();
      copy_async_wait(0);
      sync_threads();
      const Layout others = make_layout({16, 4});
      copy(local_partition(tile, others, thread_idx.x), local_partition(y, others, thread_idx.x));
    }));
  }
}

TEST(TiledCopies, AsynchronousOnesFillWithZerosOutsideTheShape) {
  const auto got = run_tile<float>(64, [](auto x, auto y) {
    const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyAsync{128}),
                                       make_layout({4, 16}, {16, 1}), make_layout({1, 4}));
    const auto tile = make_smem_tensor<float>(make_layout({kRows, kColumns}, {kColumns, 1}));
    const auto mine = tiled.get_slice(thread_idx.x);
    const auto where = mine.partition_S(make_identity_tensor({kRows, kColumns}));
    copy_if(tiled, within(where, {20, 32}), mine.partition_S(x), mine.partition_D(tile));
    copy_async_commit();
    copy_async_wait(0);
    sync_threads();
    copy(mine.partition_S(tile), mine.partition_D(y));
  });
  ASSERT_THAT(got, IsOk());
  const auto want = numbers<float>(kRows * kColumns);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      const float there = i < 20 && j < 32 ? want[i * kColumns + j] : 0;
      ASSERT_EQ((*got)[i * kColumns + j], there) << i << " " << j;
    }
  }
}

// What a tensor core's m16n8k16 takes as A: thread and value to the index in 16 x 16, first mode
// first (PTX ISA, mma.m16n8k16).
Layout fragments_of_a() { return make_layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}}); }

// Loads all of x, 16 x 16 at a time, as such fragments, and stores each thread's values where the
// layout says that they come from.
template <class Load>
auto through_fragments(Load load) {
  return [load](auto x, auto y) {
    const auto tile = make_smem_tensor<half>(
        make_composed_layout(Swizzle(3, 3, 3), 0, make_layout({kRows, kColumns}, {kColumns, 1})));
    const Layout rows = make_layout({1, 32});
    copy(local_partition(x, rows, thread_idx.x), local_partition(tile, rows, thread_idx.x));
    sync_threads();
    const auto registers = load(tile);  // (8,2,4)
    const auto to = zipped_divide(y, {16, 16});
    for (int m = 0; m < 2; ++m) {
      for (int n = 0; n < 4; ++n) {
        const auto part = composition(to.slice({_, {m, n}}), fragments_of_a())(thread_idx.x, _);
        for (int v = 0; v < 8; ++v) part(v) = registers(v, m, n);
      }
    }
  };
}

TEST(TiledCopies, LdMatrixGivesTensorCoresWhatTheyTake) {
  for (const int matrices : {1, 2, 4}) {
    expect_same(
        run_tile<half>(32, through_fragments([matrices](const auto& tile) {
                         const TiledCopy tiled(make_copy_atom<half>(LdMatrix{matrices}),
                                               fragments_of_a(), {16, 16});
                         const auto mine = tiled.get_slice(thread_idx.x);
                         const auto registers = make_tensor<half>(make_layout({{2, 2, 2}, 2, 4}));
                         copy(tiled, mine.partition_S(tile), mine.retile(registers));
                         return registers;
                       })));
  }
}

TEST(TiledCopies, LdMatrixTransposesWhatLiesTheOtherWay) {
  // The tile's columns lie together: rows of the matrices are columns of the tile.
  expect_same(run_tile<half>(32, [](auto x, auto y) {
    const auto tile = make_smem_tensor<half>(make_layout({kRows, kColumns}));
    const Layout rows = make_layout({1, 32});
    copy(local_partition(x, rows, thread_idx.x), local_partition(tile, rows, thread_idx.x));
    sync_threads();
    const TiledCopy tiled(make_copy_atom<half>(LdMatrix{4, true}), fragments_of_a(), {16, 16});
    const auto mine = tiled.get_slice(thread_idx.x);
    const auto registers = make_tensor<half>(make_layout({{2, 2, 2}, 2, 4}));
    copy(tiled, mine.partition_S(tile), mine.retile(registers));
    const auto to = zipped_divide(y, {16, 16});
    for (int m = 0; m < 2; ++m) {
      for (int n = 0; n < 4; ++n) {
        const auto part = composition(to.slice({_, {m, n}}), fragments_of_a())(thread_idx.x, _);
        for (int v = 0; v < 8; ++v) part(v) = registers(v, m, n);
      }
    }
  }));
}

TEST(TiledCopies, StMatrixPutsFragmentsBack) {
  if (!has_clusters()) GTEST_SKIP() << "stmatrix came with sm_90";
  for (const int matrices : {1, 2, 4}) {
    expect_same(run_tile<half>(32, [matrices](auto x, auto y) {
      const auto tile = make_smem_tensor<half>(
          make_composed_layout(Swizzle(3, 3, 3), 0, make_layout({kRows, kColumns}, {kColumns, 1})));
      const auto registers = make_tensor<half>(make_layout({{2, 2, 2}, 2, 4}));
      const auto from = zipped_divide(x, {16, 16});
      for (int m = 0; m < 2; ++m) {
        for (int n = 0; n < 4; ++n) {
          copy(composition(from.slice({_, {m, n}}), fragments_of_a())(thread_idx.x, _),
               registers(_, m, n));
        }
      }
      const TiledCopy tiled(make_copy_atom<half>(StMatrix{matrices}), fragments_of_a(), {16, 16});
      const auto mine = tiled.get_slice(thread_idx.x);
      copy(tiled, mine.retile(registers), mine.partition_D(tile));
      sync_threads();
      const Layout rows = make_layout({1, 32});
      copy(local_partition(tile, rows, thread_idx.x), local_partition(y, rows, thread_idx.x));
    }));
  }
}

TEST(TiledCopies, LayoutsAreThoseOfCuTe) {
  // sgemm_sm80's copy of A: 32 x 8 threads, four values each, by 16 bytes.
  const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyAsync{128}), make_layout({32, 8}),
                                     make_layout({4, 1}));
  EXPECT_EQ(tiled.layout_S_tv().to_string(), tiled.layout_D_tv().to_string());
  EXPECT_EQ(tiled.tiler().to_string(), "(128,8)");
  EXPECT_EQ(size(tiled.layout_S_tv()).value(), 1024);
  const TiledCopy matrices(make_copy_atom<half>(LdMatrix{4}), fragments_of_a(), {16, 16});
  // Lane l has row l % 16 of the left or right half; its eight elements lie along the row.
  const Layout source = matrices.layout_S_tv();
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 8; ++v) {
      EXPECT_EQ(source({lane, v}).value().value(), lane % 16 + 16 * (lane / 16 * 8 + v));
    }
  }
}

}  // namespace
}  // namespace heddle
