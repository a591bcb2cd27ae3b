// Twins of matrices.h.
#include <cfloat>

extern "C" __global__ __launch_bounds__(256) void cuda_product(const float* __restrict__ a,
                                                               const float* __restrict__ b,
                                                               float* __restrict__ d, float alpha,
                                                               float beta, int rows, int columns,
                                                               int depth) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= rows || j >= columns) return;
  float sum = beta * d[i * columns + j];
  for (int k = 0; k < depth; ++k) sum += alpha * a[i * depth + k] * b[k * columns + j];
  d[i * columns + j] = sum;
}

constexpr int kTile = 128, kDepth = 8, kSums = 8;
extern "C" __global__ __launch_bounds__(256) void cuda_tiled_product(const float* __restrict__ a,
                                                                     const float* __restrict__ b,
                                                                     float* __restrict__ d,
                                                                     int columns, int depth) {
  __shared__ float a_tile[kDepth][kTile], b_tile[kDepth][kTile];
  const int t = threadIdx.x, row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int i = t / (kTile / kSums) * kSums, j = t % (kTile / kSums) * kSums;
  float sums[kSums][kSums] = {};
  for (int k = 0; k < depth; k += kDepth) {
    for (int n = 0; n < 4; ++n) {
      a_tile[t % 2 * 4 + n][t / 2] = a[(row + t / 2) * depth + k + t % 2 * 4 + n];
      b_tile[t / 32][t % 32 * 4 + n] = b[(k + t / 32) * columns + column + t % 32 * 4 + n];
    }
    __syncthreads();
#pragma unroll
    for (int at = 0; at < kDepth; ++at) {
      float left[kSums], right[kSums];
      for (int n = 0; n < kSums; ++n) {
        left[n] = a_tile[at][i + n];
        right[n] = b_tile[at][j + n];
      }
      for (int m = 0; m < kSums; ++m) {
        for (int n = 0; n < kSums; ++n) sums[m][n] += left[m] * right[n];
      }
    }
    __syncthreads();
  }
  for (int m = 0; m < kSums; ++m) {
    for (int n = 0; n < kSums; ++n) d[(row + i + m) * columns + column + j + n] = sums[m][n];
  }
}

extern "C" __global__ __launch_bounds__(256) void cuda_nearest(const float* __restrict__ points,
                                                               const float* __restrict__ centres,
                                                               int* __restrict__ y, int count,
                                                               int clusters, int features) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float least = FLT_MAX;
  int best = 0;
  for (int c = 0; c < clusters; ++c) {
    float distance = 0;
    for (int f = 0; f < features; ++f) {
      const float apart = points[f * count + i] - centres[c * features + f];
      distance += apart * apart;
    }
    if (distance < least) {
      least = distance;
      best = c;
    }
  }
  y[i] = best;
}

extern "C" __global__ __launch_bounds__(256) void cuda_shortest_paths(int* d, int k, int n) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  const int via = d[i * n + k] + d[k * n + j];
  if (via < d[i * n + j]) d[i * n + j] = via;
}
