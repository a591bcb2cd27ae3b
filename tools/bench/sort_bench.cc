// sort, sort_pairs and histogram on a GPU beside CUB. Prints JSON.
//
//   sort_bench [--only REGEX]      of "sort f32 67108864 random", …
//
// The peer is peers/peer_cub.so beside this program (bench/peers/cub.cu): DeviceRadixSort and DeviceHistogram; without it
// there is none. Results are compared with the peer's: sorted ones must have the same bits, and counts must be equal, but
// for f32, whose edges CUB rounds in its own way. Each figure is the median of rounds, of 20 calls between two events; all
// take turns, in an order that is drawn anew each round.
#include <cstring>
#include <functional>
#include <regex>
#include <string>
#include <type_traits>
#include <vector>

#include "heddle/kernels/histogram/histogram.h"
#include "heddle/kernels/sort/sort.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

using CubSort = int(int type, const void* x, void* y, const void* places, void* moved,
                    long long count, void* memory, size_t* bytes, void* stream);
using CubHistogram = int(int type, const void* x, void* counts, int bins, double lower,
                         double upper, long long count, void* memory, size_t* bytes, void* stream);

// What inputs are like.
enum class Input { kRandom, kFew, kSame };
constexpr const char* kInputs[] = {"random", "16 values", "one value"};

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device), stream_(take(device.create_stream())), only_(only) {}

  template <class T>
  void sorts(const char* dtype, int peer, int64_t count, Input input, bool pairs) {
    const std::string what = pairs ? "sort_pairs" : "sort";
    if (!is_wanted(what, dtype, count, input)) return;
    const Buffer x = elements<T>(count, input);
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const Buffer y = take(device_.allocate(bytes)), peer_y = take(device_.allocate(bytes));
    const size_t place_bytes = pairs ? static_cast<size_t>(count) * sizeof(int32_t) : 16;
    std::vector<int32_t> numbers(place_bytes / sizeof(int32_t));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
    const Buffer places = take(device_.upload(absl::MakeConstSpan(numbers))),
                 moved = take(device_.allocate(place_bytes)),
                 peer_moved = take(device_.allocate(place_bytes));
    const auto ours = [&](int) {
      if (!pairs) {
        return check(kernels::sort<T>(stream_, kernels::Order::kAscending,
                                      as_tensor<const T>(x, {count}), as_tensor<T>(y, {count})));
      }
      check(kernels::sort_pairs<T, int32_t>(
          stream_, kernels::Order::kAscending, as_tensor<const T>(x, {count}),
          as_tensor<const int32_t>(places, {count}), as_tensor<T>(y, {count}),
          as_tensor<int32_t>(moved, {count})));
    };
    const auto theirs = [&](void* memory, size_t* needed) {
      sort_(peer, pointer(x), pointer(peer_y), pairs ? pointer(places) : nullptr,
            pairs ? pointer(peer_moved) : nullptr, count, memory, needed, stream());
    };
    const bool agree = measure(
        what, dtype, count, input, sizeof(T), ours, sort_ != nullptr, theirs,
        [&] { return same(y, peer_y, bytes) && (!pairs || same(moved, peer_moved, place_bytes)); });
    figures_.back()["agree"] = agree;
  }

  template <class T>
  void histograms(const char* dtype, int peer, int64_t count, int bins, double lower, double upper,
                  Input input) {
    const std::string what = "histogram of " + std::to_string(bins);
    if (!is_wanted(what, dtype, count, input)) return;
    const Buffer x = elements<T>(count, input);
    const size_t bytes = static_cast<size_t>(bins) * sizeof(int32_t);
    const Buffer y = take(device_.allocate(bytes)), peer_y = take(device_.allocate(bytes));
    const auto ours = [&](int) {
      check(kernels::histogram<T>(stream_, as_tensor<const T>(x, {count}), lower, upper,
                                  as_tensor<int32_t>(y, {bins})));
    };
    const auto theirs = [&](void* memory, size_t* needed) {
      histogram_(peer, pointer(x), pointer(peer_y), bins, lower, upper, count, memory, needed,
                 stream());
    };
    const bool agree =
        measure(what, dtype, count, input, sizeof(T), ours, histogram_ != nullptr && peer >= 0,
                theirs, [&] { return !std::is_integral_v<T> || same(y, peer_y, bytes); });
    figures_.back()["agree"] = agree;
    figures_.back()["bins"] = bins;
  }

  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  bool is_wanted(const std::string& what, const char* dtype, int64_t count, Input input) const {
    return std::regex_search(title(what, dtype, count, input), only_);
  }
  static std::string title(const std::string& what, const char* dtype, int64_t count, Input input) {
    return what + " " + dtype + " " + std::to_string(count) + " " +
           kInputs[static_cast<size_t>(input)];
  }
  void* stream() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(stream_.handle())); }
  static void* pointer(const Buffer& buffer) { return reinterpret_cast<void*>(buffer.address()); }
  bool same(const Buffer& a, const Buffer& b, size_t bytes) const {
    const auto one = take(a.download<uint8_t>(stream_)), other = take(b.download<uint8_t>(stream_));
    return std::memcmp(one.data(), other.data(), bytes) == 0;
  }

  // Numbers of [0, 1) as floats, of [0, 256) as bytes, any as other integers.
  template <class T>
  Buffer elements(int64_t count, Input input) {
    std::vector<T> all(static_cast<size_t>(count));
    std::mt19937_64 random(1);
    for (T& element : all) {
      uint64_t bits = random();
      if (input == Input::kFew) bits = bits % 16 * 0x1111111111111111;
      if (input == Input::kSame) bits = 0x1234567812345678;
      if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(bits);
      } else {
        element = T(static_cast<float>(bits >> 40) * 0x1p-24f);
      }
    }
    return take(device_.upload(absl::MakeConstSpan(all)));
  }

  // Adds a figure; whether the results agree.
  template <class Ours, class Theirs, class Agree>
  bool measure(const std::string& what, const char* dtype, int64_t count, Input input,
               size_t element_bytes, Ours ours, bool has_peer, Theirs theirs, Agree agree) {
    std::function<void(int)> peer;
    Buffer memory;
    size_t needed = 0;
    bool agrees = true;
    if (has_peer) {
      theirs(nullptr, &needed);
      memory = take(device_.allocate(needed + 16));
      peer = [&](int) { theirs(pointer(memory), &needed); };
      ours(0), peer(0);
      check(stream_.synchronize());
      agrees = agree();
    }
    const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {ours, peer});
    figures_.push_back({{"what", what},
                        {"dtype", dtype},
                        {"elements", count},
                        {"input", kInputs[static_cast<size_t>(input)]},
                        {"heddle_us", ms[0] * 1e3},
                        {"gb_per_s", static_cast<double>(count) *
                                         static_cast<double>(element_bytes) / ms[0] * 1e-6}});
    if (ms[1] > 0) figures_.back()["of_cub"] = ms[1] / ms[0];
    std::fprintf(stderr, "%-44s %9.1f us, %.2f of CUB%s\n",
                 title(what, dtype, count, input).c_str(), ms[0] * 1e3, ms[1] / ms[0],
                 agrees ? "" : ", DIFFERENT");
    return agrees;
  }

  const Device device_;
  const Stream stream_;
  const std::regex only_;
  std::mt19937 random_{1};
  CubSort* const sort_ = find_peer<CubSort>("cub_sort");
  CubHistogram* const histogram_ = find_peer<CubHistogram>("cub_histogram");
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

constexpr int64_t kMany = int64_t{1} << 26, kThousands = int64_t{1} << 16,
                  kMillion = int64_t{1} << 20;

void sorts(Bench& bench) {
  for (const bool pairs : {false, true}) {
    bench.sorts<uint32_t>("u32", 0, kMany, Input::kRandom, pairs);
    bench.sorts<uint32_t>("u32", 0, kMany, Input::kFew, pairs);
    bench.sorts<uint32_t>("u32", 0, kMany, Input::kSame, pairs);
    bench.sorts<uint32_t>("u32", 0, kMillion, Input::kRandom, pairs);
    bench.sorts<uint32_t>("u32", 0, kThousands, Input::kRandom, pairs);
    bench.sorts<int32_t>("i32", 1, kMany, Input::kRandom, pairs);
    bench.sorts<float>("f32", 2, kMany, Input::kRandom, pairs);
    bench.sorts<float>("f32", 2, kMillion, Input::kRandom, pairs);
    bench.sorts<bfloat16>("bf16", 3, kMany, Input::kRandom, pairs);
    bench.sorts<int64_t>("i64", 4, kMany / 2, Input::kRandom, pairs);
  }
}
void histograms(Bench& bench) {
  for (const Input input : {Input::kRandom, Input::kFew, Input::kSame}) {
    for (const int bins : {16, 256, 2048, 16384, 131072}) {
      bench.histograms<float>("f32", 0, kMany, bins, 0, 1, input);
    }
    bench.histograms<int32_t>("i32", 1, kMany, 256, -(1 << 29), 1 << 29, input);
    bench.histograms<uint8_t>("u8", 2, 4 * kMany, 256, 0, 256, input);
    bench.histograms<bfloat16>("bf16", -1, 2 * kMany, 256, 0, 1, input);
  }
  bench.histograms<float>("f32", 0, kThousands, 256, 0, 1, Input::kRandom);
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>("sort_bench",
                                                        "Sorts and histograms beside CUB.", argc,
                                                        argv, [](heddle::bench::Bench& bench) {
                                                          heddle::bench::sorts(bench);
                                                          heddle::bench::histograms(bench);
                                                        });
}
