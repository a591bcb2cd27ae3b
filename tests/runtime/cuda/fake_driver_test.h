// Fixture for tests that run on the stand-in for libcuda.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/device.h"
#include "runtime/cuda/fake_cuda/fake_cuda.h"

namespace heddle::runtime::cuda {

// A file beside this program.
inline std::string beside_program(const std::string& file) {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return absl::StrCat(program.substr(0, program.rfind('/')), "/", file);
}

class FakeDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = beside_program("libfake_cuda.so");
    void* handle = dlopen(library_.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    const auto entry =
        reinterpret_cast<decltype(&heddle_fake_cuda)>(dlsym(handle, "heddle_fake_cuda"));
    ASSERT_NE(entry, nullptr);
    fake_ = entry();
    fake_->reset();
    fake_->set_current_context(nullptr);
    setenv("HEDDLE_CUDA_LIBRARY", library_.c_str(), 1);
    unsetenv("HEDDLE_LAUNCH_BLOCKING");
    unsetenv("CUDA_LAUNCH_BLOCKING");
  }

  void TearDown() override {
    unsetenv("HEDDLE_CUDA_LIBRARY");
    unsetenv("HEDDLE_LAUNCH_BLOCKING");
    unsetenv("CUDA_LAUNCH_BLOCKING");
    if (fake_ == nullptr) return;
    if (!leaks_expected_) expect_nothing_live();
    EXPECT_EQ(fake_->current_context(), nullptr);
    fake_->drop_live();
    fake_->set_current_context(nullptr);
    fake_->reset();
  }

  void expect_nothing_live() {
    const FakeLive live = fake_->live();
    EXPECT_EQ(live.allocations, 0);
    EXPECT_EQ(live.host_allocations, 0);
    EXPECT_EQ(live.pools, 0);
    EXPECT_EQ(live.streams, 0);
    EXPECT_EQ(live.events, 0);
    EXPECT_EQ(live.modules, 0);
    EXPECT_EQ(live.graphs, 0);
    EXPECT_EQ(live.contexts, 0);
  }

  // Another name of the same library, which the process has not loaded yet.
  std::string fresh_name() const {
    static int count = 0;
    std::string name = beside_program("");
    for (int i = 0; i <= count; ++i) name += "./";
    ++count;
    return name + "libfake_cuda.so";
  }

  std::string library_;
  FakeCuda* fake_ = nullptr;
  // For tests in which giving back fails; what is left is dropped for the next test.
  bool leaks_expected_ = false;
};

}  // namespace heddle::runtime::cuda
