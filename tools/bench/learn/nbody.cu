// After cuda-samples' nbody (GPU Gems 3, chapter 31): tiles of bodies in shared memory.
constexpr int kBodies = 256;

__device__ float3 interact(float3 a, float4 p, float4 other) {
  const float dx = other.x - p.x, dy = other.y - p.y, dz = other.z - p.z;
  const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
  const float pull = other.w * (inverse * inverse * inverse);
  return {a.x + dx * pull, a.y + dy * pull, a.z + dz * pull};
}

extern "C" __global__ void cuda_nbody(const float4* __restrict__ body, float4* __restrict__ velocity,
                                 float4* __restrict__ moved, int n, float dt) {
  __shared__ float4 tile[kBodies];
  const int own = blockIdx.x * kBodies + threadIdx.x;
  const float4 p = body[min(own, n - 1)];
  float3 a = {0, 0, 0};
  for (int first = 0; first < n; first += kBodies) {
    const int i = first + threadIdx.x;
    float4 b = body[min(i, n - 1)];
    if (i >= n) b.w = 0;
    tile[threadIdx.x] = b;
    __syncthreads();
#pragma unroll 128
    for (int j = 0; j < kBodies; ++j) a = interact(a, p, tile[j]);
    __syncthreads();
  }
  if (own >= n) return;
  float4 v = velocity[own];
  v.x += a.x * dt;
  v.y += a.y * dt;
  v.z += a.z * dt;
  velocity[own] = v;
  moved[own] = {p.x + v.x * dt, p.y + v.y * dt, p.z + v.z * dt, p.w};
}
