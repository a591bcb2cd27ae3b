// Graphs after something went wrong, and objects that end in an order of their own, on whatever device the tests run on.
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/graph/graph.h"
#include "heddle/runtime/graph/graph_memory.h"
#include "heddle/runtime/interp_backend.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::Each;

constexpr int kN = 64;
constexpr size_t kBytes = kN * sizeof(float);
constexpr LaunchShape kShape{.grid = 2, .block = 32};

const auto fill = define_kernel("fill(value, y)", [](Float value, Tensor<float, 1> y) {
  y(block_idx.x * block_dim.x + thread_idx.x) = value;
});
const auto add = define_kernel("add(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  y(i) = y(i) + x(i);
});

class GraphMisuseTest : public testing::Test {
 protected:
  Buffer zeros() { return device_.upload<float>(std::vector<float>(kN)).value(); }
  static auto out(const Buffer& b) { return as_tensor<float>(b, {kN}); }
  static auto in(const Buffer& b) { return as_tensor<const float>(b, {kN}); }
  std::vector<float> values(const Buffer& b) { return b.download<float>(stream_).value(); }

  const Device& device_ = test_device();
  Stream stream_ = test_device().create_stream().value();
};

TEST_F(GraphMisuseTest, ANodeThatCouldNotBeAddedIsNotThere) {
  const Buffer y = zeros(), z = zeros();
  GraphBuilder builder(device_);
  EXPECT_FALSE(builder.add_kernel({}, fill, {.grid = 1, .block = 2000}, 1.0f, out(y)).ok());
  const StatusOr<GraphNode> node = builder.add_kernel({}, fill, kShape, 2.0f, out(y));
  ASSERT_THAT(node, IsOk());
  StatusOr<Graph> graph = std::move(builder).build();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(2.0f));
  ASSERT_THAT(graph->set_kernel(*node, fill, kShape, 3.0f, out(z)), IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(2.0f)) << "nobody writes it any more";
  EXPECT_THAT(values(z), Each(3.0f));
}

TEST_F(GraphMisuseTest, ScratchMemoryThatIsKeptOutlivesWhatItWasRecordedFor) {
  const Buffer y = zeros();
  std::optional<Buffer> scratch;
  float value = 1.0f;
  const auto work = [&](const Stream& s) -> Status {
    if (!scratch) scratch = s.allocate(kBytes).value();
    if (Status e = fill.launch(s, kShape, value, out(*scratch)); !e.ok()) return e;
    return add.launch(s, kShape, in(*scratch), out(y));
  };
  StatusOr<Graph> graph = Graph::capture(stream_, work);
  ASSERT_THAT(graph, IsOk());
  value = 2.0f;
  ASSERT_THAT(graph->recapture(stream_, work), IsOk());
  // What is new does not lie where the scratch memory does.
  const Buffer more = stream_.allocate(kBytes).value(),
               even_more = device_.allocate(kBytes).value();
  ASSERT_THAT(fill.launch(stream_, kShape, 9.0f, out(more)), IsOk());
  ASSERT_THAT(fill.launch(stream_, kShape, 9.0f, out(even_more)), IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(2.0f));
  EXPECT_THAT(values(more), Each(9.0f));
  EXPECT_THAT(values(even_more), Each(9.0f));
  // The buffer is as good as any other without its graph.
  graph = InternalError("gone");
  ASSERT_THAT(fill.launch(stream_, kShape, 4.0f, out(*scratch)), IsOk());
  EXPECT_THAT(values(*scratch), Each(4.0f));
}

TEST_F(GraphMisuseTest, ScratchMemoryOfACaptureThatFailedIsFreedOnce) {
  std::optional<Buffer> kept;
  EXPECT_FALSE(Graph::capture(stream_, [&](const Stream& s) -> Status {
                 kept = s.allocate(kBytes).value();
                 return InternalError("given up");
               }).ok());
  std::optional<Buffer> of_next;
  const StatusOr<Graph> next = Graph::capture(stream_, [&](const Stream& s) -> Status {
    of_next = s.allocate(kBytes).value();
    kept.reset();
    const Buffer third = s.allocate(kBytes).value();
    EXPECT_NE(third.address(), of_next->address());
    return fill.launch(s, kShape, 1.0f, out(*of_next));
  });
  ASSERT_THAT(next, IsOk());
  ASSERT_THAT(next->launch(stream_), IsOk());
  EXPECT_THAT(values(*of_next), Each(1.0f));
}

TEST_F(GraphMisuseTest, ANodeOfOneLaunchTakesNothingElse) {
  const Buffer y = zeros();
  Event event = device_.create_event().value();
  ASSERT_THAT(event.record(stream_), IsOk());
  std::vector<float> host(kN);
  const std::vector<std::function<Status(const Stream&)>> others = {
      [&](const Stream& s) { return s.fill8(y.address(), 0, kBytes); },
      [&](const Stream& s) { return s.fill32(y.address(), 0, kN); },
      [&](const Stream& s) { return s.copy_to_device(y.address(), host.data(), kBytes); },
      [&](const Stream& s) { return s.copy_to_host(host.data(), y.address(), kBytes); },
      [&](const Stream& s) { return s.copy_on_device(y.address(), y.address() + 128, 128); },
      [&](const Stream& s) { return s.synchronize(); },
      [&](const Stream& s) { return s.done().status(); },
      [&](const Stream& s) { return s.wait(event); },
      [&](const Stream& s) { return event.record(s); },
  };
  GraphBuilder builder(device_);
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_THAT(builder.add_launch({}, others[i]),
                Fails(StatusCode::kInvalidArgument, "GraphBuilder::add()"))
        << i;
  }
  const StatusOr<GraphNode> node = builder.add_kernel({}, fill, kShape, 1.0f, out(y));
  ASSERT_THAT(node, IsOk());
  StatusOr<Graph> graph = std::move(builder).build();
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(graph->set_launch(*node, others[0]),
              Fails(StatusCode::kInvalidArgument, "GraphBuilder::add()"));
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(1.0f));
}

TEST_F(GraphMisuseTest, ANodeOfOneLaunchMayHaveScratchMemory) {
  const Buffer y = zeros();
  GraphBuilder builder(device_);
  ASSERT_THAT(builder.add_launch({},
                                 [&](const Stream& s) {
                                   const Buffer scratch = s.allocate(kBytes).value();
                                   return fill.launch(s, kShape, 3.0f, out(y));
                                 }),
              IsOk());
  const StatusOr<Graph> graph = std::move(builder).build();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(3.0f));
}

TEST_F(GraphMisuseTest, AGraphThatIsAssignedEndsBeforeItsDevice) {
  const Buffer y = zeros();
  const auto work = [&](const Stream& s) { return fill.launch(s, kShape, 1.0f, out(y)); };
  Graph graph = [] {
    const Device device = Device::open_private_interp(runtime::InterpBackend::default_info());
    const Stream stream = device.create_stream().value();
    return Graph::capture(stream, [](const Stream& s) { return s.allocate(kBytes).status(); })
        .value();
  }();
  graph = Graph::capture(stream_, work).value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(1.0f));
}

TEST_F(GraphMisuseTest, CopiesToTheHostAreCheckedWhenTheyRun) {
  const Buffer y = device_.allocate(kBytes).value(), never = device_.allocate(kBytes).value();
  PinnedBuffer host = device_.allocate_pinned(kBytes).value();
  const StatusOr<Graph> graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
    if (Status e = fill.launch(s, kShape, 5.0f, out(y)); !e.ok()) return e;
    return s.copy_to_host(host.data(), y.address(), kBytes);
  });
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  ASSERT_THAT(stream_.synchronize(), IsOk());
  EXPECT_EQ(static_cast<const float*>(host.data())[kN - 1], 5.0f);

  const StatusOr<Graph> early = Graph::capture(stream_, [&](const Stream& s) {
    return s.copy_to_host(host.data(), never.address(), kBytes);
  });
  ASSERT_THAT(early, IsOk());
  if (!on_gpu()) {
    EXPECT_THAT(early->launch(stream_),
                Fails(StatusCode::kFailedPrecondition, "Unwritten::kAllow"));
  }
}

TEST_F(GraphMisuseTest, ProgrammaticNodesWaitForWhatTheyComeAfter) {
  const Buffer x = zeros(), y = zeros();
  LaunchShape early = kShape;
  early.programmatic = true;
  GraphBuilder builder(device_);
  const StatusOr<GraphNode> first = builder.add_kernel({}, fill, kShape, 2.0f, out(x));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(builder.add_kernel({*first}, add, early, in(x), out(y)), IsOk());
  const StatusOr<Graph> graph = std::move(builder).build();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(2.0f));
  // So does a graph for what its stream has done.
  const StatusOr<Graph> alone =
      Graph::capture(stream_, [&](const Stream& s) { return add.launch(s, early, in(x), out(y)); });
  ASSERT_THAT(alone, IsOk());
  ASSERT_THAT(fill.launch(stream_, kShape, 1.0f, out(x)), IsOk());
  ASSERT_THAT(alone->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(3.0f));
}

TEST_F(GraphMisuseTest, WhatReplacesANodeResemblesIt) {
  const Buffer y = zeros();
  const auto once = [&](const Stream& s) { return fill.launch(s, kShape, 1.0f, out(y)); };
  const auto twice = [&](const Stream& s) -> Status {
    if (Status e = once(s); !e.ok()) return e;
    return once(s);
  };
  GraphBuilder builder(device_);
  const GraphNode kernel = builder.add_kernel({}, fill, kShape, 1.0f, out(y)).value();
  const GraphNode nothing =
      builder.add_launch({kernel}, [](const Stream&) { return OkStatus(); }).value();
  const GraphNode part = builder.add({nothing}, once).value();
  StatusOr<Graph> graph = std::move(builder).build();
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(graph->set_kernel(kernel, fill, {.grid = 2, .block = 32, .cluster = 2}, 1.0f, out(y)),
              Fails(StatusCode::kFailedPrecondition, "cluster"));
  EXPECT_THAT(
      graph->set_kernel(kernel, fill, {.grid = 2, .block = 32, .cooperative = true}, 1.0f, out(y)),
      Fails(StatusCode::kFailedPrecondition, "cooperative"));
  EXPECT_THAT(graph->set_launch(nothing, once),
              Fails(StatusCode::kFailedPrecondition, "nothing to launch"));
  EXPECT_THAT(graph->set(part, twice),
              Fails(StatusCode::kFailedPrecondition, "other launches or copies"));
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(1.0f));
}

TEST_F(GraphMisuseTest, AStreamIsRecordedOnceAtATime) {
  Status inner;
  const StatusOr<Graph> outer = Graph::capture(stream_, [&](const Stream& s) {
    inner = Graph::capture(s, [](const Stream&) { return OkStatus(); }).status();
    return OkStatus();
  });
  EXPECT_THAT(inner, Fails(StatusCode::kFailedPrecondition, "already being recorded"));
  EXPECT_THAT(outer, IsOk());
}

TEST_F(GraphMisuseTest, WorkThatThrowsEndsItsCapture) {
  const Buffer y = zeros();
  EXPECT_THROW(
      (void)Graph::capture(stream_, [](const Stream&) -> Status { throw std::runtime_error("!"); }),
      std::runtime_error);
  GraphBuilder builder(device_);
  EXPECT_THROW(
      (void)builder.add_launch({}, [](const Stream&) -> Status { throw std::runtime_error("!"); }),
      std::runtime_error);
  ASSERT_THAT(fill.launch(stream_, kShape, 1.0f, out(y)), IsOk());
  EXPECT_THAT(values(y), Each(1.0f)) << "it has run";
}

TEST(GraphMemory, IsNotUsedAgainByAnotherStreamOfTheSameHandle) {
  const Device device = Device::open_private_interp(runtime::InterpBackend::default_info());
  runtime::Backend& backend = *device.backend();
  runtime::GraphMemory memory;
  const int owner = 0;
  constexpr runtime::StreamHandle kStream{7};
  const runtime::DeviceAddress first = memory.allocate(backend, &owner, kStream, 512).value();
  EXPECT_TRUE(memory.give_back(backend, first));
  EXPECT_EQ(memory.allocate(backend, &owner, kStream, 512).value(), first);
  EXPECT_TRUE(memory.give_back(backend, first));
  memory.forget(kStream);
  const runtime::DeviceAddress second = memory.allocate(backend, &owner, kStream, 512).value();
  EXPECT_NE(second, first);
  EXPECT_TRUE(memory.give_back(backend, second));
  memory.release(backend, &owner);
}

}  // namespace
}  // namespace heddle
