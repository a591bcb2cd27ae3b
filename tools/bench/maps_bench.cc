// Maps, casts, copies, transposes, dropout, rotary and embeddings on a GPU beside a device-to-device copy. Prints JSON.
//
//   maps_bench [--only REGEX]      of "transpose bf16 16384x16384", …
//
// Tensors have 256 MiB or more, so that no cache holds them; of the copy's speed a kernel takes what its bytes would,
// read and written. Each figure is the median of rounds, of 20 launches between two events; kernel and copy take
// turns round by round, and which begins is drawn anew each time.
#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "heddle/kernels/dropout/dropout.h"
#include "heddle/kernels/embedding/embedding.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/map/elementwise.h"
#include "heddle/kernels/rotary/rotary.h"
#include "heddle/tools/bench/run_bench.h"
#include "heddle/tools/bench/timing.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {
namespace {

constexpr int64_t kBytes = int64_t{1} << 30;

// The first elements of a buffer, from `offset` on.
template <class T, int kRank>
TensorRef<T, kRank> in(const Buffer& buffer, const int64_t (&extents)[kRank], int64_t offset = 0) {
  return {reinterpret_cast<T*>(static_cast<uintptr_t>(buffer.address())) + offset, extents};
}
template <class T>
TensorRef<T, 2> pitched(const Buffer& buffer, int64_t rows, int64_t columns, int64_t pitch) {
  return {
      reinterpret_cast<T*>(static_cast<uintptr_t>(buffer.address())), {rows, columns}, {pitch, 1}};
}

class Bench {
 public:
  Bench(const Device& device, const std::string& only)
      : device_(device),
        stream_(take(device.create_stream())),
        only_(only),
        first_(random_buffers<float>(device_, stream_, kBytes)),
        second_(random_buffers<float>(device_, stream_, kBytes)) {
    for (size_t i = 0; i < first_.size(); ++i) outputs_.push_back(take(device_.allocate(kBytes)));
  }

  template <class T>
  void type(const char* dtype) {
    const std::string of = std::string(" ") + dtype;
    const int64_t size = sizeof(T), n = (int64_t{1} << 28) / size, columns = 8192,
                  rows = n / columns;
    const Stream& s = stream_;
    using kernels::permuted;
    measure("copy" + of, 2 * n * size, [&](const Buffer& a, const Buffer&, const Buffer& y) {
      return kernels::copy(s, in<const T>(a, {n}), in<T>(y, {n}));
    });
    measure("copy behind one" + of, 2 * n * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::copy(s, in<const T>(a, {n}, 1), in<T>(y, {n}, 1));
            });
    measure("copy shifted" + of, 2 * n * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::copy(s, in<const T>(a, {n}, 1), in<T>(y, {n}));
            });
    measure("copy 8191 of 8193" + of, 2 * rows * 8191 * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::copy(s, pitched<const T>(a, rows, 8191, 8193),
                                   pitched<T>(y, rows, 8191, 8193));
            });
    for (const auto& [r, c] : {std::pair<int64_t, int64_t>{16384, 16384},
                               {16383, 16381},
                               {8192, 32768},
                               {4093, 65521},
                               {int64_t{1} << 26, 3},
                               {3, int64_t{1} << 26}}) {
      const int64_t h = r, w = c;
      measure("transpose" + of + " " + std::to_string(h) + "x" + std::to_string(w),
              2 * h * w * size, [&](const Buffer& a, const Buffer&, const Buffer& y) {
                return kernels::copy(s, permuted(in<const T>(a, {h, w}), {1, 0}), in<T>(y, {w, h}));
              });
    }
    measure("permute 0213" + of + " 8x2048x32x128", 2 * 8 * 2048 * 32 * 128 * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::copy(s, permuted(in<const T>(a, {8, 2048, 32, 128}), {0, 2, 1, 3}),
                                   in<T>(y, {8, 32, 2048, 128}));
            });
    measure("permute 210" + of + " 256x512x512", 2 * 256 * 512 * 512 * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::copy(s, permuted(in<const T>(a, {256, 512, 512}), {2, 1, 0}),
                                   in<T>(y, {512, 512, 256}));
            });
    if constexpr (!std::is_integral_v<T>) floats<T>(of, n, rows, columns);
  }
  nlohmann::ordered_json figures() { return std::move(figures_); }

 private:
  template <class T>
  void floats(const std::string& of, int64_t n, int64_t rows, int64_t columns) {
    const int64_t size = sizeof(T);
    const Stream& s = stream_;
    using Other = std::conditional_t<std::is_same_v<T, float>, bfloat16, float>;
    measure("cast" + of, n * (size + int64_t{sizeof(Other)}),
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::cast(s, in<const T>(a, {n}), in<Other>(y, {n}));
            });
    measure("fill" + of, n * size, [&](const Buffer&, const Buffer&, const Buffer& y) {
      return kernels::fill(s, T(1.0f), in<T>(y, {n}));
    });
    measure("add" + of, 3 * n * size, [&](const Buffer& a, const Buffer& b, const Buffer& y) {
      return kernels::add(s, in<const T>(a, {n}), in<const T>(b, {n}), in<T>(y, {n}));
    });
    measure("add a row" + of, 2 * n * size, [&](const Buffer& a, const Buffer& b, const Buffer& y) {
      return kernels::add(s, in<const T>(a, {rows, columns}), in<const T>(b, {columns}),
                          in<T>(y, {rows, columns}));
    });
    measure("add a column" + of, 2 * n * size,
            [&](const Buffer& a, const Buffer& b, const Buffer& y) {
              return kernels::add(s, in<const T>(a, {rows, columns}), in<const T>(b, {rows, 1}),
                                  in<T>(y, {rows, columns}));
            });
    measure("add the transpose" + of, 3 * 8192 * 8192 * size,
            [&](const Buffer& a, const Buffer& b, const Buffer& y) {
              return kernels::add(s, in<const T>(a, {8192, 8192}),
                                  kernels::permuted(in<const T>(b, {8192, 8192}), {1, 0}),
                                  in<T>(y, {8192, 8192}));
            });
    measure("multiply by a number" + of, 2 * n * size,
            [&](const Buffer& a, const Buffer&, const Buffer& y) {
              return kernels::multiply(s, in<const T>(a, {n}), 0.5f, in<T>(y, {n}));
            });
    const auto of_one = [&](const char* name, const auto& map) {
      measure(name + of, 2 * n * size, [&](const Buffer& a, const Buffer&, const Buffer& y) {
        return map(s, in<const T>(a, {n}), in<T>(y, {n}));
      });
    };
    of_one("relu", kernels::relu);
    of_one("silu", kernels::silu);
    of_one("gelu", [](const auto&... all) { return kernels::gelu(all...); });
    measure("swiglu" + of, 3 * n * size, [&](const Buffer& a, const Buffer& b, const Buffer& y) {
      return kernels::swiglu(s, in<const T>(a, {n}), in<const T>(b, {n}), in<T>(y, {n}));
    });
    measure("dropout" + of, 2 * n * size, [&](const Buffer& a, const Buffer&, const Buffer& y) {
      return kernels::dropout(s, in<const T>(a, {rows, columns}), 0.1f, 1,
                              in<T>(y, {rows, columns}));
    });
    // Of heads of 128 elements, each with a cosine and a sine that 32 heads share.
    const int64_t tokens = n / 32 / 128;
    for (const auto& [name, pairs] : {std::pair("rotary halves", kernels::RotaryPairs::kHalves),
                                      {"rotary neighbours", kernels::RotaryPairs::kNeighbours}}) {
      const kernels::RotaryPairs which = pairs;
      measure(name + of, 2 * n * size + 2 * tokens * 64 * 4,
              [&](const Buffer& a, const Buffer& b, const Buffer& y) {
                return kernels::rotary(
                    s, which, in<const T>(a, {tokens, 32, 128}), in<const float>(b, {tokens, 64}),
                    in<const float>(b, {tokens, 64}, tokens * 64), in<T>(y, {tokens, 32, 128}));
              });
    }
    // Each row of the table once, in random order.
    for (const int64_t width : {4096, 1024, 128}) {
      const int64_t count = n / width;
      std::vector<int64_t> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      const Buffer ids = take(device_.upload(absl::MakeConstSpan(order)));
      measure("embedding of " + std::to_string(width) + of, 2 * n * size + count * 8,
              [&](const Buffer& a, const Buffer&, const Buffer& y) {
                return kernels::embedding(s, in<const T>(a, {count, width}),
                                          as_tensor<const int64_t>(ids, {count}),
                                          in<T>(y, {count, width}));
              });
    }
  }

  // `bytes` are read and written.
  void measure(const std::string& title, int64_t bytes,
               const std::function<Status(const Buffer&, const Buffer&, const Buffer&)>& kernel) {
    if (!std::regex_search(title, only_)) return;
    const auto run = [&](int i) {
      const size_t at = static_cast<size_t>(i) % first_.size();
      check(kernel(first_[at], second_[at], outputs_[at]));
    };
    const auto copy = [&](int i) {
      const size_t at = static_cast<size_t>(i) % first_.size();
      check(outputs_[at].copy_from(stream_, first_[at], kBytes / 4));
    };
    const std::vector<double> ms = in_turns_ms(device_, stream_, random_, {run, copy});
    const double of_copy = ms[1] * static_cast<double>(bytes) / (kBytes / 2) / ms[0];
    figures_.push_back({{"kernel", title},
                        {"bytes", bytes},
                        {"heddle_us", ms[0] * 1e3},
                        {"copy_us", ms[1] * 1e3},
                        {"of_copy", of_copy}});
    std::fprintf(stderr, "%-40s %8.1f us, %.3f of copy\n", title.c_str(), ms[0] * 1e3, of_copy);
  }

  const Device device_;
  const Stream stream_;
  const std::regex only_;
  std::mt19937 random_{1};
  const std::vector<Buffer> first_, second_;
  std::vector<Buffer> outputs_;
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_bench<heddle::bench::Bench>(
      "maps_bench", "Maps and copies beside a copy by the driver.", argc, argv, [](auto& bench) {
        using heddle::bfloat16;
        bench.template type<float>("f32");
        bench.template type<bfloat16>("bf16");
        bench.template type<uint8_t>("u8");
      });
}
