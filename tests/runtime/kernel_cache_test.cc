// What devices of one kind share, counted on a stand-in for the driver: traces, runs of ptxas, and
// modules loaded.
#include "heddle/runtime/kernel_cache.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/heddle.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime::cuda {
namespace {

constexpr int kDevices = 8;

class KernelCacheTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    fake_->set_device_count(kDevices);
    fake_->set_kernels("fill\n");
    for (const int sm : {80, 90}) {
      codegen::write_file(dir_.file(absl::StrCat("sm_", sm, ".cubin")),
                          codegen::make_cubin(sm, {"fill"}));
    }
    // Notes each run, and answers with the cubin of the architecture that it is asked for.
    const std::string ptxas = codegen::write_fake_ptxas(
        dir_.file("ptxas"),
        absl::StrCat("echo \"$*\" >> '", dir_.file("runs"),
                     "'\ncase \"$*\" in *sm_80*) sm=80 ;; *) sm=90 ;; esac\ncat > /dev/null\ncp '",
                     dir_.path(), "'/sm_$sm.cubin \"$out\""));
    setenv("HEDDLE_PTXAS", ptxas.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HEDDLE_PTXAS");
    FakeDriverTest::TearDown();
  }

  int ptxas_runs() const {
    std::ifstream log(dir_.file("runs"));
    int lines = 0;
    for (std::string line; std::getline(log, line);) ++lines;
    return lines;
  }

  codegen::TempDir dir_;
  int traces_ = 0;
};

TEST_F(KernelCacheTest, EqualDevicesCostOneTraceAndOneRunOfPtxas) {
  const auto fill = local_kernel("fill(y)", [&](Tensor<float, 1> y) {
    ++traces_;
    y(thread_idx.x) = 1.0f;
  });
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kDevices; ++i) {
      const Device device = Device::open(absl::StrCat("cuda:", i)).value();
      const Buffer y = device.allocate(32 * sizeof(float)).value();
      ASSERT_THAT(
          fill.launch(device.default_stream(), {.grid = 1, .block = 32}, as_tensor<float>(y, {32})),
          IsOk());
    }
  }
  EXPECT_EQ(traces_, 1);
  EXPECT_EQ(ptxas_runs(), 1);
  const KernelCache& cache = KernelCache::of(fill.source());
  EXPECT_EQ(cache.size(), kDevices) << "each loads it once";
  EXPECT_EQ(cache.compilations(), 1);
  EXPECT_EQ(fake_->live().modules, kDevices);
  EXPECT_EQ(fake_->launches().size(), 2u * kDevices);
}

TEST_F(KernelCacheTest, ThreadsOnEqualDevicesWaitForOneCompilation) {
  const auto fill = local_kernel("fill(y)", [&](Tensor<float, 1> y) {
    ++traces_;
    y(thread_idx.x) = 1.0f;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kDevices; ++i) {
    threads.emplace_back([&, i] {
      const Device device = Device::open(absl::StrCat("cuda:", i)).value();
      const Buffer y = device.allocate(32 * sizeof(float)).value();
      EXPECT_THAT(
          fill.launch(device.default_stream(), {.grid = 1, .block = 32}, as_tensor<float>(y, {32})),
          IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traces_, 1);
  EXPECT_EQ(ptxas_runs(), 1);
  EXPECT_EQ(KernelCache::of(fill.source()).size(), kDevices);
}

TEST_F(KernelCacheTest, OtherArchitecturesAndBlocksCompileAnew) {
  const auto fill = local_kernel("fill(y)", [&](Tensor<float, 1> y) {
    ++traces_;
    y(thread_idx.x) = 1.0f;
  });
  const auto launch = [&](const Device& device, int block) {
    const Buffer y = device.allocate(64 * sizeof(float)).value();
    return fill.launch(device.default_stream(), {.grid = 1, .block = block},
                       as_tensor<float>(y, {64}));
  };
  const Device newer = Device::open("cuda:0").value();
  fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMajor, 8);
  const Device older = Device::open("cuda:1").value();
  const Device interp = Device::open("interp").value();
  ASSERT_EQ(newer.info().compute_major, 9);
  ASSERT_EQ(older.info().compute_major, 8);
  EXPECT_THAT(launch(newer, 32), IsOk());
  EXPECT_THAT(launch(older, 32), IsOk());
  EXPECT_EQ(traces_, 2);
  EXPECT_EQ(ptxas_runs(), 2);
  EXPECT_THAT(launch(newer, 64), IsOk());
  EXPECT_EQ(traces_, 3);
  EXPECT_EQ(ptxas_runs(), 3);
  // The interpreter pretends to be a newer one, and needs no machine code.
  EXPECT_THAT(launch(interp, 64), IsOk());
  EXPECT_EQ(traces_, 4);
  EXPECT_EQ(ptxas_runs(), 3);
}

// What HEDDLE_OPTIONS says of launches' compilations.
class OptionsOfLaunches : public KernelCacheTest {
 protected:
  void TearDown() override {
    unsetenv("HEDDLE_OPTIONS");
    KernelCacheTest::TearDown();
  }
  Status launch(const char* options) {
    setenv("HEDDLE_OPTIONS", options, 1);
    const auto fill = define_kernel("fill(y)", [](Tensor<float, 1> y) { y(thread_idx.x) = 1.0f; });
    const Device device = Device::open("cuda:0").value();
    const Buffer y = device.allocate(32 * sizeof(float)).value();
    const Status status =
        fill.launch(device.default_stream(), {.grid = 1, .block = 32}, as_tensor<float>(y, {32}));
    const KernelCache& cache = KernelCache::of(fill.source());
    compilations_ = cache.compilations();
    return status;
  }
  // The numbers that the driver was given with the last module.
  std::string load() {
    std::string last;
    for (const std::string& call : fake_->calls()) {
      if (absl::StartsWith(call, "cuModuleLoadDataEx")) last = call;
    }
    return last;
  }
  int compilations_ = 0;
};

TEST_F(OptionsOfLaunches, TheDriverAssemblesWhereItIsAskedTo) {
  EXPECT_THAT(launch("--assembler=driver"), IsOk());
  EXPECT_EQ(ptxas_runs(), 0);
  EXPECT_THAT(load(), testing::HasSubstr(" 7=4 12=1 13=1 "));
  EXPECT_THAT(load(), testing::Not(testing::HasSubstr(" 0=")));
  EXPECT_THAT(launch("--assembler=driver --opt-level=1 --line-info=off --max-registers=40"),
              IsOk());
  EXPECT_THAT(load(), testing::HasSubstr(" 7=1 12=1 13=0 0=40 "));
  EXPECT_EQ(ptxas_runs(), 0);
}

TEST_F(OptionsOfLaunches, AnAssemblerThatIsAskedForIsNotReplaced) {
  const Status missing = launch("--assembler=library --ptx-library=/nowhere/lib.so");
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr("/nowhere does not exist"));
  EXPECT_THAT(std::string(launch("--assembler=driver --ptxas-flags=--fmad=false").message()),
              testing::HasSubstr("the driver takes no flags of ptxas, such as --fmad=false"));
}

TEST_F(OptionsOfLaunches, TheArchitectureIsTheOneAskedFor) {
  EXPECT_THAT(launch(""), IsOk());
  EXPECT_THAT(launch("--gpu-arch=sm_80"), IsOk());
  EXPECT_EQ(ptxas_runs(), 2);
  std::ifstream log(dir_.file("runs"));
  std::string first, second;
  std::getline(log, first);
  std::getline(log, second);
  EXPECT_THAT(first, testing::HasSubstr("--gpu-name=sm_90a"));
  EXPECT_THAT(second, testing::HasSubstr("--gpu-name=sm_80 "));
  EXPECT_EQ(compilations_, 1);
}

TEST_F(OptionsOfLaunches, MistakesAreErrorsOfTheLaunch) {
  EXPECT_THAT(
      std::string(launch("--assembler=nvcc").message()),
      testing::HasSubstr("HEDDLE_OPTIONS: --assembler=nvcc: it takes any|library|ptxas|driver"));
}

TEST_F(KernelCacheTest, FactsDecideOnEveryDevice) {
  const auto fill = local_kernel("fill(y)", [&](Tensor<float, 1> y) {
    ++traces_;
    y(thread_idx.x) = static_cast<float>(y.vector_width());
  });
  const auto launch = [&](int device_number, int64_t first) {
    const Device device = Device::open(absl::StrCat("cuda:", device_number)).value();
    const Buffer y = device.allocate(64 * sizeof(float)).value();
    float* const data = reinterpret_cast<float*>(y.address()) + first;
    return fill.launch(device.default_stream(), {.grid = 1, .block = 32},
                       TensorRef<float, 1>(data, {32}));
  };
  EXPECT_THAT(launch(0, 0), IsOk());
  EXPECT_THAT(launch(1, 0), IsOk());
  EXPECT_EQ(traces_, 1);
  EXPECT_THAT(launch(1, 1), IsOk());
  EXPECT_THAT(launch(0, 1), IsOk());
  EXPECT_EQ(traces_, 2);
  EXPECT_EQ(ptxas_runs(), 2);
  EXPECT_EQ(KernelCache::of(fill.source()).compilations(), 2);
}

// An interpreter that is called like another: a launch runs on the one whose stream it is given.
TEST_F(KernelCacheTest, ADeviceIsItsBackendAndNotItsName) {
  const auto fill = define_kernel("fill(y)", [](Tensor<float, 1> y) { y(thread_idx.x) = 3.0f; });
  for (int i = 0; i < 2; ++i) {
    const Device device = Device::open_private_interp({});
    const Buffer y = device.allocate(4 * sizeof(float)).value();
    const Stream stream = device.default_stream();
    ASSERT_THAT(fill.launch(stream, {.block = 4}, as_tensor<float>(y, {4})), IsOk());
    EXPECT_EQ(y.download<float>(stream).value()[3], 3.0f);
  }
  EXPECT_EQ(KernelCache::of(fill.source()).compilations(), 1);
}

// The bytes of an assembly were checked when ptxas had written them.
TEST_F(KernelCacheTest, AnAssemblyIsNotReadAgain) {
  const Device device = Device::open("cuda:0").value();
  codegen::Assembly assembly;
  assembly.cubin = "no ELF file";
  EXPECT_TRUE(Module::load(device, assembly).ok());
  EXPECT_FALSE(Module::load(Device::open("interp").value(), assembly).ok());
}

}  // namespace
}  // namespace heddle::runtime::cuda
