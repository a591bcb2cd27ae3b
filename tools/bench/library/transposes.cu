// Twins of transposes. A thread loads vectors from a few rows of x one below the other, turns them in registers and
// stores them as vectors to shared memory, where those of a row change places, so that threads beside each other use
// different banks. A grid of tiles along the rows of y, then along those of x.
#include <cstdint>

namespace {

constexpr int kThreads = 256;

// kVector: elements of 16 bytes. kAcross: threads along a row of x, each with four elements of it.
template <class T, int kVector, int kAcross>
struct Tile {
  static constexpr int kRows = kThreads / kAcross * kVector, kColumns = 4 * kAcross;
  static constexpr int kOfRow = kRows / kVector;  // vectors of a row of the turned tile
  uint4 turned[kColumns][kOfRow];

  // The vector of a number, of one of the columns of x that a thread has together.
  __device__ uint4& at(unsigned together, unsigned element, unsigned vector) {
    return turned[4 * together + element][vector ^ (together % (kOfRow < 8 ? kOfRow : 8))];
  }
};

__device__ unsigned part(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ unsigned part(const uint2& v, int i) { return i == 0 ? v.x : v.y; }

// Element e of each of the rows that a thread has: of 32 bits and of 16.
__device__ uint4 turn(const uint4 (&rows)[4], int e) {
  return make_uint4(part(rows[0], e), part(rows[1], e), part(rows[2], e), part(rows[3], e));
}
__device__ uint4 turn(const uint2 (&rows)[8], int e) {
  const unsigned halves = e % 2 == 0 ? 0x5410 : 0x7632;
  const auto pair = [&](int r) {
    return __byte_perm(part(rows[r], e / 2), part(rows[r + 1], e / 2), halves);
  };
  return make_uint4(pair(0), pair(2), pair(4), pair(6));
}

// Of rows and columns that are whole vectors. Four: four elements of x, one access.
template <class T, class Four, int kVector, int kAcross>
__device__ void transpose(const T* __restrict__ x, T* __restrict__ y, int rows, int columns) {
  using Turned = Tile<T, kVector, kAcross>;
  __shared__ Turned tile;
  const int first_row = blockIdx.x * Turned::kRows, first_column = blockIdx.y * Turned::kColumns;
  {
    const unsigned lane = threadIdx.x % kAcross, vector = threadIdx.x / kAcross;
    const int row = first_row + vector * kVector, column = first_column + 4 * lane;
    Four loaded[kVector] = {};
    if (row < rows && column < columns) {
      const T* from = x + static_cast<long long>(row) * columns + column;
#pragma unroll
      for (int r = 0; r < kVector; ++r, from += columns) {
        loaded[r] = *reinterpret_cast<const Four*>(from);
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) tile.at(lane, e, vector) = turn(loaded, e);
  }
  __syncthreads();
  constexpr int kStep = kThreads / Turned::kOfRow, kOfThread = Turned::kColumns / kStep;
  const unsigned i = threadIdx.x / Turned::kOfRow, vector = threadIdx.x % Turned::kOfRow;
  const int column = first_column + i, row = first_row + vector * kVector;
  uint4 turned[kOfThread];
#pragma unroll
  for (int v = 0; v < kOfThread; ++v) turned[v] = tile.at(i / 4 + v * (kStep / 4), i % 4, vector);
  if (row >= rows) return;
  T* to = y + static_cast<long long>(column) * rows + row;
#pragma unroll
  for (int v = 0; v < kOfThread; ++v, to += static_cast<long long>(kStep) * rows) {
    if (column + v * kStep < columns) *reinterpret_cast<uint4*>(to) = turned[v];
  }
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_copy_transposed(
    const uint32_t* __restrict__ x, uint32_t* __restrict__ y, int rows, int columns) {
  transpose<uint32_t, uint4, 4, 16>(x, y, rows, columns);
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_copy_transposed_bf16(
    const uint16_t* __restrict__ x, uint16_t* __restrict__ y, int rows, int columns) {
  transpose<uint16_t, uint2, 8, 32>(x, y, rows, columns);
}
