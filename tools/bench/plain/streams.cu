// Twins of streams.h.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

constexpr int kThreads = 256, kWarps = kThreads / 32;

extern "C" __global__ __launch_bounds__(kThreads) void cuda_triad(float* __restrict__ a,
                                                                  const float* __restrict__ b,
                                                                  const float* __restrict__ c,
                                                                  float scalar, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] + scalar * c[i];
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_dot(const float* __restrict__ a,
                                                                const float* __restrict__ b,
                                                                float* __restrict__ sums, int n) {
  __shared__ float of_warps[kWarps];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    sum += a[i] * b[i];
  }
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = of_warps[threadIdx.x % kWarps];
  for (int mask = kWarps / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_half_axpy(const __half* __restrict__ x,
                                                                      __half* __restrict__ y,
                                                                      unsigned short a, int n) {
  const __half factor = __ushort_as_half(a);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    y[i] = __hfma(factor, x[i], y[i]);
  }
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_quantise(const float* __restrict__ x,
                                                                     __nv_fp8_e4m3* __restrict__ y,
                                                                     float scale, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    y[i] = __nv_fp8_e4m3(x[i] * scale);
  }
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_dequantise(
    const __nv_fp8_e4m3* __restrict__ x, __half* __restrict__ y, unsigned short scale, int n) {
  const __half factor = __ushort_as_half(scale);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    y[i] = static_cast<__half>(x[i]) * factor;
  }
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_fft(const float* __restrict__ x,
                                                                const float* __restrict__ roots,
                                                                float* __restrict__ y) {
  constexpr int kHalf = 256, kSteps = 9;
  __shared__ float numbers[2][2 * kHalf][2];
  x += blockIdx.x * 4ll * kHalf;
  y += blockIdx.x * 4ll * kHalf;
  const unsigned thread = threadIdx.x;
  for (int part = 0; part < 2; ++part) {
    numbers[0][thread][part] = x[thread * 2 + part];
    numbers[0][thread + kHalf][part] = x[(thread + kHalf) * 2 + part];
  }
  for (int step = 0; step < kSteps; ++step) {
    __syncthreads();
    const unsigned width = 1u << step, k = thread % width, group = thread / width;
    const int from = step % 2, to = 1 - from;
    const float re = numbers[from][thread + kHalf][0], im = numbers[from][thread + kHalf][1];
    const unsigned root = k * (kHalf / width);
    const float c = roots[root * 2], s = roots[root * 2 + 1];
    const float product_re = re * c - im * s, product_im = re * s + im * c;
    const float a_re = numbers[from][thread][0], a_im = numbers[from][thread][1];
    const unsigned first = group * width * 2 + k, second = first + width;
    numbers[to][first][0] = a_re + product_re;
    numbers[to][first][1] = a_im + product_im;
    numbers[to][second][0] = a_re - product_re;
    numbers[to][second][1] = a_im - product_im;
  }
  __syncthreads();
  for (int part = 0; part < 2; ++part) {
    y[thread * 2 + part] = numbers[kSteps % 2][thread][part];
    y[(thread + kHalf) * 2 + part] = numbers[kSteps % 2][thread + kHalf][part];
  }
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_walsh(const float* __restrict__ x,
                                                                  float* __restrict__ y, int stride,
                                                                  int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  const int low = i & (stride - 1), first = (i - low) * 4 + low;
  const float a = x[first], b = x[first + stride], c = x[first + 2 * stride];
  const float d = x[first + 3 * stride];
  const float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
  y[first] = ac + bd;
  y[first + stride] = ac - bd;
  y[first + 2 * stride] = a_c + b_d;
  y[first + 3 * stride] = a_c - b_d;
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_bias_gelu(
    const __half* __restrict__ x, const __half* __restrict__ bias, __half* __restrict__ y,
    int columns) {
  x += static_cast<long long>(blockIdx.x) * columns;
  y += static_cast<long long>(blockIdx.x) * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float v = static_cast<float>(x[i]) + static_cast<float>(bias[i]);
    const float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    y[i] = static_cast<__half>(0.5f * v * (1.0f + tanhf(inner)));
  }
}
