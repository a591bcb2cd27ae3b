// What a program may say beyond what it does: trips side by side, what is likely, what is promised;
// and subnormals as zeros.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <class T, class Kernel, class... Args>
StatusOr<std::vector<T>> launch(const Kernel& kernel, int64_t threads, const Args&... args) {
  const Stream stream = test_device().create_stream().value();
  const Buffer out = test_device().upload(absl::MakeConstSpan(std::vector<T>(threads))).value();
  const Status status =
      kernel.launch(stream, {.block = threads}, as_tensor<T>(out, {threads}), args...);
  if (!status.ok()) return status;
  return out.template download<T>(stream);
}

template <class Kernel>
std::string ptx_of(const Kernel& kernel, const Signature& signature) {
  const auto compiled = kernel.compile(
      signature, CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  return compiled.ok() ? compiled->ptx() : std::string(compiled.status().message());
}

// --- unroll ---

template <class I>
struct Bounds {
  I start, stop;
};

// A number that depends on which indices a loop had, and in which order.
template <class I>
uint32_t trace_of(Bounds<I> bounds, I step) {
  uint32_t sum = 1;
  using U = std::make_unsigned_t<I>;
  bool goes_on = bounds.start < bounds.stop;
  for (I i = bounds.start; goes_on; i = static_cast<I>(static_cast<U>(i) + static_cast<U>(step))) {
    goes_on = static_cast<U>(bounds.stop) - static_cast<U>(i) > static_cast<U>(step);
    if (i % 11 == 5) continue;
    sum = sum * 31 + static_cast<uint32_t>(i);
    if (sum % 64 == 63) break;
  }
  return sum;
}

template <class I>
void expect_unrolled(const std::vector<Bounds<I>>& all) {
  for (const I step : {1, 2, 3, 8}) {
    for (const int trips : {1, 2, 3, 4, 8}) {
      const auto body = [&](const Value<I>& start, const Value<I>& stop) {
        Var<uint32_t> sum(1);
        for (Value<I> i : range(start, stop, Value<I>(step)).unroll(trips)) {
          If(i % 11 == 5, [] { Continue(); });
          sum = sum * 31 + cast<uint32_t>(i);
          If(sum % 64 == 63, [] { Break(); });
        }
        return UInt(sum);
      };
      const auto dynamic =
          local_kernel("dynamic", [&](Tensor<uint32_t, 1> y, Value<I> start, Value<I> stop) {
            y(thread_idx.x) = body(start, stop);
          });
      for (const Bounds<I>& bounds : all) {
        const auto fixed = local_kernel("fixed", [&](Tensor<uint32_t, 1> y) {
          y(thread_idx.x) = body(Value<I>(bounds.start), Value<I>(bounds.stop));
        });
        const auto got = launch<uint32_t>(dynamic, 1, bounds.start, bounds.stop);
        ASSERT_THAT(got, IsOk());
        EXPECT_EQ((*got)[0], trace_of(bounds, step))
            << bounds.start << " .. " << bounds.stop << " step " << step << " by " << trips;
        if (on_gpu() && trips != 4) continue;  // compiling takes its time there
        const auto known = launch<uint32_t>(fixed, 1);
        ASSERT_THAT(known, IsOk());
        EXPECT_EQ((*known)[0], trace_of(bounds, step))
            << bounds.start << " .. " << bounds.stop << " step " << step << " by " << trips;
      }
    }
  }
}

TEST(Unroll, EveryTripHappensOnceInOrder) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  expect_unrolled<int32_t>({{0, 0},
                            {0, 1},
                            {0, 7},
                            {0, 8},
                            {-3, 22},
                            {5, 3},
                            {kMin, kMin},
                            {kMin, kMin + 5},
                            {kMax - 9, kMax},
                            {kMax, kMin},
                            {kMin, kMax}});
}

TEST(Unroll, SixtyFourBits) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  expect_unrolled<int64_t>({{0, 13},
                            {kMax - 9, kMax},
                            {kMin, kMin + 5},
                            {3, 2},
                            {int64_t{1} << 32, (int64_t{1} << 32) + 9}});
}

TEST(Unroll, CarriedValuesGoFromTripToTrip) {
  const auto kernel = define_kernel("sums", [](Tensor<int32_t, 1> y, Int n) {
    auto [sum, product] = For(range(n).unroll(4), Int(0), Int(1), [](Int i, Int s, Int p) {
      Int inner = For(range(i).unroll(2), Int(0), [](Int j, Int t) { return t + j; });
      return std::tuple(s + inner, p * (i + 1));
    });
    y(thread_idx.x) = sum * 100000 + product;
  });
  for (const int n : {0, 1, 4, 6, 7}) {
    int sum = 0, product = 1;
    for (int i = 0; i < n; ++i) sum += i * (i - 1) / 2, product *= i + 1;
    const auto got = launch<int32_t>(kernel, 1, n);
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ((*got)[0], sum * 100000 + product) << n;
  }
}

TEST(Unroll, FourLoadsComeBeforeOneBranch) {
  const auto kernel = define_kernel("total", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    y(0) = For(range(x.shape(0)).unroll(4), Float(0), [&](Int i, Float s) { return s + x(i); });
  });
  const std::string ptx = ptx_of(kernel, {tensor({kAny}), tensor({1})});
  const size_t loop = ptx.find(".pragma \"nounroll\"");
  ASSERT_NE(loop, std::string::npos) << ptx;
  const std::string body = ptx.substr(loop, ptx.find("bra", loop) - loop);
  int loads = 0;
  for (size_t at = body.find("ld.global"); at != std::string::npos;
       at = body.find("ld.global", at + 1))
    ++loads;
  EXPECT_EQ(loads, 4) << ptx;
}

TEST(Unroll, OneAtATimeIsSaidToTheAssembler) {
  const auto kernel = define_kernel("once", [](Tensor<int32_t, 1> y, Int n) {
    for (Int i : range(n).unroll(1)) y(i) = i;
  });
  EXPECT_THAT(ptx_of(kernel, {tensor({kAny}), scalar()}), HasSubstr(".pragma \"nounroll\""));
}

TEST(Unroll, TooManyAreRefused) {
  const auto kernel = define_kernel("many", [](Tensor<int32_t, 1> y, Int n) {
    for (Int i : range(n).unroll(2000)) y(i) = i;
  });
  EXPECT_THAT(
      ptx_of(kernel, {tensor({kAny}), scalar()}),
      HasSubstr("attribute 'unroll' of 'for' is 2000, but must be a number from 1 to 1024"));
}

// --- likely, unlikely ---

TEST(Likely, ChangesNoResult) {
  for (const bool expected : {false, true}) {
    const auto kernel = local_kernel("branches", [&](Tensor<int32_t, 1> y) {
      const Int i = thread_idx.x;
      const auto hint = [&](const Bool& p) { return expected ? likely(p) : unlikely(p); };
      Var<int32_t> r(0);
      If(hint(i < 5), [&] { r = r + 1; });
      If(hint(i % 2 == 0), [&] {
        r = r + 10;
        If(hint(i % 4 == 0), [&] { r = r + 100; });
      }).Else([&] { r = r + 1000; });
      const Int both = If(
          hint(i > 20), [&] { return i * 2; }, [&] { return -i; });
      y(i) = r * 64 + both;
    });
    const auto got = launch<int32_t>(kernel, 64);
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < 64; ++i) {
      const int r = (i < 5) + (i % 2 == 0 ? 10 + (i % 4 == 0 ? 100 : 0) : 1000);
      EXPECT_EQ((*got)[static_cast<size_t>(i)], r * 64 + (i > 20 ? i * 2 : -i)) << i;
    }
  }
}

TEST(Likely, TheUnlikelyBranchLiesBehindTheEnd) {
  const auto kernel = define_kernel("rare", [](Tensor<int32_t, 1> y, Int n) {
    If(unlikely(n < 0), [&] { y(7) = 123; });
    If(likely(n > 3), [&] { y(1) = 456; }).Else([&] { y(2) = 789; });
  });
  const std::string ptx = ptx_of(kernel, {tensor({kAny}), scalar()});
  const size_t end = ptx.find("\tret;");
  ASSERT_NE(end, std::string::npos) << ptx;
  EXPECT_GT(ptx.find("123"), end) << ptx;
  EXPECT_LT(ptx.find("456"), end) << ptx;
  EXPECT_GT(ptx.find("789"), end) << ptx;
}

// --- assume, unreachable ---

TEST(Assume, RulesBranchesOut) {
  const auto kernel = define_kernel("ruled", [](Tensor<int32_t, 1> y, Int n) {
    assume(n > 0);
    Switch(n, Case(1, [&] { y(0) = 11; }), Case(2, [&] { y(0) = 22; }),
           Default([] { unreachable(); }));
  });
  const auto got = launch<int32_t>(kernel, 1, 2);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ((*got)[0], 22);
  // One comparison tells 1 from 2; the others are gone, and so are their branches.
  const std::string ptx = ptx_of(kernel, {tensor({kAny}), scalar()});
  int branches = 0;
  for (size_t at = ptx.find("bra"); at != std::string::npos; at = ptx.find("bra", at + 1)) {
    ++branches;
  }
  EXPECT_EQ(branches, 2) << ptx;
}

TEST(Assume, RangesAndDivisorsMakeCheaperArithmetic) {
  const auto with = define_kernel("with", [](Tensor<int32_t, 1> y, Int n) {
    const Int m = assume_range(n, 0, 1000);
    y(thread_idx.x) = m / 8 + m % 4;
  });
  const auto without = define_kernel(
      "without", [](Tensor<int32_t, 1> y, Int n) { y(thread_idx.x) = n / 8 + n % 4; });
  const Signature signature{tensor({kAny}), scalar()};
  // A negative number's quotient is rounded up, which asks for its sign.
  EXPECT_THAT(ptx_of(with, signature), Not(AnyOf(HasSubstr("div"), HasSubstr(", 31;"))));
  EXPECT_THAT(ptx_of(without, signature), HasSubstr(", 31;"));
  const auto got = launch<int32_t>(with, 1, 999);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ((*got)[0], 999 / 8 + 999 % 4);
}

TEST(Assume, TheInterpreterFindsBrokenPromises) {
  if (on_gpu()) GTEST_SKIP() << "a GPU takes promises for granted";
  const auto find = [](auto promise, int n) {
    const auto kernel = local_kernel("promise", [&](Tensor<int32_t, 1> y, Int value) {
      promise(value + thread_idx.x);
      y(thread_idx.x) = value;
    });
    return std::string(launch<int32_t>(kernel, 4, n).status().message());
  };
  const auto in_range = [](const Int& v) { assume_range(v, 0, 10); };
  EXPECT_EQ(find(in_range, 7), "");
  EXPECT_THAT(find(in_range, 8), HasSubstr("11 is promised to lie between 0 and 10"));
  EXPECT_THAT(find(in_range, 8), HasSubstr("thread (3, 0, 0)"));
  EXPECT_THAT(find(in_range, 8), HasSubstr("hints_test.cc"));
  EXPECT_THAT(find([](const Int& v) { assume_divisible(v * 4, 8); }, 2),
              HasSubstr("12 is promised to be a multiple of 8"));
  EXPECT_THAT(find([](const Int& v) { assume(v < 3); }, 0),
              HasSubstr("comes where the program promises that no thread does"));
  EXPECT_THAT(find([](const Int& v) { If(v > 2, [] { unreachable(); }); }, 0),
              HasSubstr("fix: mend the condition, or the promise: unreachable() or assume()"));
  EXPECT_THAT(find([](const Int& v) { assume_uniform(v); }, 0),
              HasSubstr("promised to be uniform"));
}

TEST(Assume, PromisesThatNothingKeepsAreErrors) {
  const auto kernel = define_kernel("empty", [](Tensor<int32_t, 1> y, Int n) {
    y(0) = assume_range(n, 3, 2) + assume_divisible(n, 0);
  });
  const std::string message = ptx_of(kernel, {tensor({kAny}), scalar()});
  EXPECT_THAT(message, HasSubstr("a number from 3 to 2 is assumed"));
  EXPECT_THAT(message, HasSubstr("a multiple of 0 is assumed"));
}

// --- subnormals ---

constexpr float kTiny = 1e-40f;  // subnormal

TEST(FlushSubnormals, OperandsAndResultsAreZeros) {
  const auto kernel = define_kernel("flush", [](Tensor<float, 1> y, Float tiny, Float small) {
    Var<int32_t> next(0);
    const auto put = [&](const Float& v) {
      y(next) = v;
      next = next + 1;
    };
    put(tiny + 0.0f);
    {
      const FlushSubnormals flush;
      put(tiny + 0.0f);
      put(-tiny * 1e10f);
      put(small * 0.25f);
      put(fma(small, 0.25f, 0.0f));
      put(max(tiny, -1.0f));
      put(select(tiny == 0.0f, 1.0f, 2.0f));
      put(sqrt(tiny));
      put(rcp(tiny));
      put(1.0f / tiny);
      put(fast::exp2(Float(-130.0f)));
      put(rsqrt(tiny));
      put(ceil(tiny));
      put(add(tiny, 0.0f, Rounding::up));
      put(select(tiny > 0.0f, tiny, 3.0f));
      put(-tiny);  // keeps all bits
    }
    put(select(tiny == 0.0f, 1.0f, 2.0f));
    put(ceil(tiny));
  });
  const float small = std::numeric_limits<float>::min();
  const float inf = std::numeric_limits<float>::infinity();
  const auto got = launch<float>(kernel, 18, kTiny, small);
  ASSERT_THAT(got, IsOk());
  const std::vector<float> expected = {kTiny, 0, -0.0f, 0, 0, 0, 1,      0, inf,
                                       inf,   0, inf,   0, 0, 3, -kTiny, 2, 1};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*got)[i], expected[i]) << i;
    EXPECT_EQ(std::signbit((*got)[i]), std::signbit(expected[i])) << i;
  }
}

TEST(FlushSubnormals, IsWrittenIntoInstructions) {
  const auto kernel = define_kernel("ftz", [](Tensor<float, 1> y, Float a, Half h) {
    const FlushSubnormals flush;
    y(0) = a * a + a;
    y(1) = fast::exp2(a) / a;
    y(2) = select(a < 1.0f, rsqrt(a), min(a, 2.0f));
    y(3) = cast<float>(h * h);
  });
  const std::string ptx = ptx_of(kernel, {tensor({kAny}), scalar(), scalar()});
  for (const char* text :
       {"fma.rn.ftz.f32", "ex2.approx.ftz.f32", "div.rn.ftz.f32", "setp.lt.ftz.f32",
        "rsqrt.approx.ftz.f32", "min.ftz.f32", "mul.rn.f16"}) {
    EXPECT_THAT(ptx, HasSubstr(text));
  }
}

}  // namespace
}  // namespace heddle
