// Twins of collectives: rounds of one, each on what the round before gave, by cooperative groups and CUB. Every thread has
// the result of a reduction, as with ours.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cuda/std/functional>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 256;

template <class T>
__device__ T next(T result, T own) {
  return result + own;
}
template <>
__device__ float next(float result, float own) {
  return fmaf(result, 0.001f, own);
}

// step(value) of each round.
template <class T, class Step>
__device__ void rounds(const T* x, T* y, int count, Step step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const T own = x[i];
  T v = own;
#pragma unroll 1
  for (int round = 0; round < count; ++round) v = next(step(v), own);
  y[i] = v;
}

struct Greater {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
using At = cub::KeyValuePair<int, float>;

template <class T, class Combine>
__device__ T block_all_reduce(T v, Combine combine) {
  using Reduce = cub::BlockReduce<T, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ T result;
  const T reduced = Reduce(storage).Reduce(v, combine);
  if (threadIdx.x == 0) result = reduced;
  __syncthreads();
  return result;
}

template <class T>
__device__ T block_scan(T v) {
  using Scan = cub::BlockScan<T, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  T result;
  Scan(storage).InclusiveSum(v, result);
  __syncthreads();
  return result;
}

struct Before {
  __device__ bool operator()(int a, int b) const { return a < b; }
};
template <int kEach>
__device__ void warp_sort(int (&values)[kEach]) {
  using Sort = cub::WarpMergeSort<int, kEach, 32>;
  __shared__ typename Sort::TempStorage storage[kThreads / 32];
  Sort(storage[threadIdx.x / 32]).Sort(values, Before());
  __syncwarp();
}

// The blocks of a cluster write their sums to all of them.
__device__ float cluster_all_reduce(float v) {
  __shared__ float sums[8];
  const cg::cluster_group cluster = cg::this_cluster();
  const float of_block = block_all_reduce(v, cuda::std::plus<>());
  if (threadIdx.x < cluster.num_blocks()) {
    *cluster.map_shared_rank(sums + cluster.block_rank(), threadIdx.x) = of_block;
  }
  cluster.sync();
  float sum = sums[0];
  for (int block = 1; block < 8; ++block) sum += sums[block];
  cluster.sync();
  return sum;
}

__device__ auto warp() { return cg::tiled_partition<32>(cg::this_thread_block()); }

}  // namespace

#define KERNEL(NAME, T)                                                                       \
  extern "C" __global__ __launch_bounds__(kThreads) void cuda_##NAME(const T* __restrict__ x, \
                                                                     T* __restrict__ y, int count)

KERNEL(warp_sum_f32, float) {
  rounds(x, y, count, [](float v) { return cg::reduce(warp(), v, cg::plus<float>()); });
}
KERNEL(warp_sum_i32, int) {
  rounds(x, y, count, [](int v) { return cg::reduce(warp(), v, cg::plus<int>()); });
}
KERNEL(warp_max_f32, float) {
  rounds(x, y, count, [](float v) { return cg::reduce(warp(), v, cg::greater<float>()); });
}
KERNEL(warp_scan_f32, float) {
  rounds(x, y, count, [](float v) { return cg::inclusive_scan(warp(), v); });
}
KERNEL(warp_scan_i32, int) {
  rounds(x, y, count, [](int v) { return cg::inclusive_scan(warp(), v); });
}
KERNEL(block_sum_f32, float) {
  rounds(x, y, count, [](float v) { return block_all_reduce(v, cuda::std::plus<>()); });
}
KERNEL(block_sum_i32, int) {
  rounds(x, y, count, [](int v) { return block_all_reduce(v, cuda::std::plus<>()); });
}
KERNEL(block_max_f32, float) {
  rounds(x, y, count, [](float v) { return block_all_reduce(v, Greater()); });
}
KERNEL(block_argmax_f32, float) {
  rounds(x, y, count, [](float v) {
    const At best = block_all_reduce(At(threadIdx.x, v), cub::ArgMax());
    return best.value + best.key;
  });
}
KERNEL(block_scan_f32, float) {
  rounds(x, y, count, [](float v) { return block_scan(v); });
}
KERNEL(block_scan_i32, int) {
  rounds(x, y, count, [](int v) { return block_scan(v); });
}
KERNEL(block_compact, int) {
  rounds(x, y, count, [](int v) {
    using Scan = cub::BlockScan<int, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    int place, all;
    Scan(storage).ExclusiveSum(v & 1, place, all);
    __syncthreads();
    return place + all;
  });
}
KERNEL(warp_sort_i32, int) {
  rounds(x, y, count, [](int v) {
    int values[] = {v};
    warp_sort(values);
    return values[0];
  });
}
KERNEL(warp_sort_4_i32, int) {
  rounds(x, y, count, [](int v) {
    int values[] = {v, v ^ 0x55, v ^ 0x33, v ^ 0x0f};
    warp_sort(values);
    return values[0] + values[1] + values[2] + values[3];
  });
}
KERNEL(block_sort_i32, int) {
  rounds(x, y, count, [](int v) {
    using Sort = cub::BlockMergeSort<int, kThreads, 1>;
    __shared__ typename Sort::TempStorage storage;
    int values[] = {v};
    Sort(storage).Sort(values, Before());
    __syncthreads();
    return values[0];
  });
}
extern "C" __global__ __cluster_dims__(8)
    __launch_bounds__(kThreads) void cuda_cluster_sum_f32(const float* __restrict__ x,
                                                          float* __restrict__ y, int count) {
  cg::this_cluster().sync();  // all run
  rounds(x, y, count, [](float v) { return cluster_all_reduce(v); });
}
