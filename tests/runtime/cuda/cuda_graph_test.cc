// What graphs ask of the driver: on the stand-in for libcuda, which remembers each launch.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/runtime/graph/graph.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime::cuda {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CudaGraphTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    open();
  }
  void TearDown() override {
    function_.reset();
    stream_.reset();
    device_.reset();
    FakeDriverTest::TearDown();
  }
  void open() {
    device_ = Device::open("cuda:0").value();
    stream_ = device_->create_stream().value();
    function_ = Module::load_ptx(*device_, "ptx").value().function("row_sum").value();
  }

  // A launch whose only parameter is a number.
  auto launch(uint64_t value, LaunchShape shape = {.grid = 4, .block = 32}) const {
    return [this, value, shape](const Stream& s) {
      return launch_raw(*function_, shape, &value, sizeof(value), &site_, &s);
    };
  }
  // The numbers of the launches that have run, and nothing more is known of them.
  std::vector<uint64_t> launched() const {
    std::vector<uint64_t> values;
    for (const FakeLaunch& launch : fake_->launches()) {
      uint64_t value = 0;
      std::memcpy(&value, launch.parameters.data(), sizeof(value));
      values.push_back(value);
    }
    return values;
  }

  const LaunchSite site_{"row_sum", "row_sum.cc", 14};
  std::optional<Device> device_;
  std::optional<Stream> stream_;
  std::optional<Function> function_;
};

TEST_F(CudaGraphTest, CapturesInAModeThatLetsKernelsBeCompiled) {
  const Graph graph = Graph::capture(*stream_, launch(1)).value();
  EXPECT_THAT(fake_->calls(), Contains("cuStreamBeginCapture_v2 2"));
  EXPECT_THAT(launched(), ElementsAre());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(1, 1));
}

TEST_F(CudaGraphTest, LaunchesOfOtherStreamsRunMeanwhile) {
  const Stream other = device_->create_stream().value();
  const Graph graph = Graph::capture(*stream_, [&](const Stream& s) -> Status {
                        if (Status status = launch(1)(s); !status.ok()) return status;
                        return launch(2)(other);
                      }).value();
  EXPECT_THAT(launched(), ElementsAre(2));
}

TEST_F(CudaGraphTest, AsksNothingWhileNothingIsRecorded) {
  const Graph graph = Graph::capture(*stream_, launch(1)).value();
  const size_t before = fake_->calls().size();
  ASSERT_THAT(launch(2)(*stream_), IsOk());
  const std::vector<std::string> calls = fake_->calls();
  for (size_t i = before; i < calls.size(); ++i) {
    EXPECT_THAT(calls[i], Not(HasSubstr("Capture")));
  }
}

TEST_F(CudaGraphTest, ANodeIsAddedWithItsShapeAndAttributes) {
  GraphBuilder builder(*device_);
  const GraphNode first = builder.add_launch({}, launch(1)).value();
  ASSERT_THAT(builder.add_launch({first}, launch(2, {.grid = {8, 2},
                                                     .block = {16, 2},
                                                     .cluster = {2, 1},
                                                     .shared_bytes = 64,
                                                     .programmatic = true})),
              IsOk());
  const Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  ASSERT_THAT(launched(), ElementsAre(1, 2));
  const FakeLaunch second = fake_->launches()[1];
  EXPECT_EQ(second.config.grid_x, 8u);
  EXPECT_EQ(second.config.grid_y, 2u);
  EXPECT_EQ(second.config.grid_z, 1u);
  EXPECT_EQ(second.config.block_x, 16u);
  EXPECT_EQ(second.config.block_y, 2u);
  EXPECT_EQ(second.config.dynamic_shared_bytes, 64u);
  ASSERT_EQ(second.attributes.size(), 1u) << "a node starts after those that it is said to";
  EXPECT_EQ(second.attributes[0].id, LaunchAttributeId::kClusterDimension);
  EXPECT_EQ(second.attributes[0].value.cluster.x, 2u);
  EXPECT_THAT(fake_->calls(), Contains("cuGraphAddKernelNode_v2 0"));
  EXPECT_THAT(fake_->calls(), Contains("cuGraphAddKernelNode_v2 1"));
}

TEST_F(CudaGraphTest, ReplacesAndDisablesNodes) {
  const auto nothing = [](const Stream&) { return OkStatus(); };
  GraphBuilder builder(*device_);
  const GraphNode node = builder.add_launch({}, launch(1)).value();
  const GraphNode empty = builder.add_launch({}, nothing).value();
  Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.set_launch(node, launch(2, {.grid = 5, .block = 64})), IsOk());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_EQ(fake_->launches()[0].config.grid_x, 5u);
  EXPECT_EQ(fake_->launches()[0].config.block_x, 64u);
  ASSERT_THAT(graph.set_launch(node, nothing), IsOk());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(2));
  ASSERT_THAT(graph.set_launch(node, launch(3)), IsOk());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(2, 3));
  ASSERT_THAT(graph.set_launch(empty, nothing), IsOk());
  EXPECT_THAT(graph.set_launch(empty, launch(1)),
              Fails(StatusCode::kFailedPrecondition, "it had nothing to launch when it was added",
                    "fix: build the graph anew"));
}

TEST_F(CudaGraphTest, AGraphIsNotRecordedItself) {
  const Graph inner = Graph::capture(*stream_, launch(1)).value();
  const auto work = [&](const Stream& s) { return inner.launch(s); };
  GraphBuilder builder(*device_);
  constexpr char kRefusal[] = "graphs are not recorded themselves; fix: record what it runs";
  EXPECT_THAT(builder.add_launch({}, work), Fails(StatusCode::kFailedPrecondition, kRefusal));
  EXPECT_THAT(Graph::capture(*stream_, work), Fails(StatusCode::kFailedPrecondition, kRefusal));
  EXPECT_THAT(launched(), ElementsAre());
}

TEST_F(CudaGraphTest, RefusesWhatTheDriverKeepsFixed) {
  GraphBuilder builder(*device_);
  const GraphNode node = builder.add_launch({}, launch(1)).value();
  Graph graph = std::move(builder).build().value();
  EXPECT_THAT(graph.set_launch(node, launch(2, {.grid = 4, .block = 32, .cluster = 2})),
              Fails(StatusCode::kFailedPrecondition, "the cluster of a node is fixed"));
  EXPECT_THAT(graph.set_launch(node, launch(2, {.grid = 4, .block = 32, .cooperative = true})),
              Fails(StatusCode::kFailedPrecondition, "whether a node's launch is cooperative"));
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(1));
}

TEST_F(CudaGraphTest, TakesParametersOneByOneWhereTheyLieApart) {
  fake_->set_parameter_count(2);
  const uint8_t block[] = {10, 0, 20};
  const int places[] = {0, 2};
  GraphBuilder builder(*device_);
  ASSERT_THAT(builder.add_launch({},
                                 [&](const Stream& s) {
                                   return launch_raw(*function_, {.grid = 1, .block = 32}, block,
                                                     sizeof(block), &site_, &s, places);
                                 }),
              IsOk());
  ASSERT_THAT(std::move(builder).build().value().launch(*stream_), IsOk());
  EXPECT_THAT(fake_->launches()[0].parameters, ElementsAre(10, 20));
}

TEST_F(CudaGraphTest, IsMadeAnewOnlyWhereItCannotBeUpdated) {
  const auto instances = [&] {
    const std::vector<std::string> calls = fake_->calls();
    return std::count(calls.begin(), calls.end(), "cuGraphInstantiateWithFlags");
  };
  Graph graph = Graph::capture(*stream_, launch(1)).value();
  ASSERT_THAT(graph.recapture(*stream_, launch(2)), IsOk());
  EXPECT_EQ(instances(), 1);
  ASSERT_THAT(graph.recapture(*stream_,
                              [&](const Stream& s) -> Status {
                                if (Status status = launch(3)(s); !status.ok()) return status;
                                return launch(4)(s);
                              }),
              IsOk());
  EXPECT_EQ(instances(), 2);
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(3, 4));
}

TEST_F(CudaGraphTest, TheModuleStaysLoadedAsLongAsTheGraph) {
  std::optional<Graph> captured = Graph::capture(*stream_, launch(1)).value();
  GraphBuilder builder(*device_);
  ASSERT_THAT(builder.add_launch({}, launch(1)), IsOk());
  std::optional<Graph> built = std::move(builder).build().value();
  function_.reset();
  captured.reset();
  EXPECT_EQ(fake_->live().modules, 1);
  built.reset();
  EXPECT_EQ(fake_->live().modules, 0);
}

TEST_F(CudaGraphTest, UnloadsTheModuleWithTheLastGraph) {
  std::optional<Graph> graph = Graph::capture(*stream_, launch(1)).value();
  function_.reset();
  EXPECT_EQ(fake_->live().modules, 1);
  graph.reset();
  EXPECT_EQ(fake_->live().modules, 0);
}

TEST_F(CudaGraphTest, AReplacedNodeKeepsTheModuleOfItsNewLaunch) {
  GraphBuilder builder(*device_);
  const GraphNode node = builder.add_launch({}, launch(1)).value();
  std::optional<Graph> graph = std::move(builder).build().value();
  function_ = Module::load_ptx(*device_, "ptx").value().function("row_sum").value();
  ASSERT_THAT(graph->set_launch(node, launch(2, {.grid = 9, .block = 32})), IsOk());
  function_.reset();
  EXPECT_EQ(fake_->live().modules, 2) << "what it runs, and what it was added with";
  ASSERT_THAT(graph->launch(*stream_), IsOk());
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(), Fails(StatusCode::kAborted, "with grid 9x1x1"));
}

TEST_F(CudaGraphTest, WhatIsRecordedAnewTakesThePlaceOfWhatWas) {
  std::optional<Graph> graph = Graph::capture(*stream_, launch(1)).value();
  ASSERT_THAT(graph->recapture(*stream_,
                               [&](const Stream& s) {
                                 const Buffer scratch = s.allocate(4096).value();
                                 return launch(scratch.address(), {.grid = 9, .block = 32})(s);
                               }),
              IsOk());
  function_.reset();
  EXPECT_EQ(fake_->live().allocations, 1);
  EXPECT_EQ(fake_->live().modules, 1);
  ASSERT_THAT(graph->launch(*stream_), IsOk());
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(), Fails(StatusCode::kAborted, "with grid 9x1x1"));
}

TEST_F(CudaGraphTest, ScratchMemoryIsAllocatedOnceAndUsedAgainByTheSameStream) {
  const Graph graph = Graph::capture(*stream_, [&](const Stream& s) -> Status {
                        const DeviceAddress first = s.allocate(1000).value().address();
                        const DeviceAddress second = s.allocate(900).value().address();
                        EXPECT_EQ(first, second) << "it was given back meanwhile";
                        EXPECT_NE(s.allocate(100).value().address(), first) << "much too large";
                        const Buffer held = s.allocate(1000).value();
                        EXPECT_EQ(held.address(), first);
                        EXPECT_NE(s.allocate(1000).value().address(), first) << "still in use";
                        return launch(first)(s);
                      }).value();
  EXPECT_EQ(fake_->live().allocations, 3);
  EXPECT_THAT(fake_->calls(), Each(Not(HasSubstr("Async"))));
  ASSERT_THAT(graph.launch(*stream_), IsOk());
}

TEST_F(CudaGraphTest, AFaultIsBlamedOnTheKernelsOfAGraphThatWasLaunched) {
  const Graph graph = Graph::capture(*stream_, launch(1)).value();
  const Graph idle = Graph::capture(*stream_, launch(2, {.grid = 7, .block = 32})).value();
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  fake_->fault(700);
  EXPECT_THAT(
      stream_->synchronize(),
      Fails(StatusCode::kAborted, "caused by kernel 'row_sum' (row_sum.cc:14) with grid 4x1x1",
            "the only unfinished launch"));
}

TEST_F(CudaGraphTest, AFaultIsBlamedOnTheKernelsOfParts) {
  GraphBuilder builder(*device_);
  ASSERT_THAT(builder.add({},
                          [&](const Stream& s) -> Status {
                            if (Status status = launch(1, {.grid = 9, .block = 32})(s);
                                !status.ok())
                              return status;
                            return launch(2)(s);
                          }),
              IsOk());
  const Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(),
              Fails(StatusCode::kAborted, "with grid 4x1x1", "with grid 9x1x1"));
}

TEST_F(CudaGraphTest, ANodeWithNothingToLaunchIsNotBlamed) {
  GraphBuilder builder(*device_);
  const GraphNode node = builder.add_launch({}, launch(1)).value();
  Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.set_launch(node, [](const Stream&) { return OkStatus(); }), IsOk());
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(),
              Fails(StatusCode::kAborted, "no launch of this program is unfinished"));
}

TEST_F(CudaGraphTest, ALaunchThatTheDriverRefusesIsNotBlamedLater) {
  const Graph graph = Graph::capture(*stream_, launch(1)).value();
  fake_->fail("cuGraphLaunch", 1);
  EXPECT_THAT(graph.launch(*stream_), Fails(StatusCode::kInvalidArgument, "cuGraphLaunch"));
  fake_->fault(700);
  EXPECT_THAT(stream_->synchronize(),
              Fails(StatusCode::kAborted, "no launch of this program is unfinished"));
}

TEST_F(CudaGraphTest, WaitsForEachLaunchWhereThatIsAskedFor) {
  function_.reset();
  stream_.reset();
  device_.reset();
  setenv("HEDDLE_LAUNCH_BLOCKING", "1", 1);
  open();
  const Graph graph = Graph::capture(*stream_, launch(1)).value();
  EXPECT_THAT(fake_->calls(), Not(Contains("cuStreamSynchronize")));
  ASSERT_THAT(graph.launch(*stream_), IsOk());
  EXPECT_THAT(fake_->calls(), Contains("cuStreamSynchronize"));
}

TEST_F(CudaGraphTest, ACaptureThatCannotBeIdentifiedIsEnded) {
  fake_->fail("cuStreamGetCaptureInfo_v2", 1);
  EXPECT_THAT(Graph::capture(*stream_, launch(1)).status(),
              Fails(StatusCode::kInvalidArgument, "cuStreamGetCaptureInfo"));
  EXPECT_EQ(fake_->live().graphs, 0);
  ASSERT_THAT(launch(2)(*stream_), IsOk());
  EXPECT_THAT(launched(), ElementsAre(2));
}

TEST_F(CudaGraphTest, ACaptureIsEndedThoughTheDeviceWasLost) {
  EXPECT_THAT(Graph::capture(*stream_,
                             [&](const Stream& s) {
                               fake_->fault(700);
                               return s.synchronize();
                             }),
              Fails(StatusCode::kAborted, "cuStreamSynchronize"));
  EXPECT_THAT(fake_->calls(), Contains("cuStreamEndCapture"));
  EXPECT_EQ(fake_->live().graphs, 0);
}

}  // namespace
}  // namespace heddle::runtime::cuda
