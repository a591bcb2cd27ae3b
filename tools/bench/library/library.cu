// Twins of the library's kernels: a block has a row in registers, four vectors of 16 bytes a thread, two where two
// matrices are read.
#include <cuda_bf16.h>

#include <cfloat>

namespace {

constexpr int kThreads = 512, kColumns = 8192, kColumnsOfTwo = 4096;

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// The value of the whole block, in every thread. Calls of different numbers have memory of their own.
template <int kCall, int kBlock, class Combine>
__device__ float block_reduce(float v, Combine combine) {
  constexpr int kWarps = kBlock / 32;
  __shared__ float of_warps[kWarps];
  for (int mask = 16; mask > 0; mask /= 2) v = combine(v, __shfl_xor_sync(~0u, v, mask));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warps[threadIdx.x % kWarps];
  for (int mask = kWarps / 2; mask > 0; mask /= 2) v = combine(v, __shfl_xor_sync(~0u, v, mask));
  return v;
}

// Neighbours first, then neighbours of what these gave.
template <int kCount, class Get, class Combine>
__device__ float tree(int first, Get get, Combine combine) {
  if constexpr (kCount == 1) {
    return get(first);
  } else {
    return combine(tree<kCount / 2>(first, get, combine),
                   tree<kCount / 2>(first + kCount / 2, get, combine));
  }
}

// The block's row of a matrix.
template <int kColumnsOfRow = kColumns, class T>
__device__ T* row_of(T* x) {
  return x + static_cast<long long>(blockIdx.x) * kColumnsOfRow;
}

// What a thread has of a row: vectors, a block's width apart.
template <int kVectors = 4>
struct Part {
  float4 vectors[kVectors];
  __device__ explicit Part(const float* __restrict__ row) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      vectors[v] = reinterpret_cast<const float4*>(row)[threadIdx.x + v * kThreads];
    }
  }
  __device__ float operator[](int i) const {
    const float4& v = vectors[i / 4];
    return i % 4 == 0 ? v.x : i % 4 == 1 ? v.y : i % 4 == 2 ? v.z : v.w;
  }
  // f(element, number) of each, combined.
  template <class F, class Combine>
  __device__ float fold(F f, Combine combine) const {
    return tree<4 * kVectors>(
        0, [&](int i) { return f((*this)[i], i); }, combine);
  }
  // Stores them in the same places of another row.
  template <class F>
  __device__ void store(float* __restrict__ row, F f) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      reinterpret_cast<float4*>(row)[threadIdx.x + v * kThreads] =
          make_float4(f(vectors[v].x, 4 * v), f(vectors[v].y, 4 * v + 1),
                      f(vectors[v].z, 4 * v + 2), f(vectors[v].w, 4 * v + 3));
    }
  }
};

struct SoftmaxSum {
  float largest, sum;
};
__device__ SoftmaxSum softmax_sum(const Part<>& part) {
  const float mine = fmaxf(part.fold([](float x, int) { return x; }, Maximum()), -FLT_MAX);
  const float sum = part.fold([&](float x, int) { return expf(x - mine); }, Plus());
  const float largest = block_reduce<0, kThreads>(mine, Maximum());
  return {largest, block_reduce<1, kThreads>(sum * expf(mine - largest), Plus())};
}

__device__ float reciprocal(float x) { return __fdividef(1.0f, x); }

}  // namespace

extern "C" __global__ __launch_bounds__(256) void cuda_axpby(float alpha,
                                                             const float* __restrict__ x,
                                                             float beta, float* __restrict__ y,
                                                             int count) {
  constexpr int kTile = 4096;
  const int start = blockIdx.x * kTile;
  if (count - start < kTile) {
    for (int i = start + threadIdx.x; i < count; i += 256) y[i] = fmaf(alpha, x[i], beta * y[i]);
    return;
  }
  const float4* from = reinterpret_cast<const float4*>(x + start);
  float4* to = reinterpret_cast<float4*>(y + start);
  float4 xs[4], ys[4];
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    xs[v] = from[threadIdx.x + v * 256];
    ys[v] = to[threadIdx.x + v * 256];
  }
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    to[threadIdx.x + v * 256] =
        make_float4(fmaf(alpha, xs[v].x, beta * ys[v].x), fmaf(alpha, xs[v].y, beta * ys[v].y),
                    fmaf(alpha, xs[v].z, beta * ys[v].z), fmaf(alpha, xs[v].w, beta * ys[v].w));
  }
}

// Whole vectors, four at a time, then one at a time, then single elements.
extern "C" __global__ __launch_bounds__(kThreads) void cuda_row_sum(const float* __restrict__ x,
                                                                    float* __restrict__ y,
                                                                    int columns) {
  constexpr int kSweep = 4 * kThreads;
  x += static_cast<long long>(blockIdx.x) * columns;
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
  sum = block_reduce<0, kThreads>(sum, Plus());
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax(const float* __restrict__ x,
                                                                    float* __restrict__ y) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  const float scale = reciprocal(all.sum);
  part.store(row_of(y), [&](float v, int) { return expf(v - all.largest) * scale; });
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_log_softmax(const float* __restrict__ x,
                                                                        float* __restrict__ y) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  const float scale = logf(all.sum);
  part.store(row_of(y), [&](float v, int) { return v - all.largest - scale; });
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_cross_entropy(
    const float* __restrict__ x, const long long* __restrict__ target, float* __restrict__ loss) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  if (threadIdx.x != 0) return;
  const long long which = target[blockIdx.x];
  loss[blockIdx.x] = which >= 0 ? logf(all.sum) - (row_of(x)[which] - all.largest) : 0.0f;
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_rms_norm(const float* __restrict__ x,
                                                                     const float* __restrict__ w,
                                                                     float* __restrict__ y,
                                                                     float epsilon, int columns) {
  const Part<> part(row_of(x));
  const float mine = part.fold([](float v, int) { return v * v; }, Plus());
  const float mean = __fdividef(block_reduce<0, kThreads>(mine, Plus()), columns);
  const float scale = rsqrtf(mean + epsilon);
  const Part<> weight(w);
  part.store(row_of(y), [&](float v, int i) { return v * scale * weight[i]; });
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_layer_norm(const float* __restrict__ x,
                                                                       const float* __restrict__ w,
                                                                       const float* __restrict__ b,
                                                                       float* __restrict__ y,
                                                                       float epsilon, int columns) {
  const Part<> part(row_of(x));
  // How many elements, their mean, and the sum of their squared distances from it: a thread's, then the row's.
  const float count = 16;
  const float mean = part.fold([](float v, int) { return v; }, Plus()) * reciprocal(count);
  const float squares = part.fold([&](float v, int) { return (v - mean) * (v - mean); }, Plus());
  const float all = block_reduce<0, kThreads>(count, Plus());
  const float mean_of_all =
      block_reduce<1, kThreads>(mean * (count * reciprocal(fmaxf(all, 1.0f))), Plus());
  const float apart = mean - mean_of_all;
  const float squares_of_all = block_reduce<2, kThreads>(squares + apart * count * apart, Plus());
  const float scale = rsqrtf(__fdividef(squares_of_all, columns) + epsilon);
  const Part<> weight(w), bias(b);
  part.store(row_of(y),
             [&](float v, int i) { return (v - mean_of_all) * scale * weight[i] + bias[i]; });
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax_backward(
    const float* __restrict__ y, const float* __restrict__ dy, float* __restrict__ dx) {
  const Part<2> part(row_of<kColumnsOfTwo>(y)), by(row_of<kColumnsOfTwo>(dy));
  const float sum = block_reduce<0, kThreads>(
      part.fold([&](float v, int i) { return v * by[i]; }, Plus()), Plus());
  part.store(row_of<kColumnsOfTwo>(dx), [&](float v, int i) { return v * (by[i] - sum); });
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_log_softmax_backward(
    const float* __restrict__ y, const float* __restrict__ dy, float* __restrict__ dx) {
  const Part<2> part(row_of<kColumnsOfTwo>(y)), by(row_of<kColumnsOfTwo>(dy));
  const float sum =
      block_reduce<0, kThreads>(part.fold([&](float, int i) { return by[i]; }, Plus()), Plus());
  part.store(row_of<kColumnsOfTwo>(dx), [&](float v, int i) { return by[i] - expf(v) * sum; });
}

// Of bfloat16: eight elements a vector, four vectors of 256 threads.
extern "C" __global__ __launch_bounds__(256) void cuda_softmax_bf16(
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  union Eight {
    uint4 bits;
    __nv_bfloat162 pairs[4];
  } part[4];
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    part[v].bits = reinterpret_cast<const uint4*>(row_of(x))[threadIdx.x + v * 256];
  }
  __nv_bfloat162 most = part[0].pairs[0];
#pragma unroll
  for (int i = 1; i < 16; ++i) most = __hmax2(most, part[i / 4].pairs[i % 4]);
  const float mine = fmaxf(fmaxf(__low2float(most), __high2float(most)), -FLT_MAX);
  const auto element = [&](int i) {
    const __nv_bfloat162 pair = part[i / 8].pairs[i / 2 % 4];
    return i % 2 == 0 ? __low2float(pair) : __high2float(pair);
  };
  const float sum = tree<32>(
      0, [&](int i) { return __expf(element(i) - mine); }, Plus());
  const float largest = block_reduce<0, 256>(mine, Maximum());
  const float scale = reciprocal(block_reduce<1, 256>(sum * __expf(mine - largest), Plus()));
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    Eight out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.pairs[i] = __floats2bfloat162_rn(__expf(element(8 * v + 2 * i) - largest) * scale,
                                           __expf(element(8 * v + 2 * i + 1) - largest) * scale);
    }
    reinterpret_cast<uint4*>(row_of(y))[threadIdx.x + v * 256] = out.bits;
  }
}
