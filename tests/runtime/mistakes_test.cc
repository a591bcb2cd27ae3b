// What a user does wrong at a launch, a row each: the whole message, and its code. It says once what is wrong, of which
// kernel at which line, and how to mend it. tests/runtime/c and tests/python have the same of C and Python; what the
// compiler finds is in tests/compile_fail.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "heddle/heddle.h"
#include "heddle/runtime/argument.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using runtime::cuda::DeviceAttribute;
using runtime::cuda::FunctionAttribute;

constexpr int kSumLine = __LINE__ + 2;
auto make_sum() {
  return define_kernel("sum(x, y[n], n)", [](Tensor<const float, 2> x, Tensor<float, 1> y, Int n) {
    require(n % 2 == 0);
    y(thread_idx.x) = x(thread_idx.x, 0);
  });
}

// Which needs a tensor that is contiguous along mode 1.
constexpr int kBoxLine = __LINE__ + 2;
auto make_box() {
  return define_kernel("box(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
    const TensorMap map(x, {8, 32});
    If(thread_idx.x == 0, [&] {
      map.prefetch();
      y(0) = 1;
    });
  });
}

// A stand-in for a GPU, and the interpreter; a kernel of its own, which has not been launched.
struct Bench {
  runtime::cuda::FakeCuda& fake;
  Device gpu = Device::open("cuda:0").value();
  Device interp = Device::open("interp").value();
  Stream on_gpu = gpu.default_stream();
  Stream on_interp = interp.default_stream();
  Buffer x = gpu.allocate(48).value();
  Buffer y = gpu.allocate(16).value();
  decltype(make_sum()) sum = make_sum();

  TensorRef<const float, 2> in() const { return as_tensor<const float>(x, {4, 3}); }
  TensorRef<float, 1> out() const { return as_tensor<float>(y, {4}); }
  // x at another address.
  static TensorRef<const float, 2> at(uint64_t address) {
    return TensorRef<const float, 2>(reinterpret_cast<const float*>(address), {4, 3});
  }
  Status launch(const LaunchShape& shape) const {
    return sum.launch(on_gpu, shape, in(), out(), 4);
  }
  Status launch(const TensorRef<const float, 2>& from) const {
    return sum.launch(on_gpu, {.block = 4}, from, out(), 4);
  }
};

std::string here(int line) { return absl::StrCat(__FILE__, ":", line); }

struct Mistake {
  const char* name;
  StatusCode code;
  std::string message;  // $K: "kernel 'sum' (<its place>)"; $P: its place; $A: the argument x of it
  std::function<Status(Bench&)> make;
};

constexpr auto kInvalid = StatusCode::kInvalidArgument;
constexpr auto kPrecondition = StatusCode::kFailedPrecondition;

class MistakesTest : public runtime::cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    fake_->set_kernels("");
  }
  void TearDown() override {
    unsetenv("HEDDLE_OPTIONS");
    unsetenv("HEDDLE_PTXAS");
    FakeDriverTest::TearDown();
  }

  void check(const std::vector<Mistake>& mistakes) {
    const std::string place = here(kSumLine);
    const std::string kernel = absl::StrCat("kernel 'sum' (", place, ")");
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(mistake.name);
      setenv("HEDDLE_CUDA_LIBRARY", library_.c_str(), 1);
      Bench bench{*fake_};
      const Status status = mistake.make(bench);
      EXPECT_EQ(status.code(), mistake.code);
      EXPECT_EQ(std::string(status.message()),
                absl::StrReplaceAll(mistake.message,
                                    {{"$A", absl::StrCat("argument 0 ('x') of ", kernel)},
                                     {"$K", kernel},
                                     {"$P", place},
                                     {"$L", std::getenv("HEDDLE_CUDA_LIBRARY")}}));
      fake_->reset();
      fake_->set_kernels("");
    }
  }
};

const float host[12] = {};

TEST_F(MistakesTest, Arguments) {
  check({
      {"extent beyond the buffer", kInvalid,
       "$A reaches 60 bytes into a buffer of 48; fix: pass extents and strides that fit it, or "
       "allocate more",
       [](Bench& b) {
         return b.launch(as_tensor<const float>(b.x, {5, 3}));
       }},
      {"negative extent", kInvalid,
       "$A has extent -1 in mode 0, and extents are not negative; fix: pass 0 where there are no "
       "elements",
       [](Bench& b) {
         return b.launch(as_tensor<const float>(b.x, {-1, 3}));
       }},
      {"extents that differ", kInvalid,
       "$K cannot launch: its extent n is 6 in the argument n and 4 in y.shape(0) ($P); fix: pass "
       "arguments that agree in n",
       [](Bench& b) { return b.sum.launch(b.on_gpu, {.block = 4}, b.in(), b.out(), 6); }},
      {"negative stride", kInvalid,
       "$A reaches 36 bytes before the start of its buffer; fix: pass strides that are not "
       "negative, or the address of its "
       "first element, TensorRef(address, extents, strides)",
       [](Bench& b) {
         return b.launch(as_tensor<const float>(b.x, {4, 3}, {-3, 1}));
       }},
      {"huge stride", kInvalid,
       "$A reaches further than 64 bits can count; fix: pass smaller extents or strides",
       [](Bench& b) {
         return b.launch(as_tensor<const float>(b.x, {4, 3}, {INT64_MAX, 1}));
       }},
      {"elements that share memory, which a GPU does not see", kPrecondition,
       absl::StrReplaceAll("$0: error: writes y(1), which thread (0, 0, 0) has written too, with "
                           "another value and nothing that orders the "
                           "two: which one stays is left to chance (kernel 'sum', block (0, 0, 0), "
                           "thread (1, 0, 0) and 2 more of its "
                           "warp)\n"
                           "  $0: thread (0, 0, 0) writes it here\n"
                           "  fix: let one thread write it, as in If(thread_idx.x == 0, ...), "
                           "combine the values by an atomic or a "
                           "reduction, or put sync_threads() between the two; where any of the "
                           "values will do, say so by atomic_store()\n",
                           {{"$0", here(kSumLine + 2)}}),
       [](Bench& b) {
         const Buffer y = b.interp.allocate(4).value();
         const Buffer x = b.interp.upload<float>({1, 2, 3, 4}).value();
         return b.sum.launch(b.on_interp, {.block = 4}, as_tensor<const float>(x, {4, 1}),
                             as_tensor<float>(y, {4}, {0}), 4);
       }},
      {"not contiguous where it has to be", kInvalid,
       absl::StrCat(
           "kernel 'box' (", here(kBoxLine),
           ") cannot launch: the tensor map of 'x' needs mode 1 to be contiguous, and its stride "
           "is 2 (",
           here(kBoxLine + 1),
           "); fix: pass a tensor whose elements along this mode are neighbours in memory"),
       [](Bench& b) {
         const Buffer x = b.gpu.allocate(4096).value();
         return make_box().launch(b.on_gpu, {.block = 32},
                                  as_tensor<const float>(x, {8, 32}, {64, 2}), b.out());
       }},
      {"a relation that does not hold", kInvalid,
       absl::StrCat("$K cannot launch: it requires (n % 2) == 0, but n % 2 is 1 (",
                    here(kSumLine + 1), "); fix: pass arguments for which that holds"),
       [](Bench& b) {
         return b.sum.launch(b.on_gpu, {.block = 3}, b.in(), as_tensor<float>(b.y, {3}), 3);
       }},
      {"another device's buffer", kInvalid,
       "$A lies in memory of cuda:0, and the launch is on interp; fix: copy it to a Buffer of that "
       "device, or launch on a "
       "stream of the other",
       [](Bench& b) { return b.sum.launch(b.on_interp, {.block = 4}, b.in(), b.out(), 4); }},
      {"another GPU's pointer", kInvalid,
       "$A lies in memory of cuda:1, which kernels on cuda:0 cannot reach; fix: copy it to a "
       "Buffer of cuda:0, launch on the "
       "other device, or allow the access (cuCtxEnablePeerAccess)",
       [](Bench& b) {
         b.fake.set_foreign(b.x.address());
         return b.launch(Bench::at(b.x.address()));
       }},
      {"a host pointer", kInvalid,
       "$A lies in memory of the host, which kernels on cuda:0 cannot reach; fix: copy it to "
       "memory of the device, or pin it "
       "(cuMemHostRegister)",
       [](Bench& b) {
         return b.launch(TensorRef<const float, 2>(host, {4, 3}));
       }},
      {"a null pointer", kInvalid,
       "$A is a null pointer to a tensor with elements; fix: allocate it, or pass extents of 0",
       [](Bench& b) { return b.launch(Bench::at(0)); }},
      {"an address between elements", kInvalid,
       "$A starts at 0x1002, which is no multiple of its elements' 4 bytes, and a GPU cannot read "
       "them there; fix: start at "
       "an element, or copy it to aligned memory",
       [](Bench& b) { return b.launch(Bench::at(0x1002)); }},
      {"memory that was freed", kInvalid,
       "$A lies in memory that was freed; fix: keep its Buffer or DlpackTensor until the launch is "
       "complete",
       [](Bench& b) {
         const TensorRef<const float, 2> stale = b.in();
         b.x = Buffer();
         return b.launch(stale);
       }},
  });
}

// Asked where code is loaded, and not of memory that kernels reach.
TEST_F(MistakesTest, WhoseMemoryItIsIsAskedOnce) {
  Bench b{*fake_};
  const PinnedBuffer pinned = b.gpu.allocate_pinned(48).value();
  const auto asked = [&] {
    const std::vector<std::string> calls = fake_->calls();
    return std::count(calls.begin(), calls.end(), "cuPointerGetAttribute 3");
  };
  ASSERT_THAT(b.launch(Bench::at(reinterpret_cast<uint64_t>(pinned.data()))), IsOk());
  EXPECT_EQ(asked(), 1);
  ASSERT_THAT(b.launch(Bench::at(reinterpret_cast<uint64_t>(pinned.data()))), IsOk());
  EXPECT_EQ(asked(), 1) << "of code that is there";
  ASSERT_THAT(b.sum.launch(b.on_gpu, {.block = 2}, b.in(), b.out(), 4), IsOk());
  EXPECT_EQ(asked(), 1) << "buffers are known";
  ASSERT_THAT(
      b.sum.launch(b.on_gpu, {.block = 1}, TensorRef<const float, 2>(host, {0, 3}), b.out(), 4),
      IsOk());
  EXPECT_EQ(asked(), 1) << "there are no elements";
  // Memory that neither the driver nor the host knows may be a graph's.
  EXPECT_THAT(b.sum.launch(b.on_gpu, {.block = 8}, Bench::at(0x1000), b.out(), 4), IsOk());
  EXPECT_EQ(asked(), 2);
  // Some systems let kernels read the host's memory.
  fake_->set_device_attribute(DeviceAttribute::kPageableMemoryAccess, 1);
  EXPECT_THAT(
      b.sum.launch(b.on_gpu, {.block = 16}, TensorRef<const float, 2>(host, {4, 3}), b.out(), 4),
      IsOk());
  // What the driver does not tell is no reason to refuse.
  fake_->set_device_attribute(DeviceAttribute::kPageableMemoryAccess, 0);
  fake_->fail("cuPointerGetAttribute", 801);
  EXPECT_THAT(
      b.sum.launch(b.on_gpu, {.block = 32}, TensorRef<const float, 2>(host, {4, 3}), b.out(), 4),
      IsOk());
  const auto compiled = b.sum.compile(Signature{tensor({kAny, kAny}), tensor({kAny}), scalar()});
  ASSERT_THAT(compiled, IsOk());
  fake_->reset();
  fake_->set_kernels("");
  EXPECT_THAT(
      compiled->launch(b.on_gpu, {.block = 1}, TensorRef<const float, 2>(host, {4, 3}), b.out(), 4),
      Fails(kInvalid, "argument 0 ('x') of kernel 'sum' (", "lies in memory of the host"));
}

// Arguments as data, whose types the compiler does not see.
TEST_F(MistakesTest, ArgumentsAsData) {
  const auto launch = [](Bench& b, std::vector<runtime::Argument> arguments) {
    return runtime::launch(b.on_gpu, b.sum.source(), {.block = 4}, arguments);
  };
  static constexpr int64_t kExtents[] = {4, 3}, kStrides[] = {3, 1};
  const auto tensor = [](const Buffer& buffer, int rank) {
    return runtime::tensor_argument(buffer.address(), kExtents, kStrides, rank, 4);
  };
  check({
      {"count", kInvalid,
       "$K takes 3 arguments and was given 1; fix: pass one for each parameter, in their order",
       [&](Bench& b) { return launch(b, {tensor(b.x, 2)}); }},
      {"rank", kInvalid,
       "$A is a tensor of 1 mode; the kernel takes a tensor of 2 modes; fix: pass "
       "tensor_argument() of rank 2",
       [&](Bench& b) {
         return launch(b, {tensor(b.x, 1), tensor(b.y, 1), runtime::scalar_argument(4)});
       }},
      {"number for a tensor", kInvalid,
       "$A is a number; the kernel takes a tensor of 2 modes; fix: pass tensor_argument() of rank "
       "2",
       [&](Bench& b) {
         return launch(b,
                       {runtime::scalar_argument(4), tensor(b.y, 1), runtime::scalar_argument(4)});
       }},
      {"tensor for a number", kInvalid,
       "argument 2 ('n') of $K is a tensor of 2 modes; the kernel takes a number; fix: pass "
       "scalar_argument(bits)",
       [&](Bench& b) {
         return launch(b, {tensor(b.x, 2), tensor(b.y, 1), tensor(b.x, 2)});
       }},
      {"host", kInvalid,
       "$A lies in memory of the host, which kernels on cuda:0 cannot reach; fix: copy it to "
       "memory of the device, or pin it "
       "(cuMemHostRegister)",
       [&](Bench& b) {
         runtime::Argument x =
             runtime::tensor_argument(reinterpret_cast<uint64_t>(host), kExtents, kStrides, 2, 4);
         return launch(b, {x, tensor(b.y, 1), runtime::scalar_argument(4)});
       }},
  });
}

TEST_F(MistakesTest, Lambdas) {
  constexpr int kLine = __LINE__ + 1;
  const auto broken = define_kernel("broken(x)", [](Tensor<float, 1> x) {
    If(thread_idx.x == 0, [&] { sync_threads(); });
    x(1) = x(0);
  });
  check({{"a barrier that not all threads reach", kInvalid,
          absl::StrReplaceAll(
              "kernel 'broken' ($0) has 1 error:\n"
              "$1: error: 'barrier' under a condition that differs between threads: all threads of "
              "the block must "
              "reach it together\n"
              "  in: barrier\n"
              "  $1: the condition of this 'if' differs between the threads of the block\n"
              "  fix: move it out, or make the condition the same for the whole block; where only "
              "you know that the "
              "whole block agrees on it, wrap it in assume_uniform()",
              {{"$0", here(kLine)}, {"$1", here(kLine + 1)}}),
          [&](Bench& b) { return broken.launch(b.on_gpu, {.block = 4}, b.out()); }}});
}

TEST_F(MistakesTest, Shapes) {
  const auto launch = [](const LaunchShape& shape) {
    return [shape](Bench& b) { return b.launch(shape); };
  };
  const std::string threads =
      "$K has 1 error:\n$P: error: a block of % threads cannot be launched: it has 1 to 1024 "
      "threads, and at most 64 in z\n"
      "  fix: use a smaller block and more of them";
  check({
      {"1025 threads", kInvalid, absl::StrReplaceAll(threads, {{"%", "1025 x 1 x 1"}}),
       launch({.grid = 1, .block = 1025})},
      {"64 x 32 threads", kInvalid, absl::StrReplaceAll(threads, {{"%", "64 x 32 x 1"}}),
       launch({.grid = 1, .block = {64, 32}})},
      {"no blocks", kInvalid,
       "$K cannot launch: grid.x is 0, but must be from 1 to 2147483647; fix: launch nothing where "
       "there is nothing to do",
       launch({.grid = 0, .block = 4})},
      {"too many blocks", kInvalid,
       "$K cannot launch: grid.y is 65536, but must be from 1 to 65535; fix: use fewer blocks that "
       "each do more",
       launch({.grid = {1, 65536}, .block = 4})},
      {"too much shared memory", kInvalid,
       "$K cannot launch: shared_bytes is 232449, but must be from 0 to 232448; fix: let each "
       "block work on less at a time",
       launch({.grid = 1, .block = 4, .shared_bytes = 232449})},
      {"too much shared memory with the kernel's own", kInvalid,
       "$K cannot launch: a block needs 1024 + 232448 bytes of static and dynamic shared memory, "
       "but has at most 232448 on "
       "Fake GPU; fix: let each block work on less at a time",
       launch({.grid = 1, .block = 4, .shared_bytes = 232448})},
      {"a cluster that does not divide the grid", kInvalid,
       "$K cannot launch: grid 3x1x1 is not a multiple of cluster 2x1x1 in every direction; fix: "
       "round the grid up, and let "
       "blocks outside do nothing",
       launch({.grid = 3, .block = 4, .cluster = 2})},
      {"more threads than registers allow", kInvalid,
       "$K cannot launch: block 768x1x1 has 768 threads, but the kernel's 40 registers a thread "
       "allow at most 640; fix: use "
       "smaller blocks, or CompileOptions::max_registers",
       [](Bench& b) {
         b.fake.set_function_attribute(FunctionAttribute::kMaxThreadsPerBlock, 640);
         return b.launch({.grid = 1, .block = 768});
       }},
  });
}

// Each opens a device of its own, by another name of the driver.
TEST_F(MistakesTest, Machines) {
  const auto on = [this](int major, int minor, const char* options) {
    setenv("HEDDLE_CUDA_LIBRARY", fresh_name().c_str(), 1);
    setenv("HEDDLE_OPTIONS", options, 1);
    fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMajor, major);
    fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMinor, minor);
    return Bench{*fake_}.launch({.block = 4});
  };
  constexpr char kOlder[] =
      "; fix: use a GPU of compute capability 8.0 or newer, or the interpreter, "
      "Device::open(\"interp\")";
  constexpr char kNewer[] =
      "; fix: update Heddle, or let the driver translate older code, "
      "HEDDLE_OPTIONS=\"--gpu-arch=sm_120 "
      "--assembler=driver\"";
  constexpr char kDriver[] = "--assembler=driver";
  const auto refusal = [](const char* version, const char* fix) {
    return absl::StrCat("$K cannot be compiled for cuda:0: Fake GPU has compute capability ",
                        version, ", and Heddle compiles for sm_80 to sm_120a", fix);
  };
  check({
      {"GPU too old", kPrecondition, refusal("6.1", kOlder),
       [&](Bench&) { return on(6, 1, kDriver); }},
      {"GPU a little too old", kPrecondition, refusal("7.5", kOlder),
       [&](Bench&) { return on(7, 5, kDriver); }},
      {"GPU too new", kPrecondition, refusal("13.0", kNewer),
       [&](Bench&) { return on(13, 0, kDriver); }},
      {"code for another GPU", kInvalid,
       "$K, compiled for sm_120: cuModuleLoadDataEx for PTX failed on cuda:0: "
       "CUDA_ERROR_NO_BINARY_FOR_GPU (209), the "
       "fake's text: ptxas line 7; syntax error near 'adt'; the code is for another architecture; "
       "fix: compile it for the "
       "device's",
       [&](Bench& b) {
         b.fake.fail("cuModuleLoadDataEx", 209);
         const Status status = on(12, 1, kDriver);
         EXPECT_EQ(status.driver_code(), 209);
         return status;
       }},
      {"driver too old", kPrecondition,
       "the driver $L speaks CUDA 11.4, and Heddle needs 12.0 or newer; fix: update the NVIDIA "
       "driver to 525 or newer; until "
       "then the interpreter still works: Device::open(\"interp\")",
       [&](Bench& b) {
         setenv("HEDDLE_CUDA_LIBRARY", fresh_name().c_str(), 1);
         b.fake.set_version(11040);
         return Device::open("cuda:0").status();
       }},
      {"no driver", StatusCode::kNotFound,
       "/nowhere/libcuda.so.1 not found; fix: install NVIDIA's driver, or name its library in "
       "HEDDLE_CUDA_LIBRARY; the "
       "interpreter still works: Device::open(\"interp\")",
       [&](Bench&) {
         setenv("HEDDLE_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
         return Device::open("cuda:0").status();
       }},
      {"no assembler where one is asked for", StatusCode::kNotFound,
       "$K: ptxas from HEDDLE_PTXAS (/nowhere/ptxas) cannot be used: /nowhere does not exist; fix: "
       "unset HEDDLE_PTXAS, or set "
       "it to the absolute path of ptxas",
       [&](Bench&) {
         setenv("HEDDLE_PTXAS", "/nowhere/ptxas", 1);
         return on(8, 0, "--assembler=ptxas");
       }},
  });
  // What the message says, and architectures beside those that have a row.
  EXPECT_THAT(on(13, 0, "--gpu-arch=sm_120 --assembler=driver"), IsOk());
  for (const auto& [major, minor] : {std::pair(8, 7), std::pair(10, 1), std::pair(12, 1)}) {
    EXPECT_THAT(on(major, minor, kDriver), IsOk()) << major << "." << minor;
  }
  setenv("HEDDLE_PTXAS", "/nowhere/ptxas", 1);
  EXPECT_THAT(on(8, 6, ""), IsOk()) << "the driver assembles";
}

}  // namespace
}  // namespace heddle
