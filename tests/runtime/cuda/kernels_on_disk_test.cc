// Kernels that come from the cache on disk, and that the driver refuses.
#include <stdlib.h>

#include <algorithm>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/heddle.h"
#include "runtime/cuda/fake_driver_test.h"

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

}  // namespace
}  // namespace heddle::runtime::cuda
