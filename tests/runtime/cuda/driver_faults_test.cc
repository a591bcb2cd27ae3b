// Every driver call fails with every kind of error: the status has the right type and names the
// call, nothing aborts, nothing leaks, and what the driver calls sticky is remembered.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/launch/tensor_map.h"
#include "heddle/runtime/graph/graph.h"
#include "runtime/cuda/fake_driver_test.h"

namespace heddle::runtime::cuda {
namespace {

constexpr int kCodes[] = {1,   2,   3,   4,   34,  46,  100, 101, 200, 201, 209, 214, 218, 220,
                          222, 226, 304, 400, 500, 700, 701, 702, 709, 710, 714, 715, 716, 717,
                          718, 719, 720, 721, 800, 801, 802, 803, 900, 911, 912, 999, 555};

// Calls whose failure nobody can be told, or that only explain another failure.
constexpr const char* kSilent[] = {"cuCtxPopCurrent_v2",
                                   "cuDevicePrimaryCtxRelease_v2",
                                   "cuDeviceGetDefaultMemPool",
                                   "cuEventDestroy_v2",
                                   "cuGetErrorName",
                                   "cuGraphDestroy",
                                   "cuGraphExecDestroy",
                                   "cuGetErrorString",
                                   "cuMemFreeHost",
                                   "cuMemFreeAsync",
                                   "cuMemFree_v2",
                                   "cuMemPoolDestroy",
                                   "cuMemPoolTrimTo",
                                   "cuModuleUnload",
                                   "cuPointerGetAttribute",
                                   "cuStreamDestroy_v2"};

std::vector<std::string> all_symbols() {
  std::vector<std::string> symbols;
#define HEDDLE_SYMBOL(member, symbol, signature) symbols.push_back(symbol);
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_SYMBOL)
#undef HEDDLE_SYMBOL
  return symbols;
}

bool is_silent(const std::string& symbol) {
  return std::find(std::begin(kSilent), std::end(kSilent), symbol) != std::end(kSilent);
}

#define RETURN_IF_FAILED(expression) \
  if (Status status_ = (expression); !status_.ok()) return status_

// Records, launches and changes graphs of a kernel.
Status use_graphs(const Device& device, const Stream& stream, const Function& function) {
  const LaunchSite site("row_sum", "row_sum.cc", 14);
  const uint8_t parameters[24] = {};
  const auto launch_of = [&](int64_t grid) {
    return [&function, &site, &parameters, grid](const Stream& s) {
      return grid == 0 ? OkStatus()
                       : launch_raw(function, {.grid = grid, .block = 32, .cooperative = true},
                                    parameters, sizeof(parameters), &site, &s);
    };
  };
  const auto work = [&](const Stream& s) -> Status {
    RETURN_IF_FAILED(s.allocate(256).status());
    return launch_of(2)(s);
  };
  StatusOr<Graph> captured = Graph::capture(stream, work);
  RETURN_IF_FAILED(captured.status());
  RETURN_IF_FAILED(captured->recapture(stream, work));
  RETURN_IF_FAILED(captured->launch(stream));

  GraphBuilder builder(device);
  StatusOr<GraphNode> empty = builder.add_launch({}, launch_of(0));
  RETURN_IF_FAILED(empty.status());
  StatusOr<GraphNode> kernel = builder.add_launch({*empty}, launch_of(2));
  RETURN_IF_FAILED(kernel.status());
  StatusOr<GraphNode> part = builder.add({*kernel}, work);
  RETURN_IF_FAILED(part.status());
  StatusOr<Graph> built = std::move(builder).build();
  RETURN_IF_FAILED(built.status());
  RETURN_IF_FAILED(built->set_launch(*kernel, launch_of(3)));
  RETURN_IF_FAILED(built->set_launch(*kernel, launch_of(0)));
  RETURN_IF_FAILED(built->set(*part, work));
  return built->launch(stream);
}

// Uses everything that a device can do, up to the first failure, and gives everything back.
// `device` outlives the call, so that its health can be asked.
Status use_everything(StatusOr<Device>& device) {
  RETURN_IF_FAILED(Device::cuda_device_count().status());
  device = Device::open("cuda:0");
  RETURN_IF_FAILED(device.status());
  RETURN_IF_FAILED(device->memory_usage().status());

  StatusOr<Stream> stream = device->create_stream();
  RETURN_IF_FAILED(stream.status());
  StatusOr<Event> start = device->create_event();
  RETURN_IF_FAILED(start.status());
  StatusOr<Buffer> x = device->allocate(256);
  RETURN_IF_FAILED(x.status());
  StatusOr<PinnedBuffer> pinned = device->allocate_pinned(256);
  RETURN_IF_FAILED(pinned.status());
  RETURN_IF_FAILED(stream->allocate(256).status());
  RETURN_IF_FAILED(start->record(*stream));
  RETURN_IF_FAILED(x->copy_from_host(*stream, pinned->data(), 256));
  RETURN_IF_FAILED(x->copy_from(*stream, *x, 64, 128));
  RETURN_IF_FAILED(x->copy_to_host(*stream, pinned->data(), 256));
  RETURN_IF_FAILED(x->fill(*stream, 1));
  RETURN_IF_FAILED(x->fill32(*stream, 1, 4));
  RETURN_IF_FAILED(stream->wait(*start));
  RETURN_IF_FAILED(start->done().status());
  RETURN_IF_FAILED(Event::elapsed_ms(*start, *start).status());
  RETURN_IF_FAILED(stream->done().status());
  RETURN_IF_FAILED(device->cuda()->check_reach(/*address=*/64));

  StatusOr<Module> module = Module::load_ptx(*device, "ptx");
  RETURN_IF_FAILED(module.status());
  StatusOr<Function> function = module->function("row_sum");
  RETURN_IF_FAILED(function.status());
  const LaunchSite site("row_sum", "row_sum.cc", 14);
  const LaunchShape configs[] = {
      {.grid = 4, .block = 32},
      {.grid = 4, .block = 32, .shared_bytes = 100000},
      {.grid = 4, .block = 32, .cooperative = true},
      {.grid = 16, .block = 32, .cluster = 16},
  };
  for (const LaunchShape& config : configs) {
    RETURN_IF_FAILED(launch_raw(*function, config, pinned->data(), 24, &site, &*stream));
  }
  ir::TensorMap tensor{.shape = {.scalar = ir::Scalar::kF32, .rank = 1, .box = {4}}};
  std::byte map[ir::kTensorMapBytes];
  RETURN_IF_FAILED(device->backend()->encode_tensor_map(tensor, map));
  ir::TensorMap images{.shape = {.scalar = ir::Scalar::kF32,
                                 .rank = 4,
                                 .box = {8, 16},
                                 .im2col = true,
                                 .lower = {-1, -2},
                                 .upper = {-3, 4}}};
  RETURN_IF_FAILED(device->backend()->encode_tensor_map(images, map));
  RETURN_IF_FAILED(use_graphs(*device, *stream, *function));
  RETURN_IF_FAILED(stream->synchronize());
  return device->synchronize();
}

class DriverFaultsTest : public FakeDriverTest {};

TEST_F(DriverFaultsTest, TheScenarioMakesEveryCall) {
  setenv("HEDDLE_CUDA_LIBRARY", fresh_name().c_str(), 1);
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  StatusOr<Device> device = UnknownError("");
  ASSERT_TRUE(use_everything(device).ok());
  device = UnknownError("");
  std::set<std::string> called;
  for (const std::string& call : fake_->calls()) called.insert(call.substr(0, call.find(' ')));
  // Made only when memory runs out or something failed.
  called.insert(
      {"cuDeviceGetDefaultMemPool", "cuMemPoolTrimTo", "cuGetErrorName", "cuGetErrorString"});
  const std::vector<std::string> symbols = all_symbols();
  EXPECT_EQ(called, std::set<std::string>(symbols.begin(), symbols.end()));
  EXPECT_THAT(fake_->calls(), testing::Contains("cuTensorMapEncodeIm2col 4 8 16 -1..-3 -2..4"));
}

TEST_F(DriverFaultsTest, EveryCodeFromEveryCall) {
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  int cases = 0;
  for (const std::string& symbol : all_symbols()) {
    if (is_silent(symbol)) continue;
    const bool at_load = symbol == "cuInit" || symbol == "cuDriverGetVersion";
    for (int code : kCodes) {
      SCOPED_TRACE(absl::StrCat(symbol, " fails with ", code));
      fake_->reset();
      setenv("HEDDLE_CUDA_LIBRARY", (at_load ? fresh_name() : library_).c_str(), 1);
      fake_->fail(symbol.c_str(), code);
      const ErrorInfo info = error_info(Result{code});
      StatusOr<Device> device = UnknownError("");
      const Status status = use_everything(device);
      ++cases;

      ASSERT_FALSE(status.ok());
      const std::string message(status.message());
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      if (symbol == "cuDriverGetVersion") {
        EXPECT_TRUE(absl::StrContains(message, "does not say its version")) << message;
      } else if (symbol == "cuOccupancyMaxActiveClusters" && code == 912) {
        EXPECT_TRUE(absl::StrContains(message, "no cluster 16x1x1")) << message;
      } else {
        EXPECT_EQ(status.code(), info.status) << message;
        EXPECT_EQ(status.driver_code(), code) << message;
        EXPECT_TRUE(absl::StartsWith(message, call_name(symbol))) << message;
        EXPECT_TRUE(absl::StrContains(message, absl::StrCat("(", code, ")"))) << message;
      }
      if (device.ok()) {
        EXPECT_EQ(device->health().ok(), !info.sticky);
        if (info.sticky) {
          EXPECT_TRUE(absl::StrContains(device->health().message(), call_name(symbol)))
              << device->health();
        }
      }
      device = UnknownError("");
      fake_->reset();
      expect_nothing_live();
      EXPECT_EQ(fake_->current_context(), nullptr);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(cases,
            static_cast<int>((all_symbols().size() - std::size(kSilent)) * std::size(kCodes)));
}

TEST_F(DriverFaultsTest, DestructorsNeverReport) {
  for (const char* symbol : kSilent) {
    for (int code : kCodes) {
      SCOPED_TRACE(absl::StrCat(symbol, " fails with ", code));
      fake_->fail(symbol, code);
      StatusOr<Device> device = UnknownError("");
      // A fault that a destructor met may show in a later call; it must not show otherwise.
      const Status status = use_everything(device);
      EXPECT_TRUE(status.ok() || error_info(Result{code}).sticky) << status;
      device = UnknownError("");
      fake_->reset();
      if (HasFailure()) return;
    }
  }
  // What could not be given back above is not this test's leak.
  leaks_expected_ = true;
}

TEST_F(DriverFaultsTest, AFaultAtAnyMomentIsRemembered) {
  // The driver reports a sticky error from every call once a kernel has gone wrong.
  for (int code : kCodes) {
    if (!error_info(Result{code}).sticky) continue;
    SCOPED_TRACE(code);
    fake_->fault(code);
    StatusOr<Device> device = UnknownError("");
    const Status status = use_everything(device);
    EXPECT_EQ(status.driver_code(), code);
    EXPECT_FALSE(device->health().ok());
    device = UnknownError("");
    fake_->reset();
    expect_nothing_live();
  }
}

}  // namespace
}  // namespace heddle::runtime::cuda
