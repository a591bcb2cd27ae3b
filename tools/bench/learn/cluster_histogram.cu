// After the CUDA programming guide's clusterHist_kernel: the counters lie in the shared memory of a
// cluster's blocks.
#include <cooperative_groups.h>

constexpr int kOwnValues = (1 << 16) / 8;

extern "C" __global__ void cuda_cluster_histogram(const unsigned* __restrict__ words, unsigned* bins,
                                             int n) {
  __shared__ unsigned counts[kOwnValues];
  const auto cluster = cooperative_groups::this_cluster();
  for (int i = threadIdx.x; i < kOwnValues; i += blockDim.x) counts[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned word = words[i];
    const unsigned low = word & 0xFFFF, high = word >> 16;
    atomicAdd(cluster.map_shared_rank(counts, low / kOwnValues) + low % kOwnValues, 1);
    atomicAdd(cluster.map_shared_rank(counts, high / kOwnValues) + high % kOwnValues, 1);
  }
  cluster.sync();
  unsigned* const own = bins + cluster.block_rank() * kOwnValues;
  for (int i = threadIdx.x; i < kOwnValues; i += blockDim.x) atomicAdd(own + i, counts[i]);
}
