#include "heddle/kernels/gemm/multistage.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {
namespace {

constexpr int kVector = MultistageConfig::kVector, kColumns = MultistageConfig::kColumns;

template <class T>
TiledMma products_of(const MultistageConfig& c) {
  if (c.wgmma) {
    return make_tiled_mma(make_mma_atom(Wgmma<T, T, float>{c.n}), {c.rows / 4, 1, 1});
  }
  return make_tiled_mma(make_mma_atom(MmaSync<T, T, float>{kWarpRows, 8, 16}),
                        {c.rows, c.columns, 1}, {_, kColumns * c.columns, _});
}

template <class T>
TiledCopy copies_of(const MultistageConfig& c) {
  const int width = c.k / kVector;
  return make_tiled_copy(make_copy_atom<T>(CopyAsync{8 * kVector * sizeof(T)}),
                         make_layout({c.threads() / width, width}, {width, 1}),
                         make_layout({1, kVector}));
}

template <class T>
void multistage_body(const MultistageConfig& c, const Tensor<const T, 2>& a,
                     const Tensor<const T, 2>& b, const Tensor<T, 2>& d) {
  const TiledMma mma = products_of<T>(c);
  require_block(c.threads());
  const Int rows = ceil_div(d.shape(0), c.m), columns = ceil_div(d.shape(1), c.n);
  launch_grid(rows * columns);
  const Tile tile = PersistentTiles(rows, columns, 1, {.band = c.band}).at(block_idx.x);
  const auto sA = make_smem_tensor<T>(make_smem_layout_A(mma, {c.m, c.k, c.stages}));
  const auto sB = make_smem_tensor<T>(make_smem_layout_B(mma, {c.n, c.k, c.stages}));
  const auto gA = local_tile(a, {c.m, c.k}, {tile.row, _});
  const auto gB = local_tile(b, {c.n, c.k}, {tile.column, _});
  const auto d_tile = local_tile(d, {c.m, c.n}, {tile.row, tile.column});
  const Int blocks = ceil_div(a.shape(1), c.k);
  const int under_way = c.wgmma ? 1 : 0;

  // What lies outside of the matrices becomes zeros, by either copy.
  const auto multiply = [&](const auto& pipe, const auto& fill) {
    pipe.start();
    for (int k = 0; k < pipe.lead(); ++k) fill(k, pipe.producer(k));
    const ThrMma mine = mma.get_slice(thread_idx.x);
    const auto part = mine.partition_C(d_tile);
    const auto none = make_fragment_like<float>(part);
    clear(none);
    using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
    const Loop begin(make_accumulator(mma, none), pipe.consumer(), 0);
    const Loop end = For(range(blocks), begin, [&](const Int& k, const Loop& so_far) {
      const auto& [sum, p, last] = so_far;
      const Int& before = last;  // clang 14 captures no structured binding
      pipe.wait(p);
      fill(k + pipe.lead(), pipe.ahead(p));
      const auto more = gemm(mine, sA(_, _, p.index), sB(_, _, p.index), sum);
      wait(mma, under_way);
      if (under_way == 0) pipe.release(p);
      if (under_way == 1) If(k > 0, [&] { pipe.release(before); });
      return Loop(more, pipe.next(p), p.index);
    });
    copy_if(within(part), settle(std::get<0>(end)), part);
  };

  if (c.tma) {
    const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
    const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB(_, _, 0));
    const TmaPipeline pipe({.stages = c.stages,
                            .bytes = load_a.bytes() + load_b.bytes(),
                            .consumers = c.threads() / kWarpGroupSize,
                            .by_warps = !c.wgmma,
                            .under_way = under_way});
    multiply(pipe, [&](const Int& k, const PipelineState& p) {
      If(warp_id() == 0 && k < blocks, [&] {
        pipe.produce(p, [&](const FullStage& stage) {
          copy(stage.load(load_a), gA(_, _, k), sA(_, _, p.index));
          copy(stage.load(load_b), gB(_, _, k), sB(_, _, p.index));
        });
      });
    });
    return;
  }
  const TiledCopy load = copies_of<T>(c);
  const AsyncPipeline pipe({.stages = c.stages, .wgmma = c.wgmma, .under_way = under_way});
  multiply(pipe, [&](const Int& k, const PipelineState& p) {
    pipe.produce(p, [&](const AsyncStage& stage) {
      If(k < blocks, [&] {
        copy(stage.load(load), gA(_, _, k), sA(_, _, p.index));
        copy(stage.load(load), gB(_, _, k), sB(_, _, p.index));
      });
    });
  });
}

template <class T>
const auto& multistage_kernel(const MultistageConfig& config) {
  static const auto kernels =
      kernel_family("gemm_multistage(a, b, d)",
                    [](Host<MultistageConfig> c, Tensor<const T, 2> a, Tensor<const T, 2> b,
                       Tensor<T, 2> d) { multistage_body<T>(c, a, b, d); });
  return kernels(config);
}

// Whether rows of a matrix start at multiples of a copy's bytes, and end at one.
template <class T>
bool has_vectors(const TensorRef<const T, 2>& x) {
  const auto address = reinterpret_cast<uintptr_t>(x.data);
  return x.strides[1] == 1 && x.strides[0] % kVector == 0 && x.extents[1] % kVector == 0 &&
         address % (kVector * sizeof(T)) == 0;
}

template <class T>
Status launch_gemm(const Stream& stream, const MultistageConfig& config,
                   const TensorRef<const T, 2>& a, const TensorRef<const T, 2>& b,
                   const TensorRef<T, 2>& d) {
  const int64_t m = a.extents[0], n = b.extents[0], k = a.extents[1];
  if (b.extents[1] != k || d.extents[0] != m || d.extents[1] != n || k == 0) {
    return InvalidArgumentError(absl::StrCat(
        "gemm_multistage: a is ", m, " x ", k, ", b ", n, " x ", b.extents[1], " and d ",
        d.extents[0], " x ", d.extents[1], "; a takes m x k, b n x k and d m x n, with k above 0"));
  }
  if (!has_vectors(a) || !has_vectors(b)) {
    return InvalidArgumentError(absl::StrCat(
        "gemm_multistage: rows of a and b start at multiples of 16 bytes, and k, which is ", k,
        ", is a multiple of ", kVector, "; pad the rows with zeros"));
  }
  if (Status s = check_multistage(config, stream.device().info()); !s.ok()) return s;
  if (m == 0 || n == 0) return OkStatus();
  return multistage_kernel<T>(config).launch(stream, {.block = config.threads()}, a, b, d);
}

}  // namespace

#define HEDDLE_DEFINE_MULTISTAGE(T)                                                         \
  Status gemm_multistage(const Stream& stream, const TensorRef<const T, 2>& a,              \
                         const TensorRef<const T, 2>& b, const TensorRef<T, 2>& d) {        \
    return launch_gemm(stream, choose_multistage(stream.device().info()), a, b, d);         \
  }                                                                                         \
  Status gemm_multistage_by(const Stream& stream, const MultistageConfig& config,           \
                            const TensorRef<const T, 2>& a, const TensorRef<const T, 2>& b, \
                            const TensorRef<T, 2>& d) {                                     \
    return launch_gemm(stream, config, a, b, d);                                            \
  }                                                                                         \
  static_assert(true)
HEDDLE_DEFINE_MULTISTAGE(half);
HEDDLE_DEFINE_MULTISTAGE(bfloat16);

}  // namespace heddle::kernels
