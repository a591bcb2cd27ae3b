// Collectives on a GPU beside those of cooperative groups and CUB (collectives/*.cu): pairs.h. A pair is rounds of one
// collective, each on what the round before gave, by one block (or cluster) of 256 threads; elements are rounds, so that
// microseconds by them are the time of one.
#include "bench/pairs.h"

namespace heddle::bench {
namespace {

constexpr int kThreads = 256, kRounds = 10000, kClusterBlocks = 8;

Float next(const Float& result, const Float& own) { return fma(result, 0.001f, own); }
Int next(const Int& result, const Int& own) { return result + own; }

class Bench : public Pairs {
 public:
  using Pairs::Pairs;

  nlohmann::ordered_json all() {
    const auto sum = [](const auto& v) { return warp_reduce(v, plus()); };
    of<float>("warp_sum_f32", sum);
    of<int32_t>("warp_sum_i32", sum);
    of<float>("warp_max_f32", [](const Float& v) { return warp_reduce(v, maximum()); });
    const auto scan = [](const auto& v) { return warp_scan(v, plus()); };
    of<float>("warp_scan_f32", scan);
    of<int32_t>("warp_scan_i32", scan);
    const auto block_sum = [](const auto& v) { return block_reduce(v, plus()); };
    of<float>("block_sum_f32", block_sum);
    of<int32_t>("block_sum_i32", block_sum);
    of<float>("block_max_f32", [](const Float& v) { return block_reduce(v, maximum()); });
    of<float>("block_argmax_f32", [](const Float& v) {
      const ValueAt<float> best = block_reduce(ValueAt<float>{v, thread_idx.x}, argmax());
      return best.value + cast<float>(best.index);
    });
    const auto block_sums = [](const auto& v) { return block_scan(v, plus()); };
    of<float>("block_scan_f32", block_sums);
    of<int32_t>("block_scan_i32", block_sums);
    of<int32_t>("block_compact", [](const Int& v) {
      const Compacted kept = block_compact((v & 1) != 0);
      return kept.place + kept.count;
    });
    const auto before = [](const Int& a, const Int& b) { return a < b; };
    of<int32_t>("warp_sort_i32", [&](const Int& v) { return warp_sort(v, before); });
    of<int32_t>("warp_sort_4_i32", [&](const Int& v) {
      const std::vector<Int> sorted =
          warp_sort(std::vector<Int>{v, v ^ 0x55, v ^ 0x33, v ^ 0x0f}, before);
      return sorted[0] + sorted[1] + sorted[2] + sorted[3];
    });
    of<int32_t>("block_sort_i32", [&](const Int& v) {
      const Shared<int32_t> keys(kThreads);
      keys(thread_idx.x) = v;
      block_sort(keys, kThreads, before);
      const Int sorted = keys(thread_idx.x);
      sync_threads();
      return sorted;
    });
    of<float>(
        "cluster_sum_f32", [](const Float& v) { return cluster_reduce(v, plus()); },
        kClusterBlocks);
    return figures();
  }

 private:
  template <class T, class Step>
  void of(const std::string& name, Step step, int blocks = 1) {
    const int64_t threads = int64_t{kThreads} * blocks;
    const Buffer x = std::is_same_v<T, float> ? floats(threads, -1, 1)
                                              : random_words(device(), stream(), threads, 0xff);
    const auto kernel =
        local_kernel(name, [&](Tensor<const T, 1> from, Tensor<T, 1> to, Int count) {
          const Int i = block_idx.x * kThreads + thread_idx.x;
          const Value<T> own(from(i));
          to(i) = For(range(count), own,
                      [&](const Int&, const Value<T>& v) { return next(Value<T>(step(v)), own); });
        });
    compare(
        "collectives", name, std::to_string(blocks) + " × 256", kRounds, {4 * threads},
        std::is_same_v<T, float> ? 1e-4 : 0,
        [&](Buffer* out) {
          return kernel.launch(stream(), {.grid = blocks, .block = kThreads, .cluster = blocks},
                               as_tensor<const T>(x, {threads}), as_tensor<T>(out[0], {threads}),
                               kRounds);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, {.grid = blocks, .block = kThreads, .cluster = blocks}, address(x),
                 address(out[0]), kRounds);
        });
  }
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_pairs<heddle::bench::Bench>(
      "Collectives beside those of cooperative groups and CUB.", argc, argv);
}
