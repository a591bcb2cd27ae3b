// Blocks of four warps multiply tiles that come by cp.async, several stages ahead, and go to the tensor
// cores' registers by ldmatrix.
#include "heddle/kernels/gemm_sm80.h"

#include <tuple>

#include "absl/strings/str_cat.h"

namespace heddle::kernels {
namespace {

constexpr int kM = 128, kN = 128, kK = 32;  // a block's tile
constexpr int kStages = 4;                  // of a and b in shared memory
constexpr int kVector = 8;                  // elements of a copy
constexpr int kThreads = 128;
constexpr int kRaster = 8;  // tiles below each other before the next column of tiles

template <class T>
void gemm_sm80_body(Tensor<const T, 2> a, Tensor<const T, 2> b, Tensor<T, 2> d) {
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(MmaSync<T, T, float>{16, 8, 16}), {2, 2, 1}, {_, 32, _});
  const TiledCopy copies = make_tiled_copy(make_copy_atom<T>(CopyAsync{8 * kVector * sizeof(T)}),
                                           make_layout({32, kK / kVector}, {kK / kVector, 1}),
                                           make_layout({1, kVector}));
  require_block(kThreads);
  const Int rows = ceil_div(d.shape(0), kM), columns = ceil_div(d.shape(1), kN);
  launch_grid(rows * columns);
  const Int strip = block_idx.x / (columns * kRaster);
  const Int height = min(rows - strip * kRaster, Int(kRaster));
  const Int in_strip = block_idx.x - strip * (columns * kRaster);
  const Int row = strip * kRaster + in_strip % height, column = in_strip / height;

  const auto sA = make_smem_tensor<T>(make_smem_layout_A(mma, {kM, kK, kStages}));
  const auto sB = make_smem_tensor<T>(make_smem_layout_B(mma, {kN, kK, kStages}));
  const Int blocks = ceil_div(a.shape(1), kK);
  const AsyncPipeline pipe({.stages = kStages});
  const ThrCopy copier = copies.get_slice(thread_idx.x);
  const auto a_from = copier.partition_S(local_tile(a, {kM, kK}, {row, _}));
  const auto b_from = copier.partition_S(local_tile(b, {kN, kK}, {column, _}));
  const auto a_to = copier.partition_D(sA), b_to = copier.partition_D(sB);
  // What lies outside of the matrices becomes zeros.
  const auto load = [&](const Int& k, const PipelineState& p) {
    const auto fill = [&](const auto& from, const auto& to) {
      copy_if(copies, within(from), from, to);
    };
    pipe.produce(p, [&](const AsyncStage&) {
      If(k < blocks, [&] {
        fill(a_from(_, _, _, k), a_to(_, _, _, p.index));
        fill(b_from(_, _, _, k), b_to(_, _, _, p.index));
      });
    });
  };
  for (int k = 0; k < pipe.lead(); ++k) load(k, pipe.producer(k));

  const ThrMma mine = mma.get_slice(thread_idx.x);
  const auto d_tile = mine.partition_C(local_tile(d, {kM, kN}, {row, column}));
  const auto none = make_fragment_like<float>(d_tile);
  clear(none);
  const auto [sums, last] =
      For(range(blocks), std::tuple(make_accumulator(mma, none), pipe.consumer()),
          [&](const Int& k, const std::tuple<AccumulatorTile<float>, PipelineState>& so_far) {
            const auto& [sum, p] = so_far;
            pipe.wait(p);
            load(k + pipe.lead(), pipe.ahead(p));
            const auto more = gemm(mine, sA(_, _, p.index), sB(_, _, p.index), sum);
            pipe.release(p);
            return std::tuple(more, pipe.next(p));
          });
  copy_if(within(d_tile), settle(sums), d_tile);
}

}  // namespace

template <class T>
const Kernel<Tensor<const T, 2>, Tensor<const T, 2>, Tensor<T, 2>>& gemm_sm80_kernel() {
  static const auto kernel = define_kernel("gemm_sm80(a, b, d)", gemm_sm80_body<T>);
  return kernel;
}
template const Kernel<Tensor<const half, 2>, Tensor<const half, 2>, Tensor<half, 2>>&
gemm_sm80_kernel<half>();
template const Kernel<Tensor<const bfloat16, 2>, Tensor<const bfloat16, 2>, Tensor<bfloat16, 2>>&
gemm_sm80_kernel<bfloat16>();

namespace {

// Whether rows of a matrix start at multiples of a copy's bytes, and end at one.
template <class T>
bool has_vectors(const TensorRef<const T, 2>& x) {
  const auto address = reinterpret_cast<uintptr_t>(x.data);
  return x.strides[1] == 1 && x.strides[0] % kVector == 0 && x.extents[1] % kVector == 0 &&
         address % (kVector * sizeof(T)) == 0;
}

template <class T>
Status launch_gemm(const Stream& stream, const TensorRef<const T, 2>& a,
                   const TensorRef<const T, 2>& b, const TensorRef<T, 2>& d) {
  const int64_t m = a.extents[0], n = b.extents[0], k = a.extents[1];
  if (b.extents[1] != k || d.extents[0] != m || d.extents[1] != n || k == 0) {
    return InvalidArgumentError(absl::StrCat(
        "gemm_sm80: a is ", m, " x ", k, ", b ", n, " x ", b.extents[1], " and d ", d.extents[0],
        " x ", d.extents[1], "; a takes m x k, b n x k and d m x n, with k above 0"));
  }
  if (!has_vectors(a) || !has_vectors(b)) {
    return InvalidArgumentError(
        absl::StrCat("gemm_sm80: rows of a and b start at multiples of 16 bytes, and k, which is ",
                     k, ", is a multiple of ", kVector, "; pad the rows with zeros"));
  }
  if (m == 0 || n == 0) return OkStatus();
  return gemm_sm80_kernel<T>().launch(stream, {.block = kThreads}, a, b, d);
}

}  // namespace

Status gemm_sm80(const Stream& stream, const TensorRef<const half, 2>& a,
                 const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d) {
  return launch_gemm(stream, a, b, d);
}
Status gemm_sm80(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
                 const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d) {
  return launch_gemm(stream, a, b, d);
}

}  // namespace heddle::kernels
