// Twins of embedding and its gradient: of rows of 1024 elements, four a block, a thread has four vectors.
#include <type_traits>

namespace {

constexpr int kThreads = 64, kRows = 4, kVectors = 4, kColumns = 4 * kThreads * kVectors;

template <class T>
__device__ auto vectors_of(T* matrix, long long row) {
  using Vector = std::conditional_t<std::is_const_v<T>, const float4, float4>;
  return reinterpret_cast<Vector*>(matrix + row * kColumns) + threadIdx.x;
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads* kRows) void cuda_embedding(
    const float* __restrict__ table, const long long* __restrict__ ids, float* __restrict__ y,
    int count) {
  const int row = blockIdx.x * kRows + threadIdx.y;
  if (row >= count) return;
  const float4* from = vectors_of(table, ids[row]);
  float4* to = vectors_of(y, row);
  float4 loaded[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) loaded[v] = from[v * kThreads];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) to[v * kThreads] = loaded[v];
}

extern "C" __global__ __launch_bounds__(kThreads* kRows) void cuda_embedding_backward(
    const long long* __restrict__ ids, const float* __restrict__ dy, float* __restrict__ dtable,
    int count) {
  const int row = blockIdx.x * kRows + threadIdx.y;
  if (row >= count) return;
  const float4* from = vectors_of(dy, row);
  float4* to = vectors_of(dtable, ids[row]);
  float4 loaded[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) loaded[v] = from[v * kThreads];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) atomicAdd(to + v * kThreads, loaded[v]);
}
