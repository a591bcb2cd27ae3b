// Mathematical functions on whatever device the tests run on: within their stated bounds of the C
// library in a wider type, over boundary values and a sample of every size of number.
#include <cmath>
#include <complex>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/math/complex.h"
#include "heddle/dsl/math/fast_math.h"
#include "heddle/heddle.h"
#include "heddle/tools/bench/math_reference.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using tools::deviation;
using tools::exact_t;

constexpr int kThreads = 128;

// A third and a fourth argument are y and x so many places on.
constexpr int kThird = 13, kFourth = 8111;

template <class F, class V>
auto applied(F f, V x, V y, V z, V w) {
  if constexpr (std::is_invocable_v<F, V, V>) {
    return f(x, y);
  } else {
    return f(x, y, z, w);
  }
}

// f(x[i], y[i]) or f(x[i], y[i], z, w) of every i, by the device.
template <class T, class R = T, class F>
std::vector<R> computed(const std::vector<T>& x, const std::vector<T>& y, F f) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      local_kernel("f", [&](Tensor<const T, 1> a, Tensor<const T, 1> b, Tensor<R, 1> result) {
        const Int i = block_idx.x * kThreads + thread_idx.x;
        const Int n = result.shape(0);
        If(i < n, [&] {
          result(i) = applied(f, Value<T>(a(i)), Value<T>(b(i)), Value<T>(b((i + kThird) % n)),
                              Value<T>(a((i + kFourth) % n)));
        });
      });
  const auto count = static_cast<int64_t>(x.size());
  const Buffer a = device.upload(absl::MakeConstSpan(x)).value();
  const Buffer b = device.upload(absl::MakeConstSpan(y)).value();
  const Buffer out = device.allocate(count * sizeof(R)).value();
  EXPECT_THAT(kernel.launch(stream, {.grid = (count + kThreads - 1) / kThreads, .block = kThreads},
                            as_tensor<const T>(a, {count}), as_tensor<const T>(b, {count}),
                            as_tensor<R>(out, {count})),
              IsOk());
  return out.download<R>(stream).value();
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Special values and where functions change their ways, their neighbours, both signs; then numbers
// of every exponent, of small ones more.
template <class T>
std::vector<T> samples(int count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0, Limits::denorm_min(), Limits::infinity(), Limits::quiet_NaN()};
  for (const double v : {1e-300,
                         1e-42,
                         1e-30,
                         1.17549435e-38,
                         2.2250738585072014e-308,
                         1e-8,
                         0.1,
                         0.25,
                         1.0 / 3,
                         0.47,
                         0.5,
                         0.542,
                         0.6931471805599453,
                         0.7,
                         0.7853981633974483,
                         0.93,
                         0.9966,
                         1.0,
                         1.5,
                         1.5707963267948966,
                         2.0,
                         2.5,
                         3.0,
                         3.141592653589793,
                         4.0,
                         10.5,
                         14.5,
                         16.0,
                         20.0,
                         26.6,
                         27.5,
                         35.0401,
                         41.5,
                         42.0,
                         88.72284,
                         103.97,
                         128.0,
                         149.5,
                         355.0,
                         709.782712893384,
                         745.13,
                         1024.0,
                         1075.0,
                         1e5,
                         131072.0,
                         8388608.0,
                         16777215.0,
                         1e9,
                         1073741824.0,
                         0x1p60,
                         1e22,
                         3.4028234e38,
                         1e308}) {
    const T t = static_cast<T>(v);
    values.insert(values.end(), {t, std::nextafter(t, T{0}), std::nextafter(t, Limits::max())});
  }
  for (size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  std::mt19937_64 random(3);
  while (static_cast<int>(values.size()) < count) {
    values.push_back(std::bit_cast<T>(static_cast<Bits<T>>(random())));
    const double mantissa = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63;
    values.push_back(static_cast<T>(std::ldexp(mantissa, static_cast<int>(random() % 16) - 5)));
  }
  return values;
}

template <class T, class F, class Exact>
void expect_within(const char* name, double bound, const std::vector<T>& x, const std::vector<T>& y,
                   F f, Exact exact) {
  const std::vector<T> got = computed<T>(x, y, f);
  int failures = 0;
  for (size_t i = 0; i < x.size() && failures < 5; ++i) {
    using E = exact_t<T>;
    const T z = y[(i + kThird) % x.size()], w = x[(i + kFourth) % x.size()];
    const E wanted = applied(exact, E{x[i]}, E{y[i]}, E{z}, E{w});
    const tools::Deviation d = deviation<T>(got[i], wanted);
    if (d.wrong_special || d.ulps > std::max(bound, 0.5)) {
      ADD_FAILURE() << name << "(" << x[i] << ", " << y[i] << ") = " << got[i] << ", not "
                    << static_cast<double>(wanted) << ": " << d.ulps << " of " << bound << " ulp";
      ++failures;
    }
  }
}

template <class T, class F, class Exact>
void expect_unary(const char* name, double bound, F f, Exact exact) {
  const std::vector<T> x = samples<T>(20000);
  expect_within<T>(name, bound, x, x, f, exact);
}

template <class T, class F, class Exact>
void expect_binary(const char* name, double bound, F f, Exact exact) {
  // Every special value with every other, and many others.
  const std::vector<T> all = samples<T>(40000);
  std::vector<T> x, y;
  for (int i = 0; i < 320; ++i) {
    for (int j = 0; j < 320; ++j) {
      x.push_back(all[i]);
      y.push_back(all[j]);
    }
  }
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    x.push_back(all[i]);
    y.push_back(all[i + 1]);
  }
  expect_within<T>(name, bound, x, y, f, exact);
}

template <class T>
class MathTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MathTest, Types);

TYPED_TEST(MathTest, EveryFunctionIsWithinItsBound) {
  using T = TypeParam;
  using V = Value<T>;
  using R = exact_t<T>;
  constexpr bool kSingle = sizeof(T) == 4;
#define HEDDLE_MATH_1(name, f32, f64, ...)                                      \
  if constexpr (kSingle || (f64) != detail::kNoFunction) {                      \
    expect_unary<T>(                                                            \
        #name, kSingle ? (f32) : (f64), [](V x, V) { return heddle::name(x); }, \
        [](R x, R) { return tools::reference::name(x); });                      \
  }
#define HEDDLE_MATH_2(name, f32, f64, ...)                                           \
  if constexpr (kSingle || (f64) != detail::kNoFunction) {                           \
    expect_binary<T>(                                                                \
        #name, kSingle ? (f32) : (f64), [](V x, V y) { return heddle::name(x, y); }, \
        [](R x, R y) { return tools::reference::name(x, y); });                      \
  }
#define HEDDLE_MATH_3(name, f32, f64, ...)                                                      \
  if constexpr (kSingle || (f64) != detail::kNoFunction) {                                      \
    expect_binary<T>(                                                                           \
        #name, kSingle ? (f32) : (f64), [](V x, V y, V z, V) { return heddle::name(x, y, z); }, \
        [](R x, R y, R z, R) { return tools::reference::name(x, y, z); });                      \
  }
#define HEDDLE_MATH_4(name, f32, f64, ...)                                      \
  if constexpr (kSingle || (f64) != detail::kNoFunction) {                      \
    expect_binary<T>(                                                           \
        #name, kSingle ? (f32) : (f64),                                         \
        [](V x, V y, V z, V w) { return heddle::name(x, y, z, w); },            \
        [](R x, R y, R z, R w) { return tools::reference::name(x, y, z, w); }); \
  }
#include "heddle/dsl/math/math.def"
}

TYPED_TEST(MathTest, SincosIsSinAndCos) {
  using T = TypeParam;
  using V = Value<T>;
  const std::vector<T> x = samples<T>(4000);
  const auto same = [](V a, V b) { return bitcast<Bits<T>>(a) == bitcast<Bits<T>>(b); };
  const auto both = computed<T, int>(x, x, [&](V a, V) {
    const auto radians = sincos(a), halves = sincospi(a);
    return cast<int>(same(radians.sin, sin(a)) && same(radians.cos, cos(a)) &&
                     same(halves.sin, sinpi(a)) && same(halves.cos, cospi(a)));
  });
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(both[i] != 0 || !std::isfinite(x[i])) << x[i];
}

TYPED_TEST(MathTest, PartsAndClasses) {
  using T = TypeParam;
  using V = Value<T>;
  const std::vector<T> x = samples<T>(4000);
  std::vector<T> n;
  for (size_t i = 0; i < x.size(); ++i)
    n.push_back(static_cast<T>(static_cast<int>(i * 7 % 5000)) - 2500);
  const auto scaled = computed<T>(x, n, [](V a, V k) { return ldexp(a, cast<int>(k)); });
  const auto fraction = computed<T>(x, x, [](V a, V) { return frexp(a).fraction; });
  const auto exponent = computed<T, int>(x, x, [](V a, V) { return frexp(a).exponent; });
  const auto classes = computed<T, int>(x, x, [](V a, V) {
    return cast<int>(isnan(a)) + 2 * cast<int>(isinf(a)) + 4 * cast<int>(isfinite(a)) +
           8 * cast<int>(signbit(a));
  });
  for (size_t i = 0; i < x.size(); ++i) {
    int e = 0;
    const T wanted = std::frexp(x[i], &e);
    if (!std::isfinite(x[i])) e = 0;
    EXPECT_EQ(classes[i], (std::isnan(x[i])   ? 1
                           : std::isinf(x[i]) ? 2
                                              : 4) +
                              8 * static_cast<int>(std::signbit(x[i])))
        << x[i];
    if (std::isnan(x[i])) continue;
    EXPECT_EQ(std::bit_cast<Bits<T>>(fraction[i]), std::bit_cast<Bits<T>>(wanted)) << x[i];
    EXPECT_EQ(exponent[i], e) << x[i];
    EXPECT_EQ(std::bit_cast<Bits<T>>(scaled[i]),
              std::bit_cast<Bits<T>>(std::ldexp(x[i], static_cast<int>(n[i]))))
        << x[i] << " * 2^" << n[i];
  }
}

// Vectors, fragments, halves and host numbers give what single values give.
TEST(MathShapeTest, ElementByElement) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("shapes", [](Tensor<const float, 1> x, Tensor<float, 2> y) {
    const Vec<float, 4> v = x.vec<4>(0);
    const Fragment<float> f(3, x(1));
    const Vec<float, 4> e = exp(v), p = pow(v, 1.5f), q = pow(v, v);
    const Fragment<float> s = sin(f), t = atan2(f, x(2));
    const Vec<half, 4> h = log(v.as<half>());
    const auto turn = sincos(v);
    for (int i = 0; i < 4; ++i) {
      y(0, i) = e[i] - exp(v[i]);
      y(1, i) = p[i] - pow(v[i], 1.5f);
      y(2, i) = q[i] - pow(v[i], v[i]);
      y(3, i) = cast<float>(h[i]) - cast<float>(cast<half>(log(cast<float>(cast<half>(v[i])))));
      y(4, i) = turn.cos[i] - cos(v[i]);
    }
    for (int i = 0; i < 3; ++i) y(5, i) = (s[i] - sin(x(1))) + (t[i] - atan2(x(1), x(2)));
    y(5, 3) = pow(2.0f, x(3)) - pow(Float(2), x(3));
  });
  const Buffer in = device.upload<float>({0.75f, 1.25f, 2.5f, 3.5f}).value();
  const Buffer out = device.allocate(24 * sizeof(float)).value();
  ASSERT_THAT(
      kernel.launch(stream, {}, as_tensor<const float>(in, {4}), as_tensor<float>(out, {6, 4})),
      IsOk());
  EXPECT_THAT(out.download<float>(stream).value(), testing::Each(0.0f));
}

TEST(MathShapeTest, HalvesAreOffByLittleMoreThanTheirRounding) {
  std::vector<half> x;
  for (int i = 0; i < 1 << 16; i += 7) x.push_back(half::from_bits(static_cast<uint16_t>(i)));
  const auto got = computed<half>(x, x, [](Half a, Half) { return exp(a); });
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = std::exp(static_cast<double>(x[i].to_float())), value = got[i].to_float();
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value));
    } else if (wanted >= 65520) {
      EXPECT_EQ(value, HUGE_VAL) << x[i].to_float();
    } else {
      const double ulp = std::ldexp(1.0, std::max(std::ilogb(wanted), -14) - 10);
      EXPECT_LE(std::abs(value - wanted), 0.501 * ulp) << x[i].to_float();
    }
  }
}

TEST(ComplexTest, Arithmetic) {
  using C = std::complex<double>;
  const std::vector<float> x = {1.5f, -2.25f, 0.5f, 3, -1, 0.125f}, y = {0.5f, 1, -4, 2.5f, -1, 7};
  const auto expect = [&](const char* name, auto device, auto host) {
    const auto re = computed<float>(x, y, [&](Float a, Float b) {
      return device(Complex<float>{a, b}, Complex<float>{b, a}).re;
    });
    const auto im = computed<float>(x, y, [&](Float a, Float b) {
      return device(Complex<float>{a, b}, Complex<float>{b, a}).im;
    });
    for (size_t i = 0; i < x.size(); ++i) {
      const C wanted = host(C(x[i], y[i]), C(y[i], x[i]));
      EXPECT_LT(std::abs(C(re[i], im[i]) - wanted), 4e-7 * (1 + std::abs(wanted)))
          << name << " of " << x[i] << " + " << y[i] << "i";
    }
  };
  using Z = Complex<float>;
  expect(
      "product", [](Z a, Z b) { return a * b; }, [](C a, C b) { return a * b; });
  expect(
      "quotient", [](Z a, Z b) { return a / b; }, [](C a, C b) { return a / b; });
  expect(
      "sums", [](Z a, Z b) { return 2.0f * a - b + 1.0f; },
      [](C a, C b) { return 2.0 * a - b + 1.0; });
  expect(
      "exp", [](Z a, Z) { return exp(a); }, [](C a, C) { return std::exp(a); });
  expect(
      "polar", [](Z a, Z) { return polar(abs(a), arg(a)); }, [](C a, C) { return a; });
  expect(
      "norm",
      [](Z a, Z) {
        return Z{norm(a), 0} * conj(a);
      },
      [](C a, C) { return std::norm(a) * std::conj(a); });
  // Carried by loops and chosen.
  expect(
      "power",
      [](Z a, Z b) {
        const Z cube = For(range(3), Z{1, 0}, [&](Int, Z z) { return z * a; });
        return select(a.re > 0, cube, b);
      },
      [](C a, C b) { return a.real() > 0 ? a * a * a : b; });
}

TEST(FastMathTest, WithinWhatItSays) {
  std::vector<float> x, y;
  for (int i = 1; i < 2000; ++i) {
    x.push_back(0.013f * static_cast<float>(i));
    y.push_back(0.001f * static_cast<float>(i) - 1);
  }
  const auto expect = [&](const char* name, double ulps, auto device, auto host) {
    const auto got = computed<float>(x, y, device);
    for (size_t i = 0; i < x.size(); ++i) {
      const double a = x[i], b = y[i], wanted = host(a, b);
      const double allowed = ulps * 0x1p-23 * std::abs(wanted);
      EXPECT_NEAR(got[i], wanted, allowed + 0x1p-22) << name << " of " << a << ", " << b;
    }
  };
  expect(
      "exp", 30, [](Float a, Float) { return fast::exp(a); },
      [](double a, double) { return std::exp(a); });
  expect(
      "exp10", 6, [](Float, Float b) { return fast::exp10(b); },
      [](double, double b) { return std::pow(10, b); });
  expect(
      "log", 3, [](Float a, Float) { return fast::log(a); },
      [](double a, double) { return std::log(a); });
  expect(
      "log10", 3, [](Float a, Float) { return fast::log10(a); },
      [](double a, double) { return std::log10(a); });
  expect(
      "pow", 12, [](Float a, Float b) { return fast::pow(a, b); },
      [](double a, double b) { return std::pow(a, b); });
  expect(
      "rcp", 1, [](Float, Float b) { return fast::rcp(b + 3); },
      [](double, double b) { return 1 / static_cast<double>(static_cast<float>(b) + 3.0f); });
  expect(
      "div", 2, [](Float a, Float b) { return fast::div(b, -a); },
      [](double a, double b) { return b / -a; });
}

// Through infinities and zeros too; and where one of its steps overflows.
TEST(FastMathTest, NormcdfWithinWhatItSays) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, 1e10f, -1e10f, 3e38f, -3e38f, 1e-40f};
  for (int i = -20000; i < 20000; ++i) x.push_back(0.001f * static_cast<float>(i));
  const auto got = computed<float>(x, x, [](Float a, Float) { return fast::normcdf(a); });
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = std::erfc(-x[i] * M_SQRT1_2) / 2;
    EXPECT_NEAR(got[i], wanted, x[i] >= -4 ? 0x1p-12 * wanted : 0x1p-27) << x[i];
  }
  const auto nan = computed<float>({NAN}, {NAN}, [](Float a, Float) { return fast::normcdf(a); });
  EXPECT_TRUE(std::isnan(nan[0]));
}

}  // namespace
}  // namespace heddle
