// topk on a GPU beside a kernel that only reads. Prints JSON; topk_torch.py adds torch.topk to it.
//
//   topk_bench [--only REGEX]      of "f32 8192 x 8192 of 8", …; "rising" where each row is sorted the worst way
//
// The reader is peers/peer_cub.so's beside this program (bench/peers/cub.cu); without it a copy stands in. Matrices have
// 256 MiB, so that no cache holds them. Each figure is the median of rounds, of 20 calls between two events; all take
// turns, in an order that is drawn anew each round.
#include <regex>
#include <string>

#include "heddle/kernels/topk/topk.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

constexpr int64_t kBytes = int64_t{1} << 28;

using Read = int(const void* x, long long bytes, void* y, int blocks, void* stream);

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device), stream_(take(device.create_stream())), only_(only) {}

  template <class T>
  void type(const char* dtype) {
    std::vector<Buffer> inputs = random_buffers<T>(device_, stream_, kBytes);
    const int64_t n = kBytes / static_cast<int64_t>(sizeof(T));
    for (const int64_t columns : {n, n / 64, int64_t{65536}, int64_t{8192}, int64_t{8191},
                                  int64_t{1024}, int64_t{256}, int64_t{64}}) {
      for (const int64_t k : {1, 8, 64, 256, 1024}) {
        if (k <= columns / 8) measure<T>(dtype, "", n / columns, columns, k, inputs);
      }
    }
    constexpr int64_t kColumns = 65536;
    std::vector<T> rising(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      rising[static_cast<size_t>(i)] = T(static_cast<float>(i % kColumns));
    }
    for (Buffer& input : inputs) check(input.copy_from_host(stream_, rising.data(), kBytes));
    check(stream_.synchronize());
    for (const int64_t k : {8, 256})
      measure<T>(dtype, " rising", n / kColumns, kColumns, k, inputs);
  }
  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  template <class T>
  void measure(const char* dtype, const char* how, int64_t rows, int64_t columns, int64_t k,
               const std::vector<Buffer>& inputs) {
    const std::string title = std::string(dtype) + " " + std::to_string(rows) + " x " +
                              std::to_string(columns) + " of " + std::to_string(k) + how;
    if (!std::regex_search(title, only_)) return;
    const Buffer values = take(device_.allocate(static_cast<size_t>(rows * k) * sizeof(T))),
                 indices = take(device_.allocate(static_cast<size_t>(rows * k) * sizeof(int64_t)));
    const auto input = [&](int i) -> const Buffer& {
      return inputs[static_cast<size_t>(i) % inputs.size()];
    };
    const auto ours = [&](int i) {
      check(kernels::topk<T>(
          stream_, kernels::Extreme::kGreatest, as_tensor<const T>(input(i), {rows, columns}),
          as_tensor<T>(values, {rows, k}), as_tensor<int64_t>(indices, {rows, k})));
    };
    const auto memory = [](const Buffer& b) { return reinterpret_cast<void*>(b.address()); };
    const int64_t bytes = rows * columns * static_cast<int64_t>(sizeof(T));
    const auto read = [&](int i) {
      if (reader_ == nullptr) return check(spare_.copy_from(stream_, input(i), bytes));
      reader_(memory(input(i)), bytes, memory(spare_),
              4 * static_cast<int>(device_.info().sm_count),
              reinterpret_cast<void*>(static_cast<uintptr_t>(stream_.handle())));
    };
    const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {ours, read});
    figures_.push_back({{"dtype", dtype},
                        {"rows", rows},
                        {"columns", columns},
                        {"k", k},
                        {"input", *how == 0 ? "random" : "rising"},
                        {"heddle_us", ms[0] * 1e3},
                        {"read_us", ms[1] * 1e3},
                        {"of_read", ms[1] / ms[0]}});
    std::fprintf(stderr, "%-36s %9.1f us, %.3f of reading\n", title.c_str(), ms[0] * 1e3,
                 ms[1] / ms[0]);
  }

  const Device device_;
  const Stream stream_;
  const std::regex only_;
  std::mt19937 random_{1};
  Read* const reader_ = find_peer<Read>("read_bytes");
  Buffer spare_ = take(device_.allocate(kBytes));
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>(
      "topk_bench", "The greatest of each row beside a kernel that only reads.", argc, argv,
      [](auto& bench) {
        bench.template type<float>("f32");
        bench.template type<heddle::bfloat16>("bf16");
      });
}
