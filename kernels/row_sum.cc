#include "heddle/kernels/row_sum.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/vectors.h"

namespace heddle::kernels {
namespace {

// Loads in flight for each thread before their sums are needed: 64 bytes, enough to cover the
// latency of memory with half of an SM's threads resident.
constexpr int kUnroll = 4;
// Rows up to this many vectors a lane are a warp's work; longer ones a block's.
constexpr int kWarpRowVectors = 2 * kUnroll;
constexpr int kWarpsPerBlock = 8;
constexpr int kMaxThreads = 512;

// The elements of a fragment from `first` on, summed in a tree.
template <class T>
Float sum_of(const Fragment<T>& v, int first, int count) {
  if (count == 1) return cast<float>(v[first]);
  return sum_of(v, first, count / 2) + sum_of(v, first + count / 2, count / 2);
}

// The part of a row that thread `lane` of `threads` sums: whole vectors, kUnroll of them at a time,
// then one at a time, then single elements. Index is Int or Int64.
template <class T, class Index>
Float partial_sum(const Tensor<const T, 2>& x, const Int& row, const Index& columns,
                  const Index& lane, int threads) {
  const int width = x.vector_width(kVectorBytes);
  const auto load = [&](const Index& column) {
    return sum_of(x.elements(width, row, column), 0, width);
  };
  const int sweep = threads * width;  // elements that the threads take with one load each
  const Index first = lane * width;
  const Index bulk = columns / (sweep * kUnroll) * (sweep * kUnroll);
  const Index whole = columns / width * width;

  using Sums = std::array<Float, kUnroll>;
  Sums sums = For(
      range(first, bulk, sweep * kUnroll), Sums{0, 0, 0, 0},
      [&](const Index& column, const Sums& sum) {
        const Float loaded[] = {load(column), load(column + sweep), load(column + 2 * sweep),
                                load(column + 3 * sweep)};
        return Sums{sum[0] + loaded[0], sum[1] + loaded[1], sum[2] + loaded[2], sum[3] + loaded[3]};
      });
  Float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Float with_rest = For(range(bulk + first, whole, sweep), sum,
                        [&](const Index& column, Float acc) { return acc + load(column); });
  if (width == 1) return with_rest;
  return For(range(whole + lane, columns, threads), with_rest,
             [&](const Index& column, Float acc) { return acc + cast<float>(x(row, column)); });
}

// The threads along x share a row, the block's y counts rows: a block a row, or a warp a row.
template <class T>
void row_sum_body(Tensor<const T, 2> x, Tensor<float, 1> y) {
  const int threads = block_shape().x;
  const int rows_per_block = threads_per_block() / threads;
  // Rows past the end repeat the last one, so that whole warps stay together; they store nothing.
  Int own_row = block_idx.x * rows_per_block + thread_idx.y;
  Int row = min(own_row, y.shape(0) - 1);
  Float sum = x.extent_fits_32(1)
                  ? partial_sum(x, row, x.shape(1), Int(thread_idx.x), threads)
                  : partial_sum(x, row, x.shape64(1), cast<int64_t>(thread_idx.x), threads);
  Float total = rows_per_block > 1 ? warp_reduce(sum, plus()) : block_reduce(sum, plus());
  If(thread_idx.x == 0 && own_row < y.shape(0), [&] { y(row) = total; });
}

}  // namespace

template <class T>
const Kernel<Tensor<const T, 2>, Tensor<float, 1>>& row_sum_kernel() {
  static const auto kernel = define_kernel("row_sum(x, y)", row_sum_body<T>);
  return kernel;
}
template const Kernel<Tensor<const float, 2>, Tensor<float, 1>>& row_sum_kernel<float>();
template const Kernel<Tensor<const half, 2>, Tensor<float, 1>>& row_sum_kernel<half>();
template const Kernel<Tensor<const bfloat16, 2>, Tensor<float, 1>>& row_sum_kernel<bfloat16>();

LaunchShape row_sum_shape(int64_t rows, int64_t columns, int element_bytes) {
  const int64_t width = kVectorBytes / element_bytes;
  if (columns <= kWarpSize * width * kWarpRowVectors) {
    return {.grid = (rows + kWarpsPerBlock - 1) / kWarpsPerBlock,
            .block = {kWarpSize, kWarpsPerBlock}};
  }
  const int64_t wanted = columns / (width * kUnroll);
  const int64_t threads = std::min<int64_t>(
      kMaxThreads, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(wanted))));
  return {.grid = rows, .block = threads};
}

namespace {

template <class T>
Status launch_row_sum(const Stream& stream, const TensorRef<const T, 2>& x,
                      const TensorRef<float, 1>& y) {
  const int64_t rows = x.extents[0];
  if (y.extents[0] != rows) {
    return InvalidArgumentError(absl::StrCat("row_sum: x has ", rows, " rows and y ", y.extents[0],
                                             " elements; y takes one element a row"));
  }
  if (rows == 0) return OkStatus();
  return row_sum_kernel<T>().launch(stream, row_sum_shape(rows, x.extents[1], sizeof(T)), x, y);
}

}  // namespace

Status row_sum(const Stream& stream, const TensorRef<const float, 2>& x,
               const TensorRef<float, 1>& y) {
  return launch_row_sum(stream, x, y);
}
Status row_sum(const Stream& stream, const TensorRef<const half, 2>& x,
               const TensorRef<float, 1>& y) {
  return launch_row_sum(stream, x, y);
}
Status row_sum(const Stream& stream, const TensorRef<const bfloat16, 2>& x,
               const TensorRef<float, 1>& y) {
  return launch_row_sum(stream, x, y);
}

}  // namespace heddle::kernels
