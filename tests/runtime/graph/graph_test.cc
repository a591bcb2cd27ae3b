// Graphs on whatever device the tests run on: captured, put together, replaced, and what is refused.
#include "heddle/runtime/graph/graph.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kN = 300;

// y[i] = factor * x[i] + y[i]
const auto axpy = define_kernel("axpy(factor, x, y)",
                                [](Float factor, Tensor<const float, 1> x, Tensor<float, 1> y) {
                                  Int i = block_idx.x * block_dim.x + thread_idx.x;
                                  If(i < x.shape(0), [&] { y(i) = factor * x(i) + y(i); });
                                });
const auto fill = define_kernel("fill(value, y)", [](Float value, Tensor<float, 1> y) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < y.shape(0), [&] { y(i) = value; });
});
const auto grid_of_its_own = define_kernel("grid_of_its_own(y)", [](Tensor<float, 1> y) {
  launch_grid(ceil_div(y.shape(0), 64));
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < y.shape(0), [&] { y(i) = y(i) + 1.0f; });
});

class GraphTest : public testing::Test {
 protected:
  Buffer zeros(int n = kN) { return device_.upload<float>(std::vector<float>(n)).value(); }
  Buffer numbers(int n = kN) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.0f);
    return device_.upload<float>(values).value();
  }
  static auto in(const Buffer& b, int n = kN) { return as_tensor<const float>(b, {n}); }
  static auto out(const Buffer& b, int n = kN) { return as_tensor<float>(b, {n}); }
  std::vector<float> values(const Buffer& b) { return b.download<float>(stream_).value(); }

  const LaunchShape shape_{.grid = 3, .block = 128};
  const Device& device_ = test_device();
  Stream stream_ = test_device().create_stream().value();
};

TEST_F(GraphTest, RunsWhatWasRecordedEachTimeThatItIsLaunched) {
  const Buffer x = device_.upload<float>(std::vector<float>(kN, 2.0f)).value();
  const Buffer y = zeros();
  StatusOr<Graph> graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
    if (Status e = axpy.launch(s, shape_, 3.0f, in(x), out(y)); !e.ok()) return e;
    return axpy.launch(s, shape_, 1.0f, in(x), out(y));
  });
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(values(y), Each(0.0f)) << "recording runs nothing";
  for (int round = 1; round <= 3; ++round) {
    ASSERT_THAT(graph->launch(stream_), IsOk());
    EXPECT_THAT(values(y), Each(8.0f * round));
  }
  // On another stream, too.
  const Stream other = device_.create_stream().value();
  ASSERT_THAT(graph->launch(other), IsOk());
  ASSERT_THAT(other.synchronize(), IsOk());
  EXPECT_THAT(values(y), Each(32.0f));
}

TEST_F(GraphTest, RecordsCopiesAndFillsWithTheHostMemoryThatTheyNamed) {
  const Buffer x = zeros(), y = zeros();
  PinnedBuffer source = device_.allocate_pinned(kN * sizeof(float)).value();
  PinnedBuffer target = device_.allocate_pinned(kN * sizeof(float)).value();
  const auto set = [&](float value) { std::fill_n(static_cast<float*>(source.data()), kN, value); };
  set(1.0f);
  StatusOr<Graph> graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
    if (Status e = s.copy_to_device(x.address(), source.data(), x.size_bytes()); !e.ok()) return e;
    if (Status e = s.fill32(y.address(), 0x40000000u /* 2.0f */, kN / 2); !e.ok()) return e;
    if (Status e = s.fill8(y.address() + kN / 2 * 4, 0, kN / 2 * 4); !e.ok()) return e;
    if (Status e = axpy.launch(s, shape_, 1.0f, in(x), out(y)); !e.ok()) return e;
    if (Status e = s.copy_on_device(x.address(), y.address(), x.size_bytes()); !e.ok()) return e;
    return s.copy_to_host(target.data(), x.address(), x.size_bytes());
  });
  ASSERT_THAT(graph, IsOk());
  for (const float value : {5.0f, -1.0f}) {
    set(value);
    ASSERT_THAT(graph->launch(stream_), IsOk());
    ASSERT_THAT(stream_.synchronize(), IsOk());
    const float* const result = static_cast<const float*>(target.data());
    EXPECT_EQ(result[0], value + 2.0f);
    EXPECT_EQ(result[kN - 1], value);
  }
}

TEST_F(GraphTest, RecordsStreamsThatWaitForEachOther) {
  const Buffer x = numbers(), a = zeros(), b = zeros();
  const Stream side = device_.create_stream().value();
  Event forked = device_.create_event().value(), joined = device_.create_event().value();
  StatusOr<Graph> graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
    if (Status e = axpy.launch(s, shape_, 1.0f, in(x), out(a)); !e.ok()) return e;
    if (Status e = forked.record(s); !e.ok()) return e;
    if (Status e = side.wait(forked); !e.ok()) return e;
    if (Status e = axpy.launch(side, shape_, 2.0f, in(a), out(b)); !e.ok()) return e;
    if (Status e = joined.record(side); !e.ok()) return e;
    if (Status e = s.wait(joined); !e.ok()) return e;
    return axpy.launch(s, shape_, 1.0f, in(b), out(a));
  });
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_EQ(values(a)[7], 7.0f + 14.0f);
  EXPECT_EQ(values(b)[7], 14.0f);
  // Both streams are free again.
  ASSERT_THAT(side.synchronize(), IsOk());
}

TEST_F(GraphTest, StreamsThatTookPartAreFreeAfterwards) {
  const Buffer y = zeros();
  const Stream side = device_.create_stream().value();
  Event forked = device_.create_event().value(), joined = device_.create_event().value();
  ASSERT_THAT(Graph::capture(stream_,
                             [&](const Stream& s) -> Status {
                               if (Status e = forked.record(s); !e.ok()) return e;
                               if (Status e = side.wait(forked); !e.ok()) return e;
                               if (Status e = joined.record(side); !e.ok()) return e;
                               return s.wait(joined);
                             }),
              IsOk());
  float now = 0;
  ASSERT_THAT(Graph::capture(stream_,
                             [&](const Stream&) -> Status {
                               EXPECT_THAT(fill.launch(side, shape_, 1.0f, out(y)), IsOk());
                               EXPECT_THAT(side.copy_to_host(&now, y.address(), sizeof(now)),
                                           IsOk());
                               return side.synchronize();
                             }),
              IsOk());
  EXPECT_EQ(now, 1.0f);
}

TEST_F(GraphTest, KeepsTheCodeOfKernelsThatAreGone) {
  const Buffer y = zeros();
  std::optional<Graph> graph;
  {
    const auto local = local_kernel("local(y)", [](Tensor<float, 1> t) {
      If(thread_idx.x < 4, [&] { t(thread_idx.x) = t(thread_idx.x) + 1.0f; });
    });
    graph = Graph::capture(stream_, [&](const Stream& s) {
              return local.launch(s, {.grid = 1, .block = 32}, out(y));
            }).value();
  }
  ASSERT_THAT(graph->launch(stream_), IsOk());
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_EQ(values(y)[3], 2.0f);
  EXPECT_EQ(values(y)[4], 0.0f);
}

TEST_F(GraphTest, OwnsTheScratchMemoryOfItsWork) {
  const Buffer x = numbers(), y = zeros(), z = zeros();
  const auto through_scratch = [&](const Stream& s, const Buffer& to) -> Status {
    StatusOr<Buffer> scratch = s.allocate(kN * sizeof(float));
    if (!scratch.ok()) return scratch.status();
    if (Status e = fill.launch(s, shape_, 1.0f, out(*scratch)); !e.ok()) return e;
    if (Status e = axpy.launch(s, shape_, 2.0f, in(x), out(*scratch)); !e.ok()) return e;
    return axpy.launch(s, shape_, 1.0f, in(*scratch), out(to));
  };
  std::optional<Graph> graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
                                 if (Status e = through_scratch(s, y); !e.ok()) return e;
                                 return through_scratch(s, z);
                               }).value();
  for (int round = 1; round <= 2; ++round) {
    ASSERT_THAT(graph->launch(stream_), IsOk());
    EXPECT_EQ(values(y)[10], 21.0f * round);
    EXPECT_EQ(values(z)[11], 23.0f * round);
  }
  graph.reset();  // waits where it has to
  // A buffer that outlives its capture is the graph's all the same.
  std::optional<Buffer> kept;
  graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
            kept = s.allocate(kN * sizeof(float)).value();
            return fill.launch(s, shape_, 4.0f, out(*kept));
          }).value();
  ASSERT_THAT(graph->launch(stream_), IsOk());
  EXPECT_THAT(values(*kept), Each(4.0f));
  kept.reset();
  ASSERT_THAT(graph->launch(stream_), IsOk());
  ASSERT_THAT(stream_.synchronize(), IsOk());
}

TEST_F(GraphTest, StreamsThatRunBesideEachOtherShareNoScratchMemory) {
  const Buffer y = zeros();
  const Stream side = device_.create_stream().value();
  Event forked = device_.create_event().value(), joined = device_.create_event().value();
  ASSERT_THAT(Graph::capture(stream_,
                             [&](const Stream& s) -> Status {
                               const auto first = s.allocate(4096).value().address();
                               if (Status e = forked.record(s); !e.ok()) return e;
                               if (Status e = side.wait(forked); !e.ok()) return e;
                               EXPECT_NE(side.allocate(4096).value().address(), first);
                               EXPECT_EQ(s.allocate(4096).value().address(), first);
                               if (Status e = joined.record(side); !e.ok()) return e;
                               return s.wait(joined);
                             }),
              IsOk());
}

TEST_F(GraphTest, GraphsShareNoScratchMemory) {
  const Buffer y = zeros(), z = zeros();
  std::set<runtime::DeviceAddress> addresses;
  const auto through_scratch = [&](const Buffer& to) {
    return [&](const Stream& s) -> Status {
      const Buffer scratch = s.allocate(kN * sizeof(float)).value();
      addresses.insert(scratch.address());
      if (Status e = fill.launch(s, shape_, 2.0f, out(scratch)); !e.ok()) return e;
      return axpy.launch(s, shape_, 1.0f, in(scratch), out(to));
    };
  };
  std::optional<Graph> first = Graph::capture(stream_, through_scratch(y)).value();
  const Graph second = Graph::capture(stream_, through_scratch(z)).value();
  EXPECT_EQ(addresses.size(), 2u) << "the first gave its memory back to its own work alone";
  first.reset();
  ASSERT_THAT(second.launch(stream_), IsOk());
  EXPECT_THAT(values(z), Each(2.0f));
}

TEST_F(GraphTest, ScratchMemoryGoesWithItsGraph) {
  // Of a GPU's memory others take some, too.
  const Device device = Device::open_private_interp({});
  const Stream stream = device.create_stream().value();
  const uint64_t before = device.memory_usage().value().free_bytes;
  std::optional<Graph> graph =
      Graph::capture(stream, [](const Stream& s) { return s.allocate(4096).status(); }).value();
  EXPECT_EQ(device.memory_usage().value().free_bytes, before - 4096);
  graph.reset();
  EXPECT_EQ(device.memory_usage().value().free_bytes, before);
}

TEST_F(GraphTest, ScratchMemoryIsUninitialisedEachTime) {
  if (on_gpu()) GTEST_SKIP() << "a GPU does not know what was written";
  const Buffer y = zeros();
  runtime::DeviceAddress address = 0;
  const Graph graph = Graph::capture(stream_, [&](const Stream& s) -> Status {
                        const Buffer scratch = s.allocate(kN * sizeof(float)).value();
                        address = scratch.address();
                        return axpy.launch(s, shape_, 0.0f, in(scratch), out(y));
                      }).value();
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(stream_.fill32(address, 0, kN), IsOk());
    EXPECT_THAT(std::string(graph.launch(stream_).message()),
                HasSubstr("reads x(0), which nobody has written"));
  }
}

TEST_F(GraphTest, IsRecordedAnewWithOtherArgumentsAndOtherWork) {
  const Buffer x = numbers(), y = zeros(), z = zeros();
  const auto work = [&](float factor, const Buffer& to, int times) {
    return [&, factor, times](const Stream& s) -> Status {
      for (int i = 0; i < times; ++i) {
        if (Status e = axpy.launch(s, shape_, factor, in(x), out(to)); !e.ok()) return e;
      }
      return OkStatus();
    };
  };
  Graph graph = Graph::capture(stream_, work(1.0f, y, 1)).value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  ASSERT_THAT(graph.recapture(stream_, work(3.0f, z, 1)), IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(y)[5], 5.0f);
  EXPECT_EQ(values(z)[5], 15.0f);
  ASSERT_THAT(graph.recapture(stream_, work(1.0f, z, 3)), IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(z)[5], 30.0f);
  // Work that fails leaves the graph as it was.
  EXPECT_FALSE(
      graph.recapture(stream_, [](const Stream&) { return InvalidArgumentError("no"); }).ok());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(z)[5], 45.0f);
}

TEST_F(GraphTest, IsPutTogetherOfNodesThatRunAfterOthers) {
  const Buffer x = numbers(), a = zeros(), b = zeros(), c = zeros();
  GraphBuilder builder(device_);
  const GraphNode first = builder.add_kernel({}, axpy, shape_, 1.0f, in(x), out(a)).value();
  const GraphNode second = builder.add_kernel({}, axpy, shape_, 2.0f, in(x), out(b)).value();
  const GraphNode third =
      builder
          .add({first, second},
               [&](const Stream& s) -> Status {
                 if (Status e = axpy.launch(s, shape_, 1.0f, in(a), out(c)); !e.ok()) return e;
                 return axpy.launch(s, shape_, 1.0f, in(b), out(c));
               })
          .value();
  ASSERT_THAT(builder.add_kernel({third}, axpy, shape_, 1.0f, in(c), out(a)), IsOk());
  const Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(c)[9], 27.0f);
  EXPECT_EQ(values(a)[9], 36.0f);
}

TEST_F(GraphTest, ReplacesNodesInPlace) {
  const Buffer x = numbers(), y = zeros(), z = zeros();
  GraphBuilder builder(device_);
  const GraphNode kernel = builder.add_kernel({}, axpy, shape_, 1.0f, in(x), out(y)).value();
  const GraphNode work =
      builder
          .add({kernel},
               [&](const Stream& s) { return axpy.launch(s, shape_, 1.0f, in(y), out(z)); })
          .value();
  Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(z)[4], 4.0f);  // y = 4

  ASSERT_THAT(graph.set_kernel(kernel, axpy, shape_, 2.0f, in(x), out(y)), IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(z)[4], 16.0f);  // y = 12

  // Another kernel, another block, other sizes.
  ASSERT_THAT(graph.set_kernel(kernel, fill, {.grid = 1, .block = 64}, 1.0f, out(y, 20)), IsOk());
  ASSERT_THAT(graph.set(work,
                        [&](const Stream& s) {
                          return axpy.launch(s, {.grid = 1, .block = 32}, 10.0f, in(y, 20),
                                             out(z, 20));
                        }),
              IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_EQ(values(z)[4], 26.0f);
  EXPECT_EQ(values(z)[20], 80.0f);  // as before
}

TEST_F(GraphTest, NodesWithNothingToDoAreSkipped) {
  const Buffer y = zeros();
  GraphBuilder builder(device_);
  const GraphNode node = builder.add_kernel({}, grid_of_its_own, {.block = 64}, out(y)).value();
  ASSERT_THAT(builder.add_kernel({node}, axpy, shape_, 1.0f, in(y), out(y)), IsOk());
  Graph graph = std::move(builder).build().value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(2.0f));
  ASSERT_THAT(graph.set_kernel(node, grid_of_its_own, {.block = 64}, out(y, 0)), IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(4.0f));
  ASSERT_THAT(graph.set_kernel(node, grid_of_its_own, {.block = 64}, out(y)), IsOk());
  ASSERT_THAT(graph.launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(10.0f));
}

TEST_F(GraphTest, IsNotRecordedItself) {
  const Buffer y = zeros();
  const auto work = [&](const Stream& s) { return fill.launch(s, shape_, 1.0f, out(y)); };
  const Graph inner = Graph::capture(stream_, work).value();
  EXPECT_THAT(
      Graph::capture(stream_, [&](const Stream& s) { return inner.launch(s); }),
      Fails(StatusCode::kFailedPrecondition, "graphs are not recorded themselves; fix: record"));
  ASSERT_THAT(inner.launch(stream_), IsOk());
  EXPECT_THAT(values(y), Each(1.0f));
}

TEST_F(GraphTest, AnEmptyGraphDoesNothing) {
  ASSERT_THAT(GraphBuilder(device_).build().value().launch(stream_), IsOk());
  const Graph graph = Graph::capture(stream_, [](const Stream&) { return OkStatus(); }).value();
  ASSERT_THAT(graph.launch(stream_), IsOk());
  ASSERT_THAT(stream_.synchronize(), IsOk());
}

// What is refused, and in which words.

TEST_F(GraphTest, RefusesTheDefaultStream) {
  const Status status =
      Graph::capture(device_.default_stream(), [](const Stream&) { return OkStatus(); }).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the default stream's work cannot be recorded; fix: make a stream by "
            "Device::create_stream()");
}

TEST_F(GraphTest, RefusesToWaitForWorkThatIsBeingRecorded) {
  const auto refused = [&](absl::FunctionRef<Status(const Stream&)> wait) {
    const Status status = Graph::capture(stream_, [&](const Stream& s) -> Status {
                            EXPECT_FALSE(wait(s).ok());
                            return OkStatus();  // the capture is lost all the same
                          }).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("move the call out of the"));
    EXPECT_THAT(stream_.synchronize(), IsOk());
  };
  refused([](const Stream& s) { return s.synchronize(); });
  refused([](const Stream& s) { return s.done().status(); });
  refused([](const Stream& s) { return s.device().synchronize(); });
}

TEST_F(GraphTest, RefusesToAskForEventsOfRecordedWork) {
  Event event = device_.create_event().value();
  ASSERT_THAT(Graph::capture(stream_,
                             [&](const Stream& s) -> Status {
                               if (Status e = event.record(s); !e.ok()) return e;
                               return OkStatus();
                             }),
              IsOk());
  EXPECT_FALSE(event.synchronize().ok());
  EXPECT_FALSE(event.done().ok());
  ASSERT_THAT(event.record(stream_), IsOk());
  ASSERT_THAT(event.synchronize(), IsOk());
}

TEST_F(GraphTest, RefusesStreamsThatNobodyWaitsFor) {
  const Buffer y = zeros();
  const Stream side = device_.create_stream().value();
  Event forked = device_.create_event().value();
  const Status status = Graph::capture(stream_, [&](const Stream& s) -> Status {
                          if (Status e = forked.record(s); !e.ok()) return e;
                          if (Status e = side.wait(forked); !e.ok()) return e;
                          return fill.launch(side, shape_, 1.0f, out(y));
                        }).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("let the captured stream wait for"));
}

TEST_F(GraphTest, RefusesStreamsThatWorkOnAfterTheLastWait) {
  const Buffer y = zeros();
  const Stream side = device_.create_stream().value();
  Event forked = device_.create_event().value(), joined = device_.create_event().value();
  EXPECT_THAT(Graph::capture(stream_,
                             [&](const Stream& s) -> Status {
                               if (Status e = forked.record(s); !e.ok()) return e;
                               if (Status e = side.wait(forked); !e.ok()) return e;
                               if (Status e = joined.record(side); !e.ok()) return e;
                               if (Status e = s.wait(joined); !e.ok()) return e;
                               return fill.launch(side, shape_, 1.0f, out(y));
                             }),
              Fails(StatusCode::kFailedPrecondition, "let the captured stream wait for"));
}

TEST_F(GraphTest, RefusesToDependOnWorkOutsideTheCapture) {
  Event outside = device_.create_event().value();
  const Stream other = device_.create_stream().value();
  ASSERT_THAT(outside.record(other), IsOk());
  const Status status =
      Graph::capture(stream_, [&](const Stream& s) { return s.wait(outside); }).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("move the call out of the"));
}

TEST_F(GraphTest, RefusesToDependOnWorkOfAnotherCapture) {
  Event theirs = device_.create_event().value();
  const Stream other = device_.create_stream().value();
  const auto waiting = [&](const Stream& o) -> Status {
    EXPECT_FALSE(o.wait(theirs).ok());
    return OkStatus();
  };
  const Status outer =
      Graph::capture(stream_, [&](const Stream& s) -> Status {
        if (Status e = theirs.record(s); !e.ok()) return e;
        EXPECT_THAT(Graph::capture(other, waiting),
                    Fails(StatusCode::kFailedPrecondition, "move the call out of the"));
        return OkStatus();
      }).status();
  if (on_gpu()) return;  // whose driver may give up both
  EXPECT_THAT(outer, IsOk());
}

TEST_F(GraphTest, ReturnsTheFirstErrorOfItsWork) {
  const Buffer y = zeros();
  const Status status = Graph::capture(stream_, [&](const Stream& s) {
                          return fill.launch(s, {.grid = 1, .block = 2000}, 1.0f, out(y));
                        }).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("2000"));
  ASSERT_THAT(fill.launch(stream_, shape_, 1.0f, out(y)), IsOk()) << "the stream is free again";
  EXPECT_THAT(values(y), Each(1.0f));
}

TEST_F(GraphTest, RefusesNodesThatAreNotItsOwnOrOfAnotherKind) {
  const Buffer y = zeros();
  GraphBuilder one(device_), two(device_);
  const GraphNode node = one.add_kernel({}, fill, shape_, 1.0f, out(y)).value();
  EXPECT_EQ(two.add_kernel({node}, fill, shape_, 1.0f, out(y)).status().message(),
            "a graph's node comes after a node of another graph");
  Graph other = std::move(two).build().value();
  EXPECT_EQ(other.set_kernel(node, fill, shape_, 1.0f, out(y)).message(),
            "a node of another graph");
  Graph graph = std::move(one).build().value();
  EXPECT_EQ(graph.set(node, [](const Stream&) { return OkStatus(); }).message(),
            "the node was added by add_kernel(); fix: replace it by set_kernel()");
  EXPECT_THAT(
      std::string(graph.recapture(stream_, [](const Stream&) { return OkStatus(); }).message()),
      HasSubstr("fix: replace its nodes by set() and set_kernel()"));
  const Graph moved = std::move(graph);
  EXPECT_THAT(std::string(graph.launch(stream_).message()), HasSubstr("a Graph was used after"));
  EXPECT_THAT(std::string(one.add({}, [](const Stream&) { return OkStatus(); }).status().message()),
              HasSubstr("a GraphBuilder was used after"));
}

TEST_F(GraphTest, RefusesSeveralLaunchesInANodeOfOne) {
  const Buffer y = zeros();
  GraphBuilder builder(device_);
  const Status status =
      builder
          .add_launch({},
                      [&](const Stream& s) -> Status {
                        if (Status e = fill.launch(s, shape_, 1.0f, out(y)); !e.ok()) return e;
                        return fill.launch(s, shape_, 2.0f, out(y));
                      })
          .status();
  EXPECT_EQ(status.message(),
            "a graph's node of one launch enqueues 2 of them; fix: add it by GraphBuilder::add()");
}

TEST_F(GraphTest, RefusesAStreamOfAnotherDevice) {
  const Device other = Device::open_private_interp({});
  const Graph graph = GraphBuilder(other).build().value();
  EXPECT_EQ(graph.launch(stream_).message(), "a graph and its stream: one belongs to " +
                                                 other.name() + ", the other to " + device_.name());
}

}  // namespace
}  // namespace heddle
