// The programs of kernels/learn that compute with floats, against double precision.
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/kernels/learn/04_nbody.h"
#include "heddle/kernels/learn/05_mandelbrot.h"
#include "heddle/kernels/learn/06_black_scholes.h"
#include "heddle/kernels/learn/11_stencil.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::learn {
namespace {

std::vector<float> random_floats(int64_t count, float low, float high, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

Buffer on_device(const std::vector<float>& values) {
  return test_device().upload(absl::MakeConstSpan(values)).value();
}

TEST(LearnFloatTest, Nbody) {
  const Stream stream = test_device().create_stream().value();
  for (const int64_t n : {1, 255, 256, 300}) {
    const std::vector<float> body = random_floats(4 * n, 0.1f, 1, 1);
    const std::vector<float> velocity = random_floats(4 * n, -1, 1, 2);
    const float dt = 0.01f;
    const Buffer body_memory = on_device(body), velocity_memory = on_device(velocity);
    const Buffer moved_memory = on_device(std::vector<float>(4 * n));
    ASSERT_THAT(nbody.launch(stream, nbody_shape(n), as_tensor<const float>(body_memory, {n, 4}),
                             as_tensor<float>(velocity_memory, {n, 4}),
                             as_tensor<float>(moved_memory, {n, 4}), dt),
                IsOk());
    const std::vector<float> moved = moved_memory.download<float>(stream).value();
    const std::vector<float> faster = velocity_memory.download<float>(stream).value();
    for (int64_t i = 0; i < n; ++i) {
      double a[3] = {0, 0, 0}, magnitude[3] = {0, 0, 0};
      for (int64_t j = 0; j < n; ++j) {
        double d[3], square = kSoftening2;
        for (int k = 0; k < 3; ++k) {
          d[k] = double{body[4 * j + k]} - body[4 * i + k];
          square += d[k] * d[k];
        }
        const double pull = body[4 * j + 3] / (square * std::sqrt(square));
        for (int k = 0; k < 3; ++k) {
          a[k] += d[k] * pull;
          magnitude[k] += std::abs(d[k] * pull);
        }
      }
      for (int k = 0; k < 3; ++k) {
        // A term is a few roundings and a cube of rsqrt off; a sum of n terms in turn, n roundings.
        const double error = magnitude[k] * (32 + static_cast<double>(n)) * 0x1p-24 * dt + 1e-6;
        const double v = velocity[4 * i + k] + a[k] * dt;
        ASSERT_NEAR(faster[4 * i + k], v, error) << n << ": " << i;
        ASSERT_NEAR(moved[4 * i + k], body[4 * i + k] + v * dt, error * dt + 1e-6);
      }
      ASSERT_EQ(moved[4 * i + 3], body[4 * i + 3]);
    }
  }
}

// The same roundings on the host: every count is the same, chaotic as the set's edge is.
TEST(LearnFloatTest, Mandelbrot) {
  const Stream stream = test_device().create_stream().value();
  const int64_t height = 37, width = 53;
  const int limit = 100;
  const float left = -2, top = -1.25f, step = 0.06f;
  const Buffer image = on_device(std::vector<float>(height * width));
  ASSERT_THAT(
      mandelbrot.launch(stream, mandelbrot_shape(height, width),
                        as_tensor<int32_t>(image, {height, width}), Window{left, top, step}, limit),
      IsOk());
  const std::vector<int32_t> got = image.download<int32_t>(stream).value();
  int inside = 0;
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const float re = std::fma(static_cast<float>(column), step, left);
      const float im = std::fma(static_cast<float>(row), step, top);
      float x = 0, y = 0;
      int count = 0;
      while (count < limit && std::fma(x, x, y * y) <= 4.0f) {
        const float next = std::fma(x, x, std::fma(-y, y, re));
        y = std::fma(x + x, y, im);
        x = next;
        ++count;
      }
      inside += count == limit ? 1 : 0;
      ASSERT_EQ(got[row * width + column], count) << row << ", " << column;
    }
  }
  EXPECT_GT(inside, 100);
  EXPECT_LT(inside, height * width / 2);
}

TEST(LearnFloatTest, BlackScholes) {
  const Stream stream = test_device().create_stream().value();
  const double rate = 0.02, volatility = 0.3;
  for (const int64_t n : {2, 254, 1002}) {
    const std::vector<float> price = random_floats(n, 5, 30, 1),
                             strike = random_floats(n, 1, 100, 2);
    const std::vector<float> years = random_floats(n, 0.25f, 10, 3);
    const Buffer memory[] = {on_device(price), on_device(strike), on_device(years),
                             on_device(std::vector<float>(n)), on_device(std::vector<float>(n))};
    ASSERT_THAT(black_scholes.launch(
                    stream, black_scholes_shape(n),
                    Market{static_cast<float>(rate), static_cast<float>(volatility)},
                    as_tensor<const float>(memory[0], {n}), as_tensor<const float>(memory[1], {n}),
                    as_tensor<const float>(memory[2], {n}), as_tensor<float>(memory[3], {n}),
                    as_tensor<float>(memory[4], {n})),
                IsOk());
    const std::vector<float> call = memory[3].download<float>(stream).value();
    const std::vector<float> put = memory[4].download<float>(stream).value();
    const auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
    for (int64_t i = 0; i < n; ++i) {
      const double s = price[i], x = strike[i], t = years[i], spread = volatility * std::sqrt(t);
      const double d1 = (std::log(s / x) + (rate + volatility * volatility / 2) * t) / spread;
      const double discounted = x * std::exp(-rate * t);
      const double expected = s * normal(d1) - discounted * normal(d1 - spread);
      // The polynomial is good to 7.5e-8, the functions to units of 2^-24.
      const double error = (s + discounted) * 4e-7;
      ASSERT_NEAR(call[i], expected, error) << i;
      ASSERT_NEAR(put[i], expected - s + discounted, error) << i;
    }
  }
}

// The same roundings on the host: every sum is the same.
TEST(LearnFloatTest, Stencil) {
  const Stream stream = test_device().create_stream().value();
  const int64_t sizes[][3] = {{1, 1, 4}, {3, 16, 32}, {2, 17, 36}, {5, 35, 68}};
  for (const auto& size : sizes) {
    const int64_t planes = size[0], rows = size[1], columns = size[2], frame = 2 * kReach;
    const int64_t row_step = columns + frame, plane_step = (rows + frame) * row_step;
    const std::vector<float> x = random_floats((planes + frame) * plane_step, -1, 1, 1);
    const Buffer x_memory = on_device(x);
    const Buffer y_memory = on_device(std::vector<float>(planes * rows * columns));
    ASSERT_THAT(stencil.launch(stream, stencil_shape(rows, columns),
                               as_tensor<const float>(
                                   x_memory, {planes + frame, rows + frame, columns + frame}),
                               as_tensor<float>(y_memory, {planes, rows, columns})),
                IsOk());
    const std::vector<float> y = y_memory.download<float>(stream).value();
    for (int64_t at = 0; at < planes * rows * columns; ++at) {
      const int64_t z = at / (rows * columns), i = at / columns % rows, j = at % columns;
      const float* const c = &x[(z + kReach) * plane_step + (i + kReach) * row_step + j + kReach];
      float sum = kWeights[0] * *c;
      for (int64_t k = 1; k <= kReach; ++k) {
        const float across = (c[-k * row_step] + c[k * row_step]) + (c[-k] + c[k]);
        sum = std::fma(kWeights[k], across + (c[-k * plane_step] + c[k * plane_step]), sum);
      }
      ASSERT_EQ(y[at], sum) << z << ", " << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace heddle::learn
