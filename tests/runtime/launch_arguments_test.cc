// What every launch is asked, whatever its kernel: whose memory it is given, which numbers, and how long it runs on
// the interpreter.
#include <limits>

#include "heddle/heddle.h"
#include "heddle/runtime/interp_backend.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"
#include "support/private_interp_test.h"

namespace heddle {
namespace {

constexpr auto kInvalid = StatusCode::kInvalidArgument;

using LaunchArgumentsTest = PrivateInterpTest;

const auto ones = define_kernel("ones(x)", [](Tensor<float, 1> x) {
  If(thread_idx.x < x.shape(0), [&] { x(thread_idx.x) = 1; });
});

// --- Whose memory ---

TEST_F(LaunchArgumentsTest, MemoryOfAnotherDevice) {
  const Device other = Device::open("interp:7").value();
  const Buffer there = other.upload<float>({1, 2, 3, 4}).value();
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, as_tensor<float>(there, {4})),
              Fails(kInvalid, "argument 0 ('x') of kernel 'ones' (",
                    ") lies in memory of interp:7, and the launch is on interp; fix: copy it to a "
                    "Buffer of that device, or launch on a stream of the other"));
  const auto compiled =
      ones.compile(Signature{tensor({kAny})}, CompileOptions{.stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->launch(stream_, {.block = 256}, as_tensor<float>(there, {4})),
              Fails(kInvalid, "lies in memory of interp:7, and the launch is on interp"));
}

// Numbers, pointers and tensors of nobody's memory are in no device's; what is behind them is.
TEST_F(LaunchArgumentsTest, MemoryOfAnotherDeviceBehindArgumentsOfNone) {
  const auto behind = define_kernel("behind(n, p, raw, x)",
                                    [](Int n, Pointer<const float> p, Tensor<const float, 1> raw,
                                       Tensor<float, 1> x) { x(0) = p[n] + raw(n); });
  const Device other = Device::open("interp:7").value();
  const Buffer here = device_.upload<float>({1, 2, 3, 4}).value();
  const Buffer there = other.upload<float>({1, 2, 3, 4}).value();
  const auto* const p = reinterpret_cast<const float*>(here.address());
  const TensorRef<const float, 1> raw(p, {4});
  const auto compiled =
      behind.compile(Signature{scalar(), pointer(), tensor({kAny}), tensor({kAny})},
                     CompileOptions{.stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  const auto launch = [&](const auto& kernel, const Buffer& x) {
    return kernel.launch(stream_, {}, 2, p, raw, as_tensor<float>(x, {4}));
  };
  constexpr char kElsewhere[] = "lies in memory of interp:7, and the launch is on interp";
  EXPECT_THAT(launch(behind, there), Fails(kInvalid, "argument 3 ('x')", kElsewhere));
  EXPECT_THAT(launch(*compiled, there), Fails(kInvalid, "argument 3 ('x')", kElsewhere));
  EXPECT_THAT(launch(behind, here), IsOk());
  EXPECT_THAT(launch(*compiled, here), IsOk());
  EXPECT_EQ(here.download<float>(stream_).value()[0], 6.0f);
}

TEST_F(LaunchArgumentsTest, MemoryOfAnotherDeviceOfTheSameName) {
  const Device other = Device::open_private_interp(runtime::InterpBackend::default_info());
  const Buffer there = other.upload<float>({1, 2, 3, 4}).value();
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, as_tensor<float>(there, {4})),
              Fails(kInvalid,
                    ") lies in memory of another device that is called interp, and the "
                    "launch is on interp; fix: "));
}

// A buffer keeps its memory's owner wherever it is moved, and a tensor in whatever way it is read.
TEST_F(LaunchArgumentsTest, MemoryOfAnotherDeviceThatWasHandedOn) {
  const Device other = Device::open("interp:7").value();
  Buffer x = zeros(4);
  const TensorRef<float, 1> stale = as_tensor<float>(x, {4});
  x = other.upload<float>({1, 2, 3, 4}).value();
  constexpr char kElsewhere[] = "lies in memory of interp:7";
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, as_tensor<float>(x, {4})),
              Fails(kInvalid, kElsewhere));
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, stale), Fails(kInvalid, "that was freed"));
  const auto reads = define_kernel(
      "reads(x, y)", [](Tensor<const float, 1> from, Tensor<float, 1> y) { y(0) = from(0); });
  const Buffer y = zeros(4);
  const TensorRef<float, 1> writable = as_tensor<float>(x, {4});
  EXPECT_THAT(reads.launch(stream_, {}, writable, as_tensor<float>(y, {4})),
              Fails(kInvalid, "argument 0 ('x')", kElsewhere));
  Buffer owner = zeros(4);
  const TensorRef<const float, 1> live = as_tensor<float>(owner, {4});
  EXPECT_THAT(reads.launch(stream_, {}, live, as_tensor<float>(y, {4})), IsOk());
  owner = Buffer();
  EXPECT_THAT(reads.launch(stream_, {}, live, as_tensor<float>(y, {4})),
              Fails(kInvalid, "argument 0 ('x')", "that was freed"));
}

// An empty buffer is nobody's memory, and a tensor without elements is fine anywhere.
TEST_F(LaunchArgumentsTest, NoMemoryAtAll) {
  const Buffer none, empty = device_.allocate(0).value();
  for (const Buffer* const buffer : {&none, &empty}) {
    EXPECT_THAT(ones.launch(stream_, {.block = 256}, as_tensor<float>(*buffer, {0})), IsOk());
    EXPECT_THAT(ones.launch(stream_, {.block = 256}, as_tensor<float>(*buffer, {1})),
                Fails(kInvalid, "argument 0 ('x')", "is a null pointer to a tensor with elements"));
  }
}

TEST_F(LaunchArgumentsTest, MemoryThatWasFreed) {
  TensorRef<float, 1> stale;
  {
    const Buffer gone = zeros(4);
    stale = as_tensor<float>(gone, {4});
    EXPECT_THAT(ones.launch(stream_, {.block = 256}, stale), IsOk());
  }
  constexpr char kFreed[] =
      ") lies in memory that was freed; fix: keep its Buffer or DlpackTensor until the launch is "
      "complete";
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, stale), Fails(kInvalid, kFreed));
  // Also where another buffer has taken its place; moving one is not freeing it.
  Buffer next = zeros(4);
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, stale), Fails(kInvalid, kFreed));
  const TensorRef<float, 1> live = as_tensor<float>(next, {4});
  const Buffer moved = std::move(next);
  EXPECT_THAT(ones.launch(stream_, {.block = 256}, live), IsOk());
}

class LaunchArgumentsOnGpuTest : public runtime::cuda::FakeDriverTest {};

TEST_F(LaunchArgumentsOnGpuTest, MemoryOfAnotherDevice) {
  const Device gpu = Device::open("cuda:0").value();
  const Device interp = Device::open("interp").value();
  const Buffer on_gpu = gpu.allocate(16).value();
  const Buffer on_interp = interp.upload<float>({1, 2, 3, 4}).value();
  EXPECT_THAT(ones.launch(gpu.default_stream(), {.block = 256}, as_tensor<float>(on_interp, {4})),
              Fails(kInvalid, "argument 0 ('x')",
                    "lies in memory of interp, and the launch is on "
                    "cuda:0"));
  EXPECT_THAT(ones.launch(interp.default_stream(), {.block = 256}, as_tensor<float>(on_gpu, {4})),
              Fails(kInvalid, "lies in memory of cuda:0, and the launch is on interp"));
}

// Only the interpreter counts.
TEST_F(LaunchArgumentsOnGpuTest, ALimitOfInstructionsIsNothingToAGpu) {
  const Device gpu = Device::open("cuda:0").value();
  gpu.set_max_instructions(1);
  EXPECT_THAT(gpu.health(), IsOk());
  EXPECT_THAT(gpu.allocate(16), IsOk());
}

// --- Host numbers ---

const auto numbers = define_kernel("numbers(n, b, u)", [](Int n, Int8 b, UInt64 u) {
  device_assert(n == 7 && cast<int>(b) == 1 && u == 2u);
});

TEST_F(LaunchArgumentsTest, NumbersThatTheirParametersHold) {
  EXPECT_THAT(numbers.launch(stream_, {}, 7, 1, 2), IsOk());
  EXPECT_THAT(numbers.launch(stream_, {}, int64_t{7}, size_t{1}, int8_t{2}), IsOk());
  const auto floats = define_kernel(
      "floats(f, h)", [](Float f, Half h) { device_assert(f == 2.5f && cast<float>(h) == 1.0f); });
  EXPECT_THAT(floats.launch(stream_, {}, 2.5, half(1.0f)), IsOk());
}

TEST_F(LaunchArgumentsTest, NumbersThatTheirParametersDoNotHold) {
  EXPECT_THAT(numbers.launch(stream_, {}, int64_t{5'000'000'000}, 1, 2),
              Fails(kInvalid, "argument 0 ('n') of kernel 'numbers' (",
                    ") is 5000000000, which does not fit an i32; fix: make the parameter wider "
                    "(Int64, UInt64), or pass another number"));
  EXPECT_THAT(numbers.launch(stream_, {}, 7, 200, 2),
              Fails(kInvalid, "argument 1 ('b')", "is 200, which does not fit an i8"));
  EXPECT_THAT(numbers.launch(stream_, {}, 7, 1, -2),
              Fails(kInvalid, "argument 2 ('u')", "is -2, which does not fit an u64"));
  EXPECT_THAT(numbers.launch(stream_, {}, std::numeric_limits<uint64_t>::max(), 1, 2),
              Fails(kInvalid, "argument 0 ('n')", "is 18446744073709551615, which"));
}

// Members of a struct too, whatever else this thread traces.
TEST_F(LaunchArgumentsTest, NumbersInAStruct) {
  struct Pair {
    Float f;
    Int n;
  };
  const auto of_pair =
      define_kernel("of_pair(f, n)", [](Pair p) { device_assert(p.n == 7 && p.f == 2.0f); });
  EXPECT_THAT(of_pair.launch(stream_, {}, Pair{2.0f, int64_t{7}}), IsOk());
  EXPECT_THAT(of_pair.launch(stream_, {}, Pair{2.0f, int64_t{5'000'000'000}}),
              Fails(kInvalid, "argument 1 ('n') of kernel 'of_pair' (",
                    ") is 5000000000, which does not fit an i32"));
  const auto innocent = define_kernel("innocent(n)", [](Int n) { device_assert(n == 7); });
  EXPECT_THAT(innocent.launch(stream_, {}, 7), IsOk());
}

// A number made outside of kernels is a mistake of the one that uses it.
TEST_F(LaunchArgumentsTest, NumbersFromOutside) {
  const Int many(int64_t{-5'000'000'000});
  const auto uses = define_kernel("uses(n)", [many](Int n) { device_assert(n == many); });
  EXPECT_THAT(uses.launch(stream_, {}, 7),
              Fails(kInvalid, "launch_arguments_test.cc:", "-5000000000 does not fit an i32"));
}

// --- The interpreter's limit ---

TEST_F(LaunchArgumentsTest, AnEndlessLoopEndsInAReport) {
  const int line = __LINE__ + 3;
  const auto endless = define_kernel("endless(x)", [](Tensor<float, 1> x) {
    Var<int> i(0);
    While([&] { return i < x.shape(0); }, [&] { x(0) = 1; });
  });
  const Buffer x = zeros(4);
  device_.set_max_instructions(20000);
  EXPECT_THAT(endless.launch(stream_, {.block = 1}, as_tensor<float>(x, {4})),
              Fails(StatusCode::kResourceExhausted,
                    absl::StrCat("launch_arguments_test.cc:", line,
                                 ": error: this while loop has not ended after 20,000 instructions "
                                 "of its block: thread (0, 0, 0) is still in it, and nothing that "
                                 "its condition depends on changes there"),
                    "fix: change in the loop what its condition depends on; where it is only "
                    "long, raise the limit by Device::set_max_instructions()"));
}

}  // namespace
}  // namespace heddle
