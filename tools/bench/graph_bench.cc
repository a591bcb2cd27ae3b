// What graphs cost the host: launching one beside launching its kernels, recording it, and replacing
// a kernel of it, in nanoseconds. Prints JSON.
//
//   graph_bench                          # on cuda:0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "CLI/CLI.hpp"
#include "heddle/heddle.h"
#include "heddle/runtime/graph/graph.h"
#include "heddle/tools/bench/figures.h"
#include "nlohmann/json.hpp"

namespace heddle {
namespace {

using bench::check;
using bench::take;

constexpr int kRounds = 200;
constexpr int kNodeCounts[] = {1, 10, 100};

const auto step = define_kernel("step(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < x.shape(0), [&] { y(i) = x(i) + 1.0f; });
});

// The median of the rounds, in nanoseconds of the host's time; the stream is idle before each.
template <class Work>
double host_time(const Stream& stream, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    check(stream.synchronize());
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  check(stream.synchronize());
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

// Microseconds of the GPU's time for one call of `work`, between events around many.
template <class Work>
double device_time(const Device& device, const Stream& stream, Work&& work) {
  Event start = take(device.create_event()), stop = take(device.create_event());
  std::vector<double> times;
  for (int i = 0; i < kRounds / 10; ++i) {
    check(start.record(stream));
    for (int j = 0; j < 10; ++j) work();
    check(stop.record(stream));
    times.push_back(take(Event::elapsed_ms(start, stop)) * 1e3 / 10);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

int run(int argc, char** argv) {
  CLI::App app("What graphs cost the host.");
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open("cuda:0"));
  const Stream stream = take(device.create_stream());
  Buffer a = take(device.allocate(4096)), b = take(device.allocate(4096));
  check(a.fill(stream, 0));
  check(b.fill(stream, 0));
  const auto x = as_tensor<const float>(a, {1024});
  const auto y = as_tensor<float>(b, {1024});
  const LaunchShape shape{.grid = 8, .block = 128};
  const auto launch = [&](const Stream& s) { return step.launch(s, shape, x, y); };
  check(launch(stream));

  nlohmann::ordered_json rows = nlohmann::json::array();
  for (const int nodes : kNodeCounts) {
    const auto work = [&](const Stream& s) -> Status {
      for (int i = 0; i < nodes; ++i) {
        if (Status status = launch(s); !status.ok()) return status;
      }
      return OkStatus();
    };
    Graph graph = take(Graph::capture(stream, work));
    const auto run_graph = [&] { check(graph.launch(stream)); };
    const auto run_kernels = [&] { check(work(stream)); };
    rows.push_back(
        {{"nodes", nodes},
         {"graph_launch_ns", host_time(stream, run_graph)},
         {"kernel_launches_ns", host_time(stream, run_kernels)},
         {"graph_device_us", device_time(device, stream, run_graph)},
         {"kernels_device_us", device_time(device, stream, run_kernels)},
         {"capture_ns", host_time(stream, [&] { take(Graph::capture(stream, work)); })},
         {"recapture_ns", host_time(stream, [&] { check(graph.recapture(stream, work)); })}});
  }
  GraphBuilder builder(device);
  const GraphNode node = take(builder.add_kernel({}, step, shape, x, y));
  Graph graph = take(std::move(builder).build());
  const nlohmann::ordered_json result = {
      {"benchmark", "graph"},
      {"kernel", "step(x, y) of 1024 floats"},
      {"figures", rows},
      {"set_kernel_ns",
       host_time(stream, [&] { check(graph.set_kernel(node, step, shape, x, y)); })},
  };
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::run(argc, argv); }
