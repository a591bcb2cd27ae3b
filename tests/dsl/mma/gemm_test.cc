// One body of a product, by every kind of atom: operands of both majors, several types, odd shapes.
#include "heddle/dsl/mma/gemm.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/mma/draw_mma.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

bool has(const std::string& atom) {
  const DeviceInfo& info = test_device().info();
  if (atom.rfind("wgmma", 0) != 0) return true;
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

struct Product {
  std::string atom;
  IntTuple atoms = {1, 1, 1};
  int m = 64, n = 64, k = 32;  // of a stage
  Major major_a = Major::k, major_b = Major::k;
  Tiler permutation = {_, _, _};
  int rows = 1000, columns = 1000;  // of d that are stored
  int pad = 0;                      // elements behind each row of a, which has no swizzle then

  std::string text() const {
    return atom + (major_a == Major::k ? " a K" : " a MN") +
           (major_b == Major::k ? " b K" : " b MN");
  }
};

constexpr int kStages = 2;

// Small integers, which every type has; for bytes without a sign, those with the top bit.
template <class T>
float element(int row, int k, int seed) {
  const int least = std::is_unsigned_v<T> ? 249 : -3;
  return static_cast<float>((row * 7 + k * 5 + seed) % 7 + least);
}

// d = a * b^T, of stages in shared memory that the threads fill. It is the same for all atoms.
template <class A, class C, class B = A>
void run_product(const Product& p) {
  if (!has(p.atom)) return;
  const auto kernel = define_kernel("product(a, b, d)", [p](Tensor<const A, 2> a,
                                                            Tensor<const B, 2> b, Tensor<C, 2> d) {
    const TiledMma mma = make_tiled_mma(parse_mma_atom(p.atom), p.atoms, p.permutation);
    const int pitch = p.k + p.pad;
    const auto a_tiles =
        make_smem_tensor<A>(p.pad == 0 ? make_smem_layout_A(mma, {p.m, p.k, kStages}, p.major_a)
                                       : make_layout({p.m, p.k, kStages}, {pitch, 1, p.m * pitch}));
    const auto b_tiles =
        make_smem_tensor<B>(make_smem_layout_B(mma, {p.n, p.k, kStages}, p.major_b));
    const int threads = static_cast<int>(mma.threads());
    const auto fill_tiles = [&](const auto& from, const auto& to, int rows) {
      For(range(thread_idx.x, rows * p.k * kStages, threads), [&](const Int& i) {
        const Int row = i / (p.k * kStages), depth = i % (p.k * kStages);
        to(row, depth % p.k, depth / p.k) = from(row, depth);
      });
    };
    fill_tiles(a, a_tiles, p.m);
    fill_tiles(b, b_tiles, p.n);
    if (mma.atom().is_async()) fence_async();
    sync_threads();
    const ThrMma mine = mma.get_slice(thread_idx.x);
    const auto sums =
        For(range(kStages), make_accumulator<C>(mma, {p.m, p.n}),
            [&](const Int& stage, const AccumulatorTile<C>& so_far) {
              return gemm(mine, a_tiles(_, _, stage), b_tiles(_, _, stage), so_far, stage != 0);
            });
    const auto where = mine.partition_C(make_identity_tensor({p.m, p.n}));
    copy_if(within(where, {p.rows, p.columns}), settle(sums),
            mine.partition_C(local_tile(d, {p.m, p.n}, {0, 0})));
  });
  std::vector<A> a;
  std::vector<B> b;
  const int depth = p.k * kStages;
  for (int row = 0; row < p.m; ++row) {
    for (int k = 0; k < depth; ++k) a.push_back(A(element<A>(row, k, 1)));
  }
  for (int row = 0; row < p.n; ++row) {
    for (int k = 0; k < depth; ++k) b.push_back(B(element<B>(row, k, 2)));
  }
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<A>(a).value(), b_memory = device.upload<B>(b).value();
  const Buffer d_memory =
      device.upload<C>(std::vector<C>(static_cast<size_t>(p.m * p.n), C(77))).value();
  const TiledMma mma = make_tiled_mma(parse_mma_atom(p.atom), p.atoms, p.permutation);
  ASSERT_TRUE(mma.ok()) << p.text();
  ASSERT_THAT(
      kernel.launch(stream, {.grid = 1, .block = static_cast<int>(mma.threads())},
                    as_tensor<const A>(a_memory, {p.m, depth}),
                    as_tensor<const B>(b_memory, {p.n, depth}), as_tensor<C>(d_memory, {p.m, p.n})),
      IsOk())
      << p.text();
  const std::vector<C> d = d_memory.template download<C>(stream).value();
  for (int row = 0; row < p.m; ++row) {
    for (int column = 0; column < p.n; ++column) {
      float wanted = 0;
      for (int k = 0; k < depth; ++k) wanted += element<A>(row, k, 1) * element<B>(column, k, 2);
      if (row >= p.rows || column >= p.columns) wanted = 77;
      ASSERT_EQ(static_cast<float>(d[static_cast<size_t>(row * p.n + column)]), wanted)
          << p.text() << " at " << row << " " << column;
    }
  }
}

constexpr Major kMajors[] = {Major::k, Major::mn};

TEST(Gemm, MultipliesByEveryKindOfAtom) {
  run_product<float, float>({.atom = "fma.f32", .atoms = {16, 8, 1}});
  run_product<half, float>({.atom = "mma.m16n8k16.f32.f16.f16", .atoms = {2, 2, 1}});
  run_product<bfloat16, float>({.atom = "mma.m16n8k8.f32.bf16.bf16", .atoms = {4, 1, 1}});
  run_product<half, float>({.atom = "wgmma.m64n64k16.f32.f16.f16"});
  run_product<half, half>({.atom = "mma.m16n8k16.f16.f16.f16", .atoms = {2, 2, 1}});
  run_product<half, half>({.atom = "wgmma.m64n32k16.f16.f16.f16"});
}

TEST(Gemm, MultipliesBothMajors) {
  for (const Major a : kMajors) {
    for (const Major b : kMajors) {
      run_product<float, float>(
          {.atom = "fma.f32", .atoms = {16, 8, 1}, .major_a = a, .major_b = b});
      run_product<half, float>({.atom = "mma.m16n8k16.f32.f16.f16",
                                .atoms = {2, 2, 1},
                                .major_a = a,
                                .major_b = b,
                                .permutation = {_, 32, _}});
      run_product<bfloat16, float>({.atom = "wgmma.m64n32k16.f32.bf16.bf16",
                                    .atoms = {2, 1, 1},
                                    .m = 128,
                                    .k = 64,
                                    .major_a = a,
                                    .major_b = b});
    }
  }
}

TEST(Gemm, MultipliesOtherTypes) {
  run_product<tfloat32, float>({.atom = "mma.m16n8k8.f32.tf32.tf32", .atoms = {2, 2, 1}});
  run_product<tfloat32, float>({.atom = "wgmma.m64n64k8.f32.tf32.tf32"});
  run_product<int8_t, int32_t>({.atom = "mma.m16n8k32.i32.i8.i8", .atoms = {2, 2, 1}, .k = 64});
  run_product<int8_t, int32_t>({.atom = "wgmma.m64n64k32.i32.i8.i8", .k = 64});
  run_product<float8_e4m3, float>({.atom = "wgmma.m64n64k32.f32.e4m3.e4m3", .k = 128});
  run_product<tfloat32, float>({.atom = "mma.m16n8k8.f32.tf32.tf32",
                                .atoms = {2, 2, 1},
                                .major_a = Major::mn,
                                .major_b = Major::mn});
}

// Every pair of types of 8 bits, for both sums where there are two, and every depth.
template <class A, class B>
void run_float8_products(const std::string& types) {
  for (const char* const depth : {"16", "32"}) {
    const std::string warps = absl::StrCat("mma.m16n8k", depth);
    run_product<A, float, B>({.atom = warps + ".f32." + types, .atoms = {2, 2, 1}, .k = 64});
    run_product<A, half, B>({.atom = warps + ".f16." + types, .atoms = {2, 2, 1}, .k = 64});
  }
  run_product<A, float, B>({.atom = "wgmma.m64n40k32.f32." + types, .n = 80, .k = 64});
  run_product<A, half, B>({.atom = "wgmma.m64n64k32.f16." + types, .k = 64});
}
TEST(Gemm, MultipliesEveryPairOfFloatsOf8Bits) {
  run_float8_products<float8_e4m3, float8_e4m3>("e4m3.e4m3");
  run_float8_products<float8_e4m3, float8_e5m2>("e4m3.e5m2");
  run_float8_products<float8_e5m2, float8_e4m3>("e5m2.e4m3");
  run_float8_products<float8_e5m2, float8_e5m2>("e5m2.e5m2");
}
template <class A, class B>
void run_byte_products(const std::string& types) {
  for (const char* const depth : {"16", "32"}) {
    run_product<A, int32_t, B>(
        {.atom = absl::StrCat("mma.m16n8k", depth, ".i32.", types), .atoms = {2, 2, 1}, .k = 64});
  }
  run_product<A, int32_t, B>({.atom = "wgmma.m64n96k32.i32." + types, .n = 96, .k = 64});
}
TEST(Gemm, MultipliesEveryPairOfBytes) {
  run_byte_products<int8_t, int8_t>("i8.i8");
  run_byte_products<int8_t, uint8_t>("i8.u8");
  run_byte_products<uint8_t, int8_t>("u8.i8");
  run_byte_products<uint8_t, uint8_t>("u8.u8");
}

// The other depths of types that have two.
TEST(Gemm, MultipliesEveryDepth) {
  run_product<half, float>({.atom = "mma.m16n8k8.f32.f16.f16", .atoms = {2, 2, 1}});
  run_product<half, half>({.atom = "mma.m16n8k8.f16.f16.f16", .atoms = {2, 2, 1}});
  run_product<bfloat16, float>({.atom = "mma.m16n8k16.f32.bf16.bf16", .atoms = {2, 2, 1}});
  run_product<tfloat32, float>({.atom = "mma.m16n8k4.f32.tf32.tf32", .atoms = {2, 2, 1}});
}
TEST(Gemm, MultipliesByEveryArithmeticOfThreads) {
  run_product<double, double>({.atom = "fma.f64", .atoms = {16, 8, 1}});
  run_product<half, half>({.atom = "fma.f16", .atoms = {16, 8, 1}});
  run_product<bfloat16, bfloat16>({.atom = "fma.bf16", .atoms = {16, 8, 1}, .k = 8});
}

// Several atoms of a warp or warpgroup along each mode, in each order of warps.
TEST(Gemm, RepeatsTiles) {
  run_product<half, float>(
      {.atom = "mma.m16n8k16.f32.f16.f16", .atoms = {4, 2, 1}, .m = 128, .n = 96, .k = 64});
  run_product<half, float>({.atom = "mma.m16n8k16.f32.f16.f16",
                            .atoms = {2, 2, 1},
                            .permutation = {_, make_layout({8, 2, 2}, {1, 16, 8}), _}});
  run_product<half, float>({.atom = "wgmma.m64n32k16.f32.f16.f16", .m = 128, .n = 96});
  run_product<half, float>(
      {.atom = "wgmma.m64n64k16.f32.f16.f16", .atoms = {1, 2, 1}, .m = 64, .n = 128});
}

// Rows that ldmatrix takes, and rows that do not start at multiples of 16 bytes.
TEST(Gemm, LoadsPaddedTiles) {
  for (const int pad : {8, 2, 1}) {
    run_product<half, float>({.atom = "mma.m16n8k16.f32.f16.f16", .atoms = {2, 2, 1}, .pad = pad});
    run_product<float, float>({.atom = "fma.f32", .atoms = {16, 8, 1}, .pad = pad});
  }
}

// Edges of the matrix: coordinates of the sums say what is stored.
TEST(Gemm, StoresWithinBounds) {
  run_product<half, float>(
      {.atom = "mma.m16n8k16.f32.f16.f16", .atoms = {2, 2, 1}, .rows = 37, .columns = 51});
  run_product<half, float>({.atom = "wgmma.m64n64k16.f32.f16.f16", .rows = 61, .columns = 3});
}

// --- One body, whatever copies and multiplies -----------------------------------------------------

// Who fills stages, and how; the rest multiplies.
enum class Fill { by_tma, by_warps, by_all };

struct Body {
  Fill fill;
  const char* atom;
  IntTuple atoms;
  int stages = 3;
};

constexpr int kM = 128, kN = 64, kK = 64, kBlocks = 5;

// What is the same for all: the sums of the tiles that a pipeline brings, in threads of a role or all.
template <class Pipe, class Ahead>
AccumulatorTile<float> multiply(const Pipe& pipe, const TiledMma& mma, const Int& thread,
                                const Tensor<half>& sA, const Tensor<half>& sB,
                                const Ahead& ahead) {
  const ThrMma mine = mma.get_slice(thread);
  const auto [sums, last] =
      For(range(kBlocks), std::tuple(make_accumulator<float>(mma, {kM, kN}), pipe.consumer()),
          [&](const Int& k, const std::tuple<AccumulatorTile<float>, PipelineState>& so_far) {
            const auto& [sum, p] = so_far;
            pipe.wait(p);
            ahead(k, p);
            const auto more = gemm(mine, sA(_, _, p.index), sB(_, _, p.index), sum, k != 0);
            wait(mma, 0);
            pipe.release(p);
            return std::tuple(more, pipe.next(p));
          });
  return sums;
}

// d = a * b^T of 128 x 64 x 5 * 64, K-major a and MN-major b. Which instruction copies is told apart where
// the pipeline is made, and which multiplies nowhere.
void run_body(const Body& body) {
  const TiledMma host_mma = make_tiled_mma(parse_mma_atom(body.atom), body.atoms);
  const int groups = static_cast<int>(host_mma.threads()) / kWarpGroupSize;
  const auto kernel = define_kernel("body(a, b, d)", [=](Tensor<const half, 2> a,
                                                         Tensor<const half, 2> b,
                                                         Tensor<float, 2> d) {
    const TiledMma mma = make_tiled_mma(parse_mma_atom(body.atom), body.atoms);
    const auto sA = make_smem_tensor<half>(make_smem_layout_A(mma, {kM, kK, body.stages}));
    const auto sB =
        make_smem_tensor<half>(make_smem_layout_B(mma, {kN, kK, body.stages}, Major::mn));
    const auto by_columns = select(b, {1, 0});  // b is k x n in memory
    const auto gA = local_tile(a, {kM, kK}, {0, _}), gB = local_tile(by_columns, {kN, kK}, {0, _});
    const auto store = [&](const Int& thread, const AccumulatorTile<float>& sums) {
      copy(settle(sums), mma.get_slice(thread).partition_C(local_tile(d, {kM, kN}, {0, 0})));
    };
    const auto fill = [&](const auto& pipe, const PipelineState& p, const Int& k,
                          const auto& load_a, const auto& load_b) {
      pipe.produce(p, [&](const auto& stage) {
        If(k < kBlocks, [&] {
          copy(stage.load(load_a), gA(_, _, k), sA(_, _, p.index));
          copy(stage.load(load_b), gB(_, _, k), sB(_, _, p.index));
        });
      });
    };
    const auto by_roles = [&](const auto& pipe, int warps, const auto& load_a, const auto& load_b) {
      pipe.start();
      warp_roles(Role{1, 0,
                      [&](const Int&) {
                        If(warp_id() < warps, [&] {
                          For(range(kBlocks), pipe.producer(),
                              [&](const Int& k, const PipelineState& p) {
                                fill(pipe, p, k, load_a, load_b);
                                return pipe.next(p);
                              });
                        });
                      }},
                 Role{groups, 0, [&](const Int& thread) {
                        store(thread, multiply(pipe, mma, thread, sA, sB,
                                               [](const Int&, const PipelineState&) {}));
                      }});
    };
    if (body.fill == Fill::by_tma) {
      const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
      const TmaAtom load_b = make_tma_atom(TmaLoad{}, by_columns, sB(_, _, 0));
      by_roles(TmaPipeline({.stages = body.stages,
                            .bytes = load_a.bytes() + load_b.bytes(),
                            .consumers = groups,
                            .by_warps = !mma.atom().is_async()}),
               1, load_a, load_b);
      return;
    }
    const auto atom = make_copy_atom<half>(CopyAsync{128});
    const TiledCopy load_a =
        make_tiled_copy(atom, make_layout({16, 8}, {8, 1}), make_layout({1, 8}));
    const TiledCopy load_b = make_tiled_copy(atom, make_layout({8, 16}), make_layout({8, 1}));
    if (body.fill == Fill::by_warps) {
      by_roles(AsyncPipeline({.stages = body.stages,
                              .producers = 4,
                              .consumers = groups,
                              .wgmma = mma.atom().is_async()}),
               4, load_a, load_b);
      return;
    }
    const AsyncPipeline pipe({.stages = body.stages, .wgmma = mma.atom().is_async()});
    pipe.start();
    for (int k = 0; k < pipe.lead(); ++k) fill(pipe, pipe.producer(k), k, load_a, load_b);
    store(thread_idx.x,
          multiply(pipe, mma, thread_idx.x, sA, sB, [&](const Int& k, const PipelineState& p) {
            fill(pipe, pipe.ahead(p), k + pipe.lead(), load_a, load_b);
          }));
  });
  std::vector<half> a, b;
  constexpr int kDepth = kBlocks * kK;
  for (int row = 0; row < kM; ++row) {
    for (int k = 0; k < kDepth; ++k) a.emplace_back(element<half>(row, k, 1));
  }
  for (int k = 0; k < kDepth; ++k) {
    for (int column = 0; column < kN; ++column) b.emplace_back(element<half>(column, k, 2));
  }
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<half>(a).value(), b_memory = device.upload<half>(b).value();
  const Buffer d_memory = device.allocate(kM * kN * sizeof(float)).value();
  const int producers = body.fill == Fill::by_all ? 0 : kWarpGroupSize;
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = groups * kWarpGroupSize + producers},
                            as_tensor<const half>(a_memory, {kM, kDepth}),
                            as_tensor<const half>(b_memory, {kDepth, kN}),
                            as_tensor<float>(d_memory, {kM, kN})),
              IsOk())
      << static_cast<int>(body.fill) << body.atom;
  const std::vector<float> d = d_memory.download<float>(stream).value();
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      float wanted = 0;
      for (int k = 0; k < kDepth; ++k) {
        wanted += element<half>(row, k, 1) * element<half>(column, k, 2);
      }
      ASSERT_EQ(d[static_cast<size_t>(row * kN + column)], wanted)
          << static_cast<int>(body.fill) << body.atom << " at " << row << " " << column;
    }
  }
}

TEST(Gemm, IsOneBodyForTheCopyEngineAndForThreads) {
  if (!has("wgmma")) GTEST_SKIP() << "this device is none of sm_90a";
  for (const Fill fill : {Fill::by_tma, Fill::by_warps}) {
    run_body({fill, "wgmma.m64n64k16.f32.f16.f16", {1, 1, 1}});
    run_body({fill, "wgmma.m64n64k16.f32.f16.f16", {2, 1, 1}, 2});
    run_body({fill, "mma.m16n8k16.f32.f16.f16", {4, 1, 1}});
  }
  run_body({Fill::by_all, "wgmma.m64n64k16.f32.f16.f16", {1, 1, 1}});
  run_body({Fill::by_all, "mma.m16n8k16.f32.f16.f16", {2, 2, 1}, 4});
}

// --- As CuTe writes it ----------------------------------------------------------------------------

// d = a * b^T of 64 x 64 x 32 by explicit copies to fragments, and a product in registers.
void run_explicit(const std::string& atom, bool has_b) {
  if (!has(atom)) return;
  const auto kernel = define_kernel("explicit(a, b, d)", [=](Tensor<const half, 2> a,
                                                             Tensor<const half, 2> b,
                                                             Tensor<float, 2> d) {
    const TiledMma mma = make_tiled_mma(parse_mma_atom(atom), {has_b ? 2 : 1, has_b ? 2 : 1, 1});
    const auto a_tile = make_smem_tensor<half>(make_smem_layout_A(mma, {64, 32}));
    const auto b_tile = make_smem_tensor<half>(make_smem_layout_B(mma, {64, 32}));
    For(range(thread_idx.x, 64 * 32, 128), [&](const Int& i) {
      a_tile(i / 32, i % 32) = a(i / 32, i % 32);
      b_tile(i / 32, i % 32) = b(i / 32, i % 32);
    });
    if (mma.atom().is_async()) fence_async();
    sync_threads();
    const ThrMma mine = mma.get_slice(thread_idx.x);
    const auto a_part = mine.partition_fragment_A(a_tile);
    const auto b_part = mine.partition_fragment_B(b_tile);
    const auto load = [&](const TiledCopy& copies, const auto& tile, const auto& fragment) {
      const ThrCopy part = copies.get_slice(thread_idx.x);
      copy(copies, part.partition_S(tile), part.retile(fragment));
    };
    load(make_tiled_copy_A(make_copy_atom<half>(LdMatrix{4}), mma), a_tile, a_part);
    if (has_b) load(make_tiled_copy_B(make_copy_atom<half>(LdMatrix{2}), mma), b_tile, b_part);
    const auto tile = mine.partition_C(local_tile(d, {64, 64}, {0, 0}));
    const auto sums = make_fragment_like<float>(tile);
    fill(sums, 0.5f);
    gemm(mma, a_part, b_part, sums);
    copy(sums, tile);
  });
  std::vector<half> a, b;
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < 32; ++k) {
      a.emplace_back(element<half>(row, k, 1));
      b.emplace_back(element<half>(row, k, 2));
    }
  }
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<half>(a).value(), b_memory = device.upload<half>(b).value();
  const Buffer d_memory = device.allocate(64 * 64 * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(
                  stream, {.grid = 1, .block = 128}, as_tensor<const half>(a_memory, {64, 32}),
                  as_tensor<const half>(b_memory, {64, 32}), as_tensor<float>(d_memory, {64, 64})),
              IsOk());
  const std::vector<float> d = d_memory.download<float>(stream).value();
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      float wanted = 0.5f;
      for (int k = 0; k < 32; ++k) wanted += element<half>(row, k, 1) * element<half>(column, k, 2);
      ASSERT_EQ(d[static_cast<size_t>(row * 64 + column)], wanted) << atom << row << " " << column;
    }
  }
}

TEST(Gemm, TakesFragmentsThatCopiesLoaded) {
  run_explicit("mma.m16n8k16.f32.f16.f16", true);
  run_explicit("wgmma.m64n64k16.f32.f16.f16.rs", false);
}

// The sums of 64 x 64 go to a swizzled tile by stmatrix, from where threads copy rows.
void run_epilogue(const std::string& atom, const IntTuple& atoms, const Tiler& permutation) {
  const auto kernel = define_kernel("epilogue(d)", [=](Tensor<half, 2> d) {
    const TiledMma mma = make_tiled_mma(parse_mma_atom(atom), atoms, permutation);
    const ThrMma mine = mma.get_slice(thread_idx.x);
    const auto where = mine.partition_C(make_identity_tensor({64, 64}));
    const auto sums = make_tensor<half>(make_layout(where.shape()));
    for (int i = 0; i < size(where).value(); ++i) {
      const IntTuple at = where(i);
      sums(i) = cast<half>(Int(get(at, 0).value()) * 16 + Int(get(at, 1).value()) % 16);
    }
    const auto tile = make_smem_tensor<half>(make_smem_layout<half>({64, 64}));
    const TiledCopy stores = make_tiled_copy_C(make_copy_atom<half>(StMatrix{4}), mma);
    const ThrCopy part = stores.get_slice(thread_idx.x);
    copy(stores, part.retile(sums), part.partition_D(tile));
    sync_threads();
    For(range(thread_idx.x, 64 * 64, 128),
        [&](const Int& i) { d(i / 64, i % 64) = tile(i / 64, i % 64); });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer d_memory = device.allocate(64 * 64 * sizeof(half)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 128}, as_tensor<half>(d_memory, {64, 64})),
              IsOk());
  const std::vector<half> d = d_memory.download<half>(stream).value();
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      ASSERT_EQ(d[static_cast<size_t>(row * 64 + column)].to_float(),
                static_cast<float>(row * 16 + column % 16))
          << atom << " at " << row << " " << column;
    }
  }
}

TEST(Gemm, StoresSumsByStMatrix) {
  if (!has("wgmma")) GTEST_SKIP() << "stmatrix came with sm_90";
  run_epilogue("wgmma.m64n64k16.f32.f16.f16", {1, 1, 1}, {_, _, _});
  run_epilogue("mma.m16n8k16.f32.f16.f16", {2, 2, 1}, {_, 32, _});
  run_epilogue("mma.m16n8k16.f32.f16.f16", {4, 1, 1}, {_, 16, _});
}

// --- What is recorded -----------------------------------------------------------------------------

// Compiles a product of 64 x 64 x 32; what is said where it does not.
std::string ptx_of(const std::string& atom, const IntTuple& atoms, Major major) {
  const auto kernel = define_kernel("product(d)", [=](Tensor<float, 2> d) {
    const TiledMma mma = make_tiled_mma(parse_mma_atom(atom), atoms, {_, 32, _});
    const auto a = make_smem_tensor<half>(make_smem_layout_A(mma, {64, 32}, major));
    const auto b = make_smem_tensor<half>(make_smem_layout_B(mma, {64, 32}, major));
    const ThrMma mine = mma.get_slice(thread_idx.x);
    const auto sums = gemm(mine, a, b, make_accumulator<float>(mma, {64, 64}), false);
    copy(settle(sums), mine.partition_C(local_tile(d, {64, 64}, {0, 0})));
  });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {128, 1, 1};
  options.stage = Stage::kPtx;
  const auto compiled = kernel.compile(Signature{tensor({kAny, kAny})}, options);
  return compiled.ok() ? compiled->ptx() : std::string(compiled.status().message());
}

int count(const std::string& text, const std::string& what) {
  int times = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

// Two k-steps of two by four atoms; ldmatrix of four matrices for both operands.
TEST(Gemm, LoadsByLdMatrix) {
  const std::string plain = ptx_of("mma.m16n8k16.f32.f16.f16", {2, 2, 1}, Major::k);
  EXPECT_EQ(count(plain, "mma.sync.aligned.m16n8k16"), 16) << plain;
  EXPECT_EQ(count(plain, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 8) << plain;
  EXPECT_EQ(count(plain, "ld.shared"), 0) << plain;
  const std::string transposed = ptx_of("mma.m16n8k16.f32.f16.f16", {2, 2, 1}, Major::mn);
  EXPECT_EQ(count(transposed, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), 8) << transposed;
}

template <class Body>
std::string mistake_of(const Body& body) {
  const auto kernel = define_kernel("mistake(d)", [=](Tensor<float, 1> d) {
    body();
    d(0) = 0;
  });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {128, 1, 1};
  options.stage = Stage::kPtx;
  return std::string(kernel.compile(Signature{tensor({kAny})}, options).status().message());
}

TEST(Gemm, SaysWhatDoesNotFit) {
  const auto with = [](const IntTuple& b_shape, const IntTuple& mn, bool whole) {
    return mistake_of([=] {
      const TiledMma mma =
          make_tiled_mma(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}), {2, 2, 1});
      const auto a = make_smem_tensor<half>(make_layout({64, 32}, {32, 1}));
      const auto b = make_smem_tensor<half>(make_layout(b_shape));
      const auto sums = make_accumulator<float>(mma, mn);
      if (whole) {
        gemm(mma.get_slice(thread_idx.x), a, b, sums);
      } else {
        gemm(mma, a, b, sums);
      }
    });
  };
  EXPECT_THAT(with({64, 16}, {64, 64}, true),
              HasSubstr("tiles are (m,k) and (n,k), and sums are for (m,n)"));
  EXPECT_THAT(with({64, 32}, {64, 128}, true),
              HasSubstr("gemm by mma m16n8k16 f16 x f16 + f32: a is "));
  EXPECT_THAT(
      with({64, 32}, {64, 64}, false),
      HasSubstr("partition_fragment_A() and partition_fragment_B() make what the atom takes"));
  EXPECT_THAT(
      mistake_of([] {
        const TiledMma mma = make_tiled_mma(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}));
        const auto a = make_smem_tensor<bfloat16>(make_layout({16, 16}, {16, 1}));
        gemm(mma.get_slice(thread_idx.x), a, a, make_accumulator<float>(mma, {16, 16}));
      }),
      HasSubstr("the atom takes a of f16, b of f16 and sums of f32"));
  EXPECT_THAT(mistake_of([] {
                make_tiled_mma(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}), {4, 2, 1})
                    .get_slice(thread_idx.x);
              }),
              HasSubstr("a TiledMma"));
}

}  // namespace
}  // namespace heddle
