// Copies of matrices with a block a row, as plain_bench's scale_rows has it, written by hand: what that way of dealing
// out rows costs beside the driver's copy. Prints microseconds.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 tools/bench/peers/row_copies.cu -o row_copies && ./row_copies
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <utility>
#include <vector>

// The row's vectors, kLoads of them at once, and one by one what stands in front of and behind them.
template <int kLoads>
__global__ __launch_bounds__(512) void rows(const float* __restrict__ x, float* __restrict__ y, float a, int columns) {
  x += static_cast<long long>(blockIdx.x) * columns;
  y += static_cast<long long>(blockIdx.x) * columns;
  const int threads = blockDim.x, thread = threadIdx.x;
  const int head = static_cast<int>((16 - reinterpret_cast<size_t>(x) % 16) % 16 / 4), whole = (columns - head) / 4;
  if (thread < head) y[thread] = a * x[thread];
  const auto* in = reinterpret_cast<const float4*>(x + head);
  auto* out = reinterpret_cast<float4*>(y + head);
  const auto scaled = [a](float4 v) { return float4{v.x * a, v.y * a, v.z * a, v.w * a}; };
  int i = thread;
  for (; i + (kLoads - 1) * threads < whole; i += kLoads * threads) {
    float4 v[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) v[k] = in[i + k * threads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) out[i + k * threads] = scaled(v[k]);
  }
  for (; i < whole; i += threads) out[i] = scaled(in[i]);
  for (int j = head + 4 * whole + thread; j < columns; j += threads) y[j] = a * x[j];
}

int main() {
  constexpr int kLaunches = 10, kRounds = 15;
  for (const auto& [m, n] : {std::pair(1023, 65537), {8193, 8191}, {8192, 8192}}) {
    const size_t bytes = static_cast<size_t>(m) * n * 4;
    float *x, *y;
    cudaMalloc(&x, bytes), cudaMalloc(&y, bytes), cudaMemset(x, 1, bytes);
    const int r = m, c = n;
    const std::pair<const char*, std::function<void()>> copies[] = {
        {"driver", [=] { cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice); }},
        {"256 threads", [=] { rows<4><<<r, 256>>>(x, y, 1, c); }},
        {"256 threads, 8 loads", [=] { rows<8><<<r, 256>>>(x, y, 1, c); }},
        {"512 threads", [=] { rows<4><<<r, 512>>>(x, y, 1, c); }}};
    std::vector<float> times[4];
    int order[] = {0, 1, 2, 3};
    std::mt19937 random(1);
    cudaEvent_t start, stop;
    cudaEventCreate(&start), cudaEventCreate(&stop);
    for (int round = -2; round < kRounds; ++round) {
      std::shuffle(order, order + 4, random);
      for (const int which : order) {
        cudaEventRecord(start);
        for (int i = 0; i < kLaunches; ++i) copies[which].second();
        cudaEventRecord(stop), cudaEventSynchronize(stop);
        float ms = 0;
        cudaEventElapsedTime(&ms, start, stop);
        if (round >= 0) times[which].push_back(ms / kLaunches * 1e3f);
      }
    }
    std::printf("%d x %d:", m, n);
    for (int i = 0; i < 4; ++i) {
      std::sort(times[i].begin(), times[i].end());
      std::printf("  %s %.1f", copies[i].first, times[i][kRounds / 2]);
    }
    std::printf("  %s\n", cudaGetErrorString(cudaGetLastError()));
    cudaFree(x), cudaFree(y);
  }
}
