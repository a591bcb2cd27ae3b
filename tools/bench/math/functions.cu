// The functions of functions.def in CUDA C++: each thread sums 64 values.
#define HEDDLE_FUNCTION(name, ours, cuda)                                              \
  extern "C" __global__ void cuda_##name(const float* __restrict__ first, float* __restrict__ sums) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                               \
    float x = first[i], sum = 0;                                                       \
    _Pragma("unroll 4") for (int k = 0; k < 64; ++k) {                                 \
      const float y = fmaf(x, 0.125f, 0.75f);                                          \
      sum += cuda;                                                                     \
      x += 0.0625f;                                                                    \
    }                                                                                  \
    sums[i] = sum;                                                                     \
  }
#include "functions.def"
