// The values, variables and control flow of dsl/LANGUAGE.md: what its tables show stands here between
// the marks, where it is traced, verified and assembled. pages_test.cc compares the two.
#include <vector>

#include "dsl/from_cuda/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using Floats = Tensor<float, 1>;
using Ints = Tensor<int32_t, 1>;

// <page>
// x to the power of a host number. The recursion ends while tracing; the kernel has the products.
template <class T>
Value<T> power(const Value<T>& x, int exponent) {
  return exponent == 1 ? x : x * power(x, exponent - 1);
}

const auto cubes = define_kernel("cubes(x)", [](Tensor<float, 1> x) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < x.shape(0), [&] { x(i) = power(Float(x(i)), 3); });  // a branch on the GPU
});
// </page>

TEST(Guide, HostCodeRunsWhileTracing) {
  const Stream stream = test_device().create_stream().value();
  const Buffer x = test_device().upload<float>({1, 2, 3}).value();
  ASSERT_THAT(cubes.launch(stream, {.block = 4}, as_tensor<float>(x, {3})), IsOk());
  EXPECT_THAT(x.download<float>(stream).value(), testing::ElementsAre(1, 8, 27));
}

TEST(Guide, Values) {
  const auto kernel = define_kernel("values(x, k, y)", [](Floats x, Ints k, Floats y) {
    const Int n = k(0);
    const Int i = thread_idx.x;
    const UInt word = bitcast<uint32_t>(n);
    // <page>
    Float a = x(0);
    Double d = cast<double>(a);
    Half h = cast<half>(a);
    BFloat16 b16 = cast<bfloat16>(a);
    Int64 wide = cast<int64_t>(n);
    UInt64 address = bitcast<uint64_t>(wide);
    Bool positive = a > 0.0f;
    Int8 small = cast<int8_t>(n);
    UInt8 byte = cast<uint8_t>(n);
    Int16 medium = cast<int16_t>(n);
    UInt16 letter = cast<uint16_t>(n);
    Int sum = small + medium;
    Float8E4M3 e4 = cast<float8_e4m3>(a);
    Float8E5M2 e5 = cast<float8_e5m2>(a);
    TFloat32 t19 = cast<tfloat32>(a);

    Var<float> v(0.0f);
    v += a;
    Var<std::array<Float, 4>> four({a, a, 0.0f, 1.0f});
    four[2] = a;

    Vec<float, 4> q(a, 0.0f, 1.0f, a);
    Fragment<float> tile(16, a);
    Vec<float, 4> positives = select(q > 0.0f, exp(q), Vec<float, 4>(0.0f));
    Vec<half, 4> halves = q.as<half>();

    UInt bits = bitcast<uint32_t>(a);
    Float chosen = select(positive, a, Float(0));
    // </page>
    use(letter);
    use(e4);
    use(e5);
    use(t19);
    use(word);
    use(halves);
    y(i) = chosen + v + positives[0] + tile[0] + cast<float>(bits) + cast<float>(address) +
           cast<float>(d) + cast<float>(h) + cast<float>(b16) + cast<float>(sum) +
           cast<float>(byte) + four[2];
  });
  expect_compiles(kernel, {tensor({kAny}), tensor({kAny}), tensor({kAny})});
}

TEST(Guide, NarrowFloats) {
  const auto kernel = define_kernel("narrow(x, y)", [](Floats x, Floats y) {
    const Float a = x(0);
    // <page>
    Float8E8M0 scale = cast<float8_e8m0>(a);
    Float4E2M1x2 pair = pack_e2m1(Vec<float, 2>(a, a));
    Vec<half, 2> numbers = unpack_e2m1(pair);
    // </page>
    y(0) = cast<float>(scale) + cast<float>(numbers[0]);
  });
  expect_compiles(kernel, {tensor({kAny}), tensor({kAny})}, "sm_100a");
}

TEST(Guide, Arithmetic) {
  const auto kernel = define_kernel("arithmetic(x, k, y)", [](Floats x, Ints k, Floats y) {
    const Float a = x(0), b = x(1), c = x(2);
    const Int n = k(0), m = k(1);
    const UInt u = bitcast<uint32_t>(n), w = bitcast<uint32_t>(m), z = u + w;
    // <page>
    use(a + b - a * b / c);
    use(n % m);
    use((u & w) | (~u ^ w));
    use(u << 3u);
    use(u >> 1u);
    use(a < b && !(a == c));
    use(n >= m || n != 0);
    use(min(a, b));
    use(max(a, b));
    use(abs(a));
    use(fma(a, b, c));
    use(sqrt(a));
    use(rcp(a));
    use(rsqrt(a));

    use(floor(a));
    use(ceil(a));
    use(trunc(a));
    use(rint(a));
    use(round(a));
    use(exp(a));
    use(log(a));
    use(pow(a, b));
    use(sin(a));
    use(atan2(a, b));
    use(tanh(a));
    use(erf(a));
    use(tgamma(a));
    use(cbrt(a));
    use(hypot(a, b));
    use(fmod(a, b));
    auto [s, t] = sincos(a);
    use(fast::exp(a));
    use(fast::log(a));
    use(fast::pow(a, b));
    use(fast::sin(a));
    use(fast::tanh(a));
    use(fast::div(a, b));
    use(fast::rcp(a));
    use(fast::normcdf(a));

    use(add(a, b, Rounding::up));
    use(div(a, b, Rounding::zero));
    use(cast<int>(a, Rounding::down));
    use(saturate(a));
    use(min_nan(a, b));
    {
      FlushSubnormals flush;
      use(a * b);
    }
    Complex<float> p = {a, b};
    Complex<float> o = exp(p) * conj(p);

    use(popc(u));
    use(clz(u));
    use(ffs(u));
    use(brev(u));
    use(mulhi(u, w));
    use(bit_extract(u, 4u, 8u));
    use(bit_insert(u, w, 4u, 8u));
    use(funnelshift_l(u, w, 7));
    use(byte_perm(u, w, 0x5140));
    use(lop3<0x96>(u, w, z));
    use(dp4a(u, w, z));
    use(dp2a_lo(u, w, z));
    use(hadd(n, m));
    use(mul_wide(n, m));
    use(mad_wide(n, m, mul_wide(n, n)));
    auto with_carry = add_carry(u, w);
    use(floor_div(n, m));
    use(floor_mod(n, m));
    FastDivmod by(n);
    use(m / by);
    use(m % by);
    // </page>
    use(with_carry.carry);
    y(0) = s + t + o.re;
  });
  expect_compiles(kernel, {tensor({kAny}), tensor({kAny}), tensor({kAny})});
}

TEST(Guide, Control) {
  const auto kernel = define_kernel("control(x, y, n)", [](Floats x, Floats y, Int n) {
    const Int i = thread_idx.x;
    // <page>
    Float total = For(range(n), Float(0), [&](Int k, Float acc) { return acc + x(k); });

    Var<float> v(0.0f);
    for (Int k : range(n)) v += x(k);
    for (Int k : range(i, n, block_dim.x)) v += x(k);
    for (Int k : range(n).unroll(4)) v += x(k);
    While([&] { return v < 100.0f; }, [&] { v *= 2; });
    Int halvings = While(
        n, [](Int left) { return left > 1; }, [](Int left) { return left / 2; });

    If(i < n, [&] { v = x(i); });
    If(i < n, [&] { v = x(i); }).Else([&] { v = 0.0f; });
    Float root = If(
        total > 0, [&] { return sqrt(total); }, [&] { return Float(0); });
    Switch(n, Case(0, [&] { v = 1; }), Case({1, 2}, [&] { v = 2; }), Default([&] { v = 3; }));
    for (Int k : range(n)) {
      If(x(k) < 0, [] { Continue(); });
      If(x(k) == 0, [] { Break(); });
      v += x(k);
    }
    If(i >= n, [] { Return(); });

    assume(n > 0);
    Int few = assume_range(n, 0, 63);
    Int even = assume_divisible(n, 8);
    Int same = assume_uniform(n);
    If(unlikely(n > 1000), [&] { v = 0.0f; });
    If(likely(n < 0), [] { unreachable(); });
    // </page>
    y(i) = v + root + cast<float>(halvings + few + even + same);
  });
  expect_compiles(kernel, {tensor({kAny}), tensor({kAny}), scalar()});
}

// <page>
struct MaxAt {
  Float value;
  Int index;
};

const auto max_of_rows = define_kernel(
    "max_of_rows(x, y, at)",
    [](Tensor<const float, 2> x, Tensor<float, 1> y, Tensor<int32_t, 1> at) {
      Int row = thread_idx.x;
      MaxAt best = For(range(x.shape(1)), MaxAt{x(row, 0), 0}, [&](Int i, MaxAt so_far) {
        return select(x(row, i) > so_far.value, MaxAt{x(row, i), i}, so_far);
      });
      y(row) = best.value;
      at(row) = best.index;
    });
// </page>

TEST(Guide, LoopsCarryStructs) {
  const Stream stream = test_device().create_stream().value();
  const Buffer x = test_device().upload<float>({1, 5, 3, 9, 8, 7}).value();
  const Buffer y = test_device().upload<float>({0, 0}).value();
  const Buffer at = test_device().upload<int32_t>({0, 0}).value();
  ASSERT_THAT(max_of_rows.launch(stream, {.block = 2}, as_tensor<const float>(x, {2, 3}),
                                 as_tensor<float>(y, {2}), as_tensor<int32_t>(at, {2})),
              IsOk());
  EXPECT_THAT(y.download<float>(stream).value(), testing::ElementsAre(5, 9));
  EXPECT_THAT(at.download<int32_t>(stream).value(), testing::ElementsAre(1, 0));
}

}  // namespace
}  // namespace heddle
