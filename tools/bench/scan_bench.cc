// scan on a GPU beside a device-to-device copy and CUB. Prints JSON.
//
//   scan_bench [--only REGEX]      of "f32 1 x 67108864", …
//
// The peer is peers/peer_cub.so beside this program (bench/peers/cub.cu): DeviceScan, of several rows by key; without it
// there is none. Matrices have 256 MiB, so that no cache holds them. Each figure is the median of rounds, of 20 calls
// between two events; all take turns, in an order that is drawn anew each round.
#include <functional>
#include <regex>
#include <string>

#include "heddle/kernels/scan/scan.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

constexpr int64_t kBytes = int64_t{1} << 28;

using CubScan = int(int is_int, const void* x, void* y, long long rows, long long columns,
                    void* memory, size_t* bytes, void* stream);

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device),
        stream_(take(device.create_stream())),
        only_(only),
        inputs_(random_buffers<float>(device_, stream_, kBytes)) {
    for (size_t i = 0; i < inputs_.size(); ++i) outputs_.push_back(take(device.allocate(kBytes)));
  }

  template <class T>
  void type(const char* dtype, int peer) {
    const int64_t n = kBytes / static_cast<int64_t>(sizeof(T));
    for (const int64_t columns :
         {n, n / 16, n / 1024, int64_t{65536}, int64_t{8192}, int64_t{1024}, int64_t{64}, n - 1,
          int64_t{65537}, int64_t{8191}, int64_t{1023}, int64_t{129}}) {
      const int64_t rows = n / columns, bytes = rows * columns * static_cast<int64_t>(sizeof(T));
      const std::string title =
          std::string(dtype) + " " + std::to_string(rows) + " x " + std::to_string(columns);
      if (!std::regex_search(title, only_)) continue;
      const auto ours = [&](int i) {
        const size_t at = static_cast<size_t>(i) % inputs_.size();
        check(kernels::scan<T>(stream_, kernels::Prefix::kInclusive,
                               as_tensor<const T>(inputs_[at], {rows, columns}),
                               as_tensor<T>(outputs_[at], {rows, columns})));
      };
      const auto copy = [&](int i) {
        const size_t at = static_cast<size_t>(i) % inputs_.size();
        check(outputs_[at].copy_from(stream_, inputs_[at], bytes));
      };
      std::function<void(int)> cub;
      Buffer memory;
      size_t needed = 0;
      if (peer_ != nullptr && peer >= 0) {
        const auto call = [this, rows, columns, peer, &needed](int i, void* scratch) {
          const size_t at = static_cast<size_t>(i) % inputs_.size();
          peer_(peer, reinterpret_cast<void*>(inputs_[at].address()),
                reinterpret_cast<void*>(outputs_[at].address()), rows, columns, scratch, &needed,
                reinterpret_cast<void*>(static_cast<uintptr_t>(stream_.handle())));
        };
        call(0, nullptr);
        memory = take(device_.allocate(needed + 16));
        cub = [call, &memory](int i) { call(i, reinterpret_cast<void*>(memory.address())); };
      }
      const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {ours, copy, cub});
      figures_.push_back({{"dtype", dtype},
                          {"rows", rows},
                          {"columns", columns},
                          {"heddle_us", ms[0] * 1e3},
                          {"copy_us", ms[1] * 1e3},
                          {"of_copy", ms[1] / ms[0]}});
      if (ms[2] > 0) figures_.back()["of_cub"] = ms[2] / ms[0];
      std::fprintf(stderr, "%-24s %8.1f us, %.3f of copy, %.2f of CUB\n", title.c_str(),
                   ms[0] * 1e3, ms[1] / ms[0], ms[2] / ms[0]);
    }
  }
  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  const Device device_;
  const Stream stream_;
  const std::regex only_;
  std::mt19937 random_{1};
  CubScan* const peer_ = find_peer<CubScan>("cub_scan");
  const std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>(
      "scan_bench", "Prefix sums beside a copy and CUB.", argc, argv, [](auto& bench) {
        using heddle::bfloat16;
        bench.template type<float>("f32", 0);
        bench.template type<int32_t>("i32", 1);
        bench.template type<bfloat16>("bf16", -1);
      });
}
