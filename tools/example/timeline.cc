// What the warps of a kernel do when: a product of matrices by tiles, with a trace of its ranges.
//
//   timeline_example cuda:0 trace.json     # then open the file in ui.perfetto.dev
//   timeline_example interp trace.json     # without a GPU: the times are the interpreter's
//
// Each warp shows how long it waits for a tile of a and b, and how long it multiplies them. The table
// that is printed has the mean of each range, and the time of the kernel without a timeline beside
// that of the one with it.
#include "heddle/dsl/cuda/timeline.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/async.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/timeline.h"

using namespace heddle;

namespace {

constexpr int kTile = 32;                // rows and columns of a block's tile
constexpr int kRows = 8;                 // of threads; each has every eighth row of the tile
constexpr int kThreads = kTile * kRows;  // a warp is a row of 32

using Matrix = Tensor<const float, 2>;

// c = a b, of extents that are multiples of kTile.
void multiply(const Matrix& a, const Matrix& b, const Tensor<float, 2>& c,
              const Timeline& timeline) {
  const Int column = thread_idx.x % kTile, row = thread_idx.x / kTile;
  const Int first_row = block_idx.y * kTile, first_column = block_idx.x * kTile;
  Shared<float, 2> a_tile({kTile, kTile}), b_tile({kTile, kTile});
  Var<std::array<Float, kTile / kRows>> sum({0.0f, 0.0f, 0.0f, 0.0f});
  for (Int k : range(a.shape(1) / kTile)) {
    const TimelineRange tile = timeline.range("tile", k);
    {
      const TimelineRange wait = timeline.range("load and wait");
      for (int i = 0; i < kTile; i += kRows) {
        copy_async<1>(a_tile.at(row + i, column), a.at(first_row + row + i, k * kTile + column));
        copy_async<1>(b_tile.at(row + i, column), b.at(k * kTile + row + i, first_column + column));
      }
      copy_async_commit();
      copy_async_wait(0);
      sync_threads();
    }
    {
      const TimelineRange products = timeline.range("multiply");
      for (Int j : range(kTile)) {
        for (int i = 0; i < kTile / kRows; ++i) {
          sum[i] = fma(a_tile(row + i * kRows, j), b_tile(j, column), sum[i]);
        }
      }
    }
    sync_threads();
  }
  const TimelineRange store = timeline.range("store");
  for (int i = 0; i < kTile / kRows; ++i) {
    c(first_row + row + i * kRows, first_column + column) = sum[i];
  }
}

const auto plain = define_kernel("multiply(a, b, c)", [](Matrix a, Matrix b, Tensor<float, 2> c) {
  multiply(a, b, c, Timeline());
});
const auto timed = define_kernel("multiply_timed(a, b, c, events)",
                                 [](Matrix a, Matrix b, Tensor<float, 2> c, TimelineEvents events) {
                                   multiply(a, b, c, Timeline(events));
                                 });

// Microseconds of the second of two launches.
template <class Launch>
StatusOr<double> microseconds(const Device& device, const Stream& stream, const Launch& launch) {
  Event start = device.create_event().value(), stop = device.create_event().value();
  for (int i = 0; i < 2; ++i) {
    if (Status s = start.record(stream); !s.ok()) return s;
    if (Status s = launch(); !s.ok()) return s;
    if (Status s = stop.record(stream); !s.ok()) return s;
  }
  const StatusOr<double> ms = Event::elapsed_ms(start, stop);
  if (!ms.ok()) return ms;
  return 1000 * *ms;
}

Status run(const std::string& name, const std::string& path) {
  const StatusOr<Device> device = Device::open(name);
  if (!device.ok()) return device.status();
  const Stream stream = device->create_stream().value();
  const int64_t n = name == "interp" ? 64 : 1024;
  const auto count = static_cast<size_t>(n * n);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7) - 3;
  const Buffer a = device->upload(absl::MakeConstSpan(values)).value();
  const Buffer c = device->allocate(count * sizeof(float)).value();
  const auto in = as_tensor<const float>(a, {n, n});
  const auto out = as_tensor<float>(c, {n, n});
  const LaunchShape shape{.grid = {n / kTile, n / kTile}, .block = kThreads};

  const StatusOr<double> without =
      microseconds(*device, stream, [&] { return plain.launch(stream, shape, in, in, out); });
  if (!without.ok()) return without.status();

  const int64_t warps = shape.grid.count() * kThreads / kWarpSize;
  StatusOr<TimelineBuffer> buffer =
      TimelineBuffer::allocate(stream, {.warps = warps, .events = 6 * n / kTile + 2});
  if (!buffer.ok()) return buffer.status();
  const StatusOr<double> with = microseconds(*device, stream, [&]() -> Status {
    if (Status s = buffer->clear(stream); !s.ok()) return s;
    return timed.launch(stream, shape, in, in, out, buffer->events());
  });
  if (!with.ok()) return with.status();
  const StatusOr<TimelineRecording> recording = buffer->read(stream);
  if (!recording.ok()) return recording.status();

  const std::vector<float> result = c.download<float>(stream).value();
  double expected = 0;
  for (int64_t k = 0; k < n; ++k) {
    expected += values[static_cast<size_t>(k)] * values[static_cast<size_t>(k * n + n - 1)];
  }
  if (std::abs(result[static_cast<size_t>(n - 1)] - expected) > 1e-3 * std::abs(expected)) {
    return InternalError("the product is wrong");
  }

  struct Total {
    int64_t count = 0, ns = 0;
  };
  std::map<std::string, Total> totals;
  for (const runtime::TimelineSpan& span : recording->spans) {
    Total& total = totals[span.name];
    ++total.count;
    total.ns += span.end_ns - span.begin_ns;
  }
  std::printf("%s: %.1f us, with the timeline (and clearing it) %.1f us, clock %.3f GHz\n",
              device->info().name.c_str(), *without, *with, recording->clock_ghz);
  for (const auto& [range, total] : totals) {
    std::printf("  %-14s %8lld times, %10.1f ns each\n", range.c_str(),
                static_cast<long long>(total.count),
                static_cast<double>(total.ns) / static_cast<double>(total.count));
  }
  for (const std::string& problem : recording->problems) std::printf("  %s\n", problem.c_str());
  if (Status s = recording->write_chrome_trace(path); !s.ok()) return s;
  std::printf("%s: %zu ranges of %zu warps\n", path.c_str(), recording->spans.size(),
              recording->warps.size());
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "cuda:0", argc > 2 ? argv[2] : "timeline.json");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
