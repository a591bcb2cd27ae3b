// After cuda-samples' sortingNetworks/bitonicSort: tiles in shared memory, far merges in global.
constexpr unsigned kTile = 1024, kThreads = kTile / 2;

__device__ void compare_exchange(unsigned& a, unsigned& b, bool down) {
  if ((a > b) != down) {
    const unsigned t = a;
    a = b;
    b = t;
  }
}

__device__ void cascade(unsigned* tile, unsigned first_stride, bool down) {
  for (unsigned stride = first_stride; stride > 0; stride /= 2) {
    __syncthreads();
    const unsigned at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    compare_exchange(tile[at], tile[at + stride], down);
  }
}

extern "C" __global__ void cuda_bitonic_sort(unsigned* keys) {
  __shared__ unsigned tile[kTile];
  keys += blockIdx.x * kTile;
  tile[threadIdx.x] = keys[threadIdx.x];
  tile[threadIdx.x + kThreads] = keys[threadIdx.x + kThreads];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  for (unsigned size = 2; size <= kTile; size *= 2) cascade(tile, size / 2, (i & size / 2) != 0);
  __syncthreads();
  keys[threadIdx.x] = tile[threadIdx.x];
  keys[threadIdx.x + kThreads] = tile[threadIdx.x + kThreads];
}

extern "C" __global__ void cuda_merge_far(unsigned* keys, int size, int stride) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned at = 2 * i - (i & (stride - 1));
  unsigned a = keys[at], b = keys[at + stride];
  compare_exchange(a, b, (i & size / 2) != 0);
  keys[at] = a;
  keys[at + stride] = b;
}

extern "C" __global__ void cuda_merge_near(unsigned* keys, int size) {
  __shared__ unsigned tile[kTile];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  keys += blockIdx.x * kTile;
  tile[threadIdx.x] = keys[threadIdx.x];
  tile[threadIdx.x + kThreads] = keys[threadIdx.x + kThreads];
  cascade(tile, kTile / 2, (i & size / 2) != 0);
  __syncthreads();
  keys[threadIdx.x] = tile[threadIdx.x];
  keys[threadIdx.x + kThreads] = tile[threadIdx.x + kThreads];
}
