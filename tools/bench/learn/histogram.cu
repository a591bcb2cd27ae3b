// After cuda-samples' histogram256: a histogram a warp in shared memory, combined by the block.
constexpr int kBins = 256, kWarps = 8;

extern "C" __global__ void cuda_histogram(const unsigned* __restrict__ words, unsigned* bins, int n) {
  __shared__ unsigned counts[kWarps * kBins];
  for (int i = threadIdx.x; i < kWarps * kBins; i += 32 * kWarps) counts[i] = 0;
  __syncthreads();
  unsigned* const own = counts + threadIdx.x / 32 * kBins;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned word = words[i];
    atomicAdd(own + (word & 0xFF), 1);
    atomicAdd(own + (word >> 8 & 0xFF), 1);
    atomicAdd(own + (word >> 16 & 0xFF), 1);
    atomicAdd(own + (word >> 24), 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += 32 * kWarps) {
    unsigned sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += counts[warp * kBins + bin];
    atomicAdd(bins + bin, sum);
  }
}
