// A row of a matrix in the registers of a block of 512 threads. Of the twins.
#pragma once

constexpr int kThreads = 512;
// Elements of a row, where one matrix is read and where two are.
constexpr int kColumns = 8192, kColumnsOfTwo = 4096;

template <int kColumnsOfRow = kColumns, class T>
__device__ T* row_of(T* x, int row) {
  return x + static_cast<long long>(row) * kColumnsOfRow;
}
// The block's.
template <int kColumnsOfRow = kColumns, class T>
__device__ T* row_of(T* x) {
  return row_of<kColumnsOfRow>(x, blockIdx.x);
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

// What a thread has of a row: vectors, a block's width apart.
template <int kVectors = 4>
struct Part {
  static constexpr int kCount = 4 * kVectors;
  float of[kCount] = {};

  Part() = default;
  __device__ explicit Part(const float* __restrict__ row) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float4 four = reinterpret_cast<const float4*>(row)[threadIdx.x + v * kThreads];
      of[4 * v] = four.x, of[4 * v + 1] = four.y, of[4 * v + 2] = four.z, of[4 * v + 3] = four.w;
    }
  }
  __device__ float operator[](int i) const { return of[i]; }
  // How far behind the column of the thread's first element that of its i-th is.
  static __device__ constexpr int behind_first(int i) { return i / 4 * 4 * kThreads + i % 4; }

  // f(element, number) of each.
  template <class F>
  __device__ Part map(F f) const {
    Part out;
#pragma unroll
    for (int i = 0; i < kCount; ++i) out.of[i] = f(of[i], i);
    return out;
  }
  // The same, combined.
  template <class F, class Combine>
  __device__ float fold(F f, Combine combine) const {
    return tree<kCount>(
        0, [&](int i) { return f(of[i], i); }, combine);
  }
  __device__ float sum() const {
    return fold([](float v, int) { return v; }, Plus());
  }
  // To the same places of another row.
  __device__ void store(float* __restrict__ row) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      reinterpret_cast<float4*>(row)[threadIdx.x + v * kThreads] =
          make_float4(of[4 * v], of[4 * v + 1], of[4 * v + 2], of[4 * v + 3]);
    }
  }
};
