// What the layout algebra costs: the layouts of a GEMM, as a kernel's trace and its host code make
// them (aim: 2,000 calls in under 1 ms).
//
// On a shared machine instruction counts are more reliable than times:
//   valgrind --tool=callgrind --toggle-collect='heddle::host_*' tools/layout_bench --once
// 3,683 a call with host numbers, 4,496 with unknown rows. In time that is 0.76 to 0.95 and 0.94 to
// 1.06 ms on quiet H200 hosts. -O3 and link-time optimisation change nothing; tuples of plain
// integers that are stored as rows of plain integers would be faster.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "benchmark/benchmark.h"
#include "heddle/dsl/layout/layout.h"

namespace heddle {

// Each call of the algebra goes through here, and is counted.
template <class T>
T called(T result, int* calls) {
  ++*calls;
  if constexpr (requires { result.ok(); }) {
    if (!result.ok()) {
      std::fprintf(stderr, "call %d: %s\n", *calls, result.error().c_str());
      std::exit(1);
    }
  }
  return result;
}

// The layouts of one GEMM: C = A * B^T, 128 x 128 x 64 tiles in swizzled shared memory, copies of
// 16 bytes by 256 threads, and the threads and values of a tensor core instruction.
int layouts_of_gemm(const SymInt& m, const SymInt& n, const SymInt& k) {
  int calls = 0;
  const auto f = [&calls](auto result) { return called(std::move(result), &calls); };
  // Global memory, and the block's tiles of it.
  const Layout a = f(make_layout({m, k}, {k, 1}));
  const Layout b = f(make_layout({n, k}, {k, 1}));
  const Layout c = f(make_layout({m, n}, GenRowMajor{}));
  const Layout tiles_a = f(local_tile(a, {128, 64}, {1, _}));
  const Layout tiles_b = f(local_tile(b, {128, 64}, {2, _}));
  const Layout tile_c = f(local_tile(c, {128, 128}, {1, 2}));
  // Shared memory, of three stages.
  const Layout atom =
      f(make_composed_layout(Swizzle(3, 3, 3), 0, f(make_layout({8, 64}, {64, 1}))));
  const Layout shared_a = f(tile_to_shape(atom, {128, 64, 3}));
  const Layout shared_b = f(tile_to_shape(atom, {128, 64, 3}, {1, 0, 2}));
  // Copies: what each thread reads and writes.
  const auto [copy_tile, copy_tv] =
      f(make_layout_tv(f(make_layout({32, 8}, {8, 1})), f(make_layout({1, 8}))));
  for (const Layout* tile : {&tiles_a, &tiles_b, &shared_a, &shared_b}) {
    const Layout divided = f(zipped_divide(*tile, copy_tile));
    const Layout by_thread = f(composition(f(get(divided, 0)).outer(), copy_tv));
    const Layout mine = f(slice({17, _}, by_thread));
    f(size(mine));
    f(coalesce(mine));
    f(max_common_vector(mine, f(make_layout(8))));
  }
  f(local_partition(tile_c, f(make_layout({16, 16})), 35));
  // The instruction's threads and values, over four warps' tiles.
  const Layout mma_c = f(make_layout({{4, 8}, {2, 2}}, {{32, 1}, {16, 8}}));
  const Layout warps = f(make_layout({2, 2, 1}));
  const Layout atoms = f(zipped_divide(f(logical_divide(tile_c, {32, 32})), {16, 8}));
  const Layout values = f(composition(f(get(f(zipped_divide(tile_c, {16, 8})), 0)), mma_c));
  f(crd2idx({{3, 1}, {1, 0}}, values.shape(), values.stride()));
  f(values({5, 2}));
  f(size(atoms));
  f(cosize(warps));
  f(idx2crd(77, IntTuple{{4, 8}, 4}));
  f(tiled_divide(tile_c, {f(make_layout(16)), f(make_layout(8))}));
  f(blocked_product(f(make_layout({16, 8})), f(make_layout({2, 4}))));
  f(logical_product(mma_c, warps));
  // Stores: the widest vector that registers and memory share.
  const Layout inverse = f(right_inverse(copy_tv));
  f(left_inverse(copy_tv));
  f(complement(mma_c, 256));
  f(complement(f(make_layout(4, 8)), f(make_layout({16, 8})).shape()));
  f(composition(inverse, f(make_layout(64, 8))));
  f(coalesce(f(flatten(values)), {1, 1}));
  f(group_modes(f(flatten(mma_c)), 0, 2));
  f(filter(f(make_layout({4, {2, 8}}, {0, {1, 4}}))));
  return calls;
}

int host_numbers() { return layouts_of_gemm(4096, 2048, 8192); }
int host_unknown_rows() {
  return layouts_of_gemm(SymInt::unknown(128), SymInt::unknown(128), 8192);
}

namespace {

template <int (*kLayouts)()>
void gemm(benchmark::State& state) {
  double calls = 0;
  for (auto _ : state) calls += kLayouts();
  state.counters["call"] =
      benchmark::Counter(calls, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(gemm<&host_numbers>)->Name("numbers");
BENCHMARK(gemm<&host_unknown_rows>)->Name("unknown_rows");

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--once") == 0) {
    int numbers = 0, unknown_rows = 0;
    for (int i = 0; i < 20; ++i) {
      numbers += heddle::host_numbers();
      unknown_rows += heddle::host_unknown_rows();
    }
    std::printf("%d and %d calls\n", numbers, unknown_rows);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
