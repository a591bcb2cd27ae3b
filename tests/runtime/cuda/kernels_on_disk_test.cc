// Kernels that come from the cache on disk, and that the driver refuses.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/heddle.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/runtime/compile.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime::cuda {
namespace {

class KernelsOnDiskTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    setenv("HEDDLE_CACHE", "", 1);
    setenv("HEDDLE_CACHE_DIR", temp_.path().c_str(), 1);
  }
  void TearDown() override {
    setenv("HEDDLE_CACHE", "off", 1);
    unsetenv("HEDDLE_CACHE_DIR");
    FakeDriverTest::TearDown();
  }
  // A kernel of its own each time, with the same code, as other processes have it.
  Status launch() {
    fake_->set_kernels("kept");
    const Device device = Device::open("cuda:0").value();
    const auto kernel = define_kernel("kept(x)", [](Tensor<float, 1> x) { x(thread_idx.x) = 1; });
    const Buffer x = device.allocate(128).value();
    return kernel.launch(device.default_stream(), {.block = 32}, as_tensor<float>(x, {32}));
  }
  int64_t loads() const {
    const std::vector<std::string> calls = fake_->calls();
    return std::count_if(calls.begin(), calls.end(), [](const std::string& call) {
      return call.rfind("cuModuleLoadDataEx", 0) == 0;
    });
  }

  codegen::TempDir temp_;
};

TEST_F(KernelsOnDiskTest, AreMadeAnewOnceWhereTheDriverRefusesThem) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  ASSERT_TRUE(launch().ok());
  EXPECT_EQ(loads(), 1);
  ASSERT_TRUE(launch().ok());
  EXPECT_EQ(loads(), 2);
  const std::shared_ptr<codegen::DiskCache> cache = codegen::DiskCache::of_user();
  const int64_t stored = cache->counts().stored;
  fake_->fail("cuModuleLoadDataEx", 200);
  const Status refused = launch();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_EQ(loads(), 4) << "what was kept, and what was made";
  EXPECT_EQ(cache->counts().stored, stored + 1);
}

TEST_F(KernelsOnDiskTest, OthersThatAreRefusedAreNotMadeTwice) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  fake_->fail("cuModuleLoadDataEx", 200);
  EXPECT_FALSE(launch().ok());
  EXPECT_EQ(loads(), 1);
  EXPECT_FALSE(launch().ok()) << "which comes from the disk, and is made anew";
  EXPECT_EQ(loads(), 3);
  // Want of memory says nothing about the kernel.
  fake_->fail("cuModuleLoadDataEx", 2);
  EXPECT_EQ(launch().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(loads(), 4);
}

// --- Kernels that are recalled ---

// How often a lambda was traced, and what it adds though nobody gives it the number.
int traces = 0;
int hidden = 0;

class RecallTest : public KernelsOnDiskTest {
 protected:
  void SetUp() override {
    KernelsOnDiskTest::SetUp();
    traces = 0;
    hidden = 0;
    fake_->set_kernels("kept");
    device_.emplace(Device::open("cuda:0").value());
    device_->set_launch_options({.recall = Recall::kUse});
    x_ = device_->allocate(4096).value();
  }
  void TearDown() override {
    x_ = Buffer();
    device_.reset();
    KernelsOnDiskTest::TearDown();
  }

  // A kernel as another process has it, with everything that the host does for one: a relation, a grid, a value that it computes.
  auto define() const {
    return define_kernel("kept(x[n, ?], n, m)", [](Tensor<float, 2> x, Int n, Int m) {
      ++traces;
      require(m % 3 == 0);
      launch_grid((n + 31) / 32);
      const Int row = block_idx.x * block_dim.x + thread_idx.x;
      If(row < n, [&] { x(row, at_launch(m / 3)) = 1.0f + hidden; });
    });
  }
  Status launch(int n, int m, int64_t first = 0, int columns = 4) const {
    const auto kernel = define();
    TensorRef<float, 2> x = as_tensor<float>(x_, {n, columns});
    x.data += first;
    x.capacity_bytes -= first * 4;
    return kernel.launch(device_->default_stream(), {.block = 32}, x, n, m);
  }
  void set(CompileOptions options) { device_->set_launch_options(options); }

  std::optional<Device> device_;
  Buffer x_;
};

TEST_F(RecallTest, ALaunchOfAnotherProcessIsNotTraced) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  ASSERT_THAT(launch(70, 6), IsOk());
  EXPECT_EQ(traces, 1);
  ASSERT_THAT(launch(70, 6), IsOk());
  ASSERT_THAT(launch(33, 9), IsOk());
  EXPECT_EQ(traces, 1);
  // The same parameter blocks and grids.
  std::vector<FakeLaunch> launches = fake_->launches();
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].parameters, launches[1].parameters);
  EXPECT_NE(launches[0].parameters, launches[2].parameters);
  EXPECT_EQ(launches[0].config.grid_x, 3u);
  EXPECT_EQ(launches[1].config.grid_x, 3u);
  EXPECT_EQ(launches[2].config.grid_x, 2u);
  // What the host requires, at the lines of the kernel.
  const Status traced = [&] {
    set({});
    return launch(70, 7);
  }();
  set({.recall = Recall::kUse});
  EXPECT_EQ(launch(70, 7), traced);
  EXPECT_THAT(traced,
              Fails(StatusCode::kInvalidArgument, "it requires (m % 3) == 0, but m % 3 is 1",
                    "kernels_on_disk_test.cc:"));
  const auto kernel = define();
  EXPECT_THAT(
      kernel.launch(device_->default_stream(), {.block = 32}, as_tensor<float>(x_, {8, 4}), 7, 6),
      Fails(StatusCode::kInvalidArgument, "its extent n is 7 in the argument n and 8 in"));
  EXPECT_EQ(traces, 2);
}

// Launches what `make` gives, a kernel of one tensor, in two processes; how often it was traced.
template <class Make>
int traces_of(const Device& device, const Buffer& x, Make make, std::vector<int> extents = {32},
              int block = 32) {
  traces = 0;
  for (int process = 0; process < 2; ++process) {
    for (const int extent : extents) {
      auto&& kernel = make();
      const Status status =
          kernel.launch(device.default_stream(), {.block = block}, as_tensor<float>(x, {extent}));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  return traces;
}

TEST_F(RecallTest, OtherFactsAndShapesAreOtherCompilations) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const auto fixed = [] {
    return define_kernel("kept(x)", [](Tensor<float, 1> x) {
      ++traces;
      x(thread_idx.x) = static_cast<float>(x.fixed_shape(0));
    });
  };
  EXPECT_EQ(traces_of(*device_, x_, fixed, {32, 48, 64}), 3);
  EXPECT_EQ(traces_of(*device_, x_, fixed, {64, 32}, 16), 2) << "another block";
  set({.passes = "O1", .recall = Recall::kUse});
  EXPECT_EQ(traces_of(*device_, x_, fixed, {32}), 1);
  set({.device_checks = true, .recall = Recall::kUse});
  EXPECT_EQ(traces_of(*device_, x_, fixed, {32}), 1);
  set({.recall = Recall::kUse});
  EXPECT_EQ(traces_of(*device_, x_, fixed, {32, 48, 64}), 0);
}

TEST_F(RecallTest, ValuesAreTheKernelsAndWhatCannotBeComparedIsTraced) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  struct Config {
    int letter;
    int number;
    bool operator==(const Config&) const = default;
  };
  const auto family =
      kernel_family("kept(x)", [](float v, std::string t, Host<Config> c, Tensor<float, 1> x) {
        ++traces;
        x(thread_idx.x) = v + static_cast<float>(static_cast<int>(t.size()) + c.number);
      });
  const auto of_values = [&](float value, const char* text, Config config) {
    return family(value, std::string(text), config).source().origin().value().values;
  };
  EXPECT_NE(of_values(1, "a", {'x', 2}), of_values(2, "a", {'x', 2}));
  EXPECT_NE(of_values(1, "a", {'x', 2}), of_values(1, "b", {'x', 2}));
  EXPECT_NE(of_values(1, "a", {'x', 2}), of_values(1, "a", {'x', 3}));

  const auto capturing = [](int value) {
    return [value] {
      return define_kernel("kept(x)", [value](Tensor<float, 1> x) {
        ++traces;
        x(thread_idx.x) = static_cast<float>(value);
      });
    };
  };
  EXPECT_EQ(traces_of(*device_, x_, capturing(1)), 1);
  EXPECT_EQ(traces_of(*device_, x_, capturing(2)), 1);
  EXPECT_EQ(traces_of(*device_, x_, capturing(1)), 0);

  const std::vector<float> list = {1, 2};
  EXPECT_EQ(traces_of(*device_, x_,
                      [&] {
                        return define_kernel("kept(x)", [list](Tensor<float, 1> x) {
                          ++traces;
                          x(thread_idx.x) = list[1];
                        });
                      }),
            2);
  EXPECT_EQ(traces_of(*device_, x_,
                      [&] {
                        return local_kernel("kept(x)", [&](Tensor<float, 1> x) {
                          ++traces;
                          x(thread_idx.x) = list[0];
                        });
                      }),
            2);
}

const auto plain = [] {
  return define_kernel("kept(x)", [](Tensor<float, 1> x) {
    ++traces;
    x(thread_idx.x) = static_cast<float>(hidden);
  });
};

TEST_F(RecallTest, WhoeverWantsToSeeStagesGetsThem) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  EXPECT_EQ(traces_of(*device_, x_, plain), 1);
  EXPECT_EQ(traces_of(*device_, x_, plain), 0);
  set({});
  EXPECT_EQ(traces_of(*device_, x_, plain), 2) << "it is off by default";
  set({.disk_cache = DiskCaching::kOff, .recall = Recall::kUse});
  EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  set({.disk_cache = DiskCaching::kRenew, .recall = Recall::kUse});
  EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  const codegen::TempDir shown;
  set({.recall = Recall::kUse, .keep = "ir", .keep_dir = shown.path()});
  EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  set({.recall = Recall::kUse});
  {
    const ir::RegisteredPass own(
        {.name = "own", .summary = "x", .run = [](ir::Kernel&) { return false; }});
    EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  }
  EXPECT_EQ(traces_of(*device_, x_, plain), 0);
  setenv("HEDDLE_OPTIONS", "--recall=off", 1);
  set({});
  EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  setenv("HEDDLE_OPTIONS", "--recall=use", 1);
  EXPECT_EQ(traces_of(*device_, x_, plain), 0);
  unsetenv("HEDDLE_OPTIONS");
}

TEST_F(RecallTest, CompilingForASignatureRecallsToo) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const CompileOptions options{.block = {32, 1, 1}, .recall = Recall::kUse};
  const auto compile = [&](const ArgumentSpec& spec) {
    return plain().compile(Signature{spec}, options);
  };
  const auto first = compile(tensor({kAny})), again = compile(tensor({kAny}));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(traces, 1);
  EXPECT_FALSE(first->compilation().recalled);
  EXPECT_TRUE(again->compilation().recalled);
  EXPECT_EQ(again->ptx(), first->ptx());
  EXPECT_EQ(again->cubin(), first->cubin());
  EXPECT_THAT(again->launch(device_->default_stream(), {.block = 32}, as_tensor<float>(x_, {32})),
              IsOk());
  ASSERT_THAT(compile(tensor({32})), IsOk());
  ASSERT_THAT(compile(tensor({33})), IsOk());
  ASSERT_THAT(compile(tensor({sym("n")})), IsOk());
  EXPECT_EQ(traces, 4);
  const auto fixed = compile(tensor({33}));
  ASSERT_THAT(fixed, IsOk());
  EXPECT_EQ(traces, 4);
  EXPECT_THAT(fixed->launch(device_->default_stream(), {.block = 32}, as_tensor<float>(x_, {32})),
              Fails(StatusCode::kInvalidArgument, "was compiled for 33"));
}

void function_kernel(Tensor<float, 1> x) {
  ++traces;
  x(thread_idx.x) = 3;
}
void other_function_kernel(Tensor<float, 1> x) {
  ++traces;
  x(thread_idx.x) = 4;
}

TEST_F(RecallTest, AFunctionIsToldByItsAddress) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const auto of = [](void (*function)(Tensor<float, 1>)) {
    return [function] { return define_kernel("kept(x)", function); };
  };
  EXPECT_EQ(traces_of(*device_, x_, of(&function_kernel)), 1);
  EXPECT_EQ(traces_of(*device_, x_, of(&other_function_kernel)), 1);
  EXPECT_EQ(traces_of(*device_, x_, of(&function_kernel)), 0);
}

// Strings of wide characters, and what is more than a string.
TEST_F(RecallTest, ValuesThatDifferAreToldApartOrNotKnown) {
  struct Tagged : std::string {
    int tag = 0;
    Tagged(const char* text, int t) : std::string(text), tag(t) {}
    bool operator==(const Tagged&) const = default;
  };
  const auto wide = kernel_family("kept(x)", [](std::u16string t, Tensor<float, 1> x) {
    x(thread_idx.x) = static_cast<float>(t[1]);
  });
  const auto tagged = kernel_family("kept(x)", [](Host<Tagged> t, Tensor<float, 1> x) {
    x(thread_idx.x) = static_cast<float>(t.tag);
  });
  const auto values = [&](const char16_t* text) {
    return wide(std::u16string(text)).source().origin().value().values;
  };
  EXPECT_NE(values(u"ab"), values(u"ac"));
  EXPECT_EQ(tagged(Tagged("a", 1)).source().origin(), std::nullopt);
}

TEST_F(RecallTest, TheTargetOfTheEnvironmentIsOneOfTheKey) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const auto target = [&](const char* options) {
    setenv("HEDDLE_OPTIONS", options, 1);
    const auto compiled =
        plain().compile(Signature{tensor({kAny})}, CompileOptions{.block = {32, 1, 1}});
    unsetenv("HEDDLE_OPTIONS");
    return compiled.ok() ? std::string(compiled->ir().target->name) : "none";
  };
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(target("--recall=use --gpu-arch=sm_80"), "sm_80");
    EXPECT_EQ(target("--recall=use"), "sm_90a");
    EXPECT_EQ(target("--recall=use --gpu-arch=sm_100a"), "sm_100a");
  }
  EXPECT_EQ(traces, 3);
}

TEST_F(RecallTest, AnInterpreterCannotRunWhatWasRecalled) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Device interp = Device::open("interp").value();
  const Buffer x = interp.upload<float>({0, 0}).value();
  const auto launch = [&] {
    const auto compiled = plain().compile(
        Signature{tensor({kAny})}, CompileOptions{.block = {2, 1, 1}, .recall = Recall::kUse});
    EXPECT_THAT(compiled, IsOk());
    return compiled->launch(interp.default_stream(), {.block = 2}, as_tensor<float>(x, {2}));
  };
  EXPECT_THAT(launch(), IsOk());
  EXPECT_THAT(launch(), Fails(StatusCode::kFailedPrecondition,
                              "was taken over from another process as machine code alone, which "
                              "interp cannot run; fix: compile it with"));
}

// What nobody read of the arguments is no part of the program.
TEST_F(RecallTest, ACheckSaysNothingOfAnHonestKernel) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  set({.recall = Recall::kCheck});
  testing::internal::CaptureStderr();
  EXPECT_EQ(traces_of(*device_, x_, plain, {32, 48}), 4);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(RecallTest, ACheckFindsWhatALambdaReadsElsewhere) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  EXPECT_EQ(traces_of(*device_, x_, plain), 1);
  hidden = 1;
  EXPECT_EQ(traces_of(*device_, x_, plain), 0) << "which is the old one";
  set({.recall = Recall::kCheck});
  testing::internal::CaptureStderr();
  EXPECT_EQ(traces_of(*device_, x_, plain), 2);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("heddle: kernel 'kept' ("));
  EXPECT_THAT(said, testing::HasSubstr("is another program than the one that an earlier process"));
  EXPECT_EQ(said.find("heddle:"), said.rfind("heddle:")) << "once: what is kept is the new one now";
}

TEST_F(RecallTest, WhatIsDamagedIsMadeAnew) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  EXPECT_EQ(traces_of(*device_, x_, plain), 1);
  for (const auto& file : std::filesystem::recursive_directory_iterator(temp_.path())) {
    if (!file.is_regular_file() || file.file_size() < 64) continue;
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(file.file_size()) - 9);
    bytes.put('\x5a');
  }
  EXPECT_EQ(traces_of(*device_, x_, plain), 1);
  EXPECT_EQ(traces_of(*device_, x_, plain), 0);
}

}  // namespace
}  // namespace heddle::runtime::cuda
