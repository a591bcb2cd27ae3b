// After Bell and Garland, "Efficient Sparse Matrix-Vector Multiplication on CUDA" (2008), CSR vector.
extern "C" __global__ void cuda_spmv(const int* __restrict__ start, const int* __restrict__ column,
                                const float* __restrict__ value, const float* __restrict__ x,
                                float* __restrict__ y, int rows) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  const int end = start[row + 1];
  for (int i = start[row] + lane; i < end; i += 32) sum += value[i] * x[column[i]];
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (lane == 0) y[row] = sum;
}
