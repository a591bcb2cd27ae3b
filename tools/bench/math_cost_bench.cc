// What the functions of float cost beside CUDA's. Prints JSON.
//
//   math_cost_bench FOLDER     FOLDER: math/functions.cu as functions.cubin (math_cost_figures.py makes it)
//   math_cost_bench FOLDER --once      launches each kernel once, for a profiler
//
// A thread sums 64 values, so that arithmetic counts and memory does not. Both sides have the same inputs and launch
// shape; results are compared first. A time is the median of 21 rounds of 10 runs between two events, the two sides
// taking turns.
#include "CLI/CLI.hpp"
#include "bench/twins.h"

namespace heddle::bench {
namespace {

constexpr int kThreads = 256, kBlocks = 132 * 8 * 4, kValues = 64;

// sum += f(x, y), 64 times.
template <class F>
auto sums_of(const char* name, F f) {
  return define_kernel(name, [f](Tensor<const float, 1> first, Tensor<float, 1> sums) {
    const Int i = block_idx.x * kThreads + thread_idx.x;
    Var<float> x(first[i]), sum(0.0f);
    for ([[maybe_unused]] Int k : range(kValues).unroll(4)) {
      const Float y = fma(Float(x), 0.125f, 0.75f);
      sum += f(Float(x), y);
      x += 0.0625f;
    }
    sums[i] = sum;
  });
}

class Bench {
 public:
  Bench(const Device& device, const std::string& folder, bool once)
      : device_(device),
        stream_(take(device.create_stream())),
        twin_(device, folder, "functions"),
        first_(random_floats(device, stream_, kCount, 0.25f, 0.75f)),
        once_(once) {}

  template <class K>
  void compare(const std::string& name, const K& ours) {
    const Function theirs = twin_.function(("cuda_" + name).c_str());
    const LaunchShape shape{.grid = kBlocks, .block = kThreads};
    Side heddle, cuda;
    for (Side* s : {&heddle, &cuda}) {
      s->outputs.push_back(take(device_.allocate(4 * kCount)));
      s->reset = [] {};
    }
    heddle.run = [&] {
      check(ours.launch(stream_, shape, as_tensor<const float>(first_, {kCount}),
                        as_tensor<float>(heddle.outputs[0], {kCount})));
    };
    cuda.run = [&] { launch(stream_, theirs, shape, address(first_), address(cuda.outputs[0])); };
    if (once_) {
      heddle.run();
      cuda.run();
      return check(stream_.synchronize());
    }
    figures_.push_back(measure(device_, stream_, name, std::to_string(kValues) + " values", heddle,
                               cuda, 1e-5, "cuda"));
  }

  nlohmann::ordered_json all() {
#define HEDDLE_FUNCTION(name, ours, cuda)                 \
  compare(#name, sums_of("heddle_" #name "(first, sums)", \
                         [](const Float& x, [[maybe_unused]] const Float& y) { return ours; }));
#include "bench/math/functions.def"
    return std::move(figures_);
  }

 private:
  static constexpr int64_t kCount = int64_t{kThreads} * kBlocks;
  const Device& device_;
  const Stream stream_;
  const Twin twin_;
  const Buffer first_;
  const bool once_;
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

int run(int argc, char** argv) {
  CLI::App app("What the functions of float cost beside CUDA's.");
  std::string folder;
  bool once = false;
  app.add_option("folder", folder, "where functions.cubin is")->required();
  app.add_flag("--once", once, "launch each kernel once");
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open("cuda:0"));
  const nlohmann::ordered_json figures = Bench(device, folder, once).all();
  if (!once) print_figures("math_cost_bench", argc, argv, device, figures);
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::run(argc, argv); }
