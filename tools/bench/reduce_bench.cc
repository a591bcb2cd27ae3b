// Reductions on a GPU beside CUB's and a kernel that only reads. Prints JSON.
//
//   reduce_bench [--only REGEX]      of "sum last f32 8192 × 8192", …
//
// The peers are peers/peer_cub.so beside this program (bench/peers/cub.cu); without it a copy stands in for the read.
// Matrices have 256 MiB, so that no cache holds them, and are read once. Each figure is the median of rounds, of 20 calls
// between two events; all take turns, in an order that is drawn anew each round.
#include <regex>
#include <string>

#include "heddle/kernels/reduce/reduce.h"
#include "heddle/tools/bench/graph.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

using kernels::Along;
using kernels::Reduction;

constexpr int64_t kBytes = int64_t{1} << 28;
// CUB has a block for each row, and takes milliseconds for more.
constexpr int64_t kMostRowsOfCub = 600000;

// The functions of peer_cub.so.
struct Peers {
  using Sum = int(int is_bf16, const void* x, float* y, long long rows, long long columns,
                  void* memory, size_t* bytes, void* stream);
  using Read = int(const void* x, long long bytes, void* y, int blocks, void* stream);
  Sum* const sum = find_peer<Sum>("cub_sum");
  Read* const read = find_peer<Read>("read_bytes");
};

struct Case {
  Reduction reduction;
  const char* name;
  Along along;
  const char* mode;
  int64_t rows, columns;
};

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device), stream_(take(device.create_stream())), only_(only) {}

  template <class T>
  void type(const char* dtype) {
    const std::vector<Buffer> inputs = random_buffers<T>(device_, stream_, kBytes);
    const Buffer results = take(device_.allocate(kBytes * 2));
    const int64_t n = kBytes / static_cast<int64_t>(sizeof(T));
    std::vector<Case> cases;
    for (const int64_t rows :
         {int64_t{1}, int64_t{4}, int64_t{100}, int64_t{1000}, int64_t{8192}, int64_t{65536},
          n / 256, n / 64, n / 16, n / 4, n / 3, n / 2, n, n / 1023, n / 129, n / 31}) {
      cases.push_back({Reduction::kSum, "sum", Along::kLast, "last", rows, n / rows});
      if (rows > 1 && rows < n)
        cases.push_back({Reduction::kSum, "sum", Along::kFirst, "first", rows, n / rows});
    }
    cases.push_back({Reduction::kSum, "sum", Along::kAll, "all", 8192, n / 8192});
    for (const auto& [reduction, name] : {std::pair(Reduction::kMax, "max"),
                                          {Reduction::kNorm2, "norm2"},
                                          {Reduction::kVar, "var"},
                                          {Reduction::kArgmax, "argmax"}}) {
      for (const int64_t rows : {int64_t{1}, int64_t{8192}, n / 129}) {
        cases.push_back({reduction, name, Along::kLast, "last", rows, n / rows});
      }
      cases.push_back({reduction, name, Along::kFirst, "first", 8192, n / 8192});
    }
    for (const Case& one : cases) measure<T>(one, dtype, inputs, results);
    for (const int64_t columns : {1 << 10, 1 << 16, 1 << 20})
      in_graph<T>(columns, dtype, inputs[0], results);
  }
  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  // A sum of a few elements, a thousand times in a graph.
  template <class T>
  void in_graph(int64_t columns, const char* dtype, const Buffer& input, const Buffer& results) {
    const std::string title = std::string("sum graph ") + dtype + " " + std::to_string(columns);
    if (!std::regex_search(title, only_)) return;
    const auto sum = [&] {
      check(kernels::reduce(stream_, Reduction::kSum, Along::kAll,
                            as_tensor<const T>(input, {1, columns}),
                            as_tensor<float>(results, {1})));
    };
    sum();
    check(stream_.synchronize());
    constexpr int kNodes = 1000;
    const Graph graph(stream_, [&] {
      for (int i = 0; i < kNodes; ++i) sum();
    });
    const double us = median_ms(device_, stream_, [&](int) { graph.launch(); }) * 1e3 / kNodes;
    figures_.push_back({{"reduction", "sum"},
                        {"along", "graph"},
                        {"dtype", dtype},
                        {"rows", 1},
                        {"columns", columns},
                        {"heddle_us", us}});
    std::fprintf(stderr, "%s: %.2f us a node\n", title.c_str(), us);
  }

  template <class T>
  void measure(const Case& c, const char* dtype, const std::vector<Buffer>& inputs,
               const Buffer& results) {
    const std::string title = std::string(c.name) + " " + c.mode + " " + dtype + " " +
                              std::to_string(c.rows) + " × " + std::to_string(c.columns);
    if (!std::regex_search(title, only_)) return;
    const int64_t bytes = c.rows * c.columns * static_cast<int64_t>(sizeof(T));
    const int64_t count = c.along == Along::kLast    ? c.rows
                          : c.along == Along::kFirst ? c.columns
                                                     : 1;
    const auto input = [&](int i) -> const Buffer& {
      return inputs[static_cast<size_t>(i) % inputs.size()];
    };
    const auto ours = [&](int i) {
      const auto x = as_tensor<const T>(input(i), {c.rows, c.columns});
      check(c.reduction == Reduction::kArgmax
                ? kernels::reduce(stream_, c.reduction, c.along, x,
                                  as_tensor<int64_t>(results, {count}))
                : kernels::reduce(stream_, c.reduction, c.along, x,
                                  as_tensor<float>(results, {count})));
    };
    void* const stream = reinterpret_cast<void*>(static_cast<uintptr_t>(stream_.handle()));
    const auto memory = [](const Buffer& b) {
      return reinterpret_cast<void*>(static_cast<uintptr_t>(b.address()));
    };
    const int blocks = device_.info().sm_count * 4;
    std::function<void(int)> read = [&](int i) {
      peers_.read(memory(input(i)), bytes, memory(results), blocks, stream);
    };
    if (peers_.read == nullptr) {
      read = [&](int i) {
        check(stream_.copy_on_device(results.address(), input(i).address(), bytes / 2));
      };
    }
    // CUB has sums of rows, and of all.
    std::function<void(int)> cub;
    Buffer scratch;
    size_t size = 0;
    const int64_t rows = c.along == Along::kAll ? 1 : c.rows;
    const auto sum = [&](const Buffer& x, void* at) {
      return peers_.sum(std::is_same_v<T, bfloat16>, memory(x),
                        static_cast<float*>(memory(results)), rows, c.rows * c.columns / rows, at,
                        &size, stream);
    };
    if (peers_.sum != nullptr && rows < kMostRowsOfCub && c.reduction == Reduction::kSum &&
        c.along != Along::kFirst && sum(input(0), nullptr) == 0) {
      scratch = take(device_.allocate(std::max<size_t>(size, 1)));
      cub = [&](int i) { sum(input(i), memory(scratch)); };
    }
    const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {ours, read, cub});
    // Results are written as fast as elements are read.
    const int64_t result_bytes = count * (c.reduction == Reduction::kArgmax ? 8 : 4);
    const double of_read =
        ms[1] * (1 + static_cast<double>(result_bytes) / static_cast<double>(bytes)) / ms[0];
    nlohmann::ordered_json figure = {{"reduction", c.name},    {"along", c.mode},
                                     {"dtype", dtype},         {"rows", c.rows},
                                     {"columns", c.columns},   {"heddle_us", ms[0] * 1e3},
                                     {"read_us", ms[1] * 1e3}, {"of_read", of_read}};
    if (cub) figure["cub_us"] = ms[2] * 1e3, figure["of_cub"] = ms[2] / ms[0];
    figures_.push_back(figure);
    std::fprintf(stderr, "%s: %.1f us, %.3f of reading%s\n", title.c_str(), ms[0] * 1e3, of_read,
                 cub ? (", " + std::to_string(ms[2] / ms[0]) + " of CUB").c_str() : "");
  }

  const Device device_;
  const Stream stream_;
  const std::regex only_;
  const Peers peers_;
  std::mt19937 random_{1};
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>(
      "reduce_bench", "Reductions beside CUB's and a kernel that only reads.", argc, argv,
      [](auto& bench) {
        using heddle::bfloat16;
        bench.template type<float>("f32");
        bench.template type<bfloat16>("bf16");
      });
}
