// Twin of dropout: a thread has eight elements of a row, of which four share a hash.
namespace {

constexpr int kThreads = 256, kColumns = 8192, kGroups = kColumns / 8;

// Philox4x32-10.
__device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    counter =
        make_uint4(__umulhi(0xCD9E8D57u, counter.z) ^ counter.y ^ key.x, 0xCD9E8D57u * counter.z,
                   __umulhi(0xD2511F53u, counter.x) ^ counter.w ^ key.y, 0xD2511F53u * counter.x);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

__device__ float4 dropped(float4 v, uint4 word, unsigned threshold, float scale) {
  return make_float4(word.x >= threshold ? v.x * scale : 0, word.y >= threshold ? v.y * scale : 0,
                     word.z >= threshold ? v.z * scale : 0, word.w >= threshold ? v.w * scale : 0);
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_dropout(const float4* __restrict__ x,
                                                                    float4* __restrict__ y,
                                                                    uint2 seed, unsigned threshold,
                                                                    float scale, int rows) {
  const long long at = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const unsigned row = at / kGroups, first = at % kGroups * 2;
  if (row >= rows) return;
  const float4 a = x[at * 2], b = x[at * 2 + 1];
  y[at * 2] = dropped(a, philox(make_uint4(first, row, 0, 0), seed), threshold, scale);
  y[at * 2 + 1] = dropped(b, philox(make_uint4(first + 1, row, 0, 0), seed), threshold, scale);
}
