// Atomics from lambda to result, on whatever device the tests run on.
#include <algorithm>
#include <bit>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::Each;

constexpr int kBlocks = 8, kThreads = 96, kAll = kBlocks * kThreads;

class AtomicTest : public testing::Test {
 protected:
  const Device& device_ = test_device();
  Stream stream_ = test_device().create_stream().value();
  const LaunchShape shape_{.grid = kBlocks, .block = kThreads};

  // What each thread got, and what is left, of atomics on one element that starts with `initial`.
  template <class T, class Body>
  std::pair<std::vector<T>, T> run(T initial, Body body) {
    const auto kernel = local_kernel("atomics", [&](Tensor<T, 1> place, Tensor<T, 1> old) {
      const Int i = block_idx.x * kThreads + thread_idx.x;
      old(i) = body(place, i);
    });
    const Buffer place = device_.upload<T>({initial}).value();
    const Buffer old = device_.allocate(kAll * sizeof(T)).value();
    EXPECT_THAT(kernel.launch(stream_, shape_, as_tensor<T>(place, {1}), as_tensor<T>(old, {kAll})),
                IsOk());
    return {old.template download<T>(stream_).value(),
            place.template download<T>(stream_).value()[0]};
  }
};

// Each thread gets a number of its own: every sum came one after the other.
TEST_F(AtomicTest, SumsOfIntegersAreTickets) {
  const auto check = [&](auto zero) {
    using T = decltype(zero);
    auto [old, last] = run<T>(5, [](Tensor<T, 1> place, Int) { return atomic_add(place(0), 1); });
    EXPECT_EQ(last, static_cast<T>(kAll + 5));
    std::sort(old.begin(), old.end());
    for (int i = 0; i < kAll; ++i) ASSERT_EQ(old[i], static_cast<T>(i + 5));
  };
  check(int32_t{});
  check(uint32_t{});
  check(int64_t{});
  check(uint64_t{});
}

TEST_F(AtomicTest, SumsOfFloats) {
  EXPECT_EQ(run<float>(0.5f, [](auto place, Int) { return atomic_add(place(0), 0.25f); }).second,
            0.5f + kAll / 4);
  EXPECT_EQ(run<double>(0.5, [](auto place, Int) { return atomic_add(place(0), 0.25); }).second,
            0.5 + kAll / 4);
}

TEST_F(AtomicTest, ExtremesOfSignedAndUnsignedNumbers) {
  EXPECT_EQ(run<int32_t>(0, [](auto place, Int i) { return atomic_min(place(0), 3 - i); }).second,
            3 - (kAll - 1));
  EXPECT_EQ(run<int32_t>(-9, [](auto place, Int i) { return atomic_max(place(0), -5 - i); }).second,
            -5);
  EXPECT_EQ(run<uint32_t>(
                7, [](auto place, Int i) { return atomic_max(place(0), cast<uint32_t>(-1 - i)); })
                .second,
            0xFFFFFFFFu);
  EXPECT_EQ(run<int64_t>(0,
                         [](auto place, Int i) {
                           return atomic_min(place(0), cast<int64_t>(i) * -10'000'000'000);
                         })
                .second,
            -10'000'000'000 * (kAll - 1));
}

TEST_F(AtomicTest, Bits) {
  EXPECT_EQ(
      run<uint32_t>(0, [](auto place, Int i) { return atomic_or(place(0), UInt(1) << (i & 31)); })
          .second,
      0xFFFFFFFFu);
  EXPECT_EQ(
      run<uint32_t>(0xFFFFFFFF,
                    [](auto place, Int i) { return atomic_and(place(0), ~(UInt(1) << (i & 15))); })
          .second,
      0xFFFF0000u);
  // An even number of times each.
  EXPECT_EQ(run<uint64_t>(
                9, [](auto place, Int i) { return atomic_xor(place(0), cast<uint64_t>(i & 127)); })
                .second,
            9u);
}

TEST_F(AtomicTest, WrappingCountersAndExchange) {
  const auto [old, last] =
      run<uint32_t>(0, [](auto place, Int) { return atomic_inc(place(0), 9u); });
  EXPECT_THAT(old, Each(testing::Le(9u)));
  EXPECT_EQ(last, kAll % 10u);
  EXPECT_EQ(run<uint32_t>(100, [](auto place, Int) { return atomic_dec(place(0), 9u); }).second,
            (10 - kAll % 10 + 10) % 10u);
  auto [before, final] = run<float>(
      -1.0f, [](auto place, Int i) { return atomic_exchange(place(0), cast<float>(i)); });
  before.push_back(final);  // a chain: every number once
  std::sort(before.begin(), before.end());
  for (int i = 0; i <= kAll; ++i) ASSERT_EQ(before[i], static_cast<float>(i - 1));
}

// A maximum of floats, which has no atomic of its own, by compare and swap.
TEST_F(AtomicTest, CompareAndSwapInALoop) {
  const auto kernel = define_kernel("max(x, y)", [](Tensor<const float, 1> x, Tensor<int, 1> y) {
    const Float mine = x(block_idx.x * kThreads + thread_idx.x);
    const Int seen = y(0);
    While(
        seen, [&](Int old) { return bitcast<float>(old) < mine; },
        [&](Int old) {
          const Int now = atomic_cas(y(0), old, bitcast<int>(mine), MemoryOrder::acq_rel);
          return select(now == old, bitcast<int>(mine), now);
        });
  });
  std::vector<float> values(kAll);
  for (int i = 0; i < kAll; ++i) values[i] = static_cast<float>((i * 7919) % 1009);
  const Buffer x = device_.upload(absl::MakeConstSpan(values)).value();
  const Buffer y = device_.upload<int32_t>({0}).value();
  ASSERT_THAT(
      kernel.launch(stream_, shape_, as_tensor<const float>(x, {kAll}), as_tensor<int32_t>(y, {1})),
      IsOk());
  EXPECT_EQ(std::bit_cast<float>(y.download<int32_t>(stream_).value()[0]),
            *std::max_element(values.begin(), values.end()));
}

// In shared memory first, then once a bin and block in global memory.
TEST_F(AtomicTest, Histogram) {
  constexpr int kBins = 64;
  const auto histogram =
      define_kernel("histogram(x, bins)", [](Tensor<const int, 1> x, Tensor<int, 1> bins) {
        Shared<int32_t> local(kBins);
        If(thread_idx.x < kBins, [&] { local(thread_idx.x) = 0; });
        sync_threads();
        for (Int i : range(block_idx.x * kThreads + thread_idx.x, x.shape(0), kAll)) {
          atomic_add(local(x(i)), 1, MemoryOrder::relaxed, MemoryScope::block);
        }
        sync_threads();
        If(thread_idx.x < kBins, [&] { atomic_add(bins(thread_idx.x), local(thread_idx.x)); });
      });
  std::vector<int32_t> values(10'000);
  std::vector<int32_t> expected(kBins, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int32_t>(i * i % 61 + (i % 3));
    ++expected[values[i]];
  }
  const auto count = static_cast<int64_t>(values.size());
  const Buffer x = device_.upload(absl::MakeConstSpan(values)).value();
  Buffer bins = device_.allocate(kBins * sizeof(int32_t)).value();
  ASSERT_THAT(bins.fill(stream_, 0), IsOk());
  ASSERT_THAT(histogram.launch(stream_, shape_, as_tensor<const int32_t>(x, {count}),
                               as_tensor<int32_t>(bins, {kBins})),
              IsOk());
  EXPECT_EQ(bins.download<int32_t>(stream_).value(), expected);
}

// The last block to finish sums what all have written: a fence before each block's ticket.
TEST_F(AtomicTest, TheLastBlockSeesWhatTheOthersWrote) {
  const auto last_block = define_kernel(
      "last(partial, ticket, total)",
      [](Tensor<int, 1> partial, Tensor<uint32_t, 1> ticket, Tensor<int, 1> total) {
        Shared<int32_t> is_last(1);
        If(thread_idx.x == 0, [&] {
          partial(block_idx.x) = block_idx.x + 1;
          memory_fence();
          UInt before = atomic_inc(ticket(0), static_cast<uint32_t>(kBlocks - 1));
          is_last(0) = select(before == kBlocks - 1, 1, 0);
        });
        sync_threads();
        If(is_last(0) == 1 && thread_idx.x == 0, [&] {
          memory_fence();
          Int sum = For(range(kBlocks), Int(0), [&](Int b, Int acc) { return acc + partial(b); });
          total(0) = sum;
        });
      });
  const Buffer partial = device_.allocate(kBlocks * 4).value();
  const Buffer ticket = device_.upload<uint32_t>({0}).value();
  const Buffer total = device_.upload<int32_t>({-1}).value();
  ASSERT_THAT(last_block.launch(stream_, shape_, as_tensor<int32_t>(partial, {kBlocks}),
                                as_tensor<uint32_t>(ticket, {1}), as_tensor<int32_t>(total, {1})),
              IsOk());
  EXPECT_EQ(total.download<int32_t>(stream_).value()[0], kBlocks * (kBlocks + 1) / 2);
  EXPECT_EQ(ticket.download<uint32_t>(stream_).value()[0], 0u);
}

TEST(AtomicMistakesTest, AreLocatedAndSayWhatThereIs) {
  const auto compile = [](const auto& kernel, const char* target) {
    return kernel
        .compile(Signature{tensor({kAny})},
                 CompileOptions{.block = {32, 1, 1}, .target = target, .stage = Stage::kPtx})
        .status();
  };
  const auto minimum = define_kernel("minimum", [](Tensor<float, 1> y) { atomic_min(y(0), 1.0f); });
  EXPECT_THAT(compile(minimum, "sm_90a"),
              Fails(StatusCode::kInvalidArgument, "atomic_test.cc:",
                    "atomic min of f32 is not there on sm_90a; it takes i32, u32, i64, u64"));
  const auto brain =
      define_kernel("brain", [](Tensor<bfloat16, 1> y) { atomic_add(y(0), bfloat16(1.0)); });
  EXPECT_THAT(compile(brain, "sm_80"), Fails(StatusCode::kInvalidArgument, "bf16 (from sm_90 on)"));
  EXPECT_THAT(compile(brain, "sm_90"), IsOk());
  const auto sequential = define_kernel("sequential", [](Tensor<int, 1> y) {
    atomic_add(y(0), 1, MemoryOrder::seq_cst);
    memory_fence(MemoryScope::gpu, MemoryOrder::acquire);
    atomic_add(y(1), 1, MemoryOrder::relaxed, MemoryScope::cluster);
  });
  EXPECT_THAT(compile(sequential, "sm_86"),
              Fails(StatusCode::kInvalidArgument, "has no order 'seq_cst'",
                    "a fence has no order 'acquire'", "sm_86 has no clusters"));
}

}  // namespace
}  // namespace heddle
