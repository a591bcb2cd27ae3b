// CUDA's intrinsics of arithmetic, rounding and conversion in dsl/FROM_CUDA.md: compiled, and run
// on the test device. What stands in the page's Heddle column stands here between the marks.
#include <bit>
#include <cmath>

#include "dsl/from_cuda/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::ElementsAre;

// What `body` stores, run by one thread.
template <class T, class Body>
std::vector<T> run(int count, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel(
      "run(out, x, d, i, l)",
      [&](Tensor<T, 1> out, Float x, Double d, Int i, Int64 l) { body(out, x, d, i, l); });
  expect_compiles(kernel, {tensor({kAny}), scalar(), scalar(), scalar(), scalar()});
  const Buffer out =
      device.upload(absl::MakeConstSpan(std::vector<T>(static_cast<size_t>(count)))).value();
  EXPECT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<T>(out, {count}), 2.5f, 0x1.000001p0,
                            16777217, int64_t{9007199254740993}),
              IsOk());
  return out.template download<T>(stream).value();
}

TEST(FromCudaIntrinsics, ToIntegers) {
  const auto got = run<int64_t>(14, [](auto out, Float x, Double d, Int, Int64) {
    const Half h = cast<half>(x);
    const std::array<Int64, 14> all = [&] {
      // <page>
      Int a = cast<int>(x);
      Int b = cast<int>(x, Rounding::nearest);
      UInt c = cast<uint32_t>(x, Rounding::nearest);
      Int e = cast<int>(x, Rounding::up);
      Int64 f = cast<int64_t>(x);
      Int64 g = cast<int64_t>(x, Rounding::up);
      Int j = cast<int>(d);
      Int k = cast<int>(d, Rounding::nearest);
      UInt64 m = cast<uint64_t>(d, Rounding::up);
      Int n = cast<int>(h);
      Int o = cast<int>(rint(h));
      Int p = cast<int>(ceil(h));
      Int64 bits = bitcast<int64_t>(d);
      Int upper = cast<int>(bitcast<int64_t>(d) >> 32);
      // </page>
      return std::array<Int64, 14>{cast<int64_t>(a),
                                   cast<int64_t>(b),
                                   cast<int64_t>(c),
                                   cast<int64_t>(e),
                                   f,
                                   g,
                                   cast<int64_t>(j),
                                   cast<int64_t>(k),
                                   cast<int64_t>(m),
                                   cast<int64_t>(n),
                                   cast<int64_t>(o),
                                   cast<int64_t>(p),
                                   bits,
                                   cast<int64_t>(upper)};
    }();
    for (int i = 0; i < 14; ++i) out(i) = all[static_cast<size_t>(i)];
  });
  EXPECT_THAT(got, ElementsAre(2, 2, 2, 3, 2, 3, 1, 1, 2, 2, 2, 3, 0x3ff0000010000000, 0x3ff00000));
}

TEST(FromCudaIntrinsics, ToFloats) {
  const auto got = run<double>(12, [](auto out, Float x, Double d, Int i, Int64 l) {
    // <page>
    Float a = cast<float>(d);
    Float b = cast<float>(d, Rounding::up);
    Float c = cast<float>(i);
    Float e = cast<float>(i, Rounding::up);
    Float f = cast<float>(l);
    Double g = cast<double>(l, Rounding::up);
    Half h = cast<half>(x);
    Half hd = cast<half>(d);
    Half hi = cast<half>(i);
    BFloat16 bf = cast<bfloat16>(x);
    Float wide = cast<float>(h);
    // </page>
    const Double all[] = {
        cast<double>(a), cast<double>(b),  cast<double>(c),  cast<double>(e),  cast<double>(f),   g,
        cast<double>(h), cast<double>(hd), cast<double>(hi), cast<double>(bf), cast<double>(wide)};
    for (int k = 0; k < 11; ++k) out(k) = all[k];
  });
  EXPECT_THAT(std::vector<double>(got.begin(), got.begin() + 11),
              ElementsAre(1.0, 1.0 + 0x1p-23, 16777216.0, 16777218.0, 9007199254740992.0,
                          9007199254740994.0, 2.5, 1.0, INFINITY, 2.5, 2.5));
}

TEST(FromCudaIntrinsics, RoundedArithmetic) {
  const auto got = run<double>(9, [](auto out, Float x, Double d, Int, Int64) {
    const Float y = -0x1p-30f, z = 3.0f;
    // <page>
    Float a = fma(x, y, z);
    Float b = add(x, y, Rounding::nearest);
    Float c = add(x, y, Rounding::down);
    Double e = add(d, d, Rounding::up);
    Double f = fma(d, d, d);
    Float g = x / y;
    Float h = sqrt(x);
    Float r = div(Float(1.0f), sqrt(x), Rounding::nearest);
    // </page>
    const Double all[] = {cast<double>(a), cast<double>(b), cast<double>(c), e, f,
                          cast<double>(g), cast<double>(h), cast<double>(r)};
    for (int i = 0; i < 8; ++i) out(i) = all[i];
  });
  const double d = 0x1.000001p0;
  EXPECT_EQ(got[0], std::fma(2.5f, -0x1p-30f, 3.0f));
  EXPECT_EQ(got[1], 2.5);
  EXPECT_EQ(got[2], 2.5 - 0x1p-22);
  EXPECT_EQ(got[3], d + d);
  EXPECT_EQ(got[4], std::fma(d, d, d));
  EXPECT_EQ(got[5], 2.5f / -0x1p-30f);
  EXPECT_EQ(got[6], std::sqrt(2.5f));
  EXPECT_EQ(got[7], 1.0f / std::sqrt(2.5f));
}

// Of one half, and of pairs: half2 and __nv_bfloat162.
TEST(FromCudaIntrinsics, Halves) {
  const auto got = run<float>(24, [](auto out, Float x, Double, Int, Int64) {
    const Float y = 1.5f;
    // <page>
    Half h = cast<half>(x);
    Half sum = h + h;
    Half fused = fma(h, h, h);
    Half larger = max(h, -h);
    Half root = sqrt(h);

    Vec<half, 2> h2(cast<half>(x), cast<half>(y));
    Vec<half, 2> both(h);
    Vec<half, 2> product = h2 * h2 + both;
    Vec<half, 2> quotient = h2 / both;
    Vec<half, 2> fused2 = fma(h2, h2, both);
    Vec<half, 2> relu = max(fma(h2, -h2, both), Vec<half, 2>(half(0.0f)));
    Vec<half, 2> smaller = min(abs(-h2), both);
    Vec<half, 2> exps = exp(h2);
    Vec<half, 2> swapped(h2[1], h2[0]);
    Float high = cast<float>(h2[1]);
    Bool greater = h2[0] > both[0] && h2[1] > both[1];
    Vec<half, 2> theirs = shfl_xor(h2, 1);

    Vec<bfloat16, 2> b2(cast<bfloat16>(x), cast<bfloat16>(y));
    Vec<bfloat16, 2> b3 = b2 * b2 - b2;
    Vec<bfloat16, 2> b4 = fma(b2, b2, b2);
    Vec<float, 2> f2 = b4.as<float>();
    Vec<bfloat16, 2> back = f2.as<bfloat16>();
    // </page>
    use(theirs);
    const Half halves[] = {sum,         fused,       larger,    root,      product[0], product[1],
                           quotient[0], quotient[1], fused2[0], fused2[1], relu[0],    relu[1],
                           smaller[0],  smaller[1],  exps[0],   swapped[0]};
    for (int i = 0; i < 16; ++i) out(i) = cast<float>(halves[i]);
    out(16) = high;
    out(17) = select(greater, 1.0f, 0.0f);
    out(18) = cast<float>(b3[0]);
    out(19) = cast<float>(b3[1]);
    out(20) = f2[0];
    out(21) = f2[1];
    out(22) = cast<float>(back[0]);
    out(23) = cast<float>(back[1]);
  });
  const float ratio = static_cast<float>(half(0.6f));
  const float root = static_cast<float>(half(std::sqrt(2.5f)));
  const float exp = static_cast<float>(half(std::exp(2.5f)));
  EXPECT_THAT(got, ElementsAre(5, 8.75f, 2.5f, root, 8.75f, 4.75f, 1, ratio, 8.75f, 4.75f, 0, 0.25f,
                               2.5f, 1.5f, testing::FloatNear(exp, 0x1p-6f), 1.5f, 1.5f, 0, 3.75f,
                               0.75f, 8.75f, 3.75f, 8.75f, 3.75f));
}

}  // namespace
}  // namespace heddle
