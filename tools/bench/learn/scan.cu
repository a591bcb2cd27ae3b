// After Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
typedef unsigned long long Word;
constexpr int kWarps = 8, kRounds = 4, kRound = 128;
constexpr Word kOwnSum = 1ull << 32, kSumToEnd = 2ull << 32;

__device__ Word load(const Word* p) {
  Word w;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
  return w;
}
__device__ void store(Word* p, Word w) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
}

__device__ unsigned sum_before(const Word* progress, int tile, int lane) {
  unsigned sum = 0;
  for (int nearest = tile - 1; nearest >= 0;) {
    const int at = nearest - lane;
    const Word word = at >= 0 ? load(progress + 1 + at) : kSumToEnd;
    const unsigned ends = __ballot_sync(~0u, word >= kSumToEnd), counting = ends ^ (ends - 1);
    if ((__ballot_sync(~0u, word < kOwnSum) & counting) != 0) continue;
    sum += __reduce_add_sync(~0u, (counting >> lane & 1) != 0 ? static_cast<unsigned>(word) : 0);
    nearest = ends != 0 ? -1 : nearest - 32;
  }
  return sum;
}

extern "C" __global__ void cuda_scan(const uint4* __restrict__ x, uint4* __restrict__ y, Word* progress,
                                int n) {
  __shared__ unsigned shared_tile, shared_before, warp_sums[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) shared_tile = static_cast<unsigned>(atomicAdd(progress, 1));
  __syncthreads();
  const int tile = shared_tile;
  const int first = (tile * kWarps + warp) * kRounds * kRound + lane * 4;
  uint4 sums[kRounds];
  unsigned warp_sum = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int at = first + r * kRound;
    uint4 v = at < n ? x[at / 4] : uint4{0, 0, 0, 0};
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    unsigned to_lane = v.w;
    for (int delta = 1; delta < 32; delta *= 2) {
      const unsigned below = __shfl_up_sync(~0u, to_lane, delta);
      if (lane >= delta) to_lane += below;
    }
    const unsigned base = warp_sum + to_lane - v.w;
    sums[r] = {v.x + base, v.y + base, v.z + base, v.w + base};
    warp_sum += __shfl_sync(~0u, to_lane, 31);
  }
  if (lane == 0) warp_sums[warp] = warp_sum;
  __syncthreads();
  unsigned before = 0, tile_sum = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += warp_sums[w];
    tile_sum += warp_sums[w];
  }
  if (warp == 0) {
    if (lane == 0) store(progress + 1 + tile, kOwnSum | tile_sum);
    const unsigned sum = sum_before(progress, tile, lane);
    if (lane == 0) {
      store(progress + 1 + tile, kSumToEnd | (sum + tile_sum));
      shared_before = sum;
    }
  }
  __syncthreads();
  before += shared_before;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int at = first + r * kRound;
    const uint4 s = sums[r];
    if (at < n) y[at / 4] = {s.x + before, s.y + before, s.z + before, s.w + before};
  }
}
