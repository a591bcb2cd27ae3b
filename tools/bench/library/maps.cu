// Twins of maps: a thread has vectors of the output, a block's width apart.
#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;
// Vectors of a row of the matrices that are not walked through as one row.
constexpr unsigned kRowVectors = 8192 / 4;

__device__ float gelu(float x) { return x * 0.5f * (erff(x * 0.707106781f) + 1.0f); }

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_axpby(float alpha,
                                                                  const float* __restrict__ x,
                                                                  float beta, float* __restrict__ y,
                                                                  int count) {
  constexpr int kTile = 4096;
  const int start = blockIdx.x * kTile;
  if (count - start < kTile) {
    for (int i = start + threadIdx.x; i < count; i += kThreads) {
      y[i] = fmaf(alpha, x[i], beta * y[i]);
    }
    return;
  }
  const float4* from = reinterpret_cast<const float4*>(x + start);
  float4* to = reinterpret_cast<float4*>(y + start);
  float4 xs[4], ys[4];
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    xs[v] = from[threadIdx.x + v * kThreads];
    ys[v] = to[threadIdx.x + v * kThreads];
  }
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    to[threadIdx.x + v * kThreads] =
        make_float4(fmaf(alpha, xs[v].x, beta * ys[v].x), fmaf(alpha, xs[v].y, beta * ys[v].y),
                    fmaf(alpha, xs[v].z, beta * ys[v].z), fmaf(alpha, xs[v].w, beta * ys[v].w));
  }
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_gelu(const float4* __restrict__ x,
                                                                 float4* __restrict__ y,
                                                                 int vectors) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const float4 v = x[i];
  y[i] = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
}

// A matrix and a row.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_add_row(const float4* __restrict__ a,
                                                                    const float4* __restrict__ b,
                                                                    float4* __restrict__ y,
                                                                    int vectors) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const float4 v = a[i], w = b[i % kRowVectors];
  y[i] = make_float4(v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w);
}

// Two vectors of 8 bytes a thread.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_cast_bf16(const float4* __restrict__ x,
                                                                      uint2* __restrict__ y,
                                                                      int vectors) {
  const int first = blockIdx.x * (2 * kThreads) + threadIdx.x;
  float4 loaded[2];
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    if (first + v * kThreads < vectors) loaded[v] = x[first + v * kThreads];
  }
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    union {
      uint2 bits;
      __nv_bfloat162 pairs[2];
    } out;
    out.pairs[0] = __floats2bfloat162_rn(loaded[v].x, loaded[v].y);
    out.pairs[1] = __floats2bfloat162_rn(loaded[v].z, loaded[v].w);
    if (first + v * kThreads < vectors) y[first + v * kThreads] = out.bits;
  }
}

// From rows that are `pitch` vectors apart to rows one behind the other.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_copy_rows(const uint4* __restrict__ x,
                                                                      uint4* __restrict__ y,
                                                                      int pitch, int vectors) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= vectors) return;
  y[i] = x[static_cast<long long>(i / kRowVectors) * pitch + i % kRowVectors];
}
