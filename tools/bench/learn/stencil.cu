// After cuda-samples' FDTD3d: blocks march through the planes with a column in registers; the tile of
// the next plane comes by asynchronous copies (CUDA programming guide, pipeline primitives) instead of
// through registers. fmaf in the order of Heddle's program, so that results are equal.
#include <cuda_pipeline.h>

constexpr int kReach = 4, kRows = 16, kColumns = 32;
constexpr int kTileRows = kRows + 2 * kReach, kTileColumns = kColumns + 2 * kReach;

extern "C" __global__ __launch_bounds__(kRows* kColumns) void cuda_stencil(
    const float* __restrict__ x, float* __restrict__ y, int planes, int rows, int columns) {
  constexpr float kWeights[kReach + 1] = {0.25f, 0.0625f, 0.03125f, 0.0234375f, 0.0078125f};
  __shared__ __align__(16) float tiles[2][kTileRows][kTileColumns];
  const int x_rows = rows + 2 * kReach, x_columns = columns + 2 * kReach;
  const int x_plane = x_rows * x_columns;
  const int row = blockIdx.y * kRows, column = blockIdx.x * kColumns;
  const int number = threadIdx.y * kColumns + threadIdx.x;
  const int copy_row = number / (kTileColumns / 4), copy_column = number % (kTileColumns / 4) * 4;
  const bool copies =
      copy_row < kTileRows && row + copy_row < x_rows && column + copy_column < x_columns;
  const auto fetch = [&](int z) {
    if (copies && z < planes) {
      __pipeline_memcpy_async(&tiles[z & 1][copy_row][copy_column],
                              &x[(z + kReach) * x_plane + (row + copy_row) * x_columns + column +
                                 copy_column],
                              16);
    }
    __pipeline_commit();
  };
  const int i = threadIdx.y + kReach, j = threadIdx.x + kReach;
  const float* own =
      x + min(row + i, x_rows - 1) * x_columns + min(column + j, x_columns - 1);
  const bool writes = row + threadIdx.y < rows && column + threadIdx.x < columns;
  float c[2 * kReach + 1];
#pragma unroll
  for (int k = 0; k < 2 * kReach; ++k) {
    c[k] = *own;
    own += x_plane;
  }
  fetch(0);
  for (int z = 0; z < planes; ++z) {
    fetch(z + 1);
    c[2 * kReach] = *own;
    own += x_plane;
    __pipeline_wait_prior(1);
    __syncthreads();
    const auto& tile = tiles[z & 1];
    float sum = kWeights[0] * c[kReach];
#pragma unroll
    for (int k = 1; k <= kReach; ++k) {
      const float across = (tile[i - k][j] + tile[i + k][j]) + (tile[i][j - k] + tile[i][j + k]);
      sum = fmaf(kWeights[k], across + (c[kReach - k] + c[kReach + k]), sum);
    }
    if (writes) y[(z * rows + row + threadIdx.y) * columns + column + threadIdx.x] = sum;
#pragma unroll
    for (int k = 0; k < 2 * kReach; ++k) c[k] = c[k + 1];
    __syncthreads();
  }
}
