// Many threads that define, compile, launch, record and destroy, for a sanitizer or for a look at the memory that stays:
//
//   runtime_stress --threads 16 --rounds 10000 --device interp [--only 3]
//
// A round is one thing that a program does with the runtime, chosen by the thread's random numbers, and checked by its result. Half of the rounds are
// run before memory is measured, and half behind it: what grows is a leak. Exit 0: nothing is wrong.
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/runtime/graph/graph.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle {
namespace {

constexpr int kElements = 96;

// Kernels that all threads share.
const auto add_to = define_kernel("add_to(x[n], y[n], value)",
                                  [](Tensor<const float, 1> x, Tensor<float, 1> y, Float value) {
                                    const Int i = thread_idx.x;
                                    If(i < x.shape(0), [&] { y(i) = x(i) + value; });
                                  });
const auto times = kernel_family("times(x)", [](int factor, Tensor<float, 1> x) {
  const Int i = thread_idx.x;
  If(i < x.shape(0), [&] { x(i) *= static_cast<float>(factor); });
});

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "stress: %s\n", what.c_str());
  std::_Exit(1);
}
void check(const Status& status) {
  if (!status.ok()) fail(std::string(status.message()));
}
template <class T>
T check(StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

// One thread.
class Worker {
 public:
  Worker(Device device, uint32_t seed) : device_(std::move(device)), random_(seed) {}

  static constexpr uint32_t kKinds = 7;
  // `kind`: of the things that a program does; kKinds: one of them.
  void round(uint32_t kind) {
    switch (kind < kKinds ? kind : below(kKinds)) {
      case 0:
        return shared_kernel();
      case 1:
        return own_kernel();
      case 2:
        return family();
      case 3:
        return compiled();
      case 4:
        return graph();
      case 5:
        return own_device();
      default:
        return refused();
    }
  }

 private:
  uint32_t below(uint32_t limit) { return random_() % limit; }
  Buffer ones(int64_t count) {
    return check(device_.upload(absl::MakeConstSpan(std::vector<float>(count, 1.0f))));
  }
  static void expect(const Buffer& buffer, const Stream& stream, float value) {
    for (const float found : check(buffer.download<float>(stream))) {
      if (found != value) fail("a result is " + std::to_string(found));
    }
  }

  // A variant for each extent's divisors, found or compiled by whoever comes first.
  void shared_kernel() {
    const Stream stream = check(device_.create_stream());
    const int64_t count = 1 + below(kElements);
    const Buffer x = ones(count), y = check(device_.allocate(count * sizeof(float)));
    const float value = static_cast<float>(below(3));
    for (int again = 0; again < 3; ++again) {
      check(add_to.launch(stream, {.block = kElements}, as_tensor<const float>(x, {count}),
                          as_tensor<float>(y, {count}), value));
    }
    expect(y, stream, 1 + value);
  }
  // A kernel that lives as long as the round.
  void own_kernel() {
    const Stream stream = check(device_.create_stream());
    const float value = static_cast<float>(below(100));
    const auto fill =
        define_kernel("fill(x)", [value](Tensor<float, 1> x) { x(thread_idx.x) = value; });
    const Buffer x = check(stream.allocate(32 * sizeof(float)));
    check(fill.launch(stream, {.block = 32}, as_tensor<float>(x, {32})));
    expect(x, stream, value);
  }
  void family() {
    const Stream stream = check(device_.create_stream());
    const int factor = 1 + static_cast<int>(below(5));
    const Buffer x = ones(64);
    check(times(factor).launch(stream, {.block = 64}, as_tensor<float>(x, {64})));
    expect(x, stream, static_cast<float>(factor));
  }
  // As far as PTX, whatever the device.
  void compiled() {
    const CompileOptions options{.block = {32 << below(3), 1, 1}, .stage = Stage::kPtx};
    const auto kernel =
        check(add_to.compile(Signature{tensor({kAny}), tensor({kAny}), scalar()}, options));
    if (kernel.ptx().find(".entry add_to") == std::string::npos) fail("PTX without its kernel");
  }
  void graph() {
    const Stream stream = check(device_.create_stream());
    const Buffer x = ones(32), y = check(device_.allocate(32 * sizeof(float)));
    const auto work = [&](const Stream& s) {
      return add_to.launch(s, {.block = 32}, as_tensor<const float>(x, {32}),
                           as_tensor<float>(y, {32}), 2.0f);
    };
    Graph step = check(Graph::capture(stream, work));
    for (int i = 0; i < 2; ++i) check(step.launch(stream));
    expect(y, stream, 3);
  }
  // With a kernel of its own: a kernel keeps what it has loaded on a device, and the device, as long as it lives.
  void own_device() {
    const Device device = Device::open_private_interp(runtime::InterpBackend::default_info());
    const Stream stream = check(device.create_stream());
    const Buffer x = check(device.upload<float>({1, 1}));
    const auto twice = define_kernel("twice(x[2])", [](Tensor<float, 1> t) {
      If(thread_idx.x < 2, [&] { t(thread_idx.x) *= 2.0f; });
    });
    check(twice.launch(stream, {.block = 32}, as_tensor<float>(x, {2})));
    expect(x, stream, 2);
  }
  // Arguments that are refused leave nothing behind.
  void refused() {
    const Stream stream = check(device_.create_stream());
    const Buffer x = ones(8), y = ones(8);
    const Status status = add_to.launch(stream, {.block = 32}, as_tensor<const float>(x, {8}),
                                        as_tensor<float>(y, {7}), 1.0f);
    if (status.message().find("its extent n is 8 in x.shape(0) and 7 in") == std::string::npos) {
      fail("not refused: " + std::string(status.message()));
    }
  }

  const Device device_;
  std::mt19937 random_;
};

int64_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void run(const Device& device, int threads, int rounds, uint32_t kind, uint32_t seed) {
  std::atomic<int> left{rounds};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      Worker worker(device, seed + static_cast<uint32_t>(i));
      while (left.fetch_sub(1) > 0) worker.round(kind);
    });
  }
  for (std::thread& thread : all) thread.join();
}

int main_with(int argc, char** argv) {
  int threads = 16, rounds = 10000;
  uint32_t kind = Worker::kKinds;
  std::string name = "interp";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--device") == 0) name = argv[i + 1];
    if (std::strcmp(argv[i], "--only") == 0) kind = static_cast<uint32_t>(std::atoi(argv[i + 1]));
  }
  const Device device = check(Device::open(name));
  run(device, threads, rounds / 2, kind, 1);
  const int64_t before = bytes_in_use();
  run(device, threads, rounds - rounds / 2, kind, 1000);
  const int64_t grown = bytes_in_use() - before;
  std::printf(
      "{\"threads\": %d, \"rounds\": %d, \"device\": \"%s\", \"bytes_in_use\": %lld, "
      "\"grown_bytes\": %lld}\n",
      threads, rounds, name.c_str(), static_cast<long long>(before), static_cast<long long>(grown));
  // Lists that double, and what threads keep; 10,000 rounds that leak a hundred bytes each leave more.
  constexpr int64_t kMost = 256 << 10;
  if (grown > kMost) fail("memory has grown by " + std::to_string(grown) + " bytes");
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::main_with(argc, argv); }
