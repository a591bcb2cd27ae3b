// What the threads of a warp or a block have, combined and added up. Of the twins.
#pragma once

constexpr unsigned kAll = ~0u;

__device__ inline int lane_id() { return threadIdx.x % 32; }

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
  __device__ float2 operator()(float2 a, float2 b) const {
    return make_float2(a.x + b.x, a.y + b.y);
  }
};
struct Maximum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return max(a, b);
  }
};

template <class T>
__device__ T exchange(T v, int mask) {
  return __shfl_xor_sync(kAll, v, mask);
}
__device__ inline float2 exchange(float2 v, int mask) {
  return make_float2(exchange(v.x, mask), exchange(v.y, mask));
}

// The value of kLanes lanes, in each of them. Overloads combine some types in a way of their own.
template <int kLanes, class T, class Combine>
__device__ T over_lanes(T v, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) v = combine(v, exchange(v, mask));
  return v;
}

// The value of the block, in each of its threads. Calls of one type share memory: a barrier has to lie between them.
template <int kThreads, class T, class Combine>
__device__ T block_reduce(T v, Combine combine) {
  constexpr int kWarps = kThreads / 32;
  __shared__ T of_warps[kWarps];
  v = over_lanes<32>(v, combine);
  if (lane_id() == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  return over_lanes<kWarps>(of_warps[threadIdx.x % kWarps], combine);
}

// The sum of the lanes up to each.
template <class T>
__device__ T warp_scan(T v) {
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) {
    const T below = __shfl_up_sync(kAll, v, delta);
    if (lane_id() >= delta) v = below + v;
  }
  return v;
}
// The sum of the lanes in front of each, from what warp_scan() gave.
template <class T>
__device__ T in_front(T up_to_lane) {
  const T below = __shfl_up_sync(kAll, up_to_lane, 1);
  return lane_id() > 0 ? below : T(0);
}
