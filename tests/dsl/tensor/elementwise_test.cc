// Elementwise functions take values, vectors, fragments, host numbers and built-in indices alike,
// and give each element what they give the value.
#include <array>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Elements of a kind that functions differ on: signs, sizes, zeros.
template <class T>
std::array<T, 4> samples();
template <>
std::array<float, 4> samples() {
  return {0.75f, -2.5f, 3.0f, 0.0f};
}
template <>
std::array<int32_t, 4> samples() {
  return {7, -8, 1 << 20, 5};
}
template <>
std::array<uint32_t, 4> samples() {
  return {7, 0xFFFFFFF8u, 1u << 20, 5};
}

// Counts the elements in which f(v, w) of vectors, and of fragments, differs in any bit from f(a,
// b) of their elements.
template <class T, class F>
std::vector<int32_t> differences(F f) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      local_kernel("elementwise(x, y)", [&](Tensor<const T, 1> x, Tensor<int, 1> y) {
        const Vec<T, 4> v = x.template vec<4>(0), w(v[3], v[0], v[1], v[2]);
        const auto vectors = f(v, w);
        const auto fragments = f(Fragment<T>(v), Fragment<T>(w));
        for (int i = 0; i < 4; ++i) {
          const auto single = f(v[i], w[i]);
          const auto same = [&](const auto& element) {
            using R = typename std::remove_cvref_t<decltype(single)>::value_type;
            if constexpr (std::is_same_v<R, bool>) {
              return element == single;
            } else if constexpr (sizeof(R) == 8) {
              return bitcast<int64_t>(element) == bitcast<int64_t>(single);
            } else {
              return bitcast<int32_t>(element) == bitcast<int32_t>(single);
            }
          };
          y(i) = select(same(vectors[i]) & same(fragments[i]), 0, 1);
        }
      });
  const std::array<T, 4> values = samples<T>();
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int32_t>(4, -1))).value();
  EXPECT_THAT(
      kernel.launch(stream, {.block = 1}, as_tensor<const T>(in, {4}), as_tensor<int>(out, {4})),
      IsOk());
  return out.download<int32_t>(stream).value();
}

#define HEDDLE_SAME(T, ...)                                                                      \
  EXPECT_THAT(                                                                                   \
      differences<T>([](const auto& v, [[maybe_unused]] const auto& w) { return __VA_ARGS__; }), \
      Each(0))                                                                                   \
      << #__VA_ARGS__

TEST(Elementwise, ArithmeticOfFloats) {
  HEDDLE_SAME(float, v + w);
  HEDDLE_SAME(float, v - 1.5f);
  HEDDLE_SAME(float, 2 * v);
  HEDDLE_SAME(float, v / w);
  HEDDLE_SAME(float, -v);
  HEDDLE_SAME(float, abs(v));
  HEDDLE_SAME(float, min(v, w));
  HEDDLE_SAME(float, max(v, 0.5f));
  HEDDLE_SAME(float, fma(v, 2.0f, w));
  HEDDLE_SAME(float, saturate(v));
  HEDDLE_SAME(float, min_nan(v, w));
  HEDDLE_SAME(float, max_nan(v, w));
  HEDDLE_SAME(float, sqrt(v));
  HEDDLE_SAME(float, rcp(v));
  HEDDLE_SAME(float, rsqrt(v));
  HEDDLE_SAME(float, floor(v));
  HEDDLE_SAME(float, ceil(v));
  HEDDLE_SAME(float, trunc(v));
  HEDDLE_SAME(float, rint(v));
}

TEST(Elementwise, ArithmeticOfIntegers) {
  HEDDLE_SAME(int32_t, v % 5);
  HEDDLE_SAME(int32_t, mulhi(v, w));
  HEDDLE_SAME(int32_t, (v & w) | ~(v ^ 3));
  HEDDLE_SAME(int32_t, brev(v));
  HEDDLE_SAME(int32_t, popc(v));
  HEDDLE_SAME(int32_t, clz(v));
  HEDDLE_SAME(int32_t, ffs(v));
  HEDDLE_SAME(uint32_t, popc(v));
  HEDDLE_SAME(uint32_t, clz(v) + ffs(v));
  HEDDLE_SAME(int32_t, v << 3);
  HEDDLE_SAME(int32_t, v >> 3);
  HEDDLE_SAME(int32_t, v << (w & 31));
  HEDDLE_SAME(uint32_t, v >> (w & 31u));
  HEDDLE_SAME(uint32_t, byte_perm(v, w, 0x5140));
  HEDDLE_SAME(uint32_t, byte_perm(7, v, w & 0xFFFFu));
  HEDDLE_SAME(uint32_t, add_carry(v, w).value + add_carry(~v, 0xFFFFFF00u, v == w).value);
  HEDDLE_SAME(uint32_t, add_carry(~v, w, true).carry);
  HEDDLE_SAME(uint32_t, add_carry(v, ~v, v != w).carry);
  HEDDLE_SAME(uint32_t, sub_borrow(v, w, true).value);
  HEDDLE_SAME(uint32_t, sub_borrow(v, w, v == w).carry);
  HEDDLE_SAME(float, bitcast<float>(bitcast<uint32_t>(v) ^ bitcast<uint32_t>(w * 3.0f)));
}

TEST(Elementwise, ComparisonsAndChoice) {
  HEDDLE_SAME(float, v == w);
  HEDDLE_SAME(float, v != 0.0f);
  HEDDLE_SAME(float, v < w);
  HEDDLE_SAME(float, v <= w);
  HEDDLE_SAME(float, v > w);
  HEDDLE_SAME(float, 0.0f >= v);
  HEDDLE_SAME(float, select(v < w, v, w));
  HEDDLE_SAME(float, select((!(v < w)) & (v != 0.0f), v, 1.0f));
  HEDDLE_SAME(int32_t, select((v < w) | (v == 5), 1, w));
  HEDDLE_SAME(int32_t, (v < w) ^ (w < 0));
}

TEST(Elementwise, Functions) {
  HEDDLE_SAME(float, exp(v));
  HEDDLE_SAME(float, pow(abs(v), w));
  HEDDLE_SAME(float, pow(2.0f, v));
  HEDDLE_SAME(float, atan2(v, 2.0f));
  HEDDLE_SAME(float, norm3d(v, 1.0f, w));
  HEDDLE_SAME(float, sincos(v).sin + sincospi(w).cos);
  HEDDLE_SAME(float, ldexp(v, 3));
  HEDDLE_SAME(float, frexp(v).fraction);
  HEDDLE_SAME(float, frexp(v).exponent);
  HEDDLE_SAME(float, isnan(sqrt(v)));
  HEDDLE_SAME(float, isinf(1.0f / v));
  HEDDLE_SAME(float, isfinite(1.0f / v));
  HEDDLE_SAME(float, signbit(v));
}

TEST(Elementwise, FastFunctions) {
  HEDDLE_SAME(float, fast::exp2(v));
  HEDDLE_SAME(float, fast::exp(v));
  HEDDLE_SAME(float, fast::exp10(v));
  HEDDLE_SAME(float, fast::log2(abs(v)));
  HEDDLE_SAME(float, fast::log(abs(v)));
  HEDDLE_SAME(float, fast::log10(abs(v)));
  HEDDLE_SAME(float, fast::rsqrt(abs(v)));
  HEDDLE_SAME(float, fast::pow(abs(v), w));
  HEDDLE_SAME(float, fast::normcdf(v));
  HEDDLE_SAME(float, fast::rcp(v));
  HEDDLE_SAME(float, fast::div(v, w));
  HEDDLE_SAME(float, fast::div(1.0f, v));
  HEDDLE_SAME(float, fast::sin(v));
  HEDDLE_SAME(float, fast::cos(v));
  HEDDLE_SAME(float, fast::tanh(v));
}

TEST(Elementwise, RoundingModes) {
  HEDDLE_SAME(float, add(v, w, Rounding::up));
  HEDDLE_SAME(float, sub(v, 1.1f, Rounding::down));
  HEDDLE_SAME(float, mul(v, w, Rounding::zero));
  HEDDLE_SAME(float, div(v, 3.0f, Rounding::up));
  HEDDLE_SAME(float, fma(v, w, 0.1f, Rounding::down));
  HEDDLE_SAME(float, sqrt(abs(v), Rounding::up));
  HEDDLE_SAME(float, rcp(v, Rounding::down));
  HEDDLE_SAME(float, cast<int>(v, Rounding::up));
  HEDDLE_SAME(float, cast<int>(v));
}

TEST(Elementwise, FunctionsOfIntegers) {
  HEDDLE_SAME(int32_t, hadd(v, w));
  HEDDLE_SAME(int32_t, rhadd(v, 3));
  HEDDLE_SAME(int32_t, floor_div(v, 5));
  HEDDLE_SAME(int32_t, floor_mod(v, 5));
  HEDDLE_SAME(int32_t, bit_extract(v, 2, 5));
  HEDDLE_SAME(int32_t, bit_insert(v, w, 2, 5));
  HEDDLE_SAME(int32_t, mul_wide(v, w));
  HEDDLE_SAME(int32_t, mad_wide(v, w, 5));
  HEDDLE_SAME(int32_t, dp4a(v, w, 1));
  HEDDLE_SAME(int32_t, dp2a_lo(v, w, v));
  HEDDLE_SAME(uint32_t, dp2a_hi(v, w, 1));
  HEDDLE_SAME(uint32_t, lop3<0x96>(v, w, 5));
  HEDDLE_SAME(uint32_t, funnelshift_l(v, w, 7));
  HEDDLE_SAME(uint32_t, funnelshift_r(v, 1, 7));
  HEDDLE_SAME(uint32_t, funnelshift_lc(v, w, 40));
  HEDDLE_SAME(uint32_t, funnelshift_rc(v, w, 40));
}

TEST(Elementwise, HostNumbersAndIndicesStandWhereValuesMay) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("operands(y)", [](Tensor<int64_t, 1> y) {
    auto put = [&, at = 0](const auto& value) mutable { y(at++) = cast<int64_t>(value); };
    put(mul_wide(thread_idx.x, -3));
    put(mul_wide(5, thread_idx.x));
    put(floor_div(block_dim.x, 2));
    put(floor_mod(-7, block_dim.x));
    put(hadd(thread_idx.x, 4));
    put(bit_extract(block_dim.x, 0, 2));
    put(cast<int>(fast::div(6.0f, cast<float>(block_dim.x)) + 0.5f));
    put(add_carry(UInt(0xFFFFFFFFu), 1u).carry);
  });
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int64_t>(8, -1))).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<int64_t>(out, {8})), IsOk());
  EXPECT_THAT(out.download<int64_t>(stream).value(), ElementsAre(0, 0, 0, 0, 2, 1, 6, 1));
}

TEST(Elementwise, VariablesOfVectorsTakePart) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("variables(y)", [](Tensor<float, 1> y) {
    Var<Vec<float, 4>> v(y.vec<4>(0));
    v += v;
    v = sqrt(v) + v * 2.0f;
    y.vec<4>(0) = select(v > 3.0f, v, -v);
  });
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<float>{0, 0.5f, 2, 8})).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<float>(out, {4})), IsOk());
  EXPECT_THAT(out.download<float>(stream).value(), ElementsAre(0, -3, 10, 36));
}

}  // namespace
}  // namespace heddle
