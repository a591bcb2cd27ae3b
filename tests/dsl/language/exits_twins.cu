// The loops of exits_code_test.cc in CUDA. Instructions of a trip, by nvcc 13.0 -O3 -arch=sm_90 and nvdisasm:
// linear_search 7, continue_sum 8, hash_insert 9, hash_find 13, collatz 9.
extern "C" __global__ void collatz(const unsigned* __restrict__ x, int* __restrict__ y, int n,
                                   int most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  int steps = 0;
  while (steps < most) {
    if (v == 1) break;
    if (v & 1)
      v = 3 * v + 1;
    else
      v = v >> 1;
    ++steps;
  }
  y[i] = steps;
}
extern "C" __global__ void linear_search(const int* __restrict__ x, const int* __restrict__ keys,
                                         int* __restrict__ y, int n, int m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  const int key = keys[i];
  int found = -1;
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
    if (x[j] == key) {
      found = j;
      break;
    }
  }
  y[i] = found;
}
extern "C" __global__ void continue_sum(const int* __restrict__ x, int* __restrict__ y, int n,
                                        int m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  int sum = 0;
#pragma unroll 1
  for (int j = i; j < n; ++j) {
    const int v = x[j];
    if (v < 0) continue;
    sum += v * v;
  }
  y[i] = sum;
}
extern "C" __global__ void hash_insert(const unsigned* __restrict__ keys,
                                       unsigned* __restrict__ table, int* __restrict__ slots, int n,
                                       int mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned key = keys[i];
  unsigned slot = key * 2654435761u;
  while (true) {
    slot &= mask;
    const unsigned old = atomicCAS(&table[slot], 0u, key);
    if (old == 0u || old == key) {
      slots[i] = slot;
      return;
    }
    ++slot;
  }
}
extern "C" __global__ void hash_find(const unsigned* __restrict__ keys,
                                     const unsigned* __restrict__ table, int* __restrict__ slots,
                                     int n, int mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned key = keys[i];
  unsigned slot = key * 2654435761u & mask;
  int found = -1;
#pragma unroll 1
  for (int probe = 0; probe <= mask; ++probe) {
    const unsigned k = table[slot];
    if (k == key) {
      found = slot;
      break;
    }
    if (k == 0u) break;
    slot = (slot + 1) & mask;
  }
  slots[i] = found;
}
