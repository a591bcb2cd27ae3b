// Graphs whose calls of the driver fail, and calls that a capture does not survive: on the stand-in for libcuda.
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/runtime/buffer.h"
#include "heddle/runtime/graph/graph.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime::cuda {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CudaGraphFaultsTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    device_ = Device::open("cuda:0").value();
    stream_ = device_->create_stream().value();
    function_ = load();
  }
  void TearDown() override {
    function_.reset();
    stream_.reset();
    device_.reset();
    FakeDriverTest::TearDown();
  }
  Function load() const {
    return Module::load_ptx(*device_, "ptx").value().function("row_sum").value();
  }
  static Status launch(const Function& function, const Stream& s, const LaunchShape& shape) {
    return launch_raw(function, shape, nullptr, 0, nullptr, &s);
  }
  auto launching(LaunchShape shape = {.grid = 4, .block = 32}) const {
    return [this, shape](const Stream& s) { return launch(*function_, s, shape); };
  }
  std::vector<std::string> calls_since(size_t start) const {
    std::vector<std::string> calls = fake_->calls();
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(start));
    return calls;
  }

  std::optional<Device> device_;
  std::optional<Stream> stream_;
  std::optional<Function> function_;
};

TEST_F(CudaGraphFaultsTest, ANodeThatIsThereInPartMakesTheGraphUnusable) {
  GraphBuilder builder(*device_);
  ASSERT_THAT(builder.add_launch({}, launching()), IsOk());
  fake_->fail("cuGraphKernelNodeSetAttribute", 1);
  const LaunchShape clustered{.grid = 4, .block = 32, .cluster = 2};
  EXPECT_FALSE(builder.add_launch({}, launching(clustered)).ok());
  fake_->fail("cuGraphKernelNodeSetAttribute", 0);
  EXPECT_THAT(std::move(builder).build().status(),
              Fails(StatusCode::kInvalidArgument, "cuGraphKernelNodeSetAttribute"));
}

TEST_F(CudaGraphFaultsTest, CodeThatANodeWasAddedWithStaysLoaded) {
  std::optional<Function> first = load();
  GraphBuilder builder(*device_);
  const GraphNode node =
      builder
          .add_launch({},
                      [&](const Stream& s) { return launch(*first, s, {.grid = 1, .block = 32}); })
          .value();
  {
    Graph graph = std::move(builder).build().value();
    ASSERT_THAT(graph.set_launch(node, launching()), IsOk());
    first.reset();
    EXPECT_EQ(fake_->live().modules, 2) << "the driver compares what replaces it with that";
  }
  EXPECT_EQ(fake_->live().modules, 1);
}

TEST_F(CudaGraphFaultsTest, ALaunchThatWasRefusedIsNotBlamed) {
  const StatusOr<Graph> graph = Graph::capture(*stream_, [&](const Stream& s) {
    fake_->fail("cuLaunchKernelEx", 1);
    EXPECT_FALSE(launching({.grid = 9, .block = 32})(s).ok());
    fake_->fail("cuLaunchKernelEx", 0);
    return launching()(s);
  });
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(*stream_), IsOk());
  fake_->fault(700);
  const std::string said(stream_->synchronize().message());
  EXPECT_THAT(said, HasSubstr("grid 4x1x1"));
  EXPECT_THAT(said, Not(HasSubstr("grid 9x1x1")));
  leaks_expected_ = true;
}

TEST_F(CudaGraphFaultsTest, MemoryOfAStreamIsNoPartOfItsCapture) {
  std::optional<Buffer> earlier = stream_->allocate(256).value();
  size_t start = 0;
  ASSERT_THAT(Graph::capture(*stream_,
                             [&](const Stream&) {
                               start = fake_->calls().size();
                               earlier.reset();
                               return OkStatus();
                             }),
              IsOk());
  const std::vector<std::string> calls = calls_since(start);
  EXPECT_THAT(calls, Contains(StartsWith("cuMemFree_v2")));
  EXPECT_THAT(calls, Not(Contains(StartsWith("cuMemFreeAsync"))));
}

TEST_F(CudaGraphFaultsTest, ScratchMemoryThatIsKeptIsFreedWithItsBuffer) {
  std::optional<Buffer> kept;
  const auto work = [&](const Stream& s) -> Status {
    kept = s.allocate(256).value();
    return InternalError("given up");
  };
  EXPECT_FALSE(Graph::capture(*stream_, work).ok());
  EXPECT_EQ(fake_->live().allocations, 1);
  kept.reset();
  EXPECT_EQ(fake_->live().allocations, 0);
}

TEST_F(CudaGraphFaultsTest, WhereMemoryRunsOutNobodyWaitsDuringACapture) {
  fake_->set_memory(4096);
  const auto too_much = [&] { return device_->allocate(1 << 20).status(); };
  size_t start = fake_->calls().size();
  EXPECT_THAT(too_much(), Fails(StatusCode::kResourceExhausted, "1048576"));
  EXPECT_THAT(calls_since(start), Contains(StartsWith("cuCtxSynchronize")));
  ASSERT_THAT(Graph::capture(
                  *stream_,
                  [&](const Stream&) {
                    start = fake_->calls().size();
                    EXPECT_THAT(too_much(), Fails(StatusCode::kResourceExhausted, "1048576"));
                    EXPECT_THAT(calls_since(start), Not(Contains(StartsWith("cuCtxSynchronize"))));
                    return OkStatus();
                  }),
              IsOk());
}

class SynchronousCudaGraphTest : public CudaGraphFaultsTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
    device_ = Device::open("cuda:0").value();
    stream_ = device_->create_stream().value();
    function_ = load();
  }
};

TEST_F(SynchronousCudaGraphTest, WaitsForGraphsButNotWhereOthersRecordThem) {
  const Graph graph = Graph::capture(*stream_, launching()).value();
  size_t start = fake_->calls().size();
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(calls_since(start), Contains(StartsWith("cuStreamSynchronize")));
  fake_->set_capturing(true);
  start = fake_->calls().size();
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(calls_since(start), Not(Contains(StartsWith("cuStreamSynchronize"))));
  fake_->set_capturing(false);
}

}  // namespace
}  // namespace heddle::runtime::cuda
