// Integers of 8 and 16 bits and 8-bit floats, from lambda to result, on whatever device the tests
// run on: kept, moved, converted, and promoted where they are computed with.
#include <cmath>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// Every bit pattern of an 8-bit type, through a kernel y(i) = body(x(i)).
template <class From, class To, class Body>
std::vector<To> map_all_bytes(const char* name, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel(name, [&](Tensor<const From, 1> x, Tensor<To, 1> y) {
    const Int i = thread_idx.x;
    y(i) = body(x(i));
  });
  std::vector<From> values(256);
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(i);
    std::memcpy(&values[static_cast<size_t>(i)], &byte, 1);
  }
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.allocate(256 * sizeof(To)).value();
  EXPECT_THAT(kernel.launch(stream, {.block = 256}, as_tensor<const From>(in, {256}),
                            as_tensor<To>(out, {256})),
              IsOk());
  return out.download<To>(stream).value();
}

TEST(SmallIntegers, ArePromotedLikeInCpp) {
  const auto doubled =
      map_all_bytes<int8_t, int32_t>("doubled", [](const Int8& x) { return x + x * 2 - (x >> 1); });
  const auto high = map_all_bytes<uint8_t, int32_t>(
      "high", [](const UInt8& x) { return (x & 0xF0) * 1000 + popc(x); });
  for (int i = 0; i < 256; ++i) {
    const auto s = static_cast<int8_t>(i);
    EXPECT_EQ(doubled[static_cast<size_t>(i)], s + s * 2 - (s >> 1));
    EXPECT_EQ(high[static_cast<size_t>(i)], (i & 0xF0) * 1000 + __builtin_popcount(i));
  }
}

TEST(SmallIntegers, NarrowModuloTheirWidth) {
  const auto bytes = map_all_bytes<int8_t, uint8_t>(
      "narrow", [](const Int8& x) { return cast<uint8_t>(x * 5 + 300); });
  const auto words = map_all_bytes<int8_t, int16_t>(
      "words", [](const Int8& x) { return cast<int16_t>(x * 1000); });
  for (int i = 0; i < 256; ++i) {
    const auto s = static_cast<int8_t>(i);
    EXPECT_EQ(bytes[static_cast<size_t>(i)], static_cast<uint8_t>(s * 5 + 300));
    EXPECT_EQ(words[static_cast<size_t>(i)], static_cast<int16_t>(s * 1000));
  }
}

// A warp's sum is as small as what is summed.
TEST(SmallIntegers, AreReduced) {
  const auto sums = map_all_bytes<uint8_t, uint8_t>(
      "sums", [](const UInt8& x) { return warp_reduce(x, plus()); });
  const auto least = map_all_bytes<int8_t, int8_t>(
      "least", [](const Int8& x) { return warp_reduce(x, minimum()); });
  for (int i = 0; i < 256; ++i) {
    const int first = i / 32 * 32;
    EXPECT_EQ(sums[static_cast<size_t>(i)], static_cast<uint8_t>(32 * first + 31 * 16));
    EXPECT_EQ(least[static_cast<size_t>(i)], static_cast<int8_t>(first));
  }
}

TEST(SmallIntegers, SaturateFromFloats) {
  const auto clamped = map_all_bytes<uint8_t, int8_t>(
      "clamped", [](const UInt8& x) { return cast<int8_t>((cast<float>(x) - 128.0f) * 1.7f); });
  const auto unsigned_16 = map_all_bytes<int8_t, uint16_t>(
      "unsigned_16", [](const Int8& x) { return cast<uint16_t>(cast<float>(x) * 600.0f); });
  for (int i = 0; i < 256; ++i) {
    const float wide = (static_cast<float>(i) - 128.0f) * 1.7f;
    EXPECT_EQ(clamped[static_cast<size_t>(i)],
              static_cast<int8_t>(std::min(127.0f, std::max(-128.0f, std::trunc(wide)))));
    const float product = static_cast<float>(static_cast<int8_t>(i)) * 600.0f;
    EXPECT_EQ(unsigned_16[static_cast<size_t>(i)],
              static_cast<uint16_t>(std::min(65535.0f, std::max(0.0f, product))));
  }
}

TEST(Float8, WidensExactly) {
  const auto e4m3 = map_all_bytes<float8_e4m3, float>(
      "e4m3_to_float", [](const Float8E4M3& x) { return cast<float>(x); });
  const auto e5m2 = map_all_bytes<float8_e5m2, float>(
      "e5m2_to_float", [](const Float8E5M2& x) { return cast<float>(x); });
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(i);
    const float a = float8_e4m3::from_bits(byte).to_float();
    const float b = float8_e5m2::from_bits(byte).to_float();
    EXPECT_TRUE(e4m3[byte] == a || (std::isnan(a) && std::isnan(e4m3[byte]))) << i;
    EXPECT_TRUE(e5m2[byte] == b || (std::isnan(b) && std::isnan(e5m2[byte]))) << i;
  }
  EXPECT_EQ(float8_e4m3(1e9).to_float(), 448.0f);
  EXPECT_EQ(float8_e5m2(-1e9).to_float(), -57344.0f);
  EXPECT_EQ(e4m3[0x01], 0x1p-9f);
}

TEST(Float8, RoundsOnceAndSaturates) {
  // 16 steps between neighbours, so that ties and what is beside them occur.
  const auto e4m3 = map_all_bytes<uint8_t, float8_e4m3>("to_e4m3", [](const UInt8& x) {
    return cast<float8_e4m3>(cast<float>(x) * (1.0f / 16) - 6.0f);
  });
  const auto e5m2 = map_all_bytes<uint8_t, float8_e5m2>(
      "to_e5m2", [](const UInt8& x) { return cast<float8_e5m2>(exp2(cast<float>(x) - 128.0f)); });
  for (int i = 0; i < 256; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(e4m3[at].bits, float8_e4m3(i / 16.0 - 6.0).bits) << i;
    EXPECT_EQ(e5m2[at].bits, float8_e5m2(std::ldexp(1.0, i - 128)).bits) << i;
  }
}

// Vectors pack four bytes or two halves in a register: elements keep their places through loads,
// conversions and stores.
template <class T, int N>
void expect_vector_survives(const char* name) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel(name, [](Tensor<const T, 1> x, Tensor<T, 1> y) {
    const Int i = thread_idx.x * N;
    const Vec<T, N> in = x.template vec<N>(i);
    const auto wide = in.template as<float>() * 2.0f;
    y.template vec<N>(i) = Vec<T, N>(wide.template as<T>());
    If(thread_idx.x == 0, [&] { y(0) = in[N - 1]; });
  });
  constexpr int kThreads = 32;
  std::vector<T> values;
  for (int i = 0; i < kThreads * N; ++i) values.push_back(static_cast<T>(i % 29));
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.allocate(values.size() * sizeof(T)).value();
  const auto count = static_cast<int64_t>(values.size());
  ASSERT_THAT(kernel.launch(stream, {.block = kThreads}, as_tensor<const T>(in, {count}),
                            as_tensor<T>(out, {count})),
              IsOk());
  const auto got = out.download<T>(stream).value();
  for (size_t i = 0; i < values.size(); ++i) {
    const T expected = i == 0 ? values[N - 1] : static_cast<T>(2 * (static_cast<int>(i) % 29));
    EXPECT_EQ(std::memcmp(&got[i], &expected, sizeof(T)), 0) << name << " " << i;
  }
}

TEST(SmallTypes, VectorsKeepTheirElements) {
  expect_vector_survives<int8_t, 2>("vec_i8x2");
  expect_vector_survives<int8_t, 16>("vec_i8x16");
  expect_vector_survives<uint8_t, 4>("vec_u8x4");
  expect_vector_survives<int16_t, 2>("vec_i16x2");
  expect_vector_survives<uint16_t, 8>("vec_u16x8");
  expect_vector_survives<float8_e4m3, 2>("vec_e4m3x2");
  expect_vector_survives<float8_e4m3, 8>("vec_e4m3x8");
  expect_vector_survives<float8_e5m2, 16>("vec_e5m2x16");
}

TEST(SmallTypes, ParametersLoopsSelectAndShuffles) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("carried", [](Tensor<const uint8_t, 1> x, Int8 bias, UInt16 top,
                                                  Float8E4M3 scale, Tensor<int32_t, 1> y) {
    const UInt8 own = x(thread_idx.x);
    const UInt8 other = shfl_xor(own, 1);
    Var<uint8_t> last(own);
    for (const Int i : range(4)) {
      last = cast<uint8_t>(Value<uint8_t>(last) + i);
    }
    const Float8E4M3 chosen = select(own > other, scale, Float8E4M3(float8_e4m3(0.0)));
    y(thread_idx.x) = last * 1000 + other + bias + (top >> 15) + cast<int>(cast<float>(chosen));
  });
  std::vector<uint8_t> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<uint8_t>(i * 37));
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.allocate(32 * sizeof(int32_t)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 32}, as_tensor<const uint8_t>(in, {32}), int8_t{-7},
                            uint16_t{0xFFFF}, float8_e4m3(416.0), as_tensor<int32_t>(out, {32})),
              IsOk());
  const auto got = out.download<int32_t>(stream).value();
  for (size_t i = 0; i < 32; ++i) {
    const int own = values[i], other = values[i ^ 1];
    const int last = static_cast<uint8_t>(own + 6);
    EXPECT_EQ(got[i], last * 1000 + other - 7 + 1 + (own > other ? 416 : 0)) << i;
  }
}

}  // namespace
}  // namespace heddle
