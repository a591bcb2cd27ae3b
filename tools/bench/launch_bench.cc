// What one launch costs the host: Heddle's typed launch beside the driver's own call, on the same
// function, in bursts of 100 after a synchronise. Prints JSON.
//
//   launch_bench                         # on cuda:0, in nanoseconds
//   launch_bench --count N               # N launches of Heddle's and nothing timed: for callgrind
//   launch_bench --bare --count N        # N of the driver's; --eight: of a kernel with eight tensors; --changing: a number differs
//                                        # each time, so that nothing is remembered (runtime/launch_memo.h)
//
// Under HEDDLE_CUDA_LIBRARY=<fake driver> the last two run without a GPU: the difference of two
// counts is the number of instructions per launch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/heddle.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument_plan.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/cuda/driver.h"
#include "heddle/tools/bench/figures.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::take;

namespace driver = runtime::cuda;

constexpr int kBurst = 100;
constexpr int kBursts = 1000;

const auto copy = define_kernel(
    "copy(x, y, n, a)", [](Tensor<const float, 2> x, Tensor<float, 1> y, Int n, Float a) {
      If(thread_idx.x < n && block_idx.x == 0, [&] { y(thread_idx.x) = a * x(0, thread_idx.x); });
    });

const auto eight =
    define_kernel("eight(a, b, c, d, e, f, g, y)",
                  [](Tensor<const float, 1> a, Tensor<const float, 1> b, Tensor<const float, 1> c,
                     Tensor<const float, 1> d, Tensor<const float, 1> e, Tensor<const float, 1> f,
                     Tensor<const float, 1> g, Tensor<float, 1> y) {
                    If(block_idx.x == 0, [&] {
                      Int i = thread_idx.x;
                      y(i) = a(i) + b(i) + c(i) + d(i) + e(i) + f(i) + g(i);
                    });
                  });

void check(driver::Result result) {
  if (result == driver::Result::kSuccess) return;
  std::fprintf(stderr, "launch_bench: driver error %d\n", static_cast<int>(result));
  std::exit(1);
}

double nanoseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::nano>(d).count();
}

// Nanoseconds for each of the calls of a burst.
template <class Launch, class Synchronize>
double burst_time(Launch&& launch, Synchronize&& synchronize) {
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int j = 0; j < kBurst; ++j) launch();
  return nanoseconds(std::chrono::steady_clock::now() - start) / kBurst;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The same kernel through the driver alone, as a program without Heddle would launch it.
class BareLaunch {
 public:
  BareLaunch(const CompiledKernel& kernel, const Stream& stream, std::vector<std::byte> params)
      : driver_(take(driver::Driver::get())), params_(std::move(params)) {
    const driver::DriverApi& api = driver_->api();
    driver::ContextHandle context = nullptr;
    check(api.primary_ctx_retain(&context, 0));
    check(api.ctx_push_current(context));
    driver::ModuleHandle module = nullptr;
    check(api.module_load_data_ex(&module, kernel.cubin().data(), 0, nullptr, nullptr));
    check(api.module_get_function(&function_, module, kernel.compilation().ptx.entry.c_str()));
    config_ = {.grid_x = 1,
               .grid_y = 1,
               .grid_z = 1,
               .block_x = 32,
               .block_y = 1,
               .block_z = 1,
               .dynamic_shared_bytes = 0,
               .stream = reinterpret_cast<driver::DriverStream>(stream.handle()),
               .attributes = nullptr,
               .attribute_count = 0};
  }

  void operator()() {
    size_t bytes = params_.size();
    void* extra[] = {reinterpret_cast<void*>(driver::kLaunchParamBufferPointer), params_.data(),
                     reinterpret_cast<void*>(driver::kLaunchParamBufferSize), &bytes,
                     reinterpret_cast<void*>(driver::kLaunchParamEnd)};
    check(driver_->api().launch_kernel_ex(&config_, function_, nullptr, extra));
  }

 private:
  const driver::Driver* driver_;
  driver::FunctionHandle function_ = nullptr;
  driver::DriverLaunchConfig config_{};
  std::vector<std::byte> params_;
};

// Heddle's launch of a kernel beside the driver's, of the same arguments.
template <class... P>
class Pair {
 public:
  Pair(const Stream& stream, const Kernel<P...>& kernel, const Signature& signature,
       const typename detail::ParamTraits<P>::Host&... args)
      : stream_(stream), heddle_([&kernel, &stream, args...] {
          const Status s = kernel.launch(stream, {.grid = 1, .block = 32}, args...);
          if (!s.ok()) check(s);
        }) {
    CompileOptions options;
    options.block = {32, 1, 1};
    const auto compiled = take(kernel.compile(signature, options));
    std::vector<std::byte> params(compiled.compilation().layout.bytes + runtime::kPackSlack);
    runtime::ArgumentPlan({}, compiled.compilation().params, compiled.compilation().layout)
        .pack(runtime::PackedArguments<P...>(stream, args...), params.data());
    params.resize(compiled.compilation().layout.bytes);
    bare_.emplace(compiled, stream, std::move(params));
  }

  // Launches of Heddle's in this way from here on.
  void launch_by(std::function<void()> heddle) { heddle_ = std::move(heddle); }

  // Untimed launches, of one side.
  void repeat(int count, bool bare) {
    for (int i = 0; i < count; ++i) bare ? (*bare_)() : heddle_();
    synchronize();
  }

  // A burst of each in turn, so that a drift of the host's clock meets both: medians of the bursts, and of the differences between
  // one burst and the next.
  nlohmann::ordered_json measure() {
    heddle_();
    (*bare_)();
    std::vector<double> bare, ours, differences, ratios;
    const auto wait = [this] { synchronize(); };
    for (int i = 0; i < kBursts; ++i) {
      // Which comes first changes, too.
      const bool bare_first = i % 2 == 0;
      const double first = bare_first ? burst_time(*bare_, wait) : burst_time(heddle_, wait);
      const double second = bare_first ? burst_time(heddle_, wait) : burst_time(*bare_, wait);
      bare.push_back(bare_first ? first : second);
      ours.push_back(bare_first ? second : first);
      differences.push_back(ours.back() - bare.back());
      ratios.push_back(ours.back() / bare.back());
    }
    synchronize();
    return {{"bare_cuLaunchKernelEx_ns", median(bare)},
            {"heddle_launch_ns", median(ours)},
            {"heddle_above_bare_ns", median(differences)},
            {"of_bare", median(ratios)},
            {"bursts", kBursts}};
  }

 private:
  void synchronize() { check(stream_.synchronize()); }

  const Stream& stream_;
  std::function<void()> heddle_;
  std::optional<BareLaunch> bare_;
};

int run(int argc, char** argv) {
  CLI::App app("What one launch costs the host.");
  int count = 0;
  bool bare_only = false, of_eight = false, changing = false;
  app.add_option("--count", count, "this many launches, untimed");
  app.add_flag("--bare", bare_only, "the driver's launches instead of Heddle's");
  app.add_flag("--eight", of_eight, "of the kernel with eight tensors");
  app.add_flag("--changing", changing, "with other arguments each time");
  CLI11_PARSE(app, argc, argv);

  const Device device = take(Device::open("cuda:0"));
  const Stream stream = take(device.create_stream());
  const Buffer x_memory = take(device.allocate(1 << 16));
  const Buffer y_memory = take(device.allocate(1 << 16));
  const auto x = as_tensor<const float>(x_memory, {64, 256});
  const auto row = as_tensor<const float>(x_memory, {256});
  const auto y = as_tensor<float>(y_memory, {256});

  const auto any = tensor({kAny});
  Pair two(stream, copy, Signature{tensor({kAny, kAny}), any, scalar(), scalar()}, x, y, 0, 2.0f);
  Pair all(stream, eight, Signature{any, any, any, any, any, any, any, any}, row, row, row, row,
           row, row, row, y);
  float factor = 0;
  const std::function<void()> other_each_time = [&] {
    const Status s = copy.launch(stream, {.grid = 1, .block = 32}, x, y, 0, ++factor);
    if (!s.ok()) check(s);
  };
  if (changing) two.launch_by(other_each_time);
  if (count > 0) {
    of_eight ? all.repeat(count, bare_only) : two.repeat(count, bare_only);
    return 0;
  }
  nlohmann::ordered_json result = {{"benchmark", "launch"},
                                   {"gpu", device.info().name},
                                   {"cuda_driver", device.info().driver_version},
                                   {"arguments", "2 tensors (rank 2 and 1), 2 scalars"},
                                   {"burst", kBurst}};
  result.update(two.measure());
  result["eight_tensors"] = all.measure();
  two.launch_by(other_each_time);
  result["changing_arguments"] = two.measure();
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
