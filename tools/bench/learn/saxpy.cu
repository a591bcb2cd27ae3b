// After "An Easy Introduction to CUDA C and C++" (NVIDIA developer blog): one thread an element.
extern "C" __global__ void cuda_saxpy(float a, const float* __restrict__ x, float* __restrict__ y,
                                 int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
