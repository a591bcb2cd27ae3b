// Sums of columns, for the twins.
#pragma once

namespace {

// Neighbouring columns of one row.
template <int kWidth>
struct Columns {
  float of[kWidth] = {};
  Columns() = default;
  __device__ explicit Columns(const float* from) {
    if constexpr (kWidth == 4) {
      const float4 v = *reinterpret_cast<const float4*>(from);
      of[0] = v.x, of[1] = v.y, of[2] = v.z, of[3] = v.w;
    } else {
      of[0] = *from;
    }
  }
  __device__ void store(float* to) const {
    if constexpr (kWidth == 4) {
      *reinterpret_cast<float4*>(to) = make_float4(of[0], of[1], of[2], of[3]);
    } else {
      *to = of[0];
    }
  }
  __device__ void operator+=(const Columns& more) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) of[i] += more.of[i];
  }
};

// The sums of the columns of x: (outer, rows, columns), of `stretch` rows each. Blocks of kLanes × kRows threads, with
// kLoads loads under way; a grid of tiles of columns, of stretches and of outer.
template <int kWidth, int kLanes, int kRows, int kLoads>
__device__ void sum_columns(const float* x, float* y, int rows, int columns, int stretch) {
  const int column = (blockIdx.x * kLanes + threadIdx.x) * kWidth;
  x += static_cast<long long>(blockIdx.z) * rows * columns + min(column, columns - kWidth);
  y += static_cast<long long>(blockIdx.z * gridDim.y + blockIdx.y) * columns + column;
  int row = blockIdx.y * stretch + threadIdx.y;
  const int end = min(blockIdx.y * stretch + stretch, rows);
  const auto load = [&](int r) { return Columns<kWidth>(x + static_cast<long long>(r) * columns); };
  Columns<kWidth> mine;
  for (; row + (kLoads - 1) * kRows < end; row += kLoads * kRows) {
    Columns<kWidth> loaded[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) loaded[u] = load(row + u * kRows);
#pragma unroll
    for (int apart = 1; apart < kLoads; apart *= 2) {
#pragma unroll
      for (int u = 0; u < kLoads; u += 2 * apart) loaded[u] += loaded[u + apart];
    }
    mine += loaded[0];
  }
  for (; row < end; row += kRows) mine += load(row);

  // Threads below each other add up what they have, half of them with the other half.
  __shared__ __align__(16) float sums[kRows][kLanes * kWidth];
  float* const lane = &sums[0][threadIdx.x * kWidth];
  const int below = threadIdx.y;
#pragma unroll
  for (int half = kRows / 2; half >= 1; half /= 2) {
    if (below >= half && below < 2 * half) mine.store(lane + below * kLanes * kWidth);
    __syncthreads();
    if (below < half) mine += Columns<kWidth>(lane + (below + half) * kLanes * kWidth);
  }
  if (below == 0 && column < columns) mine.store(y);
}

}  // namespace
