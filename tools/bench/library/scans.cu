// Twins of scan: of rows that blocks have in registers, and of one row whose tiles are blocks'. After Merrill and Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
#include "groups.cuh"

namespace {

constexpr int kRowThreads = 512, kRowVectors = 4, kTileThreads = 256, kTileVectors = 10;

// Of a thread's vectors, a block's width apart, the sums of what is in front of each in the tile.
template <int kVectors>
struct Sums {
  float front[kVectors];
  float all;  // of the tile
};
template <int kThreads, int kVectors>
__device__ Sums<kVectors> scan_vectors(const float4 (&vectors)[kVectors]) {
  constexpr int kWarps = kThreads / 32, kCount = kVectors * kWarps, kEach = (kCount + 31) / 32;
  __shared__ float of_warps[kEach * 32], all;
  const int lane = lane_id(), warp = threadIdx.x / 32;
  float up_to_lane[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    up_to_lane[v] = warp_scan(vectors[v].x + vectors[v].y + vectors[v].z + vectors[v].w);
    if (lane == 31) of_warps[v * kWarps + warp] = up_to_lane[v];
  }
  __syncthreads();
  if (warp == 0) {  // it finds what is in front of each warp
    float before[kEach], own = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      before[i] = own;
      if (kEach * lane + i < kCount) own += of_warps[kEach * lane + i];
    }
    const float reached = warp_scan(own), front = in_front(reached);
#pragma unroll
    for (int i = 0; i < kEach; ++i) of_warps[kEach * lane + i] = front + before[i];
    if (lane == 31) all = reached;
  }
  __syncthreads();
  Sums<kVectors> sums;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    sums.front[v] = of_warps[v * kWarps + warp] + in_front(up_to_lane[v]);
  }
  sums.all = all;
  return sums;
}
// The sums up to each of a vector's elements.
__device__ float4 up_to(float front, const float4& v) {
  float4 y;
  y.x = front + v.x;
  y.y = y.x + v.y;
  y.z = y.y + v.z;
  y.w = y.z + v.w;
  return y;
}

// How far tiles and groups of 32 tiles have come: the upper half of a word says what the lower half, a sum, is of.
using Word = unsigned long long;
constexpr Word kOwn = 1ull << 32, kToEnd = 2ull << 32;

__device__ Word load(const Word* p) {
  Word w;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
  return w;
}
__device__ void store(Word* p, Word w) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
}
__device__ Word word(Word what, float sum) { return what | __float_as_uint(sum); }
__device__ float sum_in(Word word) { return __uint_as_float(static_cast<unsigned>(word)); }

// The sum of the groups in front of one. Lane i looks at the group i + 1 in front of it; from the nearest one whose sum
// reaches from the row's beginning to its end the others' are added one by one.
__device__ float before_group(const Word* groups, int group) {
  const int lane = lane_id(), at = group - 1 - lane;
  Word seen;
  unsigned ends;
  do {
    seen = at >= 0 ? load(groups + at) : kToEnd;
    ends = __ballot_sync(kAll, seen >= kToEnd);
  } while ((__ballot_sync(kAll, seen < kOwn) & (ends ^ (ends - 1))) != 0 || ends == 0);
  const int nearest = __ffs(ends) - 1;
  const float mine = sum_in(seen);
  float all = __shfl_sync(kAll, mine, nearest);
#pragma unroll 1  // for four blocks of a multiprocessor: others' registers are full meanwhile
  for (int i = nearest - 1; i >= 0; --i) all += __shfl_sync(kAll, mine, i);
  return all;
}

// The sum of what is in front of a tile, by a warp. `own` is the tile's sum; the groups' words stand behind the tiles'.
__device__ float before_tile(Word* tiles, Word* groups, int tile, float own) {
  const int lane = lane_id(), group = tile / 32, member = tile % 32;
  if (lane == 0) store(tiles + tile, word(kOwn, own));
  // Of the tiles of the group, in their order: this one's lane has its sum already.
  Word seen = lane < member ? 0 : word(kOwn, own);
  while (__any_sync(kAll, seen < kOwn)) {
    if (seen < kOwn) seen = load(tiles + tile - member + lane);
  }
  const float sums = warp_scan(lane <= member ? sum_in(seen) : 0.0f);
  const float of_group = __shfl_sync(kAll, sums, 31),
              before = __shfl_sync(kAll, sums, max(member - 1, 0)),
              in_group = member > 0 ? before : 0.0f;
  const bool ends = member == 31 && lane == 0;
  if (ends) store(groups + group, word(kOwn, of_group));
  const float front = group > 0 ? before_group(groups, group) : 0.0f;
  if (ends) store(groups + group, word(kToEnd, front + of_group));
  return front + in_group;
}

}  // namespace

extern "C" __global__ __launch_bounds__(kRowThreads) void cuda_scan_rows(
    const float4* __restrict__ x, float4* __restrict__ y) {
  const long long first = static_cast<long long>(blockIdx.x) * (kRowThreads * kRowVectors);
  x += first + threadIdx.x;
  y += first + threadIdx.x;
  float4 vectors[kRowVectors];
#pragma unroll
  for (int v = 0; v < kRowVectors; ++v) vectors[v] = x[v * kRowThreads];
  const Sums<kRowVectors> sums = scan_vectors<kRowThreads>(vectors);
#pragma unroll
  for (int v = 0; v < kRowVectors; ++v) y[v * kRowThreads] = up_to(sums.front[v], vectors[v]);
}

// `words`: of the tiles, then of the groups; 0 before the launch.
extern "C" __global__ __launch_bounds__(kTileThreads) void cuda_scan_tiles(
    const float4* __restrict__ x, float4* __restrict__ y, Word* words, int count) {
  __shared__ float shared_front;
  const int tile = blockIdx.x, first = tile * (kTileThreads * kTileVectors) + threadIdx.x;
  const bool whole = (tile + 1) * (kTileThreads * kTileVectors) <= count;
  float4 vectors[kTileVectors] = {};
#pragma unroll
  for (int v = 0; v < kTileVectors; ++v) {
    const int at = first + v * kTileThreads;
    if (whole || at < count) vectors[v] = x[at];
  }
  const Sums<kTileVectors> sums = scan_vectors<kTileThreads>(vectors);
  if (threadIdx.x < 32) {
    const float front = before_tile(words, words + gridDim.x, tile, sums.all);
    if (threadIdx.x == 0) shared_front = front;
  }
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kTileVectors; ++v) {
    const int at = first + v * kTileThreads;
    if (whole || at < count) y[at] = up_to(shared_front + sums.front[v], vectors[v]);
  }
}
