// Twin of rotary: a thread has four pairs of each of four heads, whose angles it loads once.
namespace {

constexpr int kThreads = 256, kHeads = 32, kElements = 128, kVectors = kElements / 2 / 4,
              kGroup = 4;

struct Turned {
  float4 a, b;
};
__device__ Turned turned(float4 a, float4 b, float4 c, float4 s) {
  return {make_float4(fmaf(a.x, c.x, -(b.x * s.x)), fmaf(a.y, c.y, -(b.y * s.y)),
                      fmaf(a.z, c.z, -(b.z * s.z)), fmaf(a.w, c.w, -(b.w * s.w))),
          make_float4(fmaf(b.x, c.x, a.x * s.x), fmaf(b.y, c.y, a.y * s.y),
                      fmaf(b.z, c.z, a.z * s.z), fmaf(b.w, c.w, a.w * s.w))};
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_rotary(
    const float4* __restrict__ x, const float4* __restrict__ cosine,
    const float4* __restrict__ sine, float4* __restrict__ y, int tokens) {
  const long long at = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const int vector = at % kVectors, group = at / kVectors % (kHeads / kGroup),
            token = at / (kVectors * (kHeads / kGroup));
  if (token >= tokens) return;
  const float4 c = cosine[token * kVectors + vector], s = sine[token * kVectors + vector];
  const long long first =
      (static_cast<long long>(token) * kHeads + group * kGroup) * 2 * kVectors + vector;
  float4 a[kGroup], b[kGroup];
#pragma unroll
  for (int h = 0; h < kGroup; ++h) {
    a[h] = x[first + h * 2 * kVectors];
    b[h] = x[first + h * 2 * kVectors + kVectors];
  }
#pragma unroll
  for (int h = 0; h < kGroup; ++h) {
    const Turned t = turned(a[h], b[h], c, s);
    y[first + h * 2 * kVectors] = t.a;
    y[first + h * 2 * kVectors + kVectors] = t.b;
  }
}
