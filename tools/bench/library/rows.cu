// Twins of softmax, cross-entropy and their gradients: a block has a row in registers, four vectors of 16 bytes a thread,
// two where two matrices are read.
#include <cuda_bf16.h>

#include <cfloat>

#include "groups.cuh"
#include "part.cuh"

namespace {

// The largest element, and the sum of e^(element - largest).
struct SoftmaxSum {
  float largest, sum;
};
// kNarrow: as finely as results of 16 bits need it.
template <bool kNarrow>
__device__ float weight(float x, float largest) {
  if constexpr (!kNarrow) return expf(x - largest);
  constexpr float kLog2OfE = 1.442695041f;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((x - largest) * kLog2OfE));
  return y;
}
template <bool kNarrow>
struct MergeSums {};
template <int kLanes, bool kNarrow>
__device__ SoftmaxSum over_lanes(SoftmaxSum mine, MergeSums<kNarrow>) {
  const float largest = over_lanes<kLanes>(mine.largest, Maximum());
  return {largest, over_lanes<kLanes>(mine.sum * weight<kNarrow>(mine.largest, largest), Plus())};
}

__device__ SoftmaxSum softmax_sum(const Part<>& part) {
  const float mine = fmaxf(part.fold([](float x, int) { return x; }, Maximum()), -FLT_MAX);
  const float sum = part.fold([&](float x, int) { return weight<false>(x, mine); }, Plus());
  return block_reduce<kThreads>(SoftmaxSum{mine, sum}, MergeSums<false>());
}

__device__ float reciprocal(float x) { return __fdividef(1.0f, x); }

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax(const float* __restrict__ x,
                                                                    float* __restrict__ y) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  const float scale = reciprocal(all.sum);
  part.map([&](float v, int) { return weight<false>(v, all.largest) * scale; }).store(row_of(y));
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_log_softmax(const float* __restrict__ x,
                                                                        float* __restrict__ y) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  const float scale = logf(all.sum);
  part.map([&](float v, int) { return v - all.largest - scale; }).store(row_of(y));
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_softmax_backward(
    const float* __restrict__ y, const float* __restrict__ dy, float* __restrict__ dx) {
  const Part<2> part(row_of<kColumnsOfTwo>(y)), by(row_of<kColumnsOfTwo>(dy));
  const float mine = part.fold([&](float v, int i) { return v * by[i]; }, Plus());
  const float sum = block_reduce<kThreads>(mine, Plus());
  part.map([&](float v, int i) { return v * (by[i] - sum); }).store(row_of<kColumnsOfTwo>(dx));
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_log_softmax_backward(
    const float* __restrict__ y, const float* __restrict__ dy, float* __restrict__ dx) {
  const Part<2> part(row_of<kColumnsOfTwo>(y)), by(row_of<kColumnsOfTwo>(dy));
  const float sum = block_reduce<kThreads>(by.sum(), Plus());
  part.map([&](float v, int i) { return by[i] - expf(v) * sum; }).store(row_of<kColumnsOfTwo>(dx));
}

extern "C" __global__ __launch_bounds__(kThreads) void cuda_cross_entropy(
    const float* __restrict__ x, const long long* __restrict__ target, float* __restrict__ loss) {
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  if (threadIdx.x != 0) return;
  const long long which = target[blockIdx.x];
  loss[blockIdx.x] = which >= 0 ? logf(all.sum) - (row_of(x)[which] - all.largest) : 0.0f;
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_cross_entropy_backward(
    const float* __restrict__ x, const long long* __restrict__ target,
    const float* __restrict__ dloss, float* __restrict__ dx) {
  const int which = static_cast<int>(target[blockIdx.x]);
  const float gradient = dloss[blockIdx.x];
  const Part<> part(row_of(x));
  const SoftmaxSum all = softmax_sum(part);
  const float scale = reciprocal(all.sum);
  // A row without a class has no gradient, whatever its elements are.
  if (which < 0) return Part<>().store(row_of(dx));
  // How far behind the thread's first element the right one is.
  const int right = which - 4 * static_cast<int>(threadIdx.x);
  part.map([&](float v, int i) {
        const float p = weight<false>(v, all.largest) * scale;
        return (right == Part<>::behind_first(i) ? p - 1.0f : p) * gradient;
      })
      .store(row_of(dx));
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
      0, [&](int i) { return weight<true>(element(i), mine); }, Plus());
  const SoftmaxSum all = block_reduce<256>(SoftmaxSum{mine, sum}, MergeSums<true>());
  const float scale = reciprocal(all.sum);
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    Eight out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 8 * v + 2 * i;
      out.pairs[i] = __floats2bfloat162_rn(weight<true>(element(at), all.largest) * scale,
                                           weight<true>(element(at + 1), all.largest) * scale);
    }
    reinterpret_cast<uint4*>(row_of(y))[threadIdx.x + v * 256] = out.bits;
  }
}
