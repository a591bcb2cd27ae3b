// The arithmetic of dsl/FROM_CUDA.md, as from_cuda_device_test.cc has the rest.
#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

TEST(FromCudaArithmetic, Floats) {
  const auto kernel = define_kernel("floats(out, x, y, z, d)",
                                    [](Tensor<float, 1> out, Float x, Float y, Float z, Double d) {
                                      // <page>
                                      use(x / y);
                                      use(fma(x, y, z));
                                      use(sqrt(x));
                                      use(rsqrt(x));
                                      use(min(x, y));
                                      use(max(x, y));
                                      use(min_nan(x, y));
                                      use(abs(x));
                                      use(floor(x));
                                      use(ceil(x));
                                      use(trunc(x));
                                      use(rint(x));
                                      use(round(x));
                                      use(fmod(x, y));
                                      use(exp(x));
                                      use(exp(d));
                                      use(log(x));
                                      use(pow(x, y));
                                      use(sin(x));
                                      auto [s, c] = sincos(x);
                                      use(tanh(x));
                                      use(erf(x));
                                      use(hypot(x, y));
                                      auto [sp, cp] = sincospi(x);
                                      use(norm3d(x, y, z));
                                      use(norm4d(d, d, d, d));
                                      use(rnorm3d(x, y, z));
                                      use(rcbrt(x));
                                      use(tgamma(x));
                                      use(lgamma(x));
                                      use(erfcx(x));
                                      use(erfinv(x));
                                      use(erfcinv(x));
                                      use(normcdf(x));
                                      use(normcdfinv(x));
                                      use(ldexp(x, 3));
                                      use(frexp(x).exponent);
                                      use(isnan(x));
                                      use(signbit(x));
                                      use(copysign(x, y));
                                      use(saturate(x));

                                      use(fast::exp(x));
                                      use(fast::exp2(x));
                                      use(fast::log(x));
                                      use(fast::pow(x, y));
                                      use(fast::sin(x));
                                      use(fast::cos(x));
                                      use(fast::tanh(x));
                                      use(fast::div(x, y));
                                      use(fast::rcp(x));
                                      use(rcp(x));

                                      use(add(x, y, Rounding::zero));
                                      use(sub(x, y, Rounding::down));
                                      use(mul(x, y, Rounding::up));
                                      use(div(x, y, Rounding::zero));
                                      use(fma(x, y, z, Rounding::zero));
                                      use(sqrt(x, Rounding::zero));
                                      use(rcp(x, Rounding::up));
                                      use(add(mul(x, y, Rounding::nearest), z, Rounding::nearest));
                                      FlushSubnormals flush;
                                      // </page>
                                      out(0) = s + c + sp + cp;
                                    });
  expect_compiles(kernel, {tensor({kAny}), scalar(), scalar(), scalar(), scalar()});
}

TEST(FromCudaArithmetic, Conversions) {
  const auto kernel =
      define_kernel("conversions(out, x, d, i)", [](Tensor<half, 1> out, Float x, Double d, Int i) {
        // <page>
        use(cast<int>(x));
        use(cast<int>(x, Rounding::nearest));
        use(cast<uint32_t>(x, Rounding::down));
        use(cast<float>(i));
        use(cast<float>(i, Rounding::zero));
        use(cast<float>(d, Rounding::up));
        use(bitcast<int32_t>(x));
        use(bitcast<float>(i));
        Half h = cast<half>(x);
        BFloat16 b = cast<bfloat16>(x);
        Float8E4M3 e = cast<float8_e4m3>(x);
        TFloat32 t = cast<tfloat32>(x);
        Float wide = cast<float>(h);
        Vec<half, 2> h2(h, cast<half>(d));
        Vec<half, 2> product = fma(h2, h2, h2);
        Vec<half, 2> e2 = exp(h2);
        Vec<float, 2> f2 = h2.as<float>();
        Vec<float, 4> q(x, 0.0f, 1.0f, x);
        Float first = q[0];
        Int8 small = cast<int8_t>(i);
        Complex<float> z = {x, 0.0f};
        Complex<float> w = z * conj(z);
        // </page>
        use(b);
        use(e);
        use(t);
        use(product);
        use(f2);
        use(small + 1);
        out(0) = e2[0] + cast<half>(wide + first + w.re);
      });
  expect_compiles(kernel, {tensor({kAny}), scalar(), scalar(), scalar()});
}

TEST(FromCudaArithmetic, FloatsOfBlackwell) {
  const auto kernel = define_kernel("narrow(out, x)", [](Tensor<half, 1> out, Float x) {
    // <page>
    Float8E8M0 scale = cast<float8_e8m0>(x);
    use(cast<float8_e8m0>(x, Rounding::zero));
    Float4E2M1x2 pair = pack_e2m1(Vec<float, 2>(x, x));
    Vec<half, 2> numbers = unpack_e2m1(pair);
    // </page>
    out(0) = numbers[0] * cast<half>(scale);
  });
  expect_compiles(kernel, {tensor({kAny}), scalar()}, "sm_100a");
}

TEST(FromCudaArithmetic, Integers) {
  const auto kernel =
      define_kernel("integers(out, a, b, c, i, k)",
                    [](Tensor<uint32_t, 1> out, UInt a, UInt b, UInt c, Int i, Int k) {
                      // <page>
                      use(popc(a));
                      use(clz(a));
                      use(ffs(a));
                      use(brev(a));
                      use(byte_perm(a, b, 0x5140));
                      use(funnelshift_l(a, b, 7));
                      use(funnelshift_r(a, b, 7));
                      use(funnelshift_lc(a, b, c));
                      use(funnelshift_rc(a, b, c));
                      use(dp2a_lo(i, k, i));
                      use(dp2a_hi(a, b, c));
                      use(hadd(i, k));
                      use(rhadd(a, b));
                      use(dp4a(i, k, i));
                      use(dp4a(a, b, c));
                      use(mulhi(a, b));
                      use(mul_wide(i, k));
                      use(a * b);
                      use(bit_extract(a, 4u, 8u));
                      use(bit_insert(a, b, 4u, 8u));
                      use(lop3<0x96>(a, b, c));
                      use(abs(i - k));
                      use(floor_mod(i, k));
                      auto sum = add_carry(a, b);
                      // </page>
                      out(0) = sum.value;
                    });
  expect_compiles(kernel, {tensor({kAny}), scalar(), scalar(), scalar(), scalar(), scalar()});
}

}  // namespace
}  // namespace heddle
