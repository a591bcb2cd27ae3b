// The ranges that a tool of NVTX is told of.
#include "heddle/runtime/observe/ranges.h"

#include <cstdlib>
#include <string>
#include <vector>

#ifdef HEDDLE_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

#include "heddle/runtime/kernel_cache.h"
#include "runtime/cuda/fake_driver_test.h"
#include "runtime/observe/observe_testing.h"

namespace heddle::runtime {
namespace {

#ifdef HEDDLE_HAVE_NVTX

// What the tool was told: "<domain>: <range>", and ")" for its end.
std::vector<std::string>& told() {
  static std::vector<std::string>& all = *new std::vector<std::string>;
  return all;
}
std::string& domain_of(nvtxDomainHandle_t handle) {
  return *reinterpret_cast<std::string*>(handle);
}

nvtxDomainHandle_t create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  told().push_back(absl::StrCat(domain_of(domain), ": ", range->message.ascii));
  return 0;
}
int pop(nvtxDomainHandle_t domain) {
  EXPECT_EQ(domain_of(domain), "heddle");
  told().emplace_back(")");
  return 0;
}

int attach(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size) == 0) return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create_domain);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

class RangesTest : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    // Where NVTX looks for a tool that is part of the program, before its first range.
    InitializeInjectionNvtx2_fnptr = &attach;
    fake_->set_kernels("gemm\n");
    setenv("HEDDLE_PTXAS", fake_ptxas(dir_).c_str(), 1);
  }
  void TearDown() override {
    EXPECT_EQ(set_profiler_ranges(false), OkStatus());
    unsetenv("HEDDLE_PTXAS");
    FakeDriverTest::TearDown();
  }
  codegen::TempDir dir_;
};

TEST_F(RangesTest, AreOfCompilationsAndLaunches) {
  const TextSource source = store_source();
  const int64_t extents[] = {32}, strides[] = {1};
  const Argument arguments[] = {tensor_argument(4096, extents, strides, 1, 4)};
  const LaunchShape shape{.grid = 2, .block = 256};
  const Device device = Device::open("cuda:0").value();
  const auto launch = [&] {
    const auto executable =
        KernelCache::of(source).find_or_compile(source, device.backend(), shape, arguments);
    ASSERT_TRUE(executable.ok()) << executable.status();
    ASSERT_TRUE((*executable)->launch(device.default_stream(), shape, arguments).ok());
  };
  ASSERT_EQ(set_profiler_ranges(true), OkStatus());
  told().clear();
  launch();
  launch();
  EXPECT_THAT(told(), testing::ElementsAre("heddle: compile gemm", ")", "heddle: gemm", ")",
                                           "heddle: gemm", ")"));
  ASSERT_EQ(set_profiler_ranges(false), OkStatus());
  told().clear();
  launch();
  EXPECT_THAT(told(), testing::IsEmpty());
  ASSERT_EQ(set_profiler_ranges(true), OkStatus());
  launch();
  EXPECT_THAT(told(), testing::ElementsAre("heddle: gemm", ")"));
}

#endif

// Asks as a process does that nobody has asked yet.
bool are_on(const char* word) {
  setenv("HEDDLE_NVTX", word, 1);
  detail::ranges.store(detail::Ranges::kNotAsked);
  const bool first = profiler_ranges_are_on();
  const bool second = profiler_ranges_are_on();
  EXPECT_EQ(first, second);
  unsetenv("HEDDLE_NVTX");
  detail::ranges.store(detail::Ranges::kOff);
  return first;
}

TEST(RangesOfTheEnvironment, AreOnWhereAskedFor) {
  for (const char* word : {"", "0", "off"}) EXPECT_FALSE(are_on(word)) << word;
  testing::internal::CaptureStderr();
  for (const char* word : {"1", "on"}) EXPECT_EQ(are_on(word), has_profiler_ranges()) << word;
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.empty(), has_profiler_ranges()) << said;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(are_on("yes"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "heddle: HEDDLE_NVTX: 'yes' ignored; it takes on and off\n");
}

}  // namespace
}  // namespace heddle::runtime
