// Twins of searches.h.
#include <cfloat>
#include <climits>

extern "C" __global__ __launch_bounds__(256) void cuda_linear_search(const int* __restrict__ keys,
                                                                     const int* __restrict__ wanted,
                                                                     int* __restrict__ at,
                                                                     int count, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int key = wanted[i];
  int found = -1;
  for (int k = 0; k < length; ++k) {
    if (keys[k * count + i] == key) {
      found = k;
      break;
    }
  }
  at[i] = found;
}

extern "C" __global__ __launch_bounds__(256) void cuda_sum_of_roots(const float* __restrict__ x,
                                                                    float* __restrict__ y,
                                                                    int count, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int k = 0; k < length; ++k) {
    const float v = x[k * count + i];
    if (v <= 0) continue;
    sum += sqrtf(v);
  }
  y[i] = sum;
}

extern "C" __global__ __launch_bounds__(256) void cuda_collatz(int* __restrict__ steps, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned n = i + 1;
  int taken = 0;
  while (n != 1) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++taken;
  }
  steps[i] = taken;
}

extern "C" __global__ __launch_bounds__(256) void cuda_grid_search(const float* __restrict__ grid,
                                                                   const float* __restrict__ values,
                                                                   int* __restrict__ at, int count,
                                                                   int length_of_grid) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float value = values[i];
  int lower = 0, upper = length_of_grid - 1, length = upper;
  while (length > 1) {
    const int middle = lower + length / 2;
    if (grid[middle] > value) {
      upper = middle;
    } else {
      lower = middle;
    }
    length = upper - lower;
  }
  at[i] = lower;
}

__device__ unsigned hash_of(unsigned key) {
  const unsigned mixed = (key ^ (key >> 16)) * 0x85ebca6bu;
  return mixed ^ (mixed >> 13);
}
extern "C" __global__ __launch_bounds__(256) void cuda_hash_find(const unsigned* __restrict__ table,
                                                                 const unsigned* __restrict__ keys,
                                                                 int* __restrict__ at, int count,
                                                                 int places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned key = keys[i], mask = places - 1;
  unsigned place = hash_of(key) & mask;
  int found = -1;
  while (true) {
    const unsigned there = table[place];
    if (there == key) {
      found = place;
      break;
    }
    if (there == 0) break;
    place = (place + 1) & mask;
  }
  at[i] = found;
}

extern "C" __global__ __launch_bounds__(256) void cuda_hash_insert(unsigned* __restrict__ table,
                                                                   const unsigned* __restrict__ keys,
                                                                   int* __restrict__ is_new,
                                                                   int count, int places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned key = keys[i], mask = places - 1;
  unsigned place = hash_of(key) & mask;
  int inserted = 0;
  while (true) {
    const unsigned there = atomicCAS(&table[place], 0u, key);
    if (there == 0) {
      inserted = 1;
      break;
    }
    if (there == key) break;
    place = (place + 1) & mask;
  }
  is_new[i] = inserted;
}

// What the whole block makes of its values, in every thread; the threads of a block meet at the end.
template <class T, class Merge>
__device__ T block_merge(T v, T* of_warps, Merge merge) {
  for (int mask = 16; mask > 0; mask /= 2) v = merge(v, __shfl_xor_sync(~0u, v, mask));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warps[threadIdx.x % 8];
  for (int mask = 4; mask > 0; mask /= 2) v = merge(v, __shfl_xor_sync(~0u, v, mask));
  return v;
}

extern "C" __global__ __launch_bounds__(256) void cuda_top_k(const float* __restrict__ x,
                                                             float* __restrict__ y, int columns) {
  __shared__ float tops[8];
  __shared__ int owners[8];
  x += static_cast<long long>(blockIdx.x) * columns;
  float best[8];
  for (int j = 0; j < 8; ++j) best[j] = -FLT_MAX;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float rest = x[i];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float larger = fmaxf(best[j], rest);
      rest = fminf(best[j], rest);
      best[j] = larger;
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float top = block_merge(best[0], tops, [](float a, float b) { return fmaxf(a, b); });
    const int mine = best[0] == top ? threadIdx.x : INT_MAX;
    const int owner = block_merge(mine, owners, [](int a, int b) { return min(a, b); });
    if (threadIdx.x == owner) {
#pragma unroll
      for (int j = 0; j < 7; ++j) best[j] = best[j + 1];
      best[7] = -FLT_MAX;
      y[blockIdx.x * 8 + k] = top;
    }
  }
}

extern "C" __global__ __launch_bounds__(256) void cuda_hits(const float* __restrict__ directions,
                                                            const float* __restrict__ spheres,
                                                            float* __restrict__ distances,
                                                            float* __restrict__ normals, int rays,
                                                            int count) {
  const int ray = blockIdx.x * blockDim.x + threadIdx.x;
  if (ray >= rays) return;
  const float dx = directions[3 * ray], dy = directions[3 * ray + 1], dz = directions[3 * ray + 2];
  const float length2 = dx * dx + dy * dy + dz * dz;
  float nearest = INFINITY;
  for (int i = 0; i < count; ++i) {
    const float x = spheres[4 * i], y = spheres[4 * i + 1], z = spheres[4 * i + 2];
    const float radius = spheres[4 * i + 3];
    const float along = x * dx + y * dy + z * dz;
    const float outside = x * x + y * y + z * z - radius * radius;
    const float under_root = along * along - length2 * outside;
    const float distance = (along - sqrtf(under_root)) / length2;
    const float normal_x = (distance * dx - x) / radius;
    const float normal_y = (distance * dy - y) / radius;
    const float normal_z = (distance * dz - z) / radius;
    if (under_root > 0 && along > 0 && distance < nearest) {
      nearest = distance;
      distances[ray] = distance;
      normals[3 * ray] = normal_x;
      normals[3 * ray + 1] = normal_y;
      normals[3 * ray + 2] = normal_z;
    }
  }
}
