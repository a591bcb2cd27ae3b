// After cuda-samples' transposeNoBankConflicts: a tile through shared memory, one column spare.
constexpr int kTile = 32, kRows = 8;

extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows,
                                     int columns) {
  __shared__ float tile[kTile][kTile + 1];
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  for (int k = threadIdx.y; k < kTile; k += kRows) {
    if (row + k < rows && column + threadIdx.x < columns) {
      tile[k][threadIdx.x] = x[(row + k) * columns + column + threadIdx.x];
    }
  }
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += kRows) {
    if (row + threadIdx.x < rows && column + k < columns) {
      y[(column + k) * rows + row + threadIdx.x] = tile[threadIdx.x][k];
    }
  }
}
