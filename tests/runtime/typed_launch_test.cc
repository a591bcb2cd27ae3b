// Typed launches and compiled kernels, from lambda to result, on whatever device the tests run on.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/kernel_cache.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

const auto row_sum =
    define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      Int row = block_idx.x;
      Float sum = For(range(thread_idx.x, x.shape(1), block_dim.x), Float(0),
                      [&](Int col, Float acc) { return acc + x(row, col); });
      Float total = block_reduce(sum, plus());
      If(thread_idx.x == 0, [&] { y(row) = total; });
    });

struct Scale {
  Float factor;
  Int offset;
};
const auto saxpy = define_kernel(
    "saxpy(x, y, factor, offset, n)",
    [](Pointer<const float> x, Tensor<float, 1> y, Scale scale, Int n) {
      Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < n, [&] { y(i) = scale.factor * x[i] + y(i) + cast<float>(scale.offset); });
    });

class TypedLaunchTest : public testing::Test {
 protected:
  const Device& device_ = test_device();
  Stream stream_ = test_device().create_stream().value();

  // Sums the rows of a matrix of ones and checks them.
  Status sum_ones(int64_t rows, int64_t columns) {
    const std::vector<float> ones(rows * columns, 1.0f);
    const Buffer x = device_.upload(absl::MakeConstSpan(ones)).value();
    const Buffer y = device_.allocate(rows * sizeof(float)).value();
    const Status status =
        row_sum.launch(stream_, {.grid = rows, .block = 128},
                       as_tensor<const float>(x, {rows, columns}), as_tensor<float>(y, {rows}));
    if (!status.ok()) return status;
    EXPECT_THAT(y.download<float>(stream_).value(),
                testing::Each(testing::Eq(static_cast<float>(columns))));
    return status;
  }
};

TEST_F(TypedLaunchTest, ArraysKnowTheirElementsAndExtents) {
  const auto x = DeviceArray<float, 2>::upload(device_, {2, 3}, {1, 2, 3, 4, 5, 6}).value();
  auto y = DeviceArray<float, 1>::allocate(device_, {2}).value();
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(x.shape(0), 2);
  EXPECT_EQ(x.shape(1), 3);
  const auto last_of = define_kernel("last_of(x[rows, n], y[rows])",
                                     [](Tensor<const float, 2> from, Tensor<float, 1> to) {
                                       to(block_idx.x) = from(block_idx.x, from.shape(1) - 1);
                                     });
  ASSERT_THAT(last_of.launch(stream_, {.grid = 2, .block = 1}, x, y), IsOk());
  EXPECT_THAT(y.download(stream_).value(), testing::ElementsAre(3.0f, 6.0f));
  EXPECT_THAT(
      y.copy_from_host(stream_, {1.0f, 2.0f, 3.0f}),
      Fails(StatusCode::kInvalidArgument,
            "an array of 2 has 2 elements, and 3 values were given; fix: give one for each"));
  EXPECT_THAT(
      (DeviceArray<float, 2>::upload(device_, {2, 3}, {1}).status()),
      Fails(StatusCode::kInvalidArgument, "an array of 2x3 has 6 elements, and 1 value was given"));
  EXPECT_THAT((DeviceArray<float, 2>::allocate(device_, {-1, 3}).status()),
              Fails(StatusCode::kInvalidArgument, "an array of -1x3: extents are 0 or more"));
  for (const int64_t huge : {int64_t{1} << 40, int64_t{1} << 30}) {
    EXPECT_THAT(
        (DeviceArray<double, 2>::allocate(device_, {huge, int64_t{1} << 32}).status()),
        Fails(StatusCode::kInvalidArgument, "x4294967296 elements of 8 bytes has more bytes"));
  }
  auto moved = std::move(y);
  EXPECT_THAT(last_of.launch(stream_, {.grid = 2, .block = 1}, x, y),
              Fails(StatusCode::kInvalidArgument, "argument 1 ('y')", "is a null pointer"));
  auto empty = DeviceArray<float, 2>::upload(device_, {0, 3}, {}).value();
  EXPECT_TRUE(empty.download(stream_).value().empty());
  // A kernel that writes takes no constant array, nor one of other elements or modes.
  static_assert(!std::is_convertible_v<const DeviceArray<float, 1>&, TensorRef<float, 1>>);
  static_assert(!std::is_convertible_v<DeviceArray<int, 1>&, TensorRef<float, 1>>);
  static_assert(!std::is_convertible_v<DeviceArray<float, 1>&, TensorRef<float, 2>>);
}

TEST_F(TypedLaunchTest, ExtentsAreDynamicByDefault) {
  // One variant serves all three: what differs is no guard.
  EXPECT_THAT(sum_ones(1024, 1024), IsOk());
  EXPECT_THAT(sum_ones(1024, 32), IsOk());
  EXPECT_THAT(sum_ones(64, 32), IsOk());
  EXPECT_EQ(runtime::KernelCache::of(row_sum.source()).size(), 1);
}

TEST_F(TypedLaunchTest, AFixedExtentRefusesOthersBeforeAnythingRuns) {
  const auto options = [&](const Signature& signature) {
    return row_sum.compile(
        signature,
        runtime::Executable::options_for(*device_.backend(), CompileOptions{.block = {128, 1, 1}}));
  };
  const auto fixed = options({tensor({kAny, 1024}), tensor({kAny})});
  ASSERT_THAT(fixed, IsOk());
  const std::vector<float> ones(1024 * 1024, 1.0f);
  const Buffer x = device_.upload(absl::MakeConstSpan(ones)).value();
  Buffer y = device_.allocate(1024 * sizeof(float)).value();
  const LaunchShape shape{.grid = 1024, .block = 128};
  ASSERT_THAT(fixed->launch(stream_, shape, as_tensor<const float>(x, {1024, 1024}),
                            as_tensor<float>(y, {1024})),
              IsOk());
  EXPECT_THAT(y.download<float>(stream_).value(), testing::Each(testing::Eq(1024.0f)));
  ASSERT_THAT(y.fill(stream_, 0), IsOk());
  EXPECT_THAT(fixed->launch(stream_, shape, as_tensor<const float>(x, {1024, 32}),
                            as_tensor<float>(y, {1024})),
              Fails(StatusCode::kInvalidArgument, "argument 0 ('x')", "kernel 'row_sum'",
                    "extent 32 in mode 1", "compiled for 1024", "fix: "));
  EXPECT_THAT(y.download<float>(stream_).value(), testing::Each(testing::Eq(0.0f)));
  EXPECT_THAT(fixed->launch(stream_, {.grid = 64, .block = 128},
                            as_tensor<const float>(x, {64, 32}), as_tensor<float>(y, {64})),
              Fails(StatusCode::kInvalidArgument, "extent 32 in mode 1"));
}

TEST_F(TypedLaunchTest, StructsPointersAndScalars) {
  const Buffer x = device_.upload<float>({1, 2, 3, 4, 5}).value();
  const Buffer y = device_.upload<float>({10, 20, 30, 40, 50}).value();
  ASSERT_THAT(
      saxpy.launch(stream_, {.grid = 1, .block = 64}, reinterpret_cast<const float*>(x.address()),
                   as_tensor<float>(y, {5}), Scale{2.0f, 100}, 4),
      IsOk());
  EXPECT_EQ(y.download<float>(stream_).value(), (std::vector<float>{112, 124, 136, 148, 50}));
}

TEST_F(TypedLaunchTest, InPlaceCallsGiveWhatTheProgramSays) {
  // x and y may be one array: the second load must come after the store.
  const auto twice = define_kernel("twice(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    Int i = thread_idx.x;
    y(i) = x(i) + 1.0f;
    y(i) = x(i) + 10.0f;
  });
  const Buffer memory = device_.upload<float>({0, 1, 2, 3}).value();
  const Buffer other = device_.upload<float>({0, 0, 0, 0}).value();
  const auto x = as_tensor<const float>(memory, {4});
  ASSERT_THAT(twice.launch(stream_, {.block = 4}, x, as_tensor<float>(other, {4})), IsOk());
  EXPECT_EQ(other.download<float>(stream_).value(), (std::vector<float>{10, 11, 12, 13}));
  ASSERT_THAT(twice.launch(stream_, {.block = 4}, x, as_tensor<float>(memory, {4})), IsOk());
  EXPECT_EQ(memory.download<float>(stream_).value(), (std::vector<float>{11, 12, 13, 14}));
}

TEST_F(TypedLaunchTest, VariantsFollowTheFactsThatAreRead) {
  const auto copy = define_kernel("copy(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const int width = std::min(x.vector_width(), y.vector_width());
    if (width == 4) {
      Int i = thread_idx.x * 4;
      If(i < x.shape(0), [&] { y.vec<4>(i) = x.vec<4>(i); });
    } else {
      for (int k = 0; k < 4; ++k) {
        Int i = thread_idx.x * 4 + k;
        If(i < x.shape(0), [&] { y(i) = x(i); });
      }
    }
  });
  const Buffer x = device_.upload<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}).value();
  Buffer y = device_.allocate(9 * sizeof(float)).value();
  const auto* data = reinterpret_cast<const float*>(x.address());
  auto* out = reinterpret_cast<float*>(y.address());
  for (const int offset : {0, 1, 0, 1}) {
    ASSERT_THAT(y.fill(stream_, 0), IsOk());
    ASSERT_THAT(copy.launch(stream_, {.block = 32}, TensorRef<const float, 1>(data + offset, {8}),
                            TensorRef<float, 1>(out + offset, {8})),
                IsOk());
    EXPECT_EQ(y.download<float>(stream_).value()[offset + 7], 8.0f + offset);
  }
  EXPECT_EQ(runtime::KernelCache::of(copy.source()).size(), 2);
}

// A variant is for one block, whose threads its code may have counted.
TEST_F(TypedLaunchTest, EachBlockHasItsVariant) {
  const auto count = define_kernel("count(y)", [](Tensor<int, 1> y) {
    If(thread_idx.x == 0, [&] { y(0) = Int(block_dim.x) + 1000 * Int(block_dim.y); });
  });
  Buffer y = device_.allocate(sizeof(int)).value();
  int variants = 0;
  for (const Dim3 block : {Dim3(32), Dim3(64), Dim3(32, 2), Dim3(32), Dim3(32, 2)}) {
    ASSERT_THAT(count.launch(stream_, {.block = block}, as_tensor<int>(y, {1})), IsOk());
    EXPECT_EQ(y.download<int>(stream_).value()[0],
              static_cast<int>(block.x) + 1000 * static_cast<int>(block.y));
    variants =
        std::max(variants, static_cast<int>(runtime::KernelCache::of(count.source()).size()));
  }
  EXPECT_EQ(variants, 3);
}

// And for one cluster, whose size is a host number.
TEST_F(TypedLaunchTest, EachClusterHasItsVariant) {
  if (!device_.info().cluster_launch) GTEST_SKIP() << "this device has no clusters";
  const auto sizes =
      define_kernel("sizes(y)", [](Tensor<int, 1> y) { y(block_idx.x) = cluster_size(); });
  const Buffer y = device_.allocate(2 * sizeof(int)).value();
  for (const int size : {1, 2, 1}) {
    ASSERT_THAT(
        sizes.launch(stream_, {.grid = 2, .block = 1, .cluster = size}, as_tensor<int>(y, {2})),
        IsOk());
    EXPECT_THAT(y.download<int>(stream_).value(), testing::Each(size));
  }
  EXPECT_EQ(runtime::KernelCache::of(sizes.source()).size(), 2);
}

TEST_F(TypedLaunchTest, ArgumentsThatNoKernelTakesAreRefused) {
  const Buffer y = device_.allocate(16).value();
  const LaunchShape shape{.grid = 4, .block = 32};
  EXPECT_THAT(row_sum.launch(stream_, shape, TensorRef<const float, 2>(nullptr, {4, 4}),
                             as_tensor<float>(y, {4})),
              Fails(StatusCode::kInvalidArgument, "argument 0 ('x')", "null pointer"));
  EXPECT_THAT(
      row_sum.launch(stream_, shape, as_tensor<const float>(y, {4, 4}), as_tensor<float>(y, {4})),
      Fails(StatusCode::kInvalidArgument, "reaches 64 bytes into a buffer of 16"));
  EXPECT_THAT(
      row_sum.launch(stream_, shape, as_tensor<const float>(y, {-1, 4}), as_tensor<float>(y, {4})),
      Fails(StatusCode::kInvalidArgument, "extent -1 in mode 0"));
  const Buffer large = device_.allocate(128).value();
  EXPECT_THAT(row_sum.launch(stream_, shape,
                             TensorRef<const float, 2>(
                                 reinterpret_cast<const float*>(large.address() + 2), {4, 4}),
                             as_tensor<float>(large, {4})),
              Fails(StatusCode::kInvalidArgument, "no multiple of its elements' 4 bytes"));
  EXPECT_THAT(row_sum.launch(stream_, shape, as_tensor<const float>(large, {int64_t{1} << 62, 8}),
                             as_tensor<float>(large, {4})),
              Fails(StatusCode::kInvalidArgument, "reaches further than 64 bits can count"));
  EXPECT_THAT(row_sum.launch(stream_, {.grid = 4, .block = 2048}, as_tensor<const float>(y, {2, 2}),
                             as_tensor<float>(y, {4})),
              Fails(StatusCode::kInvalidArgument, "2048", "1024"));
  EXPECT_THAT(row_sum.launch(stream_, {.grid = 4, .block = 0},
                             as_tensor<const float>(large, {2, 2}), as_tensor<float>(large, {4})),
              Fails(StatusCode::kInvalidArgument, "give a block at least one thread"));
}

TEST_F(TypedLaunchTest, HundredsOfParameters) {
  struct Dozen {
    Float a, b, c, d, e, f, g, h, i, j, k, l;
  };
  const auto sum = [](const Dozen& d) {
    return d.a + d.b + d.c + d.d + d.e + d.f + d.g + d.h + d.i + d.j + d.k + d.l;
  };
  using D = Dozen;
  const auto many = define_kernel(
      "many", [sum](D a, D b, D c, D d, D e, D f, D g, D h, D i, D j, D k, D l, D m, D n, D o, D p,
                    D q, D r, D s, D t, D u, D v, Tensor<const float, 1> x, Tensor<float, 1> y) {
        y(0) = x(0);
        for (const D& part : {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v}) {
          y(0) += sum(part);
        }
      });
  const Dozen one{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const Buffer x = device_.upload<float>({0.5f}).value();
  const Buffer y = device_.allocate(4).value();
  ASSERT_THAT(many.launch(stream_, {.block = 1}, one, one, one, one, one, one, one, one, one, one,
                          one, one, one, one, one, one, one, one, one, one, one, one,
                          as_tensor<const float>(x, {1}), as_tensor<float>(y, {1})),
              IsOk());
  EXPECT_EQ(y.download<float>(stream_).value(), (std::vector<float>{264.5f}));
}

TEST_F(TypedLaunchTest, MistakesOfTheKernelComeBackFromTheLaunch) {
  const auto wrong = define_kernel("wrong(y)", [](Tensor<float, 1> y) {
    If(thread_idx.x < 3, [&] { sync_threads(); });
    y(0) = 1.0f;
  });
  const Buffer y = device_.allocate(16).value();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(wrong.launch(stream_, {.block = 32}, as_tensor<float>(y, {4})),
                Fails(StatusCode::kInvalidArgument, "kernel 'wrong'", "typed_launch_test.cc",
                      "has 1 error", "fix: "));
  }
}

TEST_F(TypedLaunchTest, AKernelWithoutEffectsIsAMistake) {
  const int line = __LINE__ + 1;
  const auto idle = define_kernel("idle(x)", [](Tensor<const float, 1> x) { x(0); });
  const Buffer x = device_.upload<float>({1}).value();
  EXPECT_THAT(idle.launch(stream_, {.block = 32}, as_tensor<const float>(x, {1})),
              Fails(StatusCode::kInvalidArgument,
                    absl::StrCat("typed_launch_test.cc:", line,
                                 ": error: kernel 'idle' has no side effects")));
}

TEST_F(TypedLaunchTest, ManyThreadsMayLaunchTheSameKernel) {
  const auto fill =
      define_kernel("fill(y, v)", [](Tensor<float, 1> y, Float v) { y(thread_idx.x) = v; });
  std::vector<std::thread> threads;
  std::vector<Status> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = device_.create_stream().value();
      const Buffer y = device_.allocate(32 * sizeof(float)).value();
      for (int i = 0; i < 20 && results[t].ok(); ++i) {
        results[t] = fill.launch(stream, {.block = 32}, as_tensor<float>(y, {32}), 1.0f * t);
        if (results[t].ok() && y.download<float>(stream).value()[31] != 1.0f * t) {
          results[t] = InternalError("wrong value");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_THAT(result, IsOk());
  EXPECT_EQ(runtime::KernelCache::of(fill.source()).size(), 1);
}

TEST_F(TypedLaunchTest, DynamicSharedMemory) {
  const auto reverse = define_kernel("reverse(y)", [](Tensor<int32_t, 1> y) {
    Shared<int32_t> values = dynamic_shared<int32_t>(block_dim.x);
    values(thread_idx.x) = thread_idx.x;
    sync_threads();
    y(thread_idx.x) = values(block_dim.x - 1 - thread_idx.x);
  });
  const Buffer y = device_.allocate(64 * sizeof(int32_t)).value();
  ASSERT_THAT(
      reverse.launch(stream_, {.block = 64, .shared_bytes = 256}, as_tensor<int32_t>(y, {64})),
      IsOk());
  EXPECT_EQ(y.download<int32_t>(stream_).value()[0], 63);
}

TEST_F(TypedLaunchTest, RowMaximumWithItsIndex) {
  struct MaxAt {
    Float value;
    Int index;
  };
  const auto larger = [](const MaxAt& a, const MaxAt& b) {
    return select(b.value > a.value || (b.value == a.value && b.index < a.index), b, a);
  };
  const auto row_max = define_kernel(
      "row_max(x, value, index)",
      [larger](Tensor<const float, 2> x, Tensor<float, 1> value, Tensor<int32_t, 1> index) {
        Int row = block_idx.x;
        MaxAt start{-__builtin_inff(), 0};
        MaxAt mine =
            For(range(thread_idx.x, x.shape(1), block_dim.x), start, [&](Int col, MaxAt m) {
              return larger(m, MaxAt{x(row, col), col});
            });
        MaxAt best = block_reduce(mine, larger);
        If(thread_idx.x == 0, [&] {
          value(row) = best.value;
          index(row) = best.index;
        });
      });
  std::vector<float> host(3 * 500, 0.0f);
  host[123] = 5;
  host[500 + 499] = 7;
  host[1000] = 9;
  for (const int threads : {32, 40, 96, 128}) {  // whole and partial last warps
    const Buffer x = device_.upload(absl::MakeConstSpan(host)).value();
    const Buffer value = device_.allocate(3 * sizeof(float)).value();
    const Buffer index = device_.allocate(3 * sizeof(int32_t)).value();
    ASSERT_THAT(
        row_max.launch(stream_, {.grid = 3, .block = threads}, as_tensor<const float>(x, {3, 500}),
                       as_tensor<float>(value, {3}), as_tensor<int32_t>(index, {3})),
        IsOk());
    EXPECT_EQ(value.download<float>(stream_).value(), (std::vector<float>{5, 7, 9})) << threads;
    EXPECT_EQ(index.download<int32_t>(stream_).value(), (std::vector<int32_t>{123, 499, 0}))
        << threads;
  }
}

// More registers than a thread of such a block can have, were ptxas not told of the block.
TEST_F(TypedLaunchTest, AFullBlockWithMoreLiveValuesThanRegisters) {
  constexpr int kValues = 80, kThreads = 1024;
  const auto rotate =
      define_kernel("rotate(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
        std::vector<Float> values;
        for (int i = 0; i < kValues; ++i) values.push_back(x(thread_idx.x + i * kThreads));
        sync_threads();
        for (int i = 0; i < kValues; ++i) {
          y(thread_idx.x + i * kThreads) = values[(i * 7 + 3) % kValues] + values[i];
        }
      });
  std::vector<float> host(kValues * kThreads), expected(host.size());
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 8191);
  for (int i = 0; i < kValues; ++i) {
    for (int t = 0; t < kThreads; ++t) {
      expected[i * kThreads + t] =
          host[(i * 7 + 3) % kValues * kThreads + t] + host[i * kThreads + t];
    }
  }
  const auto elements = static_cast<int64_t>(host.size());
  const Buffer x = device_.upload(absl::MakeConstSpan(host)).value();
  const Buffer y = device_.allocate(elements * sizeof(float)).value();
  ASSERT_THAT(rotate.launch(stream_, {.block = kThreads}, as_tensor<const float>(x, {elements}),
                            as_tensor<float>(y, {elements})),
              IsOk());
  EXPECT_EQ(y.download<float>(stream_).value(), expected);
}

// Unloading a kernel waits for its launches.
TEST_F(TypedLaunchTest, AKernelMayGoWhileItRuns) {
  const int trips = on_gpu() ? 20'000'000 : 1000;  // some tenths of a second
  const Buffer y = device_.upload<float>({0}).value();
  {
    const auto slow = define_kernel("slow(out, n)", [](Tensor<float, 1> out, Int n) {
      out(0) = For(range(n), out(0), [](Int, Float sum) { return fma(sum, 0.5f, 1.0f); });
    });
    ASSERT_THAT(slow.launch(stream_, {}, as_tensor<float>(y, {1}), trips), IsOk());
  }
  EXPECT_EQ(y.download<float>(stream_).value(), (std::vector<float>{2}));
}

TEST_F(TypedLaunchTest, WhatWasMovedFromSaysSo) {
  auto kernel = define_kernel("one(y)", [](Tensor<float, 1> y) { y(0) = 1.0f; });
  const Buffer memory = device_.allocate(4).value();
  const auto y = as_tensor<float>(memory, {1});
  Stream stream = device_.create_stream().value();
  const Stream owner = std::move(stream);
  EXPECT_THAT(kernel.launch(stream, {}, y),  // NOLINT: the point of the test
              Fails(StatusCode::kFailedPrecondition, "a Stream was used after it was moved from"));
  EXPECT_THAT(stream.synchronize(), Fails(StatusCode::kFailedPrecondition, "moved from"));
  const auto moved = std::move(kernel);
  EXPECT_THAT(kernel.launch(owner, {}, y),  // NOLINT: the point of the test
              Fails(StatusCode::kFailedPrecondition, "a Kernel was used after it was moved from"));
  EXPECT_THAT(moved.launch(owner, {}, y), IsOk());
}

TEST(CompileTest, NeedsNeitherDataNorGpu) {
  const auto compiled = row_sum.compile(Signature{tensor({kAny, kAny}), tensor({kAny})},
                                        CompileOptions{.block = {128, 1, 1}, .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->ptx(), HasSubstr(".reqntid 128, 1, 1"));
  EXPECT_THAT(compiled->ptx(), HasSubstr(".target sm_90a"));
  EXPECT_GT(compiled->compilation().times.trace, 0);
}

TEST(CompileTest, SaysWhatIsWrongWithASignature) {
  const CompileOptions options{.block = {128, 1, 1}, .stage = Stage::kIr};
  EXPECT_THAT(row_sum.compile(Signature{tensor({kAny, kAny})}, options),
              Fails(StatusCode::kInvalidArgument, "has 1 argument; the kernel takes 2"));
  EXPECT_THAT(row_sum.compile(Signature{tensor({kAny}), tensor({kAny})}, options),
              Fails(StatusCode::kInvalidArgument, "1 extent for argument 0 ('x')", "2 modes"));
  EXPECT_THAT(
      row_sum.compile(Signature{tensor({kAny, kAny}).order({0, 0}), tensor({kAny})}, options),
      Fails(StatusCode::kInvalidArgument, "stride order of argument 0"));
  CompileOptions bad_target = options;
  bad_target.target = "sm_42";
  EXPECT_THAT(row_sum.compile(Signature{tensor({kAny, kAny}), tensor({kAny})}, bad_target),
              Fails(StatusCode::kInvalidArgument, "unknown target 'sm_42'", "sm_90a"));
  CompileOptions bad_pass = options;
  bad_pass.passes = "promote-vars,folding";
  EXPECT_THAT(row_sum.compile(Signature{tensor({kAny, kAny}), tensor({kAny})}, bad_pass),
              Fails(StatusCode::kInvalidArgument, "folding"));
}

TEST(CompileTest, RefusesSignaturesThatNoArgumentFits) {
  const CompileOptions options{.block = {128, 1, 1}, .stage = Stage::kIr};
  const auto message = [&](const ArgumentSpec& x, const ArgumentSpec& y) {
    const auto compiled = row_sum.compile(Signature{x, y}, options);
    EXPECT_TRUE(compiled.ok() || IsInvalidArgument(compiled.status())) << compiled.status();
    return std::string(compiled.status().message());
  };
  const auto refused = [](const std::string& argument, const std::string& problem) {
    return testing::MatchesRegex("the signature gives argument " + argument +
                                 " of kernel 'row_sum' \\(.*typed_launch_test.cc:[0-9]+\\) " +
                                 problem);
  };
  const ArgumentSpec y = tensor({kAny});
  for (const int bytes : {3, 0, -16}) {
    EXPECT_THAT(message(tensor({kAny, kAny}).aligned(bytes), y),
                refused("0 \\('x'\\)", "an alignment of " + std::to_string(bytes) +
                                           " bytes; fix: give a power of two, such as "
                                           "aligned\\(16\\)"));
  }
  for (const int elements : {0, -3}) {
    EXPECT_THAT(message(tensor({kAny, kAny}).strides_divisible_by(elements), y),
                refused("0 \\('x'\\)", "strides that " + std::to_string(elements) +
                                           " divides; fix: give strides_divisible_by\\(\\) a "
                                           "number of elements from 1 up"));
    EXPECT_THAT(message(tensor({kAny, kAny}).extents_divisible_by(elements), y),
                refused("0 \\('x'\\)", "extents that " + std::to_string(elements) +
                                           " divides; fix: give extents_divisible_by\\(\\) a "
                                           "number of elements from 1 up"));
  }
  EXPECT_THAT(message(tensor({kAny, -4}), y),
              refused("0 \\('x'\\)",
                      "an extent of -4 in mode 1; fix: give 0 or more, or kAny where the launch "
                      "decides"));
  EXPECT_THAT(message(tensor({kAny, kAny}), tensor({kAny}).strides({0})),
              refused("1 \\('y'\\)",
                      "a stride of 0 in mode 0, so that several of its elements would share one "
                      "place, and the kernel may write it; fix: give another stride, or make the "
                      "kernel's parameter const"));
  EXPECT_THAT(message(tensor({kAny, kAny}).strides({1}), y), HasSubstr("gives 1 stride for "));
  EXPECT_THAT(message(tensor({kAny, kAny}), tensor({kAny}).order({1})),
              HasSubstr("must number its 1 mode from 0 (the fastest)"));

  // Rows that are all one row, columns from right to left, one element, none, and what is rounded.
  EXPECT_EQ(message(tensor({kAny, kAny}).strides({0, -1}), y), "");
  EXPECT_EQ(message(tensor({0, kAny}), tensor({1}).strides({0})), "");
  EXPECT_EQ(message(tensor({kAny, kAny}).aligned(256).strides_divisible_by(12), y), "");
}

TEST(CompileTest, DivisorsOfExtents) {
  const auto kernel = define_kernel("rest(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    y(0) = cast<float>(x.shape(0) % 4);
  });
  const Device& device = test_device();
  const auto options =
      runtime::Executable::options_for(*device.backend(), CompileOptions{.block = {1, 1, 1}});
  const auto compiled =
      kernel.compile(Signature{tensor({kAny}).extents_divisible_by(4), tensor({kAny})}, options);
  ASSERT_THAT(compiled, IsOk());
  bool computed = false;
  const ir::Kernel& code = compiled->compilation().optimized;
  code.walk([&](ir::OpId id) { computed |= code.op(id).opcode == ir::Opcode::kExtent; });
  EXPECT_FALSE(computed);
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(32).value(), y = device.allocate(4).value();
  const auto launch = [&](int64_t extent) {
    return compiled->launch(stream, {}, as_tensor<float>(x, {extent}), as_tensor<float>(y, {1}));
  };
  EXPECT_THAT(launch(8), IsOk());
  EXPECT_THAT(launch(6),
              Fails(StatusCode::kInvalidArgument, "that has an extent in mode 0 that 4 divides"));
}

TEST(CompileTest, PromisesAreCheckedAtLaunch) {
  const auto kernel = define_kernel("wide(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    y.vec<4>(thread_idx.x * 4) = x.vec<4>(thread_idx.x * 4);
  });
  const Device& device = test_device();
  const auto options =
      runtime::Executable::options_for(*device.backend(), CompileOptions{.block = {2, 1, 1}});
  const auto compiled =
      kernel.compile(Signature{tensor({kAny}).aligned(16), tensor({kAny}).aligned(16)}, options);
  ASSERT_THAT(compiled, IsOk());
  const Stream stream = device.create_stream().value();
  const Buffer memory = device
                            .upload<float>(std::initializer_list<float>{
                                1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})
                            .value();
  const auto* data = reinterpret_cast<const float*>(memory.address());
  auto* out = const_cast<float*>(data) + 8;
  EXPECT_THAT(compiled->launch(stream, {.block = 2}, TensorRef<const float, 1>(data, {8}),
                               TensorRef<float, 1>(out, {8})),
              IsOk());
  EXPECT_THAT(compiled->launch(stream, {.block = 2}, TensorRef<const float, 1>(data + 1, {8}),
                               TensorRef<float, 1>(out, {8})),
              Fails(StatusCode::kInvalidArgument, "argument 0 ('x')",
                    "starts at a multiple of 16 bytes", "fix: "));
}

}  // namespace
}  // namespace heddle
