// A plug-in with a word of every header of the kernel language, each a kernel named after its
// header. It links headers alone: what these call is in the program that loads it.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/runtime/operation/registry.h"
// Those that the umbrella does not bring.
#include "heddle/dsl/cuda/timeline.h"
#include "heddle/dsl/extend/custom_function.h"
#include "heddle/dsl/extend/replace_op.h"
#include "heddle/dsl/layout/calculator.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/dsl/mma/draw_mma.h"
#include "heddle/dsl/tensor/draw_atom.h"

namespace {

using namespace heddle;
using X = Tensor<const float, 1>;
using Y = Tensor<float, 1>;
using WordKernel = Kernel<X, Y, Int>;

struct Word {
  Word(const char* header, void (*body)(X, Y, Int))
      : kernel(define_kernel("word(x, y, n)", body)),
        registered({.name = header,
                    .summary = "a word of that header",
                    .arguments = {"x: f32[n]", "y: f32[n]", "at: i32"},
                    .functions = {host_function([this](const Stream& stream,
                                                       const TensorRef<const float, 1>& x,
                                                       const TensorRef<float, 1>& y, int at) {
                      return kernel.launch(stream, {.block = 128}, x, y, at);
                    })},
                    .settings = {{.name = "at", .default_value = "0"}},
                    .sizes = {{"n", 1024}}}) {}

  WordKernel kernel;
  Registered registered;
};

// Offsets of 16-byte accesses.
Int aligned(const Int& n) { return assume_divisible(n, 4); }

const Word async("dsl/cuda/async.h", [](X x, Y y, Int n) {
  const Shared<float> tile(256);
  copy_async<1>(tile.at(thread_idx.x), x.at(n));
  copy_async_commit();
  copy_async_wait(0);
  named_barrier_sync(1, 128);
  y(n) = tile(thread_idx.x);
});
const Word atomic("dsl/cuda/atomic.h", [](X x, Y y, Int n) {
  atomic_add(y(n), x(n));
  memory_fence();
});
const Word builtins("dsl/cuda/builtins.h", [](X x, Y y, Int n) {
  sync_warp();
  y(n) = shfl_down(Float(x(n)), 1) + cast<float>(ballot(x(n) > 0.0f)) + cast<float>(redux_add(n)) +
         cast<float>(at_launch(n * 3)) + select(assume_uniform(n > 3), 1.0f, 2.0f);
  device_assert(n >= 0);
});
const Word bulk("dsl/cuda/bulk.h", [](X x, Y y, Int) {
  const Shared<float> tile(256);
  const Mbarrier full(1);
  bulk_load(tile.at(0), x.at(0), 256, full, 0);
  fence_async();
  bulk_store(y.at(0), tile.at(0), 256);
  bulk_add(y.at(0), tile.at(0), 256);
  bulk_commit();
  bulk_wait();
});
const Word timeline("dsl/cuda/timeline.h", [](X x, Y y, Int) {
  const Timeline off;
  const auto range = off.range("copy");
  y(thread_idx.x) = x(thread_idx.x);
});
const Word tensor_map("dsl/cuda/tensor_map.h", [](X x, Y y, Int) {
  const TensorMap from(x, {32});
  const TensorMap to(y, {32});
  const Shared<float> tile(32);
  const Mbarrier full(1);
  from.prefetch();
  tma_load(tile.at(0), from, {0}, full, 0);
  full.wait(0, 0);
  tma_store(to, {0}, tile.at(0));
  tma_add(to, {0}, tile.at(0));
  bulk_commit();
  bulk_wait();
});
const Word cluster("dsl/cuda/cluster.h", [](X x, Y y, Int n) {
  const Shared<float> all(128);
  all(thread_idx.x) = x(n);
  sync_cluster();
  y(n) = map_shared(all, cluster_rank())(thread_idx.x);
  sync_cluster();
});
const Word complex("dsl/math/complex.h", [](X x, Y y, Int n) {
  const Complex<float> z = {x(n), x(n + 1)};
  y(n) = exp(z * conj(z)).re;
});
const Word control("dsl/control.h", [](X x, Y y, Int n) {
  For(range(n), [&](Int i) {
    If(x(i) < 0.0f, [&] { Break(); });
    y(i) = x(i);
  });
});
const Word debug("dsl/cuda/debug.h", [](X x, Y y, Int n) {
  device_printf("%d: %f\n", n, x(n));
  y(n) = cast<float>(clock64());
  If(n < 0, [&] { device_trap(); });
});
const Word divmod("dsl/math/divmod.h", [](X x, Y y, Int n) {
  const FastDivmod columns(n);
  y(thread_idx.x / columns) = x(thread_idx.x % columns);
});
const Word umbrella("dsl/dsl.h", [](X x, Y y, Int n) { y(n) = x(n); });
const Word fast_math("dsl/math/fast_math.h",
                     [](X x, Y y, Int n) { y(n) = fast::exp(Float(x(n))); });
const Word grid("dsl/cuda/grid.h", [](X x, Y y, Int n) {
  grid_dependency_wait();
  y(n) = x(n);
  grid_dependency_launch();
});
const Word index("dsl/index.h", [](X x, Y y, Int n) { y(cast<uint32_t>(n)) = x(int64_t{3}); });
const Word inline_ptx_word("dsl/cuda/inline_ptx.h", [](X, Y y, Int n) {
  y(n) = cast<float>(inline_ptx<uint32_t>("bfind.u32 %0, %1;", cast<uint32_t>(n)));
});
const CustomFunction<float(float)> twice({.row = ir::op_row("word.twice", "a:T -> T",
                                                            ir::DataClass::kFloat, ir::kPure),
                                          .summary = "2 a",
                                          .ptx = {{"add.rn.f32 %0, %1, %1;", ir::Scalar::kF32}}},
                                         [](float a) { return a + a; });
const Word custom_function("dsl/extend/custom_function.h",
                           [](X x, Y y, Int n) { y(n) = twice(x(n)); });
const CustomFunction<float(float)> half_of({.row = ir::op_row("word.half_of", "a:T -> T",
                                                              ir::DataClass::kFloat, ir::kPure),
                                            .summary = "a / 2"});
const ir::RegisteredPass halve({.name = "word-halve",
                                .summary = "Halve",
                                .run =
                                    [](ir::PassContext& context) {
                                      return replace_ops(
                                          context, half_of.op().opcode(),
                                          [](const Float& x) -> Float { return x * 0.5f; });
                                    },
                                .before = "promote-vars"});
const Word replace_op("dsl/extend/replace_op.h", [](X x, Y y, Int n) { y(n) = half_of(x(n)); });
const Word integer("dsl/math/integer.h", [](X, Y y, Int n) {
  y(n) = cast<float>(byte_perm(cast<uint32_t>(n), 0u, 0x5140u)) + cast<float>(mul_wide(n, n));
});
const Word kernel_word("dsl/kernel.h", [](X x, Y y, Int n) { y(n) = x(n) + 1.0f; });
const Word calculator("dsl/layout/calculator.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(evaluate("size((4,8):(8,1))").size());
});
const Word draw("dsl/layout/draw.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(layout_table(make_layout({2, 3})).size());
});
const Word int_tuple("dsl/layout/int_tuple.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(IntTuple({2, 3}).to_string().size());
});
const Word layout("dsl/layout/layout.h", [](X x, Y y, Int n) {
  y(n) = make_tensor(x, make_layout({4, 8}, {8, 1}))(thread_idx.x);
});
const Word swizzle("dsl/layout/swizzle.h", [](X, Y y, Int n) {
  const Shared<float> words(128);
  const auto tile =
      make_tensor(words, composition(Swizzle(2, 2, 3), make_layout({8, 16}, {16, 1})));
  tile(n, 0) = 1.0f;
  y(n) = tile(0, n);
});
const Word sym_int("dsl/layout/sym_int.h", [](X x, Y y, Int n) {
  make_tensor(y, make_layout({x.shape(0), 4}, {4, 1}))(thread_idx.x, 0) = x(n);
});
const Word math("dsl/math/math.h",
                [](X x, Y y, Int n) { y(n) = erf(Float(x(n))) + sin(Float(x(n))); });
const Word matrix("dsl/cuda/matrix.h", [](X, Y y, Int n) {
  const Shared<half, 2> a({16, 16});
  const Int lane = lane_id();
  const Fragment<half> f = ldmatrix(a.at(lane % 16, lane / 16 * 8), 4);
  stmatrix(a.at(lane % 16, lane / 16 * 8), f);
  y(n) = cast<float>(f[0]);
});
const Word mbarrier("dsl/cuda/mbarrier.h", [](X, Y y, Int n) {
  const Mbarrier full(1);
  If(thread_idx.x == 0, [&] {
    full.init(0, 128);
    fence_mbarrier_init();
  });
  sync_threads();
  decrease_registers(40);
  full.arrive(0);
  full.wait(0, 0u);
  y(n) = 1.0f;
});
const Word narrow("dsl/math/narrow.h",
                  [](X x, Y y, Int n) { y(n) = cast<float>(cast<float8_e4m3>(Float(x(n)))); });
const Word node("dsl/trace/node.h", [](X, Y y, Int n) { y(Int(n.node())) = 1.0f; });
const Word reduce_word("dsl/collective/reduce.h", [](X x, Y y, Int n) {
  y(n) = block_reduce(Float(x(n)), plus()) + warp_reduce(Float(x(n)), maximum());
});
const Word rounding("dsl/math/rounding.h",
                    [](X x, Y y, Int n) { y(n) = add(Float(x(n)), Float(1.0f), Rounding::down); });
const Word scalar_word("dsl/scalar.h",
                       [](X x, Y y, Int n) { y(n) = cast<float>(cast<half>(Float(x(n)))); });
const Word scan("dsl/collective/scan.h",
                [](X x, Y y, Int n) { y(n) = warp_scan(Float(x(n)), plus()); });
const Word compact("dsl/collective/compact.h",
                   [](X x, Y y, Int n) { y(block_compact(x(n) > 0).place) = x(n); });
const Word extremes("dsl/collective/extremes.h", [](X x, Y y, Int n) {
  y(n) = warp_reduce(ValueAt<float>{x(n), n}, argmax()).value;
});
const Word gather("dsl/collective/gather.h", [](X x, Y y, Int n) {
  y(n) = block_broadcast(x(n), n) + block_all_gather(x(n))(n);
});
const Word of_grid("dsl/collective/grid.h", [](X x, Y y, Int n) {
  y(n) = block_reduce(x(n), plus()) + cast<float>(detail::blocks_of_grid());
});
const Word sort("dsl/collective/sort.h", [](X, Y y, Int n) {
  Shared<int32_t> keys(64);
  keys(thread_idx.x) = -thread_idx.x;
  block_sort(keys, block_dim.x, [](const Int& a, const Int& b) { return a < b; });
  y(n) = cast<float>(Int(keys(thread_idx.x)));
});
const Word source_loc("dsl/trace/source_loc.h", [](X, Y y, Int n) {
  const SourceLoc loc = SourceLoc::current();
  const CallerLines lines(loc);
  y(n) = 1.0f;
});
const Word copy_word("dsl/tensor/copy.h", [](X x, Y y, Int n) {
  Tensor<float> registers = make_tensor<float>({4});
  copy(local_tile(x, {4}, {n}), registers);
  axpby(2.0f, registers, 0.0f, local_tile(y, {4}, {n}));
});
const Word copy_atom("dsl/tensor/copy_atom.h", [](X, Y y, Int n) {
  y(n) = make_copy_atom<float>(CopyUniversal{128}).ok() ? 1.0f : 0.0f;
});
const Word draw_atom("dsl/tensor/draw_atom.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(copy_atom_svg(make_copy_atom<half>(LdMatrix{4})).size());
});
const Word elementwise("dsl/tensor/elementwise.h", [](X x, Y y, Int n) {
  transform(
      local_tile(y, {4}, {n}), [](const Float& a) { return a + 1.0f; }, local_tile(x, {4}, {n}));
});
const Word tensor_word("dsl/tensor/tensor.h",
                       [](X x, Y y, Int n) { y(n) = local_tile(x, {4}, {n})(thread_idx.x); });
const Word tiled_copy("dsl/tensor/tiled_copy.h", [](X x, Y y, Int) {
  const auto atom = make_copy_atom<float>(CopyUniversal{32});
  const TiledCopy tiled = make_tiled_copy(atom, make_layout({128}), make_layout({1}));
  const ThrCopy mine = tiled.get_slice(thread_idx.x);
  copy(tiled, mine.partition_S(local_tile(x, {128}, {0})),
       mine.partition_D(local_tile(y, {128}, {0})));
});
const Word mma_word("dsl/cuda/mma.h", [](X, Y y, Int n) {
  const Shared<half, 2> tile({16, 16});
  const Fragment<half> a = ldmatrix(tile.at(lane_id() % 16, lane_id() / 16 * 8), 4);
  const Fragment<half> b = ldmatrix(tile.at(lane_id() % 16, 0), 2, true);
  y(n) = mma(Fragment<float>(4, 0.0f), a, b)[0];
});
const Word descriptor("dsl/mma/descriptor.h", [](X x, Y y, Int n) {
  y(n) = x(n) + static_cast<float>(
                    make_smem_descriptor<half>(make_smem_layout<half>({64, 64}), 64).stride());
});
const Word draw_mma("dsl/mma/draw_mma.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(mma_svg(make_tiled_mma(parse_mma_atom("fma.f32"))).size());
});
const Word gemm_word("dsl/mma/gemm.h", [](X x, Y y, Int) {
  const TiledMma mma = make_tiled_mma(make_mma_atom(UniversalFma<float>{}), {16, 8, 1});
  const ThrMma mine = mma.get_slice(thread_idx.x);
  const Layout tile = make_layout({16, 8}, {8, 1});
  const auto a = make_smem_tensor<float>(tile), c = make_smem_tensor<float>(tile);
  const auto b = make_smem_tensor<float>(make_layout({8, 8}));
  a(thread_idx.x) = x(thread_idx.x);
  b(thread_idx.x % 64) = x(thread_idx.x);
  sync_threads();
  const auto sums = gemm(mine, a, b, make_accumulator<float>(mma, {16, 8}), false);
  copy(settle(sums), mine.partition_C(c));
  y(thread_idx.x) = c(thread_idx.x);
});
const Word mma_atom("dsl/mma/mma_atom.h", [](X, Y y, Int n) {
  y(n) = static_cast<float>(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}).threads());
});
const Word tiled_mma("dsl/mma/tiled_mma.h", [](X x, Y y, Int n) {
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}), {2, 2, 1});
  const auto where = mma.get_slice(thread_idx.x).partition_C(make_identity_tensor({32, 16}));
  If(within(where(0), {8, 8}), [&] { y(n) = x(n); });
});
const Word smem_box("dsl/mma/smem_box.h", [](X x, Y y, Int n) {
  y(n) = x(n) * static_cast<float>(box_of<float>(make_layout(64)).extent(0));
});
const Word smem_layout("dsl/mma/smem_layout.h", [](X x, Y y, Int n) {
  const auto tiles = make_smem_tensor<float>(make_smem_layout<float>({64, 32, 2}));
  tiles(n, 0, 1) = x(n);
  sync_threads();
  y(n) = tiles(n, 0, 1);
});
const Word wgmma_word("dsl/mma/wgmma.h", [](X, Y out, Int n) {
  const Tensor<half> tile =
      make_smem_tensor<half>(composition(Swizzle(3, 3, 3), make_layout({64, 64}, {64, 1})));
  const Accumulator<float> sum = wgmma(wgmma_begin<float>(64), tile, tile, false);
  wgmma_commit();
  out(n) = wgmma_wait(sum)[0];
});
const Word async_pipeline("dsl/pipeline/async_pipeline.h", [](X x, Y y, Int n) {
  const AsyncPipeline pipe({.stages = 2});
  pipe.start();
  pipe.produce(pipe.producer(), [](const AsyncStage&) {});
  pipe.wait(pipe.consumer());
  pipe.release(pipe.ahead(pipe.consumer()));
  y(n) = x(n);
});
const Word pipeline_state("dsl/pipeline/pipeline_state.h", [](X x, Y y, Int n) {
  y(n) = x(n) + cast<float>(PipelineState{n, 0u}.next(3).ahead(n, 3).index);
});
const Word stream_k("dsl/pipeline/stream_k.h", [](X x, Y y, Int n) {
  For(StreamKTiles(ceil_div(x.shape(0), 128), 1, 1, n),
      [&](const TileShare& share) { y(share.row) = x(share.first); });
});
const Word tile_scheduler("dsl/pipeline/tile_scheduler.h", [](X x, Y y, Int n) {
  For(PersistentTiles(ceil_div(x.shape(0), 128), 1, 1), Int(0),
      [&](const Tile& tile, const Int& turn) {
        y(tile.row) = x(n);
        return turn + 1;
      });
  const GroupedTiles tiles(4, 2, [&](const Int& group) { return group + 1; });
  For(tiles, [&](const Tile& tile) { y(tile.row) = x(tile.batch); });
});
const Word tma_pipeline("dsl/pipeline/tma_pipeline.h", [](X x, Y y, Int n) {
  const TmaPipeline pipe({.stages = 2});
  pipe.start();
  If(warp_id() == 0, [&] { pipe.produce(pipe.producer(), [](const FullStage&) {}); });
  pipe.wait(pipe.consumer());
  pipe.release(pipe.consumer());
  y(n) = x(n) + cast<float>(pipe.next(pipe.consumer()).index);
});
const Word warp_roles_word("dsl/pipeline/warp_roles.h", [](X x, Y y, Int n) {
  warp_roles(Role{1, 0, [&](const Int& thread) { y(n + thread) = x(n + thread); }});
});
const Word shared_arena("dsl/tensor/shared_arena.h", [](X x, Y y, Int n) {
  const SharedArena arena;
  const SharedRegion first = arena.region("first"), second = arena.region("second");
  const Shared<float> a = first.array<float>(64), b = second.array<float>(64);
  a(n) = x(n);
  sync_threads();
  second.begin();
  b(n) = x(n);
  y(n) = b(n);
});
// These atoms are made of matrices; the word has vectors.
const Word bulk_atom("dsl/tensor/bulk_atom.h", [](X x, Y y, Int n) {
  const auto load = reinterpret_cast<uintptr_t>(&detail::emit_bulk_tile);
  const auto reduce = reinterpret_cast<uintptr_t>(&detail::emit_bulk_tile_reduce);
  y(n) = x(n) * static_cast<float>(load != reduce);
});
const Word im2col_atom("dsl/tensor/im2col_atom.h", [](X x, Y y, Int n) {
  const auto make = reinterpret_cast<uintptr_t>(&detail::make_im2col_boxes);
  const auto load = reinterpret_cast<uintptr_t>(&detail::emit_im2col_tile);
  y(n) = x(n) * static_cast<float>(make != load);
});
const Word tma_atom("dsl/tensor/tma_atom.h", [](X x, Y y, Int n) {
  const auto make = reinterpret_cast<uintptr_t>(&detail::make_tma_boxes);
  const auto bring = reinterpret_cast<uintptr_t>(&detail::emit_tile_prefetch);
  y(n) = x(n) * static_cast<float>(make != bring);
});
const Word traced("dsl/traced.h", [](X x, Y y, Int n) {
  struct Pair {
    Float a, b;
  };
  const Pair sum = For(range(n), Pair{0.0f, 1.0f}, [&](Int i, Pair p) {
    return Pair{p.a + x(i), p.b};
  });
  y(n) = sum.a * sum.b;
});
const Word value("dsl/value.h", [](X x, Y y, Int n) { y(n) = fma(Float(x(n)), 2.0f, 1.0f); });
const Word var("dsl/var.h", [](X x, Y y, Int n) {
  Var<float> sum(0.0f);
  sum += x(n);
  y(n) = sum;
});
const Word vec("dsl/vec.h", [](X x, Y y, Int n) {
  const Vec<float, 4> v = x.vec<4>(aligned(n));
  y(n) = v[0] + v[3];
});
const Word view("dsl/view.h", [](X x, Y y, Int n) {
  Local<float> mine(4);
  mine(n) = x(n);
  y(n) = mine(3 - n) + cast<float>(x.shape(0));
});

const Word contract("dsl/contract.h", [](X x, Y y, Int n) {
  require(x.shape(0) == y.shape(0));
  require_block(128);
  min_blocks_per_sm(2);
  launch_grid(ceil_div(x.shape(0), 128));
  y(n) = x(n);
});
const Word element("dsl/element.h", [](X, Y y, Int n) {
  auto v = y(n);
  y(n) = y(n + 1);
  y(n + 1) += v;
});
const auto kFamily =
    kernel_family("word(x, y, n)", [](float by, X x, Y y, Int n) { y(n) = by * x(n); });
const Word of_family("dsl/kernel_family.h", [](X x, Y y, Int n) {
  y(n) = x(n) * static_cast<float>(kFamily(2.0f).valid());
});
// These bring no words, but what the others are made of and what they refuse.
const Word mistake("dsl/mistake.h", [](X x, Y y, Int n) { y(n) = x(n); });
const Word misuse("dsl/misuse.h", [](X x, Y y, Int n) { y(n) = x(n) * cast<float>(n); });
const Word operators("dsl/operators.h", [](X x, Y y, Int n) { y(n) = min(x(n), -x(n)) * 2.0f; });
const Word together("dsl/together.h", [](X x, Y y, Int n) {
  const Vec<float, 4> v = select(x.vec<4>(aligned(n)) > 0.0f, exp(x.vec<4>(aligned(n))), 1.0f);
  y(n) = v[0];
});
const Word struct_view("dsl/struct_view.h", [](X x, Y y, Int n) {
  struct Pair {
    Float a, b;
  };
  const Local<Pair> pairs(4);
  pairs(n) = Pair{x(n), 1.0f};
  const Pair pair = pairs(n);
  y(n) = pair.a + pair.b;
});

}  // namespace
