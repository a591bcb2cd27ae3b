// Philox4x32-10 after Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011); the
// estimate after cuda-samples' MC_EstimatePiInlineP.
__device__ uint4 philox(unsigned counter, unsigned key) {
  uint4 c = {counter, 0, 0, 0};
  unsigned k0 = key, k1 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    c = {__umulhi(0xCD9E8D57u, c.z) ^ c.y ^ k0, 0xCD9E8D57u * c.z,
         __umulhi(0xD2511F53u, c.x) ^ c.w ^ k1, 0xD2511F53u * c.x};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

__device__ unsigned hit(unsigned a, unsigned b) {
  const float x = fmaf(static_cast<float>(a), 0x1p-32f, 0x1p-33f);
  const float y = fmaf(static_cast<float>(b), 0x1p-32f, 0x1p-33f);
  return fmaf(x, x, y * y) < 1.0f ? 1 : 0;
}

extern "C" __global__ void cuda_monte_carlo_pi(unsigned long long* hits, int n, unsigned seed) {
  __shared__ unsigned sums[256];
  unsigned mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint4 w = philox(i, seed);
    mine += hit(w.x, w.y) + hit(w.z, w.w);
  }
  sums[threadIdx.x] = mine;
  for (int s = 128; s > 0; s /= 2) {
    __syncthreads();
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
  }
  if (threadIdx.x == 0) atomicAdd(hits, static_cast<unsigned long long>(sums[0]));
}
