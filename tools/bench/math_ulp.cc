// Measures the error of the mathematical functions: every f32 input, and many of the others, on the device
// against the C library in a wider type on all cores. Prints JSON; exit status 1 if a bound that
// dsl/math/math.def states is broken.
//
//   math_ulp --device cuda:0                       # minutes on 16 cores
//   math_ulp --device interp --stride 997          # every 997th f32
//   math_ulp --function exp,log --type f32
//
// Bounds are in units in the last place of the exact value. f64 functions are given 2^24 inputs,
// functions of more arguments 2^27, besides all pairs of boundary values.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/dsl/math/math.h"
#include "heddle/heddle.h"
#include "heddle/tools/bench/figures.h"
#include "heddle/tools/bench/math_inputs.h"
#include "heddle/tools/bench/math_reference.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::take;

using detail::kNoFunction;
using tools::Bits;
using tools::boundary_values;
using tools::Deviation;
using tools::exact_t;
using tools::random_number;

constexpr int kThreads = 256, kMostArguments = 4;

template <class T>
using Arguments = std::array<T, kMostArguments>;

struct Options {
  std::string device = "cuda:0";
  std::vector<std::string> functions;
  std::string type;
  int64_t stride = 1;
  int64_t chunk = 1 << 26;
  int64_t f64_inputs = 1 << 24;
  int64_t pairs = 1 << 27;
};

// A function to measure: what it does on the device, and its value in a wider type.
template <class T>
struct Subject {
  const char* name;
  int arguments;
  double bound;
  Value<T> (*device)(const Arguments<Value<T>>&);
  exact_t<T> (*exact)(const Arguments<exact_t<T>>&);
};

template <class T>
std::vector<Subject<T>> subjects() {
  std::vector<Subject<T>> list;
  using V = Arguments<Value<T>>;
  using R = Arguments<exact_t<T>>;
#define HEDDLE_SUBJECT(count, name, f32, f64, ...)                                       \
  if constexpr (sizeof(T) == 4 || (f64) != kNoFunction) {                                \
    list.push_back(                                                                      \
        {#name, count, sizeof(T) == 4 ? (f32) : (f64),                                   \
         [](const V& a) { return heddle::name(__VA_ARGS__); },                           \
         [](const R& a) -> exact_t<T> { return tools::reference::name(__VA_ARGS__); }}); \
  }
#define HEDDLE_MATH_1(name, f32, f64, ...) HEDDLE_SUBJECT(1, name, f32, f64, a[0])
#define HEDDLE_MATH_2(name, f32, f64, ...) HEDDLE_SUBJECT(2, name, f32, f64, a[0], a[1])
#define HEDDLE_MATH_3(name, f32, f64, ...) HEDDLE_SUBJECT(3, name, f32, f64, a[0], a[1], a[2])
#define HEDDLE_MATH_4(name, f32, f64, ...) HEDDLE_SUBJECT(4, name, f32, f64, a[0], a[1], a[2], a[3])
#include "heddle/dsl/math/math.def"
#undef HEDDLE_SUBJECT
  return list;
}

// The worst of many results.
struct Worst {
  double ulps = 0;
  Arguments<double> at{};
  int64_t wrong_specials = 0;
  Arguments<double> special{};
  int64_t inputs = 0;

  void add(const Worst& other) {
    if (other.ulps > ulps) {
      ulps = other.ulps;
      at = other.at;
    }
    if (wrong_specials == 0) special = other.special;
    wrong_specials += other.wrong_specials;
    inputs += other.inputs;
  }
};

// Of results first to last; argument i of result k is arguments[i][k].
template <class T>
Worst compare(const Subject<T>& subject, const Arguments<T*>& arguments, const T* result,
              int64_t first, int64_t last) {
  Worst worst;
  worst.inputs = last - first;
  for (int64_t k = first; k < last; ++k) {
    Arguments<exact_t<T>> a{};
    for (int i = 0; i < subject.arguments; ++i) a[i] = arguments[i][k];
    const Deviation d = tools::deviation<T>(result[k], subject.exact(a));
    const auto as_double = [&] {
      Arguments<double> values{};
      std::copy(a.begin(), a.end(), values.begin());
      return values;
    };
    if (d.ulps > worst.ulps) {
      worst.ulps = d.ulps;
      worst.at = as_double();
    }
    if (d.wrong_special && worst.wrong_specials++ == 0) worst.special = as_double();
  }
  return worst;
}

// Calls part(first, last, core) for equal parts of [0, count), each on a core of its own.
template <class Part>
void on_all_cores(int64_t count, Part&& part) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int64_t core = 0; core < cores; ++core) {
    threads.emplace_back(
        [&, core] { part(count * core / cores, count * (core + 1) / cores, core); });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class T>
class Bench {
 public:
  Bench(const Device& device, const Options& options)
      : options_(options),
        device_(device),
        stream_(take(device.create_stream())),
        chunk_(std::min<int64_t>(options.chunk, device.kind() == runtime::BackendKind::kInterp
                                                    ? 1 << 22
                                                    : options.chunk)) {
    const size_t bytes = chunk_ * sizeof(T);
    result_ = take(device.allocate(bytes));
    pinned_result_ = take(device.allocate_pinned(bytes));
    host_result_ = static_cast<T*>(pinned_result_.data());
    for (int i = 0; i < kMostArguments; ++i) {
      arguments_[i] = take(device.allocate(bytes));
      pinned_arguments_[i] = take(device.allocate_pinned(bytes));
      host_arguments_[i] = static_cast<T*>(pinned_arguments_[i].data());
      std::fill(host_arguments_[i], host_arguments_[i] + chunk_, T{0});
      check(arguments_[i].copy_from_host(stream_, host_arguments_[i], bytes));
    }
  }

  nlohmann::ordered_json measure(const Subject<T>& subject, bool* broken) {
    const auto kernel = local_kernel(
        subject.name, [&](Tensor<const T, 1> x, Tensor<const T, 1> y, Tensor<const T, 1> z,
                          Tensor<const T, 1> w, Tensor<T, 1> result) {
          const Int i = block_idx.x * kThreads + thread_idx.x;
          If(i < result.shape(0), [&] { result(i) = subject.device({x(i), y(i), z(i), w(i)}); });
        });
    const auto start = std::chrono::steady_clock::now();
    Worst worst;
    const auto run = [&](int64_t count) {
      for (int i = 0; i < subject.arguments; ++i) {
        check(arguments_[i].copy_from_host(stream_, host_arguments_[i], count * sizeof(T)));
      }
      const auto argument = [&](int i) { return as_tensor<const T>(arguments_[i], {count}); };
      check(kernel.launch(stream_, {.grid = (count + kThreads - 1) / kThreads, .block = kThreads},
                          argument(0), argument(1), argument(2), argument(3),
                          as_tensor<T>(result_, {count})));
      check(result_.copy_to_host(stream_, host_result_, count * sizeof(T)));
      check(stream_.synchronize());
      std::mutex mutex;
      on_all_cores(count, [&](int64_t first, int64_t last, int64_t) {
        const Worst part = compare(subject, host_arguments_, host_result_, first, last);
        const std::lock_guard<std::mutex> lock(mutex);
        worst.add(part);
      });
    };
    give_boundaries(subject.arguments, run);
    if (sizeof(T) == 4 && subject.arguments == 1) {
      give_every(run);
    } else {
      give_random(subject.arguments == 1 ? options_.f64_inputs : options_.pairs / options_.stride,
                  run);
    }
    const bool fails = worst.ulps > std::max(subject.bound, 0.5) || worst.wrong_specials > 0;
    *broken |= fails;
    nlohmann::ordered_json row = {{"function", subject.name},
                                  {"type", sizeof(T) == 4 ? "f32" : "f64"},
                                  {"bound_ulp", subject.bound},
                                  {"max_ulp", worst.ulps},
                                  {"worst_input", text(worst.at, subject.arguments)},
                                  {"inputs", worst.inputs},
                                  {"wrong_specials", worst.wrong_specials}};
    if (worst.wrong_specials > 0) {
      row["wrong_special_input"] = text(worst.special, subject.arguments);
    }
    row["ns_per_2_26"] = time(subject);
    std::fprintf(
        stderr, "%-10s %s  %.4f of %g ulp at %s, %lld wrong specials%s  (%.1f s)%s\n", subject.name,
        sizeof(T) == 4 ? "f32" : "f64", worst.ulps, subject.bound,
        row["worst_input"].get<std::string>().c_str(), static_cast<long long>(worst.wrong_specials),
        worst.wrong_specials > 0 ? (" at " + row["wrong_special_input"].get<std::string>()).c_str()
                                 : "",
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
        fails ? "  BROKEN" : "");
    return row;
  }

 private:
  static std::string text(const Arguments<double>& a, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%a", i > 0 ? ", " : "", a[i]);
      text += number;
    }
    return text;
  }

  // Each boundary value with each other; a third and a fourth argument run through them besides.
  template <class Run>
  void give_boundaries(int arguments, Run&& run) {
    const std::vector<T> values = boundary_values<T>();
    int64_t count = 0;
    for (const T x : values) {
      for (const T y : arguments == 1 ? std::vector<T>{0} : values) {
        const size_t z = count * 7 % values.size(), w = count * 31 % values.size();
        const T all[kMostArguments] = {x, y, values[z], values[w]};
        for (int i = 0; i < kMostArguments; ++i) host_arguments_[i][count] = all[i];
        ++count;
      }
    }
    run(count);
  }

  template <class Run>
  void give_every(Run&& run) {
    const int64_t inputs = (int64_t{1} << 32) / options_.stride;
    for (int64_t done = 0; done < inputs; done += chunk_) {
      const int64_t count = std::min(chunk_, inputs - done);
      on_all_cores(count, [&](int64_t first, int64_t last, int64_t) {
        for (int64_t i = first; i < last; ++i) {
          host_arguments_[0][i] =
              std::bit_cast<T>(static_cast<Bits<T>>((done + i) * options_.stride));
        }
      });
      run(count);
    }
  }

  template <class Run>
  void give_random(int64_t inputs, Run&& run) {
    for (int64_t done = 0; done < inputs; done += chunk_) {
      const int64_t count = std::min(chunk_, inputs - done);
      on_all_cores(count, [&](int64_t first, int64_t last, int64_t) {
        std::mt19937_64 random(done + first);
        for (int64_t i = first; i < last; ++i) {
          for (T* argument : host_arguments_) argument[i] = random_number<T>(random);
        }
      });
      run(count);
    }
  }

  // 2^26 results between arguments of 0.5 and 1.5, in a loop that does nothing else.
  double time(const Subject<T>& subject) {
    if (device_.kind() == runtime::BackendKind::kInterp) return 0;
    constexpr int kTrips = 64, kBlocks = (1 << 26) / kTrips / kThreads;
    const auto kernel = local_kernel("loop", [&](Tensor<T, 1> result) {
      const Int i = block_idx.x * kThreads + thread_idx.x;
      const Value<T> x = fma(cast<T>(i), T{1} / (1 << 21), T{0.5});
      const Value<T> y = x + T{0.25};
      result(i) = For(range(kTrips), Value<T>(T{0}), [&](Int trip, Value<T> sum) {
        return sum + subject.device({fma(cast<T>(trip), T{1} / 128, x), y, y, y});
      });
    });
    Event start = take(device_.create_event()), stop = take(device_.create_event());
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
      check(start.record(stream_));
      check(kernel.launch(stream_, {.grid = kBlocks, .block = kThreads},
                          as_tensor<T>(result_, {kBlocks * kThreads})));
      check(stop.record(stream_));
      best = std::min(best, take(Event::elapsed_ms(start, stop)) * 1e6);
    }
    return best;
  }

  const Options& options_;
  const Device& device_;
  Stream stream_;
  int64_t chunk_;
  Arguments<Buffer> arguments_;
  Buffer result_;
  Arguments<PinnedBuffer> pinned_arguments_;
  PinnedBuffer pinned_result_;
  Arguments<T*> host_arguments_;
  T* host_result_;
};

template <class T>
void measure_all(const Device& device, const Options& options, nlohmann::ordered_json* figures,
                 bool* broken) {
  const char* const type = sizeof(T) == 4 ? "f32" : "f64";
  if (!options.type.empty() && options.type != type) return;
  Bench<T> bench(device, options);
  for (const Subject<T>& subject : subjects<T>()) {
    const auto& wanted = options.functions;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), subject.name) == wanted.end()) {
      continue;
    }
    figures->push_back(bench.measure(subject, broken));
  }
}

int run(int argc, char** argv) {
  CLI::App app("How exact the mathematical functions are.");
  Options options;
  app.add_option("--device", options.device, "cuda:N or interp");
  app.add_option("--function", options.functions, "these alone")->delimiter(',');
  app.add_option("--type", options.type)->check(CLI::IsMember({"f32", "f64"}));
  app.add_option("--stride", options.stride, "every how many-th f32")->check(CLI::PositiveNumber);
  app.add_option("--f64-inputs", options.f64_inputs);
  app.add_option("--pairs", options.pairs);
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open(options.device));
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  bool broken = false;
  measure_all<float>(device, options, &figures, &broken);
  measure_all<double>(device, options, &figures, &broken);
  bench::print_figures("math_ulp", argc, argv, device, figures);
  return broken ? 1 : 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
