// Modules and launches on a stand-in for the driver.
#include "heddle/runtime/launch.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/cuda/fake_driver_test.h"

namespace heddle::runtime::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class LaunchTest : public FakeDriverTest {
 protected:
  // The calls since the last time, those that keep the context in order left out.
  std::vector<std::string> new_calls() {
    std::vector<std::string> calls = fake_->calls();
    calls.erase(calls.begin(), calls.begin() + seen_);
    seen_ += static_cast<int>(calls.size());
    calls.erase(
        std::remove_if(calls.begin(), calls.end(),
                       [](const std::string& call) { return absl::StartsWith(call, "cuCtx"); }),
        calls.end());
    return calls;
  }

  struct Loaded {
    Device device;
    Module module;
    Function function;
  };
  Loaded load(const std::string& kernel = "row_sum") {
    Device device = Device::open("cuda:0").value();
    Module module = Module::load_ptx(device, "ptx").value();
    Function function = module.function(kernel).value();
    new_calls();
    return {std::move(device), std::move(module), std::move(function)};
  }

  const LaunchSite site_{"row_sum", "row_sum.cc", 14};
  int seen_ = 0;
};

// The smallest ELF file that passes for a cubin.
std::vector<uint8_t> tiny_cubin() {
  const char names[] = "\0.shstrtab";
  std::vector<uint8_t> file(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr) + sizeof(names));
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shoff = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  Elf64_Shdr section = {};
  section.sh_name = 1;
  section.sh_type = SHT_STRTAB;
  section.sh_offset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr);
  section.sh_size = sizeof(names);
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr), &section, sizeof(section));
  std::memcpy(file.data() + section.sh_offset, names, sizeof(names));
  return file;
}

TEST_F(LaunchTest, LoadsWholeCubinsOnly) {
  const Device device = Device::open("cuda:0").value();
  std::vector<uint8_t> image = tiny_cubin();
  EXPECT_TRUE(Module::load_cubin(device, image).ok());
  new_calls();
  image.pop_back();
  const Status cut = Module::load_cubin(device, image).status();
  EXPECT_EQ(cut.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cut.message()),
              testing::StartsWith("the cubin cannot be loaded on cuda:0: "));
  EXPECT_FALSE(Module::load_cubin(device, {}).ok());
  EXPECT_FALSE(Module::load_cubin(device, std::vector<uint8_t>(100, 7)).ok());
  EXPECT_THAT(new_calls(), ElementsAre()) << "the driver never sees a damaged image";
  fake_->fail("cuModuleLoadDataEx", 209);
  const Status wrong = Module::load_cubin(device, tiny_cubin()).status();
  EXPECT_EQ(wrong.driver_code(), 209);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("; fix: compile it for the device's"));
}

TEST_F(LaunchTest, LoadsPtxAndKeepsTheLog) {
  const Device device = Device::open("cuda:0").value();
  const Module module = Module::load_ptx(device, "ptx").value();
  EXPECT_EQ(module.jit_log(), "used 40 registers");
  fake_->fail("cuModuleLoadDataEx", 218);
  const Status status = Module::load_ptx(device, "ptx").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "cuModuleLoadDataEx for PTX failed on cuda:0: CUDA_ERROR_INVALID_PTX (218), the fake's "
            "text: ptxas line 7; syntax error near 'adt'; the driver's assembler refused the PTX");
}

TEST_F(LaunchTest, FindsFunctions) {
  const Loaded loaded = load();
  EXPECT_EQ(loaded.function.name(), "row_sum");
  const FunctionAttributes& attributes = loaded.function.attributes();
  EXPECT_EQ(attributes.registers, 40);
  EXPECT_EQ(attributes.local_bytes, 16);
  EXPECT_EQ(attributes.static_shared_bytes, 1024);
  EXPECT_EQ(attributes.max_threads_per_block, 1024);
  EXPECT_EQ(attributes.required_cluster, Dim3());
  const Status missing = loaded.module.function("nothing").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(
      missing.message(),
      "cuModuleGetFunction for kernel 'nothing' failed on cuda:0: CUDA_ERROR_NOT_FOUND (500), "
      "the fake's text; the module has nothing of that name");
}

TEST_F(LaunchTest, TheModuleStaysLoadedForItsFunctions) {
  StatusOr<Function> function = UnknownError("");
  {
    const Device device = Device::open("cuda:0").value();
    function = Module::load_ptx(device, "ptx").value().function("row_sum");
  }
  EXPECT_EQ(fake_->live().modules, 1);
  EXPECT_TRUE(launch_raw(*function, {.grid = 1, .block = 1}, nullptr, 0, nullptr).ok());
}

TEST_F(LaunchTest, PassesParametersOneByOneWhereTheyLieElsewhere) {
  const Loaded loaded = load();
  std::vector<uint8_t> parameters(300);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<uint8_t>(i * 7);
  fake_->set_parameter_count(3);
  const int places[] = {0, 8, 128};
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 32}, parameters.data(),
                         parameters.size(), &site_, nullptr, places)
                  .ok());
  EXPECT_THAT(fake_->launches().at(0).parameters,
              ElementsAre(parameters[0], parameters[8], parameters[128]));
}

TEST_F(LaunchTest, PassesTheBlockOfParametersAndTheShape) {
  const Loaded loaded = load();
  const Stream stream = loaded.device.create_stream().value();
  std::vector<uint8_t> parameters(133);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<uint8_t>(i * 7);
  const LaunchShape config{.grid = {100, 20, 3}, .block = {32, 4, 2}, .shared_bytes = 4096};
  new_calls();
  ASSERT_TRUE(
      launch_raw(loaded.function, config, parameters.data(), parameters.size(), &site_, &stream)
          .ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum")) << "one call and no other";
  const FakeLaunch launch = fake_->launches().at(0);
  EXPECT_EQ(launch.kernel, "row_sum");
  EXPECT_EQ(launch.parameters, parameters);
  EXPECT_EQ(launch.config.grid_x, 100u);
  EXPECT_EQ(launch.config.grid_y, 20u);
  EXPECT_EQ(launch.config.grid_z, 3u);
  EXPECT_EQ(launch.config.block_x, 32u);
  EXPECT_EQ(launch.config.block_y, 4u);
  EXPECT_EQ(launch.config.block_z, 2u);
  EXPECT_EQ(launch.config.dynamic_shared_bytes, 4096u);
  EXPECT_EQ(launch.config.stream, driver_stream(stream.handle()));
  EXPECT_TRUE(launch.attributes.empty());
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, nullptr).ok());
  EXPECT_TRUE(fake_->launches().at(1).parameters.empty());
  EXPECT_EQ(fake_->launches().at(1).config.stream, nullptr);
}

TEST_F(LaunchTest, SaysValueAndLimitBeforeTheDriverIsAsked) {
  fake_->set_function_attribute(FunctionAttribute::kMaxThreadsPerBlock, 640);
  const Loaded loaded = load();
  const auto message = [&](const LaunchShape& config, const Stream* stream = nullptr) {
    const Status status = launch_raw(loaded.function, config, nullptr, 0, &site_, stream);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string start = "kernel 'row_sum' (row_sum.cc:14) cannot launch: ";
  EXPECT_EQ(message({.grid = 0, .block = 1}),
            start +
                "grid.x is 0, but must be from 1 to 2147483647; fix: launch nothing where there is "
                "nothing to do");
  EXPECT_EQ(message({.grid = 1, .block = 641}),
            start +
                "block 641x1x1 has 641 threads, but the kernel's 40 registers a thread allow at "
                "most 640; fix: use smaller blocks, or CompileOptions::max_registers");
  EXPECT_EQ(message({.grid = 1, .block = 32, .shared_bytes = 232448}),
            start +
                "a block needs 1024 + 232448 bytes of static and dynamic shared memory, but has "
                "at most 232448 on Fake GPU; fix: let each block work on less at a time");
  const Device other = Device::open("cuda:1").value();
  const Stream foreign = other.create_stream().value();
  new_calls();
  EXPECT_EQ(message({.grid = 1, .block = 32}, &foreign),
            start +
                "it is loaded on cuda:0, but the stream belongs to cuda:1; fix: launch on a stream "
                "of cuda:0, or load it on cuda:1");
  EXPECT_THAT(new_calls(), ElementsAre());
  EXPECT_THAT(
      std::string(
          launch_raw(loaded.function, {.grid = 0, .block = 1}, nullptr, 0, nullptr).message()),
      testing::StartsWith("kernel 'row_sum' cannot launch: "));
}

TEST_F(LaunchTest, AllowsMoreDynamicSharedMemoryOnlyOnce) {
  const Loaded loaded = load();
  const auto launch = [&](int64_t bytes) {
    return launch_raw(loaded.function, {.grid = 1, .block = 32, .shared_bytes = bytes}, nullptr, 0,
                      &site_);
  };
  ASSERT_TRUE(launch(48128).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum"));
  ASSERT_TRUE(launch(100000).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuFuncSetAttribute 8=100000", "cuLaunchKernelEx row_sum"));
  ASSERT_TRUE(launch(90000).ok());
  ASSERT_TRUE(launch(100000).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum", "cuLaunchKernelEx row_sum"));
  ASSERT_TRUE(launch(231424).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuFuncSetAttribute 8=231424", "cuLaunchKernelEx row_sum"));
  // Another handle of the same kernel knows it too.
  const Function again = loaded.module.function("row_sum").value();
  ASSERT_TRUE(again.reserve_dynamic_shared(200000).ok());
  EXPECT_THAT(new_calls(), ElementsAre());
  EXPECT_FALSE(again.reserve_dynamic_shared(231425).ok());
}

TEST_F(LaunchTest, SmallClustersAreAnAttributeAndNothingElse) {
  const Loaded loaded = load();
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = {8, 2}, .block = 32, .cluster = {4, 2}}, nullptr,
                         0, &site_)
                  .ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum"));
  const FakeLaunch launch = fake_->launches().at(0);
  ASSERT_EQ(launch.attributes.size(), 1u);
  EXPECT_EQ(launch.attributes[0].id, LaunchAttributeId::kClusterDimension);
  EXPECT_EQ(launch.attributes[0].value.cluster.x, 4u);
  EXPECT_EQ(launch.attributes[0].value.cluster.y, 2u);
  EXPECT_EQ(launch.attributes[0].value.cluster.z, 1u);
}

TEST_F(LaunchTest, LargeClustersAskWhetherOneFits) {
  const Loaded loaded = load();
  const LaunchShape config{.grid = 32, .block = 32, .cluster = 16};
  ASSERT_TRUE(launch_raw(loaded.function, config, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuFuncSetAttribute 14=1", "cuOccupancyMaxActiveClusters",
                                       "cuLaunchKernelEx row_sum"));
  ASSERT_TRUE(launch_raw(loaded.function, config, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum")) << "the answer is remembered";
  EXPECT_EQ(loaded.function.max_resident_blocks(config).value(), 4 * 16);
  // Another shape is another question, but the permission stands.
  ASSERT_TRUE(
      launch_raw(loaded.function, {.grid = 32, .block = 64, .cluster = 16}, nullptr, 0, &site_)
          .ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuOccupancyMaxActiveClusters", "cuLaunchKernelEx row_sum"));
}

TEST_F(LaunchTest, ALargeClusterThatDoesNotFitLeavesNoPermission) {
  const LaunchShape config{.grid = 32, .block = 32, .cluster = 16, .shared_bytes = 1000};
  const std::string message =
      "kernel 'row_sum' (row_sum.cc:14) cannot launch: no cluster 16x1x1 of blocks 32x1x1 with "
      "1000 "
      "bytes of dynamic shared memory fits Fake GPU; fix: use a smaller cluster, or less shared "
      "memory "
      "or fewer threads a block";
  for (bool by_code : {false, true}) {
    const Loaded loaded = load();
    fake_->set_active_clusters(0);
    if (by_code) fake_->fail("cuOccupancyMaxActiveClusters", 912);
    const Status status = launch_raw(loaded.function, config, nullptr, 0, &site_);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
    const std::vector<std::string> calls = new_calls();
    EXPECT_THAT(calls, Contains("cuFuncSetAttribute 14=1"));
    EXPECT_EQ(calls.back(), "cuFuncSetAttribute 14=0");
    EXPECT_TRUE(fake_->launches().empty());
    fake_->reset();
    seen_ = 0;
  }
}

TEST_F(LaunchTest, KernelsCompiledForAClusterGetIt) {
  fake_->set_function_attribute(FunctionAttribute::kRequiredClusterWidth, 2);
  fake_->set_function_attribute(FunctionAttribute::kRequiredClusterHeight, 1);
  fake_->set_function_attribute(FunctionAttribute::kRequiredClusterDepth, 1);
  const Loaded loaded = load();
  EXPECT_EQ(loaded.function.attributes().required_cluster, Dim3(2));
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 8, .block = 32}, nullptr, 0, &site_).ok());
  EXPECT_EQ(fake_->launches().at(0).attributes.at(0).value.cluster.x, 2u);
  EXPECT_EQ(
      launch_raw(loaded.function, {.grid = 7, .block = 32}, nullptr, 0, &site_).message(),
      "kernel 'row_sum' (row_sum.cc:14) cannot launch: grid 7x1x1 is not a multiple of cluster "
      "2x1x1 in every direction; fix: round the grid up, and let blocks outside do nothing");
  EXPECT_EQ(launch_raw(loaded.function, {.grid = 8, .block = 32, .cluster = 4}, nullptr, 0, &site_)
                .message(),
            "kernel 'row_sum' (row_sum.cc:14) cannot launch: cluster is 4x1x1, but the kernel was "
            "compiled for 2x1x1; fix: launch it with that");
}

TEST_F(LaunchTest, CooperativeGridsMustBeResident) {
  const Loaded loaded = load();
  LaunchShape config{.grid = 20, .block = 128, .shared_bytes = 64, .cooperative = true};
  ASSERT_TRUE(launch_raw(loaded.function, config, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuOccupancyMaxActiveBlocksPerMultiprocessor 128 64",
                                       "cuLaunchKernelEx row_sum"));
  ASSERT_EQ(fake_->launches().at(0).attributes.size(), 1u);
  EXPECT_EQ(fake_->launches().at(0).attributes[0].id, LaunchAttributeId::kCooperative);
  EXPECT_EQ(fake_->launches().at(0).attributes[0].value.flag, 1);
  config.grid = {7, 3};
  EXPECT_EQ(
      launch_raw(loaded.function, config, nullptr, 0, &site_).message(),
      "kernel 'row_sum' (row_sum.cc:14) cannot launch: a cooperative grid 7x3x1 has 21 blocks, "
      "but only 20 of them fit Fake GPU at once; fix: use fewer blocks that each do more");
  EXPECT_THAT(new_calls(), ElementsAre()) << "the answer is remembered";
  EXPECT_EQ(loaded.function.max_resident_blocks(config).value(), 20);
}

TEST_F(LaunchTest, CooperativeClustersCountInClusters) {
  const Loaded loaded = load();
  LaunchShape config{.grid = 8, .block = 32, .cluster = 2, .cooperative = true};
  ASSERT_TRUE(launch_raw(loaded.function, config, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuOccupancyMaxActiveClusters", "cuLaunchKernelEx row_sum"));
  EXPECT_EQ(fake_->launches().at(0).attributes.size(), 2u);
  config.grid = 10;
  EXPECT_THAT(std::string(launch_raw(loaded.function, config, nullptr, 0, &site_).message()),
              HasSubstr("has 10 blocks, but only 8 of them fit"));
}

TEST_F(LaunchTest, ProgrammaticLaunchesAreAnAttribute) {
  const Loaded loaded = load();
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 32, .programmatic = true}, nullptr,
                         0, &site_)
                  .ok());
  ASSERT_EQ(fake_->launches().at(0).attributes.size(), 1u);
  EXPECT_EQ(fake_->launches().at(0).attributes[0].id,
            LaunchAttributeId::kProgrammaticStreamSerialization);
  EXPECT_EQ(fake_->launches().at(0).attributes[0].value.flag, 1);
}

TEST_F(LaunchTest, OnlyProgrammaticLaunchesAreAsked) {
  const Loaded loaded = load();
  const Stream stream = loaded.device.create_stream().value();
  for (const bool programmatic : {false, true}) {
    const LaunchShape config{.grid = 1, .block = 32, .programmatic = programmatic};
    ASSERT_TRUE(launch_raw(loaded.function, config, nullptr, 0, &site_, &stream).ok());
    EXPECT_EQ(fake_->launches().back().attributes.size(), programmatic ? 1u : 0u);
  }
}

TEST_F(LaunchTest, OlderDevicesAreNotAskedForProgrammaticLaunches) {
  fake_->set_device_attribute(DeviceAttribute::kComputeCapabilityMajor, 8);
  const Loaded loaded = load();
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 32, .programmatic = true}, nullptr,
                         0, &site_)
                  .ok());
  EXPECT_TRUE(fake_->launches().at(0).attributes.empty());
}

TEST_F(LaunchTest, ARefusedLaunchNamesKernelLineAndShape) {
  const Loaded loaded = load();
  fake_->fail("cuLaunchKernelEx", 701);
  const Status status = launch_raw(loaded.function, {.grid = 3, .block = 1024}, nullptr, 0, &site_);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "cuLaunchKernelEx for kernel 'row_sum' (row_sum.cc:14) with grid 3x1x1, block 1024x1x1 "
      "failed on cuda:0: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701), the fake's text; the block "
      "needs too many registers or the parameters are too large: use fewer threads");
  EXPECT_TRUE(loaded.device.health().ok());
  EXPECT_TRUE(loaded.device.cuda()->ring().records().empty()) << "it never ran";
}

TEST_F(LaunchTest, AFaultIsBlamedOnTheOnlyUnfinishedLaunch) {
  const Loaded loaded = load();
  const Stream stream = loaded.device.create_stream().value();
  const LaunchSite innocent("copy", "copy.cc", 3);
  ASSERT_TRUE(
      launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &innocent, &stream).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  ASSERT_TRUE(
      launch_raw(loaded.function, {.grid = 9, .block = 64}, nullptr, 0, &site_, &stream).ok());
  fake_->fault(700);
  const std::string blame =
      "caused by kernel 'row_sum' (row_sum.cc:14) with grid 9x1x1, block 64x1x1, the only "
      "unfinished "
      "launch";
  const Status status = stream.synchronize();
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "cuStreamSynchronize failed on cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS (700), the fake's "
            "text: " +
                blame +
                "; run the kernel on Device::open(\"interp\"), which reports the access with its "
                "line");
  EXPECT_EQ(loaded.device.allocate(4).status().message(),
            "cuda:0 is lost since cuStreamSynchronize reported CUDA_ERROR_ILLEGAL_ADDRESS (700), " +
                blame + "; restart the process to use it again");
}

TEST_F(LaunchTest, AFaultWithSeveralSuspectsListsThem) {
  const Loaded loaded = load();
  for (int i = 1; i <= 6; ++i) {
    const LaunchSite site(absl::StrCat("k", i), "k.cc", i);
    ASSERT_TRUE(launch_raw(loaded.function, {.grid = i, .block = 1}, nullptr, 0, &site).ok());
  }
  fake_->fault(719);
  // A launch that meets an earlier launch's fault is not a suspect.
  const Status status = launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_);
  const std::string message(status.message());
  EXPECT_THAT(message, testing::StartsWith(
                           "cuLaunchKernelEx for kernel 'row_sum' (row_sum.cc:14) with grid "
                           "1x1x1, block 1x1x1 failed on cuda:0: CUDA_ERROR_LAUNCH_FAILED (719)"));
  EXPECT_THAT(message,
              HasSubstr("caused by one of the unfinished launches, newest first: kernel 'k6' "
                        "(k.cc:6) with grid 6x1x1, block 1x1x1 | kernel 'k5' (k.cc:5) with grid "
                        "5x1x1, block 1x1x1 | kernel 'k4' (k.cc:4) with grid 4x1x1, block 1x1x1 | "
                        "kernel 'k3' (k.cc:3) with grid 3x1x1, block 1x1x1 | and 2 more "
                        "(HEDDLE_LAUNCH_BLOCKING=1 tells which)"));
}

TEST_F(LaunchTest, WaitingForTheDeviceClearsAllSuspects) {
  const Loaded loaded = load();
  const Stream stream = loaded.device.create_stream().value();
  ASSERT_TRUE(
      launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_, &stream).ok());
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(loaded.device.cuda()->ring().records().size(), 1u) << "the default stream's is left";
  ASSERT_TRUE(loaded.device.synchronize().ok());
  EXPECT_TRUE(loaded.device.cuda()->ring().records().empty());
}

TEST_F(LaunchTest, EventsAndQueriesClearTheSuspectsThatTheyCover) {
  const Loaded loaded = load();
  const LaunchRing& ring = loaded.device.cuda()->ring();
  const Stream stream = loaded.device.create_stream().value();
  const Stream other = loaded.device.create_stream().value();
  Event event = loaded.device.create_event().value();
  const auto launch = [&](const Stream& on) {
    ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_, &on).ok());
  };
  launch(stream);
  launch(other);
  EXPECT_TRUE(event.synchronize().ok());
  EXPECT_EQ(ring.records().size(), 2u) << "an event that was never recorded covers nothing";
  ASSERT_TRUE(event.record(stream).ok());
  launch(stream);
  fake_->set_busy(true);
  EXPECT_FALSE(event.done().value());
  EXPECT_FALSE(stream.done().value());
  EXPECT_EQ(ring.records().size(), 3u);
  fake_->set_busy(false);
  EXPECT_TRUE(event.done().value());
  EXPECT_EQ(ring.records().size(), 2u) << "the launch after the event and the other stream's stay";
  ASSERT_TRUE(event.record(other).ok());
  ASSERT_TRUE(event.synchronize().ok());
  EXPECT_EQ(ring.records().size(), 1u);
  EXPECT_TRUE(stream.done().value());
  EXPECT_TRUE(ring.records().empty());
}

TEST_F(LaunchTest, LaunchBlockingWaitsAndBlamesExactly) {
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  const Loaded loaded = load();
  const LaunchSite other("copy", "copy.cc", 3);
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &other).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum", "cuStreamIsCapturing",
                                       "cuStreamSynchronize"));
  EXPECT_TRUE(loaded.device.cuda()->ring().records().empty());
  fake_->fail("cuStreamSynchronize", 715);
  const Status status = launch_raw(loaded.function, {.grid = 2, .block = 1}, nullptr, 0, &site_);
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("caused by kernel 'row_sum' (row_sum.cc:14) with grid 2x1x1, block 1x1x1; "
                        "the kernel was built for another device or trapped"));
  EXPECT_THAT(std::string(loaded.device.health().message()),
              HasSubstr("caused by kernel 'row_sum' (row_sum.cc:14)"));
}

// The driver waits inside its call, so that the fault that it reports is the launch's.
TEST_F(LaunchTest, ADriverThatBlocksBlamesTheLaunchThatFails) {
  const auto blamed = [&] {
    const Loaded loaded = load();
    const LaunchSite other("copy", "copy.cc", 3);
    EXPECT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &other).ok());
    fake_->fail("cuLaunchKernelEx", 700);
    const Status status = launch_raw(loaded.function, {.grid = 2, .block = 1}, nullptr, 0, &site_);
    fake_->reset();
    return std::string(status.message());
  };
  EXPECT_THAT(blamed(), HasSubstr("caused by kernel 'copy' (copy.cc:3)"));
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  EXPECT_THAT(blamed(), HasSubstr("no launch of this program is unfinished"));
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_THAT(blamed(), HasSubstr("caused by kernel 'row_sum' (row_sum.cc:14) with grid 2x1x1"));
}

TEST_F(LaunchTest, LaunchBlockingLeavesCapturesAlone) {
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  const Loaded loaded = load();
  fake_->set_capturing(true);
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), ElementsAre("cuLaunchKernelEx row_sum", "cuStreamIsCapturing"));
  fake_->fail("cuStreamIsCapturing", 400);
  EXPECT_EQ(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_).driver_code(),
            400);
}

TEST_F(LaunchTest, LaunchBlockingZeroIsOff) {
  setenv("HEDDLE_LAUNCH_BLOCKING", "0", 1);
  const Loaded loaded = load();
  ASSERT_TRUE(launch_raw(loaded.function, {.grid = 1, .block = 1}, nullptr, 0, &site_).ok());
  EXPECT_THAT(new_calls(), Not(Contains("cuStreamSynchronize")));
}

TEST_F(LaunchTest, SeveralThreadsLaunchOneFunction) {
  const Loaded loaded = load();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const LaunchShape config{.grid = 16,
                                 .block = 32,
                                 .cluster = t == 0 ? 16 : 1,
                                 .shared_bytes = 49000 + 500 * t + i,
                                 .cooperative = t == 1};
        if (!launch_raw(loaded.function, config, &i, sizeof(i), &site_).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(fake_->launches().size(), 400u);
}

}  // namespace
}  // namespace heddle::runtime::cuda
