// Twins of the reductions: of rows in the registers of a block, and of columns, of which a block has some and a stretch
// of the rows.
#include "columns.cuh"
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
