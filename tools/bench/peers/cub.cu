// CUB's reductions, scans, sorts and histograms, and a kernel that only reads: peers of benchmarks, as a shared library.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 --extended-lambda -shared -Xcompiler -fPIC tools/bench/peers/cub.cu -o peers/peer_cub.so
#include <cuda_bf16.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/cub.cuh>

namespace {

struct ToFloat {
  __host__ __device__ float operator()(__nv_bfloat16 x) const { return __bfloat162float(x); }
};

// What every byte costs: 16 bytes a load, as many under way as a thread of the reductions has.
__global__ __launch_bounds__(512) void read(const uint4* __restrict__ x, long long count, unsigned* y) {
  constexpr int kLoads = 8;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned all = 0;
  for (; i + (kLoads - 1) * step < count; i += kLoads * step) {
    uint4 v[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) v[k] = x[i + k * step];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) all ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  for (; i < count; i += step) all ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
  if (all == 0x12345678u) *y = all;
}

template <class Iterator>
int sum(Iterator x, float* y, long long rows, long long columns, void* memory, size_t* bytes, cudaStream_t stream) {
  if (rows == 1) return cub::DeviceReduce::Sum(memory, *bytes, x, y, columns, stream);
  const auto first = thrust::make_transform_iterator(
      thrust::counting_iterator<long long>(0), [columns] __host__ __device__(long long row) { return row * columns; });
  return cub::DeviceSegmentedReduce::Sum(memory, *bytes, x, y, rows, first, first + 1, stream);
}

template <class T>
int prefix_sums(const T* x, T* y, long long rows, long long columns, void* memory, size_t* bytes, cudaStream_t stream) {
  if (rows == 1) return cub::DeviceScan::InclusiveSum(memory, *bytes, x, y, columns, stream);
  const auto row = thrust::make_transform_iterator(
      thrust::counting_iterator<long long>(0), [columns] __host__ __device__(long long i) { return i / columns; });
  return cub::DeviceScan::InclusiveSumByKey(memory, *bytes, row, x, y, rows * columns, cuda::std::equal_to<>(), stream);
}

}  // namespace

// y(r) = Σ x(r, ·), of f32 or bf16. Without memory, how many bytes of it are needed.
extern "C" int cub_sum(int is_bf16, const void* x, float* y, long long rows, long long columns, void* memory,
                       size_t* bytes, cudaStream_t stream) {
  if (!is_bf16) return sum(static_cast<const float*>(x), y, rows, columns, memory, bytes, stream);
  return sum(thrust::make_transform_iterator(static_cast<const __nv_bfloat16*>(x), ToFloat()), y, rows, columns, memory,
             bytes, stream);
}

// y(r, c) = x(r, 0) + … + x(r, c), of f32 or i32; likewise. Rows are keys.
extern "C" int cub_scan(int is_int, const void* x, void* y, long long rows, long long columns, void* memory, size_t* bytes,
                        cudaStream_t stream) {
  if (is_int) return prefix_sums(static_cast<const int*>(x), static_cast<int*>(y), rows, columns, memory, bytes, stream);
  return prefix_sums(static_cast<const float*>(x), static_cast<float*>(y), rows, columns, memory, bytes, stream);
}

// y = x in order, of u32, i32, f32, bf16 or i64 (type 0 to 4); and where `places` is given, moved is these as x is moved.
extern "C" int cub_sort(int type, const void* x, void* y, const int* places, int* moved, long long count, void* memory,
                        size_t* bytes, cudaStream_t stream) {
  const auto sort = [&](auto element) {
    using T = decltype(element);
    const T* const from = static_cast<const T*>(x);
    T* const to = static_cast<T*>(y);
    if (places == nullptr) return cub::DeviceRadixSort::SortKeys(memory, *bytes, from, to, count, 0, sizeof(T) * 8, stream);
    return cub::DeviceRadixSort::SortPairs(memory, *bytes, from, to, places, moved, count, 0, sizeof(T) * 8, stream);
  };
  switch (type) {
    case 0: return sort(0u);
    case 1: return sort(0);
    case 2: return sort(0.0f);
    case 3: return sort(__nv_bfloat16());
    default: return sort(0ll);
  }
}

// Counts of f32, i32 or u8 (type 0 to 2) in bins of [lower, upper).
extern "C" int cub_histogram(int type, const void* x, int* counts, int bins, double lower, double upper, long long count,
                             void* memory, size_t* bytes, cudaStream_t stream) {
  const auto even = [&](auto element, auto first, auto last) {
    return cub::DeviceHistogram::HistogramEven(memory, *bytes, static_cast<const decltype(element)*>(x), counts, bins + 1,
                                               first, last, count, stream);
  };
  const int first = static_cast<int>(lower), last = static_cast<int>(upper);
  if (type == 0) return even(0.0f, static_cast<float>(lower), static_cast<float>(upper));
  return type == 1 ? even(0, first, last) : even(static_cast<unsigned char>(0), first, last);
}

extern "C" int read_bytes(const void* x, long long bytes, void* y, int blocks, cudaStream_t stream) {
  read<<<blocks, 512, 0, stream>>>(static_cast<const uint4*>(x), bytes / 16, static_cast<unsigned*>(y));
  return cudaGetLastError();
}
