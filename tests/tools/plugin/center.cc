// A plug-in with an operation of two launches and scratch memory between them: x less its mean.
#include <cmath>
#include <numeric>

#include "heddle/heddle.h"
#include "heddle/runtime/operation/registry.h"

namespace {

using namespace heddle;

constexpr int kThreads = 128, kBlocks = 4;

const auto sum_blocks =
    define_kernel("sum_blocks(x, sums)", [](Tensor<const float, 1> x, Tensor<float, 1> sums) {
      Float sum = For(range(block_idx.x * kThreads + thread_idx.x, x.shape(0), kThreads * kBlocks),
                      Float(0), [&](Int i, Float acc) { return acc + x(i); });
      Float total = block_reduce(sum, plus());
      If(thread_idx.x == 0, [&] { sums(block_idx.x) = total; });
    });
const auto subtract_mean =
    define_kernel("subtract_mean(x, sums, y)",
                  [](Tensor<const float, 1> x, Tensor<const float, 1> sums, Tensor<float, 1> y) {
                    Int i = block_idx.x * kThreads + thread_idx.x;
                    Var<float> total(0.0f);
                    for (int block = 0; block < kBlocks; ++block) total += sums(block);
                    If(i < x.shape(0), [&] { y(i) = x(i) - total / cast<float>(x.shape(0)); });
                  });

Status center(const Stream& stream, const TensorRef<const float, 1>& x,
              const TensorRef<float, 1>& y) {
  const int64_t n = x.extents[0];
  if (n == 0) return OkStatus();
  const StatusOr<Buffer> scratch = stream.device().allocate(kBlocks * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  const auto sums = as_tensor<float>(*scratch, {kBlocks});
  Status status = sum_blocks.launch(stream, {.grid = kBlocks, .block = kThreads}, x, sums);
  status.Update(subtract_mean.launch(
      stream, {.grid = (n + kThreads - 1) / kThreads, .block = kThreads}, x, sums, y));
  return status;
}

StatusOr<std::map<std::string, runtime::Expected>> reference(
    const Settings&, const std::map<std::string, runtime::HostValues>& inputs) {
  const std::vector<double>& x = inputs.at("x").values;
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  runtime::Expected y;
  for (const double value : x) {
    y.values.push_back(value - mean);
    y.tolerance.push_back(0x1p-20 * (std::abs(value) + std::abs(mean)));
  }
  return std::map<std::string, runtime::Expected>{{"y", y}};
}

const Registered registered({.name = "center",
                             .summary = "y = x less the mean of x",
                             .arguments = {"x: f32[n]", "y: f32[n]"},
                             .functions = {host_function(center)},
                             .sizes = {{"n", 10000}},
                             .reference = reference});

}  // namespace
