// cast between floats, 8-bit floats and integers: all bits of what the host's conversions give.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/map/copy.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

template <class To, class From>
std::vector<To> cast_on_device(const std::vector<From>& x) {
  const Stream stream = test_device().create_stream().value();
  const auto n = static_cast<int64_t>(x.size());
  const Buffer in = test_device().upload(absl::MakeConstSpan(x)).value(),
               out = test_device().allocate(x.size() * sizeof(To)).value();
  EXPECT_THAT(kernels::cast(stream, as_tensor<const From>(in, {n}), as_tensor<To>(out, {n})),
              IsOk());
  return out.template download<To>(stream).value();
}

// Floats of any bits, and the ends of what smaller types hold.
std::vector<float> all_kinds() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,     -0.0f,    kInfinity, -kInfinity,    448,
                          464,      -465,     1.5f,      -1.5f,         254.9f,
                          255.0f,   256.0f,   -0.9f,     2147483520.0f, 0x1p31f,
                          -0x1p31f, -0x1p32f, 0x1p-9f,   0x1.8p-10f,    0x1p-11f};
  uint64_t state = 1;
  while (x.size() < 5003) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<uint32_t>(state >> 32);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    x.push_back(value);
    x.push_back(std::remainder(value, 600.0f));
  }
  return x;
}

TEST(Casts, ToEightBits) {
  const std::vector<float> x = all_kinds();
  const auto got = cast_on_device<float8_e4m3>(x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      ASSERT_EQ(got[i].bits & 0x7f, 0x7f) << i;
    } else {
      ASSERT_EQ(got[i].bits, float8_e4m3(x[i]).bits) << x[i];
    }
  }
}
TEST(Casts, FromEightBits) {
  std::vector<float8_e4m3> x;
  for (int bits = 0; bits < 256; ++bits) x.push_back(float8_e4m3::from_bits(bits));
  const auto wide = cast_on_device<float>(x);
  const auto narrow = cast_on_device<bfloat16>(x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i].to_float())) {
      EXPECT_TRUE(std::isnan(wide[i]) && std::isnan(static_cast<float>(narrow[i]))) << i;
    } else {
      EXPECT_EQ(wide[i], x[i].to_float());
      EXPECT_EQ(static_cast<float>(narrow[i]), x[i].to_float());
    }
  }
}

template <class T>
void check_cut_off() {
  using Limits = std::numeric_limits<T>;
  const std::vector<float> x = all_kinds();
  const auto got = cast_on_device<T>(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double whole = std::isnan(x[i]) ? 0 : std::trunc(static_cast<double>(x[i]));
    ASSERT_EQ(got[i], static_cast<T>(std::clamp<double>(whole, Limits::lowest(), Limits::max())))
        << x[i];
  }
}
TEST(Casts, ToIntegers) {
  check_cut_off<int32_t>();
  check_cut_off<uint8_t>();
}
TEST(Casts, FromIntegers) {
  std::vector<int32_t> x;
  for (uint32_t i = 0; i < 4001; ++i) x.push_back(static_cast<int32_t>(i * 2654435761u));
  const auto got = cast_on_device<float>(x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(x[i]));
}

}  // namespace
}  // namespace heddle
