// What else the language has, from lambda to result on whatever device the tests run on: rounding
// modes, memory orders and hints, warp collectives with masks, text and clocks.
#include <array>
#include <cfenv>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Runs a block of 64 threads that each fill in an element.
template <class T, class Body>
std::vector<T> run(const char* name, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel(name, [&](Tensor<T, 1> y) { body(y); });
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<T>(64))).value();
  EXPECT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<T>(out, {64})), IsOk());
  return out.download<T>(stream).value();
}

TEST(Rounding, GoesTheAskedWay) {
  const auto got = run<float>("rounding", [](Tensor<float, 1> y) {
    const Float tiny(0x1p-30f), one(1.0f), three(3.0f);
    const Rounding modes[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};
    for (int m = 0; m < 4; ++m) {
      y(8 * m + 0) = add(one, tiny, modes[m]);
      y(8 * m + 1) = sub(-one, tiny, modes[m]);
      y(8 * m + 2) = mul(one + 0x1p-20f, one + 0x1p-20f, modes[m]);
      y(8 * m + 3) = div(one, three, modes[m]);
      y(8 * m + 4) = fma(one, one, tiny, modes[m]);
      y(8 * m + 5) = sqrt(three, modes[m]);
      y(8 * m + 6) = rcp(three, modes[m]);
      y(8 * m + 7) = cast<float>(Int(16777217), modes[m]);
    }
  });
  const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int before = std::fegetround();
  for (size_t m = 0; m < 4; ++m) {
    std::fesetround(modes[m]);
    volatile float tiny = 0x1p-30f, one = 1.0f, three = 3.0f, near = 1.0f + 0x1p-20f;
    volatile int odd = 16777217;
    const float expected[] = {one + tiny, -one - tiny,      near * near, one / three,
                              one + tiny, std::sqrt(three), one / three, static_cast<float>(odd)};
    std::fesetround(before);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(got[8 * m + i], expected[i]) << m << " " << i;
  }
}

TEST(Rounding, ToIntegers) {
  const auto got = run<int32_t>("to_integers", [](Tensor<int32_t, 1> y) {
    const Float x = cast<float>(Int(thread_idx.x) - 32) * 0.5f;
    const Rounding modes[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};
    Var<int32_t> sum(0);
    for (const Rounding mode : modes) sum = sum * 100 + cast<int>(x, mode) + 20;
    y(thread_idx.x) = sum;
  });
  for (int i = 0; i < 64; ++i) {
    const float x = static_cast<float>(i - 32) * 0.5f;
    const float rounded[] = {std::nearbyint(x), std::trunc(x), std::floor(x), std::ceil(x)};
    int sum = 0;
    for (const float r : rounded) sum = sum * 100 + static_cast<int>(r) + 20;
    EXPECT_EQ(got[static_cast<size_t>(i)], sum) << x;
  }
}

TEST(Float, SaturatesAndPassesNansOn) {
  const auto got = run<float>("saturates", [](Tensor<float, 1> y) {
    const Float nan = sqrt(Float(-1.0f));
    y(0) = saturate(Float(-2.0f));
    y(1) = saturate(Float(0.25f));
    y(2) = saturate(Float(7.0f));
    y(3) = saturate(nan);
    y(4) = min_nan(nan, 1.0f);
    y(5) = max_nan(Float(1.0f), nan);
    y(6) = min_nan(Float(2.0f), 1.0f);
    y(7) = min(nan, 1.0f);
  });
  EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 4),
            (std::vector<float>{0.0f, 0.25f, 1.0f, 0.0f}));
  EXPECT_TRUE(std::isnan(got[4]) && std::isnan(got[5]));
  EXPECT_EQ(got[6], 1.0f);
  EXPECT_EQ(got[7], 1.0f);
}

// A message passed from one block to another: the flag's order makes the data visible.
TEST(Memory, ReleaseAndAcquirePassAMessage) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel(
      "message", [](Tensor<int32_t, 1> data, Tensor<int32_t, 1> flag, Tensor<int32_t, 1> y) {
        If(
            block_idx.x == 0,
            [&] {
              data(0) = 42;
              atomic_store(flag(0), 1, MemoryOrder::release);
            },
            [&] {
              While([&] { return atomic_load(flag(0), MemoryOrder::acquire) == 0; },
                    [&] { nanosleep(20); });
              y(0) = data(0);
            });
      });
  const Buffer data = device.upload(absl::MakeConstSpan(std::vector<int32_t>(1))).value();
  const Buffer flag = device.upload(absl::MakeConstSpan(std::vector<int32_t>(1))).value();
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int32_t>(1))).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 2, .block = 1}, as_tensor<int32_t>(data, {1}),
                            as_tensor<int32_t>(flag, {1}), as_tensor<int32_t>(out, {1})),
              IsOk());
  EXPECT_EQ(out.download<int32_t>(stream).value()[0], 42);
}

TEST(Memory, HintsChangeNothing) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("hints", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const Int i = thread_idx.x;
    x.prefetch(i);
    x.prefetch(i, PrefetchTo::l1);
    for (const Cache cache : {Cache::l2, Cache::streaming, Cache::last_use, Cache::evict_first,
                              Cache::evict_last, Cache::no_allocate}) {
      y.with(cache == Cache::last_use ? Cache::write_through : cache)(i) = x.with(cache)(i);
      y(i) += x.with(cache)(i);
    }
    y.as_volatile()(i) = y.as_volatile()(i) + x.as_volatile()(i);
  });
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i));
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<float>(64))).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<const float>(in, {64}),
                            as_tensor<float>(out, {64})),
              IsOk());
  const auto got = out.download<float>(stream).value();
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 3.0f * static_cast<float>(i));
}

TEST(Warp, MatchReduxAndElect) {
  const auto got = run<uint32_t>("warp", [](Tensor<uint32_t, 1> y) {
    const Int lane = lane_id();
    const UInt same = match_any(lane / 4);
    const UInt none = match_all(lane / 4);
    const UInt all = match_all(cast<float>(lane) * 0.0f);
    const Int sum = redux_add(lane - 16), least = redux_min(lane - 5);
    const UInt bits = redux_or(UInt(1) << lane);
    const Bool right = (none == 0) & (all == 0xFFFFFFFF) & (sum == -16) & (least == -5) &
                       (bits == 0xFFFFFFFF) & (active_mask() != 0) &
                       (popc(ballot(elect_one())) == 1);
    y(thread_idx.x) = select(right, same, UInt(0));
  });
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 0xFu << (i % 32 / 4 * 4)) << i;
}

TEST(Warp, CollectivesUnderAConditionNameTheirLanes) {
  const auto got = run<int32_t>("masked", [](Tensor<int32_t, 1> y) {
    const Int lane = lane_id();
    const Bool odd = (lane & 1) == 1;
    const UInt lanes = ballot(odd);
    If(odd, [&] {
      const Int other = shfl_xor(lane, 2, 32, lanes);
      const Int sum = redux_add(lane, lanes);
      sync_warp(lanes);
      y(thread_idx.x) = other * 1000 + sum + select(vote_all(lane > 0, lanes), 0, 500000);
    });
  });
  for (int i = 0; i < 64; ++i) {
    const int lane = i % 32;
    EXPECT_EQ(got[static_cast<size_t>(i)], lane % 2 == 0 ? 0 : (lane ^ 2) * 1000 + 256);
  }
}

TEST(Debug, PrintsWhatCWouldPrint) {
  ::testing::internal::CaptureStdout();
  run<int32_t>("prints", [](Tensor<int32_t, 1> y) {
    const Int i = thread_idx.x;
    If(i == 5, [&] {
      device_printf("%d|%5.2f|%lld|%x|%c|%e|100%%\n", i, cast<float>(i) * 1.5f,
                    cast<int64_t>(i) * 1000000007, UInt(48879), Int8(65), Half(half(0.5)));
      device_printf("done\n");
    });
    y(i) = i;
  });
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "5| 7.50|5000000035|beef|A|5.000000e-01|100%\ndone\n");
}

TEST(Debug, FormatsAndValuesMustAgree) {
  const auto message = [](auto body) {
    const auto kernel = local_kernel("print", [&](Tensor<int32_t, 1> y) {
      body(Int(thread_idx.x));
      y(0) = 1;
    });
    const Device& device = test_device();
    const Stream stream = device.create_stream().value();
    const Buffer out = device.allocate(4).value();
    return std::string(
        kernel.launch(stream, {.block = 32}, as_tensor<int32_t>(out, {1})).message());
  };
  EXPECT_THAT(message([](const Int& i) { device_printf("%d %d\n", i); }),
              HasSubstr("wants more than the 1 value that it is given"));
  EXPECT_THAT(message([](const Int& i) { device_printf("%f\n", i); }),
              HasSubstr("value 1 of the format \"%f\\n\" is i32, but '%f' prints a float"));
  EXPECT_THAT(message([](const Int& i) { device_printf("%d\n", cast<int64_t>(i)); }),
              HasSubstr("is i64, but '%d' prints a 32-bit integer"));
  EXPECT_THAT(message([](const Int& i) { device_printf("%s\n", i); }),
              HasSubstr("'%s' is no conversion that kernels print"));
  EXPECT_THAT(message([](const Int& i) { device_printf("hm\n", i); }),
              HasSubstr("prints 0 values, but it is given 1"));
}

TEST(Debug, ClocksRun) {
  const auto got = run<int32_t>("clocks", [](Tensor<int32_t, 1> y) {
    const Int64 cycles = clock64(), time = global_timer();
    nanosleep(1000);
    y(thread_idx.x) = select((clock64() >= cycles) & (global_timer() >= time), Int(1), Int(0));
  });
  EXPECT_THAT(got, Each(1));
}

TEST(Memory, LocalArraysAndTables) {
  std::vector<int32_t> squares;
  for (int i = 0; i < 64; ++i) squares.push_back(i * i);
  const auto got = run<int32_t>("arrays", [&](Tensor<int32_t, 1> y) {
    const Constant<int32_t> table(squares);
    const Constant<uint8_t> order(std::array<uint8_t, 4>{2, 0, 3, 1});
    const Int t = thread_idx.x;
    const Local<int32_t, 2> grid({4, 8});
    const Local<uint8_t> bytes(8);
    for (const Int i : range(32)) grid(order(i % 4), i / 4) = table(t) + i;
    for (const Int i : range(8)) bytes(i) = cast<uint8_t>(t * 3 + i);
    y(t) = grid(t % 4, (t / 4) % 8) * 1000 + bytes(7 - t % 8);
  });
  const int place[] = {1, 3, 0, 2};  // of each row in `order`
  for (int t = 0; t < 64; ++t) {
    const int i = place[t % 4] + t / 4 % 8 * 4;
    EXPECT_EQ(got[static_cast<size_t>(t)], (t * t + i) * 1000 + (t * 3 + 7 - t % 8) % 256) << t;
  }
}

TEST(Memory, LocalArraysAreChecked) {
  if (test_device_name() != "interp") GTEST_SKIP() << "checks are the interpreter's";
  const auto message = [](auto body) {
    const auto kernel = local_kernel("arrays", [&](Tensor<int32_t, 1> y) {
      const Local<int32_t> own(4);
      body(own);
      y(0) = own(thread_idx.x % 2);
    });
    const Device& device = test_device();
    const Stream stream = device.create_stream().value();
    const Buffer out = device.allocate(4).value();
    Status status = kernel.launch(stream, {.block = 32}, as_tensor<int32_t>(out, {1}));
    if (status.ok()) status = stream.synchronize();
    return std::string(status.message());
  };
  EXPECT_THAT(message([](const Local<int32_t>& own) { own(0) = 1; }),
              HasSubstr("which nobody has written"));
  EXPECT_THAT(message([](const Local<int32_t>& own) { own(Int(thread_idx.x)) = 1; }),
              HasSubstr("index 4 of mode 0 is not in [0, 4)"));
  // Each trip has an array of its own.
  EXPECT_THAT(message([](const Local<int32_t>& own) {
                own(0) = 1;
                own(1) = 1;
                For(range(2), [&](const Int& trip) {
                  const Local<int32_t> fresh(2);
                  If(trip == 0, [&] { fresh(0) = 1; });
                  own(0) += fresh(0);
                });
              }),
              HasSubstr("which nobody has written"));
}

TEST(InlinePtx, ComputesWhatItsRuleSays) {
  const auto got = run<uint32_t>("inlined", [](Tensor<uint32_t, 1> y) {
    const UInt i = cast<uint32_t>(thread_idx.x);
    const UInt parity =
        inline_ptx<uint32_t>({"lop3.b32 %0, %1, %2, %3, 0x96;",
                              [](uint32_t a, uint32_t b, uint32_t c) { return a ^ b ^ c; }},
                             i, UInt(5), UInt(3));
    const auto [sum, carry] =
        inline_ptx<uint32_t, uint32_t>({"add.cc.u32 %0, %2, %2;\n addc.u32 %1, 0, 0;",
                                        [](uint32_t a) { return std::tuple(2 * a, a >> 31); }},
                                       parity | (i << 28));
    Var<uint32_t> carried(sum);
    For(range(3), [&](Int) {
      // Writes its output before it has read its input for the last time.
      carried = inline_ptx<uint32_t>(
          {"add.u32 %0, %1, 1;\nadd.u32 %0, %0, %1;", [](uint32_t a) { return 2 * a + 1; }},
          carried);
    });
    y(thread_idx.x) = carried + carry;
  });
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t x = (i ^ 5 ^ 3) | i << 28;
    EXPECT_EQ(got[i], ((2 * x) * 8 + 7) + (x >> 31)) << i;
  }
}

TEST(InlinePtx, SaysWhatIsWrong) {
  const auto message = [](auto body) {
    const auto kernel = local_kernel(
        "inlined", [&](Tensor<uint32_t, 1> y) { y(0) = body(cast<uint32_t>(thread_idx.x)); });
    const Device& device = test_device();
    const Stream stream = device.create_stream().value();
    const Buffer out = device.allocate(4).value();
    Status status = kernel.launch(stream, {.block = 32}, as_tensor<uint32_t>(out, {1}));
    if (status.ok()) status = stream.synchronize();
    return std::string(status.message());
  };
  EXPECT_THAT(message([](UInt x) { return inline_ptx<uint32_t>("mov.b32 %0, %2;", x); }),
              HasSubstr("%2 of the inline PTX names none of its 2 values"));
  EXPECT_THAT(message([](UInt x) { return inline_ptx<uint32_t>("mov.u32 %0, %laneid;", x); }),
              HasSubstr("'%laneid;' of the inline PTX is no value"));
  EXPECT_THAT(message([](UInt x) { return inline_ptx<uint32_t>("mov.u32 %0, %%laneid;", x); }),
              HasSubstr("the inline PTX does not use %1"));
  const std::string unruled =
      message([](UInt x) { return inline_ptx<uint32_t>("mov.b32 %0, %1;", x); });
  if (test_device_name() == "interp") {
    EXPECT_THAT(unruled, HasSubstr("this inline PTX has no rule"));
    EXPECT_THAT(unruled, HasSubstr("language_test.cc"));
  } else {
    EXPECT_EQ(unruled, "");
    EXPECT_THAT(message([](UInt x) { return inline_ptx<uint32_t>("moo.b32 %0, %1;", x); }),
                HasSubstr("language_test.cc"));
  }
}

TEST(Memory, OrdersThatAnAccessHasNot) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("orders", [](Tensor<int32_t, 1> y) {
    atomic_store(y(0), 1, MemoryOrder::acquire);
    y(0) = atomic_load(y(0), MemoryOrder::seq_cst);
  });
  const Buffer out = device.allocate(4).value();
  const std::string message(
      kernel.launch(stream, {.block = 32}, as_tensor<int32_t>(out, {1})).message());
  EXPECT_THAT(message, HasSubstr("'atomic.store' has no order 'acquire'"));
  EXPECT_THAT(message, HasSubstr("'atomic.load' has no order 'seq_cst'"));
  EXPECT_THAT(message, HasSubstr("fix: use relaxed or release"));
}

}  // namespace
}  // namespace heddle
