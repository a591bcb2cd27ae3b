// Twins of rows.h.
#include <cuda_bf16.h>

#include <cfloat>

constexpr int kThreads = 256, kWarps = kThreads / 32;

extern "C" __global__ __launch_bounds__(kThreads) void cuda_scale_rows(const float* __restrict__ x,
                                                                       float* __restrict__ y,
                                                                       float a, int columns) {
  x += static_cast<long long>(blockIdx.x) * columns;
  y += static_cast<long long>(blockIdx.x) * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = a * x[i];
}

struct SoftmaxSum {
  float largest, sum;
};
__device__ SoftmaxSum merge(SoftmaxSum a, SoftmaxSum b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}
__device__ SoftmaxSum shuffle(SoftmaxSum v, int mask) {
  return {__shfl_xor_sync(~0u, v.largest, mask), __shfl_xor_sync(~0u, v.sum, mask)};
}

struct Moments {
  float count, mean, squares;
};
__device__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count, part = count > 0 ? b.count / count : 0;
  const float apart = b.mean - a.mean;
  return {count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part};
}
__device__ Moments shuffle(Moments v, int mask) {
  return {__shfl_xor_sync(~0u, v.count, mask), __shfl_xor_sync(~0u, v.mean, mask),
          __shfl_xor_sync(~0u, v.squares, mask)};
}

// The merged value of the whole block, in every thread.
template <class T>
__device__ T block_merge(T v) {
  __shared__ T of_warps[kWarps];
  for (int mask = 16; mask > 0; mask /= 2) v = merge(v, shuffle(v, mask));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warps[threadIdx.x % kWarps];
  for (int mask = kWarps / 2; mask > 0; mask /= 2) v = merge(v, shuffle(v, mask));
  return v;
}

template <class T>
__device__ void softmax(const T* __restrict__ x, T* __restrict__ y, int columns) {
  x += static_cast<long long>(blockIdx.x) * columns;
  y += static_cast<long long>(blockIdx.x) * columns;
  SoftmaxSum mine = {-FLT_MAX, 0};
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    mine = merge(mine, {static_cast<float>(x[i]), 1});
  }
  const SoftmaxSum all = block_merge(mine);
  const float scale = 1.0f / all.sum;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[i] = static_cast<T>(expf(static_cast<float>(x[i]) - all.largest) * scale);
  }
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax(const float* __restrict__ x,
                                                                    float* __restrict__ y,
                                                                    int columns) {
  softmax(x, y, columns);
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax_bf16(
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, int columns) {
  softmax(x, y, columns);
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_layer_norm(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ y, int columns) {
  x += static_cast<long long>(blockIdx.x) * columns;
  y += static_cast<long long>(blockIdx.x) * columns;
  Moments mine = {0, 0, 0};
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float count = mine.count + 1, apart = x[i] - mine.mean;
    const float mean = mine.mean + __fdividef(apart, count);
    mine = {count, mean, mine.squares + apart * (x[i] - mean)};
  }
  const Moments all = block_merge(mine);
  const float scale = rsqrtf(all.squares / columns + 1e-5f);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[i] = (x[i] - all.mean) * scale * weight[i] + bias[i];
  }
}

extern "C" __global__ __launch_bounds__(256) void cuda_group_scale(
    const float* __restrict__ x, const float* __restrict__ scales, float* __restrict__ y,
    long long columns, long long groups) {
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  scales += blockIdx.x * groups;
  const long long group = columns / groups;
  for (long long i = threadIdx.x; i < columns; i += blockDim.x) y[i] = x[i] * scales[i / group];
}
