// Twins of the reductions: of rows in the registers of a block, and of columns, of which a block has some and a stretch
// of the rows.
#include "groups.cuh"
#include "part.cuh"

namespace {

// Whole vectors, four at a time, then one at a time, then single elements.
__device__ float sum_of_row(const float* __restrict__ x, int columns) {
  constexpr int kSweep = 4 * kThreads;
  const auto load = [&](int column) {
    const float4 v = *reinterpret_cast<const float4*>(x + column);
    return (v.x + v.y) + (v.z + v.w);
  };
  const int first = 4 * threadIdx.x, bulk = columns / (4 * kSweep) * (4 * kSweep),
            whole = columns / 4 * 4;
  float sums[4] = {};
  for (int column = first; column < bulk; column += 4 * kSweep) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += load(column + k * kSweep);
  }
  float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int column = bulk + first; column < whole; column += kSweep) sum += load(column);
  for (int column = whole + threadIdx.x; column < columns; column += kThreads) sum += x[column];
  return sum;
}

struct MaximumOrNan {
  __device__ float operator()(float a, float b) const {
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
  }
};
using Word = unsigned long long;

// Numbers that are ordered as floats are, NaN above all, both zeros alike.
__device__ unsigned order_of(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  return x == x ? bits ^ (static_cast<int>(bits) < 0 ? ~0u : 0x80000000u) : ~0u;
}

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

extern "C" __global__ __launch_bounds__(kThreads) void cuda_row_sum(const float* __restrict__ x,
                                                                    float* __restrict__ y,
                                                                    int columns) {
  const float mine = sum_of_row(x + static_cast<long long>(blockIdx.x) * columns, columns);
  const float sum = block_reduce<kThreads>(mine, Plus());
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_reduce_rows(const float* __restrict__ x,
                                                                        float* __restrict__ y) {
  const float sum = block_reduce<kThreads>(Part<>(row_of(x)).sum(), Plus());
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// The place of the largest element of each row, the first of several; NaN counts as larger than all. The upper half of a
// word orders elements, the lower half their places backwards.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_reduce_rows_argmax(
    const float* __restrict__ x, long long* __restrict__ y) {
  const Part<> part(row_of(x));
  const float best = part.fold([](float v, int) { return v; }, MaximumOrNan());
  int place = 0;
#pragma unroll
  for (int i = Part<>::kCount - 1; i >= 0; --i) {
    if (part[i] == best) place = Part<>::behind_first(i);
  }
  if (best != best) {
#pragma unroll
    for (int i = Part<>::kCount - 1; i >= 0; --i) {
      if (part[i] != part[i]) place = Part<>::behind_first(i);
    }
  }
  const Word mine = Word{order_of(best)} << 32 | ~(4 * threadIdx.x + place);
  const Word all = block_reduce<kThreads>(mine, Maximum());
  if (threadIdx.x == 0) y[blockIdx.x] = ~static_cast<unsigned>(all);
}

// Of all elements: blocks of 16384 each, whose sums a second launch adds up, which may begin before the first has ended.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_reduce_all(const float* __restrict__ x,
                                                                       float* __restrict__ sums) {
  cudaTriggerProgrammaticLaunchCompletion();
  const float sum = block_reduce<kThreads>(Part<8>(row_of<2 * kColumns>(x)).sum(), Plus());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
extern "C" __global__ __launch_bounds__(256) void cuda_add_up_blocks(const float* sums, float* y,
                                                                     int blocks) {
  cudaGridDependencySynchronize();
  sum_columns<1, 1, 256, 8>(sums, y, blocks, 1, blocks);
}

// Of columns: of stretches of the rows, whose sums a second launch adds up likewise.
extern "C" __global__ __launch_bounds__(256) void cuda_reduce_columns(const float* __restrict__ x,
                                                                      float* __restrict__ sums,
                                                                      int rows, int columns,
                                                                      int stretch) {
  cudaTriggerProgrammaticLaunchCompletion();
  sum_columns<4, 16, 16, 16>(x, sums, rows, columns, stretch);
}
extern "C" __global__ __launch_bounds__(256) void cuda_add_up_stretches(const float* sums, float* y,
                                                                        int stretches,
                                                                        int columns) {
  cudaGridDependencySynchronize();
  sum_columns<1, 128, 2, 8>(sums, y, stretches, columns, stretches);
}

// What the blocks of a norm's gradient have of the weights': (weights, blocks, columns).
extern "C" __global__ __launch_bounds__(256) void cuda_add_up_weights(
    const float* __restrict__ sums, float* __restrict__ y, int blocks, int columns) {
  sum_columns<4, 32, 8, 16>(sums, y, blocks, columns, blocks);
}
