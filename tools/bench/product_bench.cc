// The ladder of products of kernels/learn/product on a GPU, and gemm beside it. Writes JSON.
//
//   product_bench --json results/product.json [--size N]… [--rounds N]
//
// Each rung's result is compared with double precision at some places, and with the first right one's at
// all, by a GPU kernel; a wrong one is reported and not timed. Then, in each round, the rungs take turns in a random
// order, timed as gemm_bench does it: launches in a burst after the GPU has been idle, on random inputs in [-1, 1] in
// as many sets of a, b and d as fill four times the L2 cache. A figure is the median of the rounds.
#include <algorithm>
#include <functional>
#include <random>

#include "CLI/CLI.hpp"
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/kernels/learn/product/ladder.h"
#include "heddle/tools/bench/gemm/measure.h"

namespace heddle::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSlowMs = 20;  // a launch that takes longer is a burst of its own

struct Options {
  std::string device = "cuda:0", json;
  std::vector<int64_t> sizes = {4096, 8192};
  int rounds = 5;
  unsigned seed = 1;
};

// A product that is n x n x n, of a, b and d at these addresses.
class Square : public Prepared {
 public:
  using Launch =
      std::function<Status(const Stream&, const TensorRef<const bfloat16, 2>&,
                           const TensorRef<const bfloat16, 2>&, const TensorRef<bfloat16, 2>&)>;
  Square(int64_t n, Launch launch) : n_(n), launch_(std::move(launch)) {}
  std::vector<std::string> candidates() const override { return {""}; }
  size_t workspace() const override { return 0; }
  Status launch(int, void* const* pointers, void*, const Stream& stream) override {
    const auto operand = [&](int i) {
      return TensorRef<const bfloat16, 2>(static_cast<const bfloat16*>(pointers[i]), {n_, n_});
    };
    return launch_(stream, operand(0), operand(1),
                   TensorRef<bfloat16, 2>(static_cast<bfloat16*>(pointers[2]), {n_, n_}));
  }

 private:
  int64_t n_;
  Launch launch_;
};

struct Entry {
  std::string name, change;
  Runner runner;
  std::vector<double> us = {};
  Json faults = nullptr;
};

class Bench {
 public:
  Bench(const Device& device, const Options& options)
      : options_(options),
        device_(device),
        stream_(take(device.create_stream())),
        timer_(device_, stream_),
        random_(options.seed) {}

  Json of_size(int64_t n) {
    const int64_t bytes = (n * n * 2 + 1023) / 1024 * 1024;
    const int64_t sets = options_.rounds == 0
                             ? 1
                             : std::max<int64_t>(2, 4 * device_.info().l2_bytes / (3 * bytes) + 1);
    const Buffer memory = take(device_.allocate(static_cast<size_t>(3 * bytes * sets)));
    const Buffer expected = take(device_.allocate(static_cast<size_t>(bytes)));
    std::vector<std::vector<void*>> pointers;
    for (int64_t set = 0; set < sets; ++set) {
      std::vector<void*>& of_set = pointers.emplace_back();
      for (int i = 0; i < 3; ++i) {
        const DeviceAddress at = memory.address() + static_cast<uint64_t>((3 * set + i) * bytes);
        if (i < 2) check(fill_random(stream_, kBf16, at, n * n, seed(i, set)));
        of_set.push_back(reinterpret_cast<void*>(at));
      }
    }
    std::vector<Entry> entries = contenders(n, pointers);
    bool have_expected = false;
    for (Entry& entry : entries) {
      std::string fault = wrong(n, entry.runner, expected.address(), have_expected);
      if (!fault.empty()) entry.faults = std::move(fault);
    }
    for (int round = 0; round < options_.rounds; ++round) time(entries);
    return {{"m", n}, {"n", n}, {"k", n}, {"sets", sets}, {"rungs", results(n, entries)}};
  }

 private:
  static inline const Dtype& kBf16 = *dtype_of("bf16");
  static uint32_t seed(int operand, int64_t set) {
    return static_cast<uint32_t>(operand + 1) * 0x9e3779b9u +
           static_cast<uint32_t>(set) * 0x85ebca6bu;
  }

  static std::vector<Entry> contenders(int64_t n, const std::vector<std::vector<void*>>& pointers) {
    std::vector<Entry> all;
    const auto add = [&](const char* name, const char* change, Square::Launch launch) {
      all.push_back({.name = name,
                     .change = change,
                     .runner = {std::make_unique<Square>(n, std::move(launch)), 0, pointers}});
    };
    for (const learn::ProductRung& rung : learn::product_ladder()) {
      add(rung.name, rung.change,
          [&rung](const auto& stream, const auto& a, const auto& b, const auto& d) {
            return rung.launch(stream, a, b, d);
          });
    }
    add("gemm", "kernels/gemm, with the configuration that it chooses",
        [](const auto& stream, const auto& a, const auto& b, const auto& d) {
          return kernels::gemm(stream, a, b, d);
        });
    return all;
  }

  // "" or what is wrong with the first set's result; the first right one is kept for the others.
  std::string wrong(int64_t n, const Runner& runner, DeviceAddress expected, bool& have_expected) {
    const auto d = reinterpret_cast<DeviceAddress>(runner.pointers[0][2]);
    check(stream_.fill8(d, 0xff, static_cast<size_t>(2 * n * n)));  // NaN
    if (const Status status = runner.launch(stream_, 0); !status.ok()) {
      return std::string(status.message());
    }
    check(stream_.synchronize());
    int samples = 0;
    for (int i = 0; i < kSamples; ++i) samples += !is_right(n, d);
    if (samples > 0) {
      return std::to_string(samples) + " of " + std::to_string(kSamples) +
             " samples of d are wrong";
    }
    if (!have_expected) {
      check(stream_.copy_on_device(expected, d, static_cast<size_t>(2 * n * n)));
      check(stream_.synchronize());
      have_expected = true;
      return "";
    }
    const int32_t differ =
        count_wrong(device_, stream_, "bf16", expected, d, n * n, 2 * kBf16.relative,
                    2 * kBf16.absolute * static_cast<double>(n));
    return differ == 0 ? ""
                       : std::to_string(differ) + " elements of d differ from the others' result";
  }

  // Whether an element of d, at random, is right.
  bool is_right(int64_t n, DeviceAddress d) {
    const auto place = [&] { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); };
    const int64_t row = place(), column = place();
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      sum += filled(kBf16, row * n + k, seed(0, 0)) * filled(kBf16, column * n + k, seed(1, 0));
    }
    unsigned char element[2] = {};
    check(stream_.copy_to_host(element, d + static_cast<uint64_t>(2 * (row * n + column)),
                               sizeof(element)));
    check(stream_.synchronize());
    return std::abs(number_at("bf16", element) - sum) <=
           kBf16.relative * std::abs(sum) + kBf16.absolute * static_cast<double>(n);
  }

  // A round of those that are right, in a random order.
  void time(std::vector<Entry>& entries) {
    std::vector<Entry*> order;
    for (Entry& entry : entries) {
      if (entry.faults.is_null()) order.push_back(&entry);
    }
    std::shuffle(order.begin(), order.end(), random_);
    for (Entry* const entry : order) {
      if (entry->us.empty()) {  // what each set needs once, and how slow it is
        entry->us.push_back(timer_.burst_ms(entry->runner, 1) * 1e3);
      }
      check(stream_.synchronize());
      std::this_thread::sleep_for(kIdle);
      const int launches = entry->us.front() > kSlowMs * 1e3 ? 1 : kBurst;
      entry->us.push_back(timer_.burst_ms(entry->runner, launches) * 1e3);
    }
  }

  static Json results(int64_t n, const std::vector<Entry>& entries) {
    const auto extent = static_cast<double>(n);
    const double operations = 2 * extent * extent * extent;
    Json all = Json::array();
    for (const Entry& entry : entries) {
      Json& result = all.emplace_back(Json{{"rung", entry.name}, {"change", entry.change}});
      if (!entry.faults.is_null()) {
        result["faults"] = entry.faults;
      } else if (entry.us.size() > 1) {
        const std::vector<double> rounds(entry.us.begin() + 1, entry.us.end());
        result["us"] = median(rounds);
        result["tflop_per_s"] = operations / median(rounds) * 1e-6;
        result["rounds_us"] = rounds;
      }
      std::fprintf(stderr, "%5lld³  %s\n", static_cast<long long>(n), result.dump().c_str());
    }
    return all;
  }

  static constexpr int kSamples = 64;
  Options options_;
  Device device_;
  Stream stream_;
  Timer timer_;
  std::mt19937_64 random_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("The rungs of kernels/learn/product, and gemm, on a GPU.");
  app.add_option("--device", options.device, "cuda:0, or interp");
  app.add_option("--size", options.sizes, "m, n and k of a product; by default 4096 and 8192");
  app.add_option("--rounds", options.rounds, "Bursts of each rung; 0: check the results alone")
      ->check(CLI::Range(0, 1000));
  app.add_option("--json", options.json, "Write to this file instead of printing");
  app.add_option("--seed", options.seed, "Of the order");
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open(options.device));
  Bench bench(device, options);
  Json figures = Json::array();
  bool right = true;
  for (const int64_t n : options.sizes) {
    figures.push_back(bench.of_size(n));
    for (const Json& rung : figures.back()["rungs"]) right = right && !rung.contains("faults");
  }
  const Json page = {
      {"gpu", device.info().name},  {"driver", driver_version()},   {"date", today()},
      {"command", "product_bench"}, {"benchmark", "product_bench"}, {"burst", kBurst},
      {"idle_ms", kIdle.count()},   {"rounds", options.rounds},     {"figures", figures}};
  if (options.json.empty()) {
    std::printf("%s\n", page.dump(2).c_str());
  } else {
    std::ofstream(options.json) << page.dump(2) << "\n";
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::run(argc, argv); }
